"""The closed loop around the virtual cluster: bursts in, warnings out, trial by trial one phase of the bursts each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from node_agent.operators.registry import Registry
from node_agent.virtual.run import Simulation, check_out, simulate, write_run
from node_agent.virtual.scenario import MOST_TRIALS
from node_agent.virtual.scenario import Scenario as Conditions
from node_agent.virtual.world import Admission, Delivery, Offer
from protos.plan.sources import Source
from protos.plan_document import Plan
from protos.records import unpack_records
from protos.vehicle_pb2 import Warning as Told
from sim_vehicles.closed_loop.closed_loop import ClosedLoop
from sim_vehicles.closed_loop.crossing_messages import CrossingMessages, offered, traced, until_known
from sim_vehicles.closed_loop.lap import Lap, phase_ns
from sim_vehicles.encounter.brake import Brake
from sim_vehicles.encounter.verdict import Judge
from sim_vehicles.errors import bad_input
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.maps import misfits
from sim_vehicles.inputs.stimuli import Around, Stimuli, StimulusOptions
from sim_vehicles.world.scene import Scenario
from sim_vehicles.world.sense import Burst

MOST_TRACED = 100  # laps; more would need hundreds of megabytes


class Replayed(NamedTuple):
    """shed: tuples, results and windows of all laps, by policy."""

    laps: list[Lap]
    shed: Mapping[str, int]


class CrossingWorld:
    """The vehicles around a virtual cluster; instant 0 of a trial is `start_ns` of the recording.

    loops: one per trial so far, in order. make: the closed loop of trial 1, 2, ...
    """

    def __init__(self, make: Callable[[int], ClosedLoop], sources: Mapping[str, Source]) -> None:
        self._make = make
        self._ids = {name: source.id for name, source in sources.items()}
        self.loops: list[ClosedLoop] = []
        self._trial = 0

    def begin(self, trial: int) -> list[Admission]:
        """All bursts of a new trial."""
        self._trial = trial
        self.loops.append(self._make(trial))
        return self._admissions(self.loops[-1].bursts)

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        """Never asked: `begin` says what is admitted."""
        return None

    def deliver(self, delivery: Delivery) -> list[Admission] | None:
        """Warnings go to the loop; when the ego brakes, what it senses from then on is another."""
        if not isinstance(delivery.payload, Told):
            return None
        loop = self.loops[-1]
        at_ns = delivery.at_ns + loop.inputs.options.start_ns
        lineage = (self._ids[delivery.source], self._trial, delivery.seq, delivery.ordinal)
        bursts = loop.warned(at_ns, delivery.payload, (delivery.latency_ns, delivery.latency_ns), lineage)
        return None if bursts is None else self._admissions(bursts)

    def _admissions(self, bursts: Sequence[Burst]) -> list[Admission]:
        start_ns = self.loops[-1].inputs.options.start_ns
        found = []
        for burst in bursts:
            offers = tuple(Offer(value, burst.age_ns) for value in burst.values)
            found.append(Admission(burst.at_ns - start_ns, burst.source, offers))
        return found


def replay_virtual(
    plan: Plan,
    scenario: Scenario,
    feeds: Sequence[Feed],
    options: StimulusOptions,
    brake: Brake,
    phases: int,
    laps: int,
    registry: Registry,
    out: Path | None = None,
    progress: Callable[[], None] | None = None,
    only: tuple[int, int] | None = None,
    around: Around | None = None,
) -> Replayed:
    """Play the scenario in virtual time at each of `phases` phases of the bursts, `laps` times over (all the same).

    Trial t (from 1) is phase (t - 1) mod phases; its tuples carry t as lineage epoch. out: a run directory is written
    there, as by `sim-vehicles simulate`, with `laps` in run.json. progress is called after each trial. only: (k, n),
    where `options` are those of phase k of n already and `phases` is 1: the laps are called that. around: stations
    beside the scenario's. Where an operator raised, or the plan's operators know other roads than the scene's, every
    verdict is invalid and says so.
    Raises BadInputError where something does not fit, or `out` is there already and not empty.
    """
    trials = phases * laps
    if phases < 1 or laps < 1 or trials > MOST_TRIALS:
        raise bad_input(
            "out_of_range",
            f"--phases {phases}, --loop {laps}: each at least 1, and at most {MOST_TRIALS} laps in all",
            subject="--phases",
        )
    if out is not None:
        check_out(out)
    judge = Judge(scenario)
    shifts_ns = [options.phase_ns + phase_ns(feeds, phase, phases) for phase in range(phases)]

    @cache  # the laps of one phase send the same
    def inputs(shift_ns: int) -> Stimuli:
        return Stimuli(list(feeds), scenario, replace(options, phase_ns=shift_ns), around)

    def make(trial: int) -> ClosedLoop:
        return ClosedLoop(scenario, inputs(shifts_ns[(trial - 1) % phases]), brake, judge)

    world = CrossingWorld(make, plan.graph.sources)
    conditions = Conditions(trials=trials, seed=options.seed)
    with_trace = out is not None or trials <= MOST_TRACED
    done = simulate(plan, conditions, registry, world, trace=with_trace, progress=progress)
    why = "; ".join([*misfits(plan, scenario.scene), *done.failures]) or None
    found = [
        replace(_lap(loop, only or (number % phases, phases), shifts_ns[number % phases], why), refused=refused)
        for number, (loop, refused) in enumerate(zip(world.loops, done.refused_by_trial, strict=True))
    ]
    found = _with_messages(found, plan, done)
    if out is not None:
        write_run(done, out, {"laps": [_summary(number, lap) for number, lap in enumerate(found)]})
    return Replayed(found, done.shed)


def _with_messages(laps: Sequence[Lap], plan: Plan, done: Simulation) -> list[Lap]:
    """With what became of the messages about the crossing vehicle; what was shed of them as far as there is a trace."""
    messages = [_messages(lap, trial, plan, done.refused_offers[trial - 1]) for trial, lap in enumerate(laps, 1)]
    if done.traces:
        wanted = {lineage for each in messages if each is not None for lineage in each.admitted}
        records = [
            record
            for trace in done.traces
            for record in unpack_records(trace.records)
            if (record.source, record.epoch, record.seq) in wanted
        ]
        messages = [None if each is None else traced(each, records) for each in messages]
    return [
        replace(lap, verdict=replace(lap.verdict, crossing_messages=each))
        for lap, each in zip(laps, messages, strict=True)
    ]


def _messages(lap: Lap, trial: int, plan: Plan, refused: Mapping[str, Sequence[int]]) -> CrossingMessages | None:
    loop, knew = lap.loop, lap.verdict.found.knew
    if loop.crossing_number is None:
        return None
    tuples = [
        one
        for name, source in plan.graph.sources.items()
        for one in offered(loop.bursts, name, source.id, trial, refused.get(name, ()), loop.crossing_number)
    ]
    return until_known(tuples, None if knew is None else knew.at_s)


def _lap(loop: ClosedLoop, phase: tuple[int, int], shift_ns: int, why: str | None) -> Lap:
    verdict = loop.verdict(*phase, shift_ns, valid=why is None, why=why)
    return Lap(*phase, shift_ns, loop.inputs.hash, verdict, loop)


def _summary(number: int, lap: Lap) -> dict[str, Any]:
    found = lap.verdict.found
    return {
        "epoch": number + 1,
        "phase": lap.phase,
        "phase_ns": lap.phase_ns,
        "inputs_hash": lap.inputs_hash,
        "outcome": found.outcome,
        "valid": lap.verdict.valid,
        "impact_kmh": found.impact_kmh,
        "gap_m": found.gap_m,
    }
