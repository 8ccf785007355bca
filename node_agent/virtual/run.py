"""Simulations: trials of a plan under a scenario, in memory or as a run directory like a live one's."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from node_agent.operators.registry import Registry
from node_agent.operators.signature import OperatorError
from node_agent.runtime.deployments.lifecycle import Policies, installed
from node_agent.runtime.executor import Operate
from node_agent.virtual.change_schedule import Change, ChangeSchedule, schedule_of
from node_agent.virtual.errors import BadInputError, bad_input
from node_agent.virtual.scenario import Scenario, VirtualPlan
from node_agent.virtual.summary import Counted, OutputSummary, WindowSummary
from node_agent.virtual.world import Stub, World
from protos import run_document
from protos.plan_document import Plan
from protos.records import RECORD_BYTES, STATE_ENDED, VIRTUAL, Header, pack_header
from protos.segments import segment

if TYPE_CHECKING:
    from node_agent.virtual.cluster.cluster import Cluster

CLOCK = hashlib.sha256(b"virtual time").hexdigest()[:32]  # one clock for all nodes: offsets are 0


@dataclass(frozen=True)
class Trace:
    """What one node wrote."""

    node: str
    index: int
    boot: int
    started_ns: int
    records: bytes

    @property
    def segment(self) -> bytes:
        """Header and blocks, as in the run directory."""
        header = Header(self.node, self.index, self.boot, CLOCK, 0, self.started_ns, 0, VIRTUAL)
        return segment(pack_header(header), self.records, STATE_ENDED)


@dataclass(frozen=True)
class Simulation:
    """The results. refused_by_trial: tuples of sources that the plan of the moment did not have, or too old. failures:
    one sentence per operator that raised. windows: by operator. shed: tuples, windows, results, by policy.
    refused_offers: by trial and source, numbers of the tuples that were refused, from 1 as they were offered."""

    schedule: ChangeSchedule
    scenario: Scenario
    outputs: dict[str, OutputSummary]
    traces: tuple[Trace, ...]
    admitted: int
    instances: int
    failures: tuple[str, ...]
    refused_by_trial: tuple[int, ...] = ()
    windows: Mapping[str, WindowSummary] = field(default_factory=dict)
    shed: Mapping[str, int] = field(default_factory=dict)
    refused_offers: tuple[Mapping[str, tuple[int, ...]], ...] = ()

    @property
    def refused(self) -> int:
        """In all trials."""
        return sum(self.refused_by_trial)

    @property
    def plan(self) -> VirtualPlan:
        """What runs at the end; without a change all the time."""
        return self.schedule.last

    def document(self) -> dict[str, Any]:
        """For machines: `simulate --json`."""
        return {
            "plan_hash": self.plan.hash,
            "scenario": _conditions(self),
            "outputs": {name: output.document() for name, output in self.outputs.items()},
            "admitted": self.admitted,
            "instances": self.instances,
            "failures": list(self.failures),
        } | self._more()

    def _more(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if len(self.schedule.plans) > 1 or self.refused:
            found["refused"] = self.refused
        if self.shed:
            found["shed"] = dict(sorted(self.shed.items()))
        if self.windows:
            found["windows"] = {name: each.document() for name, each in self.windows.items()}
        return found


def simulate(
    plan: Plan,
    scenario: Scenario | None = None,
    registry: Registry | None = None,
    world: World | None = None,
    trace: bool = True,
    progress: Callable[[], None] | None = None,
    then: Sequence[Change] = (),
    policies: Policies = installed,
) -> Simulation:
    """Run all trials of a plan. trace False: results only, which needs little memory.

    progress is called after each trial. then: plans that are committed in each trial, one after the other.
    policies: which policy a node's plans run under. Raises BadInputError where plans and scenario do not fit.
    """
    scenario, registry = scenario or Scenario(), registry or operators_here()
    schedule = schedule_of(plan, then, scenario)
    inner = Stub(schedule, scenario.ages_ns, registry.codecs, scenario.tuples) if world is None else world
    counted = Counted(inner, {output.name: output.deadline_ns for output in schedule.outputs})
    cluster = cluster_of(schedule, scenario, registry, counted, trace, policies=policies)
    refused, offers = [], []
    for trial in range(1, scenario.trials + 1):
        before = cluster.rejected
        cluster.run(trial)
        refused.append(cluster.rejected - before)
        offers.append(cluster.refused_offers)
        if progress is not None:
            progress()
    cluster.end()
    counted.settle()
    return Simulation(
        schedule, scenario, counted.outputs, _traces(schedule, scenario, cluster) if trace else (), cluster.taken,
        cluster.instances, tuple(_failures(cluster)), tuple(refused), cluster.windows, cluster.shed,
        tuple(offers),
    )  # fmt: skip


def cluster_of(
    schedule: ChangeSchedule, scenario: Scenario, registry: Registry, world: World, trace: bool = True,
    operate: Operate | None = None, policies: Policies = installed,
) -> "Cluster":  # fmt: skip
    """The cluster that runs trials; arguments as its own. Raises BadInputError where greenlet is not installed."""
    try:
        from node_agent.virtual.cluster.cluster import Cluster
    except ModuleNotFoundError as error:
        if error.name != "greenlet":
            raise
        raise bad_input(
            "not_installed", "simulations need greenlet, which is not installed", "pip install 'shimekiri[simulate]'",
            subject="greenlet",
        ) from None  # fmt: skip
    return Cluster(schedule, scenario, registry, world, CLOCK, trace, operate, policies)


def operators_here(
    files: Sequence[Path] = (), checks: bool = False, operators: Sequence[Callable[..., Any]] = ()
) -> Registry:
    """The operators and codecs of this machine; `checks`, `operators`: as of a registry. Raises BadInputError for a bad
    file."""
    try:
        return Registry(files, checks=checks, operators=operators)
    except OperatorError as error:
        raise BadInputError(error.problem) from None


def _traces(schedule: ChangeSchedule, scenario: Scenario, cluster: "Cluster") -> tuple[Trace, ...]:
    return tuple(
        Trace(
            local.node, local.index, _boot(schedule, scenario, local.node), cluster.started_ns, cluster.data(local.node)
        )
        for local in schedule.last.nodes
    )


def _boot(schedule: ChangeSchedule, scenario: Scenario, node: str) -> int:
    text = json.dumps([schedule.plans[0].hash, scenario.document() | _then(schedule), node], sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _conditions(simulation: Simulation) -> dict[str, Any]:
    return simulation.scenario.document() | _then(simulation.schedule)


def _then(schedule: ChangeSchedule) -> dict[str, Any]:
    later = schedule.document()
    return {"then": later} if later else {}


def _failures(cluster: "Cluster") -> list[str]:
    return [
        f"{what} on node {node} raised {count} times, first: {type(error).__name__}: {error}"
        for (node, what), (count, error) in sorted(cluster.failures.items(), key=lambda each: each[0])
    ]


def check_out(directory: Path) -> None:
    """Raises BadInputError where a run directory cannot be made because something is there already."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise bad_input(
            "not_empty", f"--out {directory}: is there already and not empty", "name a new directory", subject="--out"
        )
    above = next(each for each in (directory.absolute(), *directory.absolute().parents) if each.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise bad_input(
            "unwritable",
            f"--out {directory}: cannot be made: {above} is no directory that can be written to",
            subject="--out",
        )


def write_run(simulation: Simulation, directory: Path, more: Mapping[str, Any] | None = None) -> None:
    """The run directory: run.json (with `more` in it), plan.json, trace/raw/; plans before the last one in earlier/.

    Raises BadInputError where it holds something already.
    """
    check_out(directory)
    traces = []
    for trace in simulation.traces:
        folder = directory / "trace" / "raw" / trace.node / f"{trace.boot:016x}"
        try:
            folder.mkdir(parents=True)
        except OSError as bad:
            raise bad_input(
                "unwritable", f"--out {directory}: cannot be made: {bad.strerror}", subject="--out"
            ) from None
        (folder / "0000.trace").write_bytes(trace.segment)
        traces.append({
            "node": trace.node, "boot": f"{trace.boot:016x}", "records": len(trace.records) // RECORD_BYTES,
            "ended": True, "crashed": False, "reachable": True, "sealed": True,
        })  # fmt: skip
    run = {
        "run": directory.name,
        "plan_hash": simulation.plan.hash,
        "virtual": True,
        "traces": traces,
        "scenario": _conditions(simulation),
        **(more or {}),
    }
    earlier = {plan.hash: plan for plan in simulation.schedule.plans if plan.hash != simulation.plan.hash}
    if earlier:
        run["earlier"] = list(earlier)
        (directory / "earlier").mkdir()
    for plan in earlier.values():
        _write_plan(plan, directory / "earlier" / f"{plan.hash}.json")
    _write_plan(simulation.plan, directory / "plan.json")
    (directory / "run.json").write_bytes(run_document.packed(run))


def _write_plan(plan: VirtualPlan, path: Path) -> None:
    path.write_text(json.dumps(plan.made.to_json(), sort_keys=True, indent=1) + "\n")
