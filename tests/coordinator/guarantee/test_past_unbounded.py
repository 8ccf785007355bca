"""What passes a node, a link or a socket that nothing bounds has no bound either."""

from __future__ import annotations

import inspect
import sys

import pytest

from coordinator.guarantee import analysis, policing
from coordinator.guarantee.analysis import analyse, unit_by_unit
from coordinator.guarantee.bounds import bounds
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import MEASURED, NOTHING
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import MS, written

CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", policy: A}
  r: {address: "127.0.0.1:7710", policy: R}
  b: {address: "127.0.0.1:7720", policy: edf}
links: [{between: [a, r], latency: 1 ms}, {between: [r, b], latency: 1 ms, bandwidth: 10 Mbit/s}]
security: insecure-loopback
"""
# `busy` keeps its node from its sockets for 30 ms; `quick` passes by, on its way from a to b.
QUERY = """
shimekiri: 1
query: past
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 200 ms}, tolerance: 0 s, max_age: 1 ms}
  t: {at: NODE, type: json, arrival: {burst: 1, period: 200 ms}, tolerance: 0 s, max_age: 1 ms}
operators:
  quick: {run: pass, in: s, cost: 2 ms, nodes: [WHERE]}
  busy: {run: pass, in: t, cost: 30 ms, nodes: [NODE]}
outputs:
  fast: {from: quick, at: TO, deadline: 20 ms}
  slow: {from: busy, at: END, deadline: 150 ms}
"""


def plan(node: str, where: str, to: str, end: str = "", **policies: str) -> Plan:
    query = QUERY.replace("NODE", node).replace("WHERE", where).replace("TO", to).replace("END", end or node)
    cluster = CLUSTER.replace("policy: A", f"policy: {policies.get('a', 'edf')}")
    return written(query, cluster.replace("policy: R", f"policy: {policies.get('r', 'edf')}"))


@pytest.mark.parametrize(
    ("node", "where", "to", "policies"),
    [
        ("r", "b", "b", {"r": "fifo"}),  # a tuple is relayed there
        ("r", "a", "b", {"r": "fifo"}),  # a result is relayed there
        ("r", "a", "r", {"r": "fifo"}),  # a result is delivered there
        ("a", "b", "b", {"a": "fifo"}),  # a tuple is admitted there
    ],
)
def test_who_waits_at_sockets_of_a_node_without_a_bound_has_none(
    node: str, where: str, to: str, policies: dict[str, str]
) -> None:
    """Sockets are read and written between instances, and nothing bounds those of `fifo`."""
    made = plan(node, where, to, **policies)
    for charges in (MEASURED, NOTHING):
        claims = bounds(made, charges)
        assert not claims["slow"].guaranteed
        waits = charges is MEASURED or made.placement["quick"] == node
        assert claims["fast"].guaranteed is not waits
        assert (claims["fast"].bound_ns is None) is waits
        if waits:
            assert "policy fifo" in claims["fast"].why
    usual = bounds(plan(node, where, to), MEASURED)["fast"]
    assert usual.bound_ns is not None and usual.bound_ns > 20 * MS  # 30 ms of `busy` are counted


def test_a_source_that_waits_at_such_sockets_is_not_policed() -> None:
    """Where nobody waits for sockets, it is: what it leads to elsewhere is guaranteed."""
    made = plan("a", "b", "b", a="fifo")
    for charges in (MEASURED, NOTHING):
        analysis = analyse(read(made), charges)
        found = policing.arrivals(analysis, analysis.system.sources["s"], made.graph.sources["s"].arrival)
        assert bool(found.source.paces) is (charges is NOTHING)
        assert ("policy fifo" in found.why) is (charges is MEASURED)


def test_a_link_that_also_carries_what_nothing_bounds_has_no_bound() -> None:
    """Results of `busy`, that come from `fifo`, may be as dense as can be, and those of `quick` wait behind them."""
    claims = bounds(plan("r", "b", "b", end="b", r="fifo"), NOTHING)
    assert claims["fast"].bound_ns is None and "link from r to b has no bound" in claims["fast"].why
    assert bounds(plan("r", "b", "b", end="b"), NOTHING)["fast"].guaranteed


def test_a_node_that_also_reads_what_nothing_bounds_has_no_bound() -> None:
    """Reading takes time, also of what is only delivered there."""
    made = written(
        QUERY.replace("NODE", "r").replace("WHERE", "a").replace("TO", "a").replace("END", "a"),
        CLUSTER.replace("policy: A", "policy: edf").replace("policy: R", "policy: fifo"),
    )
    assert bounds(made, NOTHING)["fast"].guaranteed
    claim = bounds(made, MEASURED)["fast"]
    assert claim.bound_ns is None and "what its sockets bring" in claim.why


CHAIN = """
shimekiri: 1
query: chain
sources:
  s: {at: a, type: json, arrival: {burst: 3, period: 100 ms}, max_age: 1 ms}
operators:
"""


def test_a_stream_through_more_units_than_can_be_followed_has_no_bound() -> None:
    """There and back, so that every operator is a unit of its own."""
    query = CHAIN + "".join(
        f"  o{i}: {{run: pass, in: {f'o{i - 1}' if i else 's'}, cost: 0.1 ms, nodes: [{'ab'[i % 2]}]}}\n"
        for i in range(24)
    )
    query += "outputs:\n  o: {from: o23, at: b, deadline: 900 ms}\n"
    made = written(query, CLUSTER.replace("policy: A", "policy: edf").replace("policy: R", "policy: edf"))
    before, depth = sys.getrecursionlimit(), len(inspect.stack(0))
    sys.setrecursionlimit(depth + 90)
    try:
        found = analyse(read(made), NOTHING)
    finally:
        sys.setrecursionlimit(before)
    assert {why.partition(": ")[2] for why in found.delays.broken.values()} == {
        "a stream passes more units than can be followed"
    }


def test_where_whole_ways_cannot_be_followed_the_bounds_unit_by_unit_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    query = CHAIN + "  o0: {run: pass, in: s, cost: 0.1 ms, nodes: [a]}\n"
    query += "  o1: {run: pass, in: o0, cost: 0.1 ms, nodes: [b]}\noutputs:\n  o: {from: o1, at: b, deadline: 900 ms}\n"
    made = written(query, CLUSTER.replace("policy: A", "policy: edf").replace("policy: R", "policy: edf"))
    alone = unit_by_unit(read(made), NOTHING)

    def too_deep(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(analysis, "path_limits", too_deep)
    found = analyse(read(made), NOTHING)
    assert found.delays.units == alone.delays.units and not found.delays.broken
