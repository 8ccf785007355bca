"""Several queries with one shared branch, [Q] theorem 5, in what plans are tested by. A node's demand test finds the
threshold of table 3 exactly; the analysis of a composed graph counts the branch once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from coordinator.calculus import demand
from coordinator.calculus.curves import Bursts, Curve, Jcp, Time
from coordinator.calculus.demand import Task, UnboundedError, task
from coordinator.calculus.service import DelayBound
from coordinator.calculus.theorems import QosQuery, sharper, theorem5
from coordinator.errors import InfeasibleError
from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec.runtime_charges import NOTHING
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import MS, QUERIES
from tests.coordinator.wording import has
from tests.sampling import sample
from tests.sentences import refused

EPSILON = Fraction(1, 10**9)


def tasks(queries: Sequence[tuple[Time, Time]], curve: Curve, shared: Time) -> list[Task]:
    """Queries (cost, deadline) on one stream as the task units that a node runs: the shared branch with what the first
    deadline wants of it, as [P] 5.3 merges them, and what is left of each of the others."""
    first = min(range(len(queries)), key=lambda i: queries[i][1])
    costs = [(cost if i == first else cost - shared, due) for i, (cost, due) in enumerate(queries)]
    return [task(f"Q{i}", curve, due, cost) for i, (cost, due) in enumerate(costs, 1) if cost]


def table3(shared: Time) -> list[Task]:
    """Q4's rate-latency curve asks for its n-th task by 29/3 + (n - 1) 20/3 (theorem 2): that is a task every 20/3."""
    stream = Jcp(Fraction(4), Fraction(5, 4), Fraction(10))
    three = tasks([(Fraction(3, 2), Fraction(10)), (Fraction(2), Fraction(13)), (Fraction(3, 2), Fraction(10))],
                  stream, shared)  # fmt: skip
    return [*three, task("Q4", Bursts(1, Fraction(20, 3)), Fraction(29, 3), Fraction(7, 5))]


def test_the_demand_test_admits_table_3_at_exactly_66_65() -> None:
    assert demand.test(table3(Fraction(66, 65))).holds
    refused = demand.test(table3(Fraction(66, 65) - EPSILON))
    assert not refused.holds and refused.excess > 0


def test_table_3_is_full_at_92_hundredths() -> None:
    assert sum(each.utilisation for each in table3(Fraction(92, 100))) == 1
    with refused("overloaded", UnboundedError):
        demand.test(table3(Fraction(92, 100)))


def test_what_theorem_5_admits_the_demand_test_admits_and_both_count_the_branch_once() -> None:
    """Not the other way round: theorem 5 takes the longest task off every deadline, and the sharper test lets a sharing
    query block with its whole cost."""
    admitted = {"theorem": 0, "sharper": 0, "demand": 0}
    for seed in range(300):
        draw = Random(seed)
        period = draw.randint(8, 40)
        curve: Any = draw.choice(
            [Jcp(period, draw.randint(0, 7), draw.randint(0, 30)), Bursts(draw.randint(1, 3), period)]
        )
        costs = [draw.randint(1, 6) for _ in range(draw.randint(2, 4))]
        pairs = [(cost, draw.randint(2, 60)) for cost in costs]
        shared = draw.randint(0, min(costs))
        queries = [QosQuery(f"Q{i}", curve, DelayBound(due), cost) for i, (cost, due) in enumerate(pairs, 1)]
        units = tasks(pairs, curve, shared)
        share = sum((each.utilisation for each in units), Fraction(0))
        theorem, sharp = (test(queries, len(queries), shared) for test in (theorem5, sharper))
        assert theorem.utilisation == share, f"seed {seed}"
        held = share < 1 and demand.test(units).holds
        assert held or not sharp.admitted, f"seed {seed}"
        assert sharp.admitted or not theorem.admitted, f"seed {seed}"
        admitted["theorem"] += theorem.admitted
        admitted["sharper"] += sharp.admitted
        admitted["demand"] += held
    assert 20 < admitted["theorem"] < admitted["sharper"] <= admitted["demand"] < 300, admitted


# -- a composed graph

QUERY = """
shimekiri: 1
query: {name}
sources:
  belt: {{at: a, type: json, arrival: {{burst: 2, period: 10 ms}}, max_age: 1 ns}}
operators:
  look: {{run: pass, in: belt, cost: {shared} us, nodes: [a]}}
  {act}: {{run: busy, with: {{cpu_us: {own}}}, in: look, cost: {own} us, nodes: [a]}}
outputs:
  {out}: {{from: {act}, at: a, deadline: {deadline} ms}}
"""
CLUSTER = "shimekiri: 1\nnodes:\n  a: {address: '127.0.0.1:0'}\n"


def two(folder: Path, shared_us: int, share: bool) -> Plan:
    """Two queries on one stream, 1 ms of their own each, 20 and 40 ms; model `sound`, no charges."""
    (folder / "operators.json").write_text((QUERIES / "operators.json").read_text())
    (folder / "cluster.yaml").write_text(CLUSTER)
    paths = [folder / "gate.yaml", folder / "log.yaml"]
    for path, own, deadline in zip(paths, (1000, 1001), (20, 40), strict=True):
        name = path.stem
        path.write_text(QUERY.format(name=name, shared=shared_us, act=f"act_{name}", own=own, out=f"out_{name}",
                                     deadline=deadline))  # fmt: skip
    return planner.make_plan(paths, folder / "cluster.yaml", Choices(charges=NOTHING, model="sound"), share=share)


def test_two_queries_that_only_fit_together_are_guaranteed_together(tmp_path: Path) -> None:
    """2 ms shared: 0.2 (2 + 1 + 1.001) = 80.02 % of the node; 120 % with the branch for each."""
    plan = two(tmp_path, 2000, share=True)
    assert {name: claim.guaranteed for name, claim in plan.guarantee.items()} == {
        "out_gate": True,
        "out_log": True,
    }
    (node,) = plan.analysis.nodes.values()
    assert Fraction(str(node.utilisation)) == Fraction("0.8002")
    with pytest.raises(InfeasibleError, check=has(("cap_exceeded", "a"))):
        two(tmp_path, 2000, share=False)


def test_the_plan_knows_both_deadlines_where_they_differ(tmp_path: Path) -> None:
    plan = two(tmp_path, 2000, share=True)
    (local,) = plan.nodes.values()
    streams = {each.name: (int(each.deadline_ns), int(each.last_deadline_ns)) for each in local.streams}
    assert streams == {
        "belt": (20 * MS, 40 * MS), "look": (20 * MS, 40 * MS), "act_gate": (20 * MS, 0), "act_log": (40 * MS, 0),
    }  # fmt: skip
    units = [(int(each.deadline_ns), int(each.last_deadline_ns)) for each in local.units]
    assert sorted(units) == [(20 * MS, 40 * MS), (40 * MS, 0)]  # look goes with the gate's


TABLE3 = """
shimekiri: 1
query: q{i}
sources:
  belt: {{at: a, type: json, arrival: {{jcp: {{period: 4 ms, min_gap: 1250 us, early: 10 ms}}}}, max_age: 1 ns}}
operators:
  look: {{run: pass, in: belt, cost: {shared} us, nodes: [a]}}
  act{i}: {{run: busy, with: {{cpu_us: {i}}}, in: look, cost: {own} us, nodes: [a]}}
outputs:
  out{i}: {{from: act{i}, at: a, deadline: {deadline} ms}}
"""
FOURTH = """
shimekiri: 1
query: q4
sources:
  other: {at: a, type: json, arrival: {burst: 1, period: 6666667 ns}, max_age: 1 ns}
operators:
  act4: {run: busy, with: {cpu_us: 4}, in: other, cost: 1400 us, nodes: [a]}
outputs:
  out4: {from: act4, at: a, deadline: 9666666 ns}
"""


@pytest.mark.parametrize(("shared_us", "guaranteed"), sample([(1380, False), (1400, True)], 2))
def test_table_3_as_a_plan_needs_more_than_theorem_5(tmp_path: Path, shared_us: int, guaranteed: bool) -> None:
    """What is left of Q2 and Q3 is due from the end of the branch on, not from the arrival."""
    (tmp_path / "operators.json").write_text((QUERIES / "operators.json").read_text())
    (tmp_path / "cluster.yaml").write_text("shimekiri: 1\nnodes:\n  a: {address: '127.0.0.1:0', cap: 1}\n")
    paths = [tmp_path / f"q{i}.yaml" for i in (1, 2, 3, 4)]
    for i, (cost_us, deadline) in enumerate([(1500, 10), (2000, 13), (1500, 10)], 1):
        text = TABLE3.format(i=i, shared=shared_us, own=cost_us - shared_us, deadline=deadline)
        paths[i - 1].write_text(text)
    paths[3].write_text(FOURTH)
    plan = planner.make_plan(paths, tmp_path / "cluster.yaml", Choices(charges=NOTHING, model="sound"))
    assert all(claim.guaranteed for claim in plan.guarantee.values()) is guaranteed
