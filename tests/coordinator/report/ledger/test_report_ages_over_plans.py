"""What an operator read while plans changed: a value of its own plan, or perhaps of the one before."""

from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.report.facts.merged_plans import join
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from protos import records as rec
from tests.coordinator.report.aged_worlds import asking
from tests.coordinator.report.synthetic import MS, Cluster, Lineage, Node, plan_document

BOUND_NS = 20 * MS
BEFORE, AFTER = 3, 4  # plan epochs, of one plan


def over_plans() -> Cluster:
    """`act` reads `t` under both: before any value came under its plan, beside newer ones of the next, and of its own
    although a late one came under the plan before."""
    ops = [{"name": "act", "at": "a", "in": ["s"], "side": ["t"]}]
    cluster = Cluster(asking(plan_document(["a"], {"s": "a", "t": "a"}, ops, {"moves": ("act", "a", 50 * MS)})), 1)
    (node,) = cluster.all
    for state in (rec.STATE_PREPARED, rec.STATE_COMMITTED):
        node.write(rec.PLAN, 0, state, None, 0, 128 + AFTER, last=cluster.plan.hash_u64)
    absorb(node, BEFORE, 1, at_ms=10)
    act(node, AFTER, 1, at_ms=30)
    absorb(node, AFTER, 2, at_ms=40)
    act(node, BEFORE, 2, at_ms=50)
    absorb(node, BEFORE, 3, at_ms=60)
    act(node, AFTER, 3, at_ms=70)
    node.now = 80 * MS
    cluster.finish()
    return cluster


def admitted(node: Node, epoch: int, source: int, seq: int, at_ms: int) -> Lineage:
    lineage = Lineage(source, 1, seq, 0, at_ms * MS, at_ms * MS)
    node.write(rec.ADMITTED, epoch, source, lineage, lineage.lo, lineage.lo, lineage.hi)
    return lineage


def absorb(node: Node, epoch: int, seq: int, at_ms: int, ports: int = 1, way_ms: int = 0) -> None:
    """A value comes, so long after its origin."""
    lineage = admitted(node, epoch, 2, seq, at_ms)
    for _ in range(ports):
        node.write(rec.ABSORBED, epoch, 1, lineage, lineage.lo + way_ms * MS, 2, 0)


def act(node: Node, epoch: int, seq: int, at_ms: int) -> None:
    """It runs for a millisecond."""
    lineage = admitted(node, epoch, 1, seq, at_ms)
    start, end = lineage.lo, lineage.lo + MS
    node.write(rec.RAN, epoch, 1, lineage, start, start, end, end + 50 * MS, 0, last=1)
    node.write(rec.OUTPUT, epoch, 1, lineage, end, lineage.lo, lineage.hi, 50 * MS, 0)


def test_a_read_is_of_its_own_plan_or_perhaps_of_the_one_before(tmp_path: Path) -> None:
    report = verdict(read_run(over_plans().save(tmp_path / "run")))
    assert report.conservation.balanced, report.conservation.problems
    found = report.freshness["moves"]
    assert found.age is not None and not found.unread
    ages = {each.seq: (each.age_least_ns // MS, (each.age_ns or 0) // MS) for each in found.age.worst}
    assert ages == {1: (1, 21), 2: (41, 41), 3: (31, 31)}


@pytest.mark.parametrize(("before", "above"), [(BOUND_NS, 2), (2 * BOUND_NS, None), (None, None)])
def test_results_are_above_the_bound_where_all_plans_say_the_same(
    before: int | None, above: int | None, tmp_path: Path
) -> None:
    run = read_run(over_plans().save(tmp_path / "run"))
    (asked,) = run.plan.freshness.values()
    last, earlier = (
        replace(run.plan, freshness={1: replace(asked, age_bound_ns=bound, reaction_bounds_ns={"t": bound})})
        for bound in (BOUND_NS, before)
    )
    joined = join([last, replace(earlier, hash="ab" * 32, numbers={})])
    found = verdict(replace(run, plan=joined)).freshness["moves"]
    assert found.age is not None
    assert (found.age.bound_ns, found.age.above_bound) == (BOUND_NS, above)
    assert (found.reactions["t"].above_bound is None) == (above is None)
