"""The cluster of runtimes against the one that has engines alone: the same results at the same instants.

Both run the recorded plans. The one place where they are meant to differ has a test of its own: while a batch runs, a
runtime does not look at its sockets.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from node_agent.operators.registry import Registry
from node_agent.virtual.change_schedule import schedule_of
from node_agent.virtual.cost_model import parse_jitter
from node_agent.virtual.plan_file import read_plan
from node_agent.virtual.run import Simulation, operators_here, simulate
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer, Stub, World
from protos.plan_document import Plan
from protos.policies import NAMES

MS = 1_000_000
ROOT = Path(__file__).resolve().parents[3]
PLANS = ROOT / "tests/golden/corpus/plans"
EXP = parse_jitter("exp")
OWN_OPERATORS = {
    "sorting": "coordinator/examples/sorting_line/operators.py",
    "two_nodes": "coordinator/examples/two_nodes/operators.py",
    "template": "coordinator/cli/templates/operators.py.txt",
    "survive": "coordinator/cli/templates/operators.py.txt",
}
SCENARIOS = {
    "paper": Scenario(ages_ns={"v2v": 100 * MS}, trials=3, jitter=EXP),
    "paper_fifo": Scenario(ages_ns={"v2v": 100 * MS}, jitter=EXP),
    "paper_operators": Scenario(jitter=EXP),
    "paper_bts": Scenario(decision_ns=50_000),
    "paper_adaptive": Scenario(jitter=parse_jitter("lognormal:cv=1")),
    "paper_qed": Scenario(cost_scale=1.5),
    "paper_slack": Scenario(cost_scale=1.2),
    "paper_held": Scenario(loss=0.05),
    "guaranteed": Scenario(jitter=EXP),
    "guaranteed_free": Scenario(latency_ns=0),
    "warning": Scenario(),
    "fleet": Scenario(jitter=EXP),
    "fleet_apart": Scenario(),
    "windows": Scenario(bursts=40),
    "windows_late": Scenario(bursts=40, cost_scale=3),
    "endurance": Scenario(bursts=10, cost_scale=2),
    "sorting": Scenario(jitter=EXP),
    "two_nodes": Scenario(jitter=EXP, loss=0.1),
    "template": Scenario(),
    "survive": Scenario(),
}
TUPLE_BY_TUPLE = sorted(set(NAMES) - {"bts", "bts1", "ats", "ats1", "adaptive"})


class Told:
    """Notes every result of every trial."""

    def __init__(self, world: World) -> None:
        self._world, self._trial = world, 0
        self.results: list[tuple[int, Delivery]] = []

    def begin(self, trial: int) -> Sequence[Admission] | None:
        self._trial = trial
        return self._world.begin(trial)

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        return self._world.offer(source, seq, at_ns)

    def deliver(self, delivery: Delivery) -> Sequence[Admission] | None:
        self.results.append((self._trial, delivery))
        return self._world.deliver(delivery)

    def lines(self) -> list[str]:
        """Without the payloads: what is a tuple on one side is a list behind a hop."""
        return sorted(str((trial, *each[:-1])) for trial, each in self.results)


def run(plan: Plan, scenario: Scenario, registry: Registry, runtimes: bool) -> tuple[Simulation, Told]:
    stub = Stub(schedule_of(plan, (), scenario), scenario.ages_ns, registry.codecs, scenario.tuples)
    told = Told(stub)
    return simulate(plan, scenario, registry, told, runtimes=runtimes), told


def compare(plan: Plan, scenario: Scenario, registry: Registry) -> Simulation:
    """Returns what the runtimes came to."""
    (old, before), (new, after) = (run(plan, scenario, registry, runtimes) for runtimes in (False, True))
    assert after.lines() == before.lines()
    assert json.dumps(new.document(), sort_keys=True) == json.dumps(old.document(), sort_keys=True)
    return new


@pytest.mark.parametrize("name", SCENARIOS)
def test_runtimes_give_what_engines_give(name: str, tmp_path: Path) -> None:
    files = []
    if name in OWN_OPERATORS:
        files = [Path(shutil.copy(ROOT / OWN_OPERATORS[name], tmp_path / "operators.py"))]
    compare(read_plan(PLANS / f"{name}.json"), SCENARIOS[name], operators_here(files))


@pytest.mark.parametrize("policy", TUPLE_BY_TUPLE)
def test_every_policy_that_runs_tuple_by_tuple(policy: str) -> None:
    """Late costs, paid decisions, tuples that are lost, links that take no time."""
    plan, registry = read_plan(PLANS / "paper_operators.json"), operators_here()
    scenario = Scenario(policy=policy, jitter=EXP, cost_scale=1.2, decision_ns=50_000)
    compare(plan, scenario, registry)
    compare(plan, replace(scenario, loss=0.2, latency_ns=0), registry)


@pytest.mark.parametrize("batch", ["burst", "barrier"])
def test_batches_and_barriers(batch: str) -> None:
    compare(read_plan(PLANS / "paper_operators.json"), Scenario(batch=batch, jitter=EXP, trials=2), operators_here())
