"""A placement is not given up for the routes of least traffic: quicker ones are tried, and a proof is of all routes."""

from __future__ import annotations

import pytest

from coordinator.errors import InfeasibleError
from tests.coordinator.guarantee.written_plans import MS, written

QUERY = """
shimekiri: 1
query: routes
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 200 ms}, max_age: 1 ms}
operators:
  o: {run: pass, in: s, cost: 2 ms, nodes: [b]}
outputs:
  out: {from: o, at: b, deadline: DEADLINE ms}
"""
TWO_WAYS = (
    "{between: [a, r], latency: ONE}, {between: [r, b], latency: ONE}, "
    "{between: [a, t], latency: OTHER}, {between: [t, b], latency: OTHER}"
)
STRAIGHT = "{between: [a, b], latency: 30 ms}, {between: [a, r], latency: 1 ms}, {between: [r, b], latency: 1 ms}"


def clustered(names: str, links: str) -> str:
    nodes = "\n".join(f'  {name}: {{address: "127.0.0.1:77{i}0"}}' for i, name in enumerate(names))
    return f"shimekiri: 1\nnodes:\n{nodes}\nlinks: [{links}]\nsecurity: insecure-loopback"


@pytest.mark.parametrize(
    "cluster",
    [
        clustered("artb", TWO_WAYS.replace("ONE", "30 ms").replace("OTHER", "1 ms")),
        clustered("artb", TWO_WAYS.replace("ONE", "1 ms").replace("OTHER", "30 ms")),
        clustered("arb", STRAIGHT),  # every two nodes are linked, and still a relay is quicker
    ],
)
def test_the_quicker_route_is_found(cluster: str) -> None:
    plan = written(QUERY.replace("DEADLINE", "5"), cluster, model="sound")
    assert plan.guarantee["out"].bound_ns == 5 * MS and plan.solver.outcome == "guaranteed"
    with pytest.raises(InfeasibleError):
        written(QUERY.replace("DEADLINE", "4"), cluster, model="sound")


def test_less_traffic_goes_before_less_time() -> None:
    """The slow straight way holds as well; it is one hop."""
    plan = written(QUERY.replace("DEADLINE", "40"), clustered("arb", STRAIGHT), model="sound")
    assert plan.guarantee["out"].bound_ns == 33 * MS and plan.status == "optimal"
    plan = written(QUERY.replace("DEADLINE", "5"), clustered("arb", STRAIGHT), model="sound")
    assert plan.status == "feasible"  # of other routes with less traffic nothing is known


def test_a_rival_that_never_comes_makes_nobody_late() -> None:
    """`drop` passes nothing, so `never` does not run, though it would take longer than there is time."""
    query = QUERY.replace("DEADLINE", "8").replace(
        "outputs:",
        "  drop: {run: pass, in: s, cost: 1 ms, nodes: [b], selectivity: {mean: 0, at_most: [[1, 0]]}}\n"
        "  never: {run: pass, in: drop, cost: 20 ms, nodes: [b]}\n"
        "outputs:\n  none: {from: never, at: b, deadline: 90 ms}",
    )
    plan = written(query, clustered("ab", "{between: [a, b], latency: 1 ms}"), model="sound", units="operator")
    assert plan.guarantee["out"].guaranteed
