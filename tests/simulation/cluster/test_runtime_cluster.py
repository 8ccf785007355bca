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

from coordinator.model.choices import Choices
from coordinator.solve import planner
from node_agent.operators.registry import Registry
from node_agent.virtual.change_schedule import schedule_of
from node_agent.virtual.cost_model import parse_jitter
from node_agent.virtual.plan_file import read_plan
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.run import Simulation, operators_here, simulate
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer, Stub, World
from protos.plan_document import Plan
from protos.policies import NAMES
from protos.records import RECORD, SENT

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


class Steady:
    """One tuple about every 4 ms, for a second and a half."""

    def __init__(self, seed: int) -> None:
        self._draws = Draws(seed)
        self.results = 0

    def begin(self, trial: int) -> Sequence[Admission]:
        at_ns, found = 0, []
        for number in range(400):
            at_ns += 2 * MS + self._draws.below(4 * MS)
            found.append(Admission(at_ns, "s", (Offer({"n": number}),)))
        return found

    def offer(self, source: str, seq: int, at_ns: int) -> None:
        raise AssertionError("it has said itself what is admitted")

    def deliver(self, delivery: Delivery) -> None:
        self.results += 1


BLOCKED = """
shimekiri: 1
query: one
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 50 ms}, max_age: 20 ms}
operators:
  first: {run: pass, in: s, cost: 30 ms}
outputs:
  out: {from: first, at: a, deadline: 20 s}
"""


@pytest.mark.parametrize("policy", ["bts:phi=100ms,k=5", "ats:phi=100ms"])
def test_a_batch_keeps_a_node_from_its_sockets(policy: str, tmp_path: Path) -> None:
    """What comes meanwhile is too old when it is read: agents refuse 85 to 87 of 100, over ten seeds. Engines alone
    read it at once."""
    query, cluster = tmp_path / "query.yaml", tmp_path / "cluster.yaml"
    query.write_text(BLOCKED)
    cluster.write_text(f'shimekiri: 1\nnodes: {{a: {{address: "127.0.0.1:0", policy: "{policy}"}}}}\n')
    made = planner.make_plan(query, cluster, Choices(model="paper"))
    for seed in range(1, 4):
        engines, runtimes = Steady(seed), Steady(seed)
        assert simulate(made, world=engines).refused == 0 and engines.results == 400
        refused = simulate(made, world=runtimes, runtimes=True).refused
        assert runtimes.results == 400 - refused
        assert 82 <= 100 * refused / 400 <= 90, seed


def test_an_operator_that_raises_costs_what_it_costs(tmp_path: Path) -> None:
    """Its tuple is lost, and the next one starts after it."""
    plan = read_plan(PLANS / "sorting.json")
    files = [Path(shutil.copy(ROOT / OWN_OPERATORS["sorting"], tmp_path / "operators.py"))]
    done = compare(plan, Scenario(bursts=3, jitter=EXP), operators_here(files))
    assert done.failures


def test_trials_follow_each_other_in_one_trace() -> None:
    """Numbers of tuples on links go on, so that a report can tell them apart."""
    plan = read_plan(PLANS / "paper.json")
    done = simulate(plan, Scenario(trials=3), runtimes=True)
    numbers: dict[str, list[int]] = {}
    for trace in done.traces:
        for record in RECORD.iter_unpack(trace.records):
            if record[0] == SENT:
                numbers.setdefault(trace.node, []).append(record[7])
    assert numbers and all(each == list(range(1, len(each) + 1)) for each in numbers.values())
