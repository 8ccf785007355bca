"""Runs of crossing_50 in which the first message about X leads to a warning after a chosen time."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from node_agent.virtual.run import simulate, write_run
from node_agent.virtual.scenario import Scenario as Conditions
from sim_vehicles.closed_loop.closed_loop import ClosedLoop
from sim_vehicles.closed_loop.lap import Lap
from sim_vehicles.closed_loop.replay_record import record
from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.stimuli import Stimuli, StimulusOptions
from sim_vehicles.readers.scenarios import load_scenario
from tests.sim_vehicles.replayed import HEAD, virtual
from tests.simulation.planned_queries import MS, paper

FEEDS = (Feed("v2v", "a", "vehicle.Cpm", 20, 500 * MS), Feed("sensor", "a", "vehicle.Sensor", 10, 500 * MS))
PHASES = 4


def warned_after(latency_ms: int, phase: int) -> Lap:
    """A lap of crossing_50 in which the first message about X leads to a warning after that time."""
    from protos.vehicle_pb2 import Warning as Told

    scenario = load_scenario("crossing_50")
    late_ns = phase * 500 * MS // PHASES
    inputs = Stimuli(list(FEEDS), scenario, StimulusOptions(8_500 * MS, 15_000 * MS, phase_ns=late_ns))
    loop = ClosedLoop(scenario, inputs, AUTO)
    number = {name: i for i, name in enumerate(sorted(scenario.motion.tracks), 1)}["X"]
    seq = 0
    for burst in loop.bursts:
        if burst.source != "v2v":
            continue
        for value in burst.values:
            seq += 1
            if value.object.object_id == number:  # type: ignore[attr-defined]
                at_ns = burst.at_ns - burst.age_ns + latency_ms * MS
                measured_ms = (burst.at_ns - burst.age_ns) // MS % 65536
                told = Told(object_id=number, station=value.station, measured_ms=measured_ms, level=2)  # type: ignore[attr-defined]
                loop.warned(at_ns, told, (latency_ms * MS, latency_ms * MS), (1, 1, 2, 0))
                verdict = loop.verdict(phase, PHASES, late_ns, True, None)
                return Lap(phase, PHASES, late_ns, inputs.hash, verdict, loop)
    raise AssertionError("nobody told of X")


@cache
def replayed(latency_ms: int) -> str:
    """replay.json of all phases."""
    laps = [warned_after(latency_ms, phase) for phase in range(PHASES)]
    return json.dumps(virtual(record(laps), head=replace(HEAD, plan_hash=paper(20).hash)).document())


def written(directory: Path, latency_ms: int = 120) -> Path:
    """A run whose trace is of the paper's plan; its tuple 1/1/2 takes 120 ms."""
    write_run(simulate(paper(20), Conditions(policy="edf", ages_ns={"v2v": 100 * MS}, latency_ns=0)), directory)
    (directory / "replay.json").write_text(replayed(latency_ms))
    return directory
