"""[P]'s query where [P] puts it (O3 on node 2), with a burst of n V2V tuples: a burst a second, links that take no
time, so that bounds are of units alone."""

from __future__ import annotations

from functools import cache

from infra.papers.conventional.drawn_transactions import Case
from infra.papers.conventional.placed_query import PlacedQuery

QUERY = """\
shimekiri: 1
query: collision_conventional
sources:
  v2v:    {{at: a, type: json, arrival: {{burst: {n},  period: 1 s}}}}
  sensor: {{at: a, type: json, arrival: {{burst: 10,  period: 1 s}}}}
  centre: {{at: b, type: json, arrival: {{burst: 100, period: 1 s}}}}
operators:
  O1: {{run: pass, in: sensor, cost: 1 ms, nodes: [a]}}
  O2: {{run: pass, in: v2v, cost: 1 ms, nodes: [a]}}
  O3:
    run: filter
    in: O2
    cost: 1 ms
    with: {{keep: 1, of: 2}}
    selectivity: {{mean: 0.5, at_most: [[1, 1], [2, 1]]}}
  O4: {{run: pass, in: O3, cost: 1 ms, nodes: [b]}}
  O7..O21: {{chain: pass, in: O4, cost: 1 ms, nodes: [b]}}
  O6: {{run: pass, in: centre, cost: 1 ms, nodes: [b]}}
  O5: {{run: pass, in: O6, cost: 1 ms, nodes: [b]}}
outputs:
  control:  {{from: O1,  at: a, deadline: 30 ms}}
  warning:  {{from: O21, at: b, deadline: 300 ms}}
  advisory: {{from: O5,  at: b, deadline: 3 s}}
"""
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", cap: 1, emulate: {cost_per_tuple: 1 ms}}
  b: {address: "127.0.0.1:7710", cap: 1, emulate: {cost_per_tuple: 1 ms}}
links: [{between: [a, b], latency: 0 ms}]
security: insecure-loopback
"""
ON_NODE_1 = ("O1", "O2")


@cache
def collision_query(n: int) -> PlacedQuery:
    """Operators take 1 ms per tuple, no less."""
    names = [f"O{number}" for number in range(1, 22)]
    place = {name: "a" if name in ON_NODE_1 else "b" for name in names}
    return PlacedQuery.of(Case(QUERY.format(n=n), CLUSTER, place))


__all__ = ["collision_query"]
