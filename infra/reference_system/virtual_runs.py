"""The reference system in virtual time: plans as a user makes them, and every policy on the same phases of the sensors.

The reference system leaves phases to chance, and bounds hold for all of them. So each case runs in several: sensors in
step, a rear lidar that is just behind, and drawn ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Literal

from infra.reference_system.executor_model import ExecutorModel
from infra.reference_system.kpis import Observed
from infra.reference_system.reference_files import registry, write
from infra.reference_system.reference_graph import (
    DRIVE,
    FRONT,
    HOT_PATH,
    MS,
    PERIODS_MS,
    PLANNER,
    REAR,
    SECOND,
    TIMER,
    cost_ns,
)
from infra.reference_system.run_kpis import observed, with_ages
from node_agent.virtual.run import simulate, write_run
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery
from protos import plan_document
from protos.plan_document import Plan
from protos.plan_pb2 import LocalPlan

Status = Literal["guaranteed", "disproven", "neither"]
STATUS: Mapping[int, Status] = {0: "guaranteed", 3: "disproven", 4: "neither"}  # by exit code of `coordinator plan`
LINK_MS = 1


@dataclass(frozen=True)
class Planned:
    """What `coordinator plan` said of the reference system at a load. seconds, cpu_seconds: until its answer.
    bound_ns: of the hot path, age_bound_ns: of the data behind a command to drive; 0: none. cost_ns: of a callback."""

    plan: Plan
    status: Status
    seconds: float
    cpu_seconds: float
    bound_ns: int
    age_bound_ns: int
    cost_ns: int


def planned(load: float, nodes: int, limit_s: int = 10) -> Planned:
    """At that share of the nodes' cores. Raises RuntimeError with what the planner says for bad files."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        files = write(folder, load, nodes)
        began_s, used_s = time.monotonic(), _children_s()
        code, said = _plan(folder, files, limit_s)
        seconds, cpu_s = time.monotonic() - began_s, _children_s() - used_s
        if code not in STATUS:
            raise RuntimeError(said)
        if STATUS[code] == "disproven":  # then no plan is written
            code_then, said = _plan(folder, files, limit_s, "--best-effort")
            if code_then:
                raise RuntimeError(said)
        plan = plan_document.parse((folder / "plan.json").read_bytes())
    hot, drive = plan.guarantee[HOT_PATH].bound_ns or 0, plan.guarantee[DRIVE].age_bound_ns or 0
    return Planned(plan, STATUS[code], seconds, cpu_s, hot, drive, cost_ns(load, nodes))


def _plan(folder: Path, files: tuple[Path, Path], limit_s: int, *more: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "coordinator", "plan", *map(str, files), "-o", str(folder / "plan.json")]
    command += ["--policy", "edf", "--overhead", "none", "--time-limit", str(limit_s), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def _children_s() -> float:
    used = os.times()
    return used.children_user + used.children_system


def phases(count: int, seed: int) -> Iterator[dict[str, int]]:
    """Offsets of the timers, in ns: all 0, the rear lidar 1 ms before the front one's next, and others drawn, of which
    every second one has that too."""
    draw = Random(f"phases {seed}")
    behind_ns = (PERIODS_MS[REAR] - 1) * MS
    yield {}
    yield {REAR: behind_ns}
    for number in range(count - 2):
        drawn = {name: draw.randrange(period_ms) * MS for name, period_ms in PERIODS_MS.items()}
        if number % 2:
            drawn |= {FRONT: 0, REAR: behind_ns}
        yield drawn


def shifted(plan: Plan, offsets_ns: Mapping[str, int]) -> Plan:
    """The plan with other phases of its timers: nothing else in it depends on them."""
    sources, nodes = dict(plan.graph.sources), dict[str, LocalPlan]()
    for name, offset_ns in offsets_ns.items():
        pull = sources[name].pull
        assert pull is not None
        sources[name] = replace(sources[name], pull=replace(pull, offset_ns=offset_ns))
    for place, local in plan.nodes.items():
        nodes[place] = LocalPlan()
        nodes[place].CopyFrom(local)
        for source in nodes[place].sources:
            if source.name in offsets_ns:
                source.pull.offset_ns = offsets_ns[source.name]
    return replace(plan, graph=replace(plan.graph, sources=sources), nodes=nodes).sealed()


@dataclass(frozen=True)
class Lasting:
    """A world that only says how long all timers go on."""

    until_ns: int

    def begin(self, trial: int) -> Sequence[Admission]:
        """Nothing, at the end."""
        return [Admission(self.until_ns - 1, FRONT, ())]

    def offer(self, source: str, seq: int, at_ns: int) -> None:
        """Never asked."""

    def deliver(self, delivery: Delivery) -> None:
        """Nothing changes."""


def simulated(plan: Plan, policy: str, offsets_ns: Mapping[str, int], seconds: int) -> Observed:
    """One run of the agents' runtimes in virtual time, read from its traces."""
    done = simulate(shifted(plan, offsets_ns), Scenario(policy=policy), registry(), Lasting(seconds * SECOND))
    if done.failures:
        raise RuntimeError(done.failures[0])
    with TemporaryDirectory() as name:
        run = Path(name) / "run"
        write_run(done, run)
        found = observed(run)
        return with_ages(run, found) if policy == "edf" else found  # whose bounds these are


def modelled(plan: Plan, offsets_ns: Mapping[str, int], cost: int, seconds: int) -> Observed:
    """The same nodes, on the same cores, under ROS 2's executor as a model."""
    placement = dict(plan.placement)
    sensors = {name: plan.graph.sources[name].at for name in PERIODS_MS if name != TIMER}
    sensors |= {TIMER: placement[PLANNER]}
    return ExecutorModel(placement | sensors, offsets_ns, cost, LINK_MS * MS, seconds * SECOND).run()


def runs_of(planned_: Planned, policy: str, shifts: Sequence[Mapping[str, int]], seconds: int) -> list[Observed]:
    """One run for each of the phases; policy "ros2": of the model."""
    if policy == "ros2":
        return [modelled(planned_.plan, each, planned_.cost_ns, seconds) for each in shifts]
    return [simulated(planned_.plan, policy, each, seconds) for each in shifts]
