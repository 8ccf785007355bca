"""Plans as transactions: units, exits on the way, filters, links; and what a transaction has not."""

import pytest

from infra.papers.conventional.collision_query import collision_query
from infra.papers.conventional.drawn_transactions import Case
from infra.papers.conventional.placed_query import PlacedQuery
from infra.papers.conventional.read_plan import BeyondTransactionsError
from infra.papers.conventional.transactions import Event, Release

CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", cap: 1}
  b: {address: "127.0.0.1:7710", cap: 1}
links: [{between: [a, b], latency: 2 ms}]
security: insecure-loopback
"""


def query(operators: str, outputs: str) -> str:
    return f"""\
shimekiri: 1
query: small
sources:
  s: {{at: a, type: json, arrival: {{burst: 4, period: 100 ms}}}}
  t: {{at: a, type: json, arrival: {{jcp: {{period: 50 ms, min_gap: 0 ms, early: 3 ms, late: 4 ms}}}}}}
operators:
{operators}
outputs:
{outputs}
"""


def test_the_papers_query_is_four_activities_of_which_one_filters() -> None:
    of = collision_query(15).transactions
    assert [(each.node, each.event.burst, each.batch) for each in of.activities] == [
        ("a", 10, 10), ("a", 15, 15), ("b", 100, 100), ("b", 15, 15),
    ]  # fmt: skip
    chain = of.activities[3]
    assert chain.after == Release(1, 1, 0)
    assert chain.work_ns(15) == (15 + 8 * 16) * 1_000_000 and chain.cost_ns == 17_000_000


def test_a_filter_before_a_link_and_an_exit_on_the_way() -> None:
    text = query(
        "  f: {run: filter, in: s, cost: 1 ms, with: {keep: 1, of: 2}, "
        "selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}}\n"
        "  g: {run: pass, in: f, cost: 2 ms}\n"
        "  h: {run: pass, in: g, cost: 3 ms}\n"
        "  k: {run: pass, in: t, cost: 1 ms}",
        "  near: {from: g, at: b, deadline: 90 ms}\n  far: {from: h, at: b, deadline: 99 ms}\n"
        "  other: {from: k, at: a, deadline: 50 ms}",
    )
    of = PlacedQuery.of(Case(text, CLUSTER, {"f": "a", "g": "a", "h": "b", "k": "a"})).transactions
    by_name = {output.name: output for output in of.outputs}
    near, far = by_name["near"], by_name["far"]
    assert near.link_ns == 2_000_000 and far.link_ns == 0 and of.links_ns(far) == 2_000_000
    behind = of.activities[far.by]
    assert behind.one_of == 2 and behind.batch == 2 and behind.after == Release(near.by, 2, 2_000_000)
    assert of.activities[by_name["other"].by].event == Event(50_000_000, 1, 7_000_000)


def test_a_union_is_no_transaction() -> None:
    text = query("  u: {run: union, in: [s, t], cost: 1 ms}", "  out: {from: u, at: a, deadline: 50 ms}")
    with pytest.raises(BeyondTransactionsError):
        PlacedQuery.of(Case(text, CLUSTER, {"u": "a"})).transactions  # noqa: B018 - read at once
