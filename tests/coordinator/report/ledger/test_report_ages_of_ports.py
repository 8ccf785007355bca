"""A stream that comes to two ports of one operator, which let a value be of different ages."""

from pathlib import Path

import pytest

from coordinator.report.blame.ages.oldest_data import with_hops
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from tests.coordinator.report.aged_worlds import asking
from tests.coordinator.report.ledger.test_report_ages_over_plans import BEFORE, absorb, act
from tests.coordinator.report.synthetic import MS, Cluster, plan_document


def two_ports(*max_ages_ms: int, way_ms: int = 0) -> Cluster:
    """`act` reads a value of `t` of 20 ms, so long of which it was on its way. 0: at any age."""
    ops = [{"name": "act", "at": "a", "in": ["s"], "side": ["t", "t"]}]
    document = plan_document(["a"], {"s": "a", "t": "a"}, ops, {"moves": ("act", "a", 50 * MS)})
    for side, ms in zip(document["nodes"]["a"]["operators"][0]["sides"], max_ages_ms, strict=True):
        side["max_age_ns"] = ms * MS
    cluster = Cluster(asking(document, age_ns=MS), 1)
    (node,) = cluster.all
    absorb(node, BEFORE, 1, at_ms=10, ports=2, way_ms=way_ms)
    act(node, BEFORE, 1, at_ms=30)
    node.now = 80 * MS
    cluster.finish()
    return cluster


@pytest.mark.parametrize(
    ("max_ages_ms", "age_ms", "unread"),
    [((10, 0), 21, 1), ((0, 10), 21, 1), ((10, 25), 21, 1), ((25, 10), 21, 1), ((25, 30), 21, 0), ((10, 15), 1, 1)],
)
def test_a_value_counts_by_the_most_lenient_port_and_is_missing_by_the_strictest(
    max_ages_ms: tuple[int, int], age_ms: int, unread: int, tmp_path: Path
) -> None:
    run = read_run(two_ports(*max_ages_ms).save(tmp_path / "run"))
    report = verdict(run)
    assert report.conservation.balanced, report.conservation.problems
    found = with_hops(run, report)["moves"]
    assert found.age is not None
    assert (found.age.age_ns.max, found.unread) == (age_ms * MS, unread)
    assert ("side" in {hop.kind for hop in found.age.hops}) == (age_ms > 1)
