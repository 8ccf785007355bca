"""An encounter in real time: two agents on this machine, each pinned to a core and as slow as the contest's nodes.

What is sent is what the virtual run gets, at the same instants. The first warning about the crossing vehicle that
arrives ends the run: from then on the outcome is physics, as in virtual time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event

from infra.contest.contest_query import Traffic, cluster, cost_us
from infra.contest.planned_ways import PlannedWay
from protos import plan_pb2
from protos.plan_document import Plan
from sim_vehicles.contest.encounter_run import FEEDS, Outcome, PlayedEncounter
from sim_vehicles.encounter.verdict import ON
from sim_vehicles.replay.listening import Listening, Result, outputs, sink
from sim_vehicles.replay.live import Live, source
from sim_vehicles.replay.live_laps import undisturbed

WAIT_S = 2.0  # for what is on its way when the last message has left


def ended_live(played: PlayedEncounter, made: PlannedWay, traffic: Traffic, load: float, folder: Path) -> Outcome:
    """How it ends under a way that is planned. folder: for the plan and the agents' state; empty."""
    plan = as_slow(made.plan, round(cost_us(traffic, load) * 1000))
    with _agents(plan, folder) as addresses:
        return played.ended(_commanded_ns(played, plan, addresses))


def as_slow(plan: Plan, cost_ns: int) -> Plan:
    """The same plan on nodes where a tuple takes any operator so long, each on a core of its own."""
    nodes, local = {}, {}
    for core, name in enumerate(sorted(plan.cluster.nodes)):
        nodes[name] = replace(plan.cluster.nodes[name], emulate_cost_ns=cost_ns, cpu=core)
        local[name] = plan_pb2.LocalPlan()
        local[name].CopyFrom(plan.nodes[name])
        local[name].emulate_cost_ns, local[name].cpu = cost_ns, core
    return replace(plan, cluster=replace(plan.cluster, nodes=nodes), nodes=local).sealed()


@contextmanager
def _agents(plan: Plan, folder: Path) -> Iterator[dict[str, str]]:
    """The addresses of agents that run the plan."""
    paths = {name: folder / name for name in ("plan.json", "cluster.yaml", "addresses.json", "state")}
    paths["plan.json"].write_text(plan.text(), encoding="utf-8")
    paths["cluster.yaml"].write_text(cluster(), encoding="utf-8")
    found = ("--addresses", paths["addresses.json"])
    try:
        _coordinator("up", paths["cluster.yaml"], "--any-port", "--state", paths["state"], *found, "--detach")
        _coordinator("deploy", paths["plan.json"], *found)
        yield _data_addresses(paths["addresses.json"])
    finally:
        if paths["addresses.json"].exists():
            _coordinator("down", *found)


def _commanded_ns(played: PlayedEncounter, plan: Plan, addresses: dict[str, str]) -> int | None:
    """When the ego is told to brake, as an instant of the encounter; None: never."""
    commanded_ns: list[int] = []
    stop = Event()
    live = Live(FEEDS, addresses, source, stop=stop)
    warnings = [output for output in outputs(plan) if output.name == "warning"]
    listening = Listening(warnings, addresses, sink)

    def hear(at_ns: int, result: Result) -> None:
        if result.value.level >= ON and result.value.object_id == played.crossing_number and not stop.is_set():
            commanded_ns.append(live.recording_ns(at_ns))
            stop.set()

    listening.hear = hear
    with listening, live:
        with undisturbed():
            live.run(played.bursts)
        if not stop.is_set():
            listening.settle(WAIT_S, WAIT_S, 5 * WAIT_S, stop)
    return commanded_ns[0] if commanded_ns else None


def _coordinator(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "coordinator", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"coordinator {arguments[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}")


def _data_addresses(path: Path) -> dict[str, str]:
    """Of the file that `coordinator up` writes."""
    nodes = json.loads(path.read_text(encoding="utf-8"))["nodes"]
    return {name: node["data"] for name, node in nodes.items()}


__all__ = ["as_slow", "ended_live"]
