"""The same query on one node and on two: an operator's results are met, changed or lost alike."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from node_agent.sdk import operator
from node_agent.testing import Choices, simulated

QUERY = """
shimekiri: 1
query: q
sources: {s: {at: a, type: json, arrival: {burst: 1, period: 10 ms}}}
operators:
  makes: {run: t.makes, in: s, cost: 1 ms, nodes: [a]}
  reads: {run: t.reads, in: makes, cost: 1 ms}
outputs: {o: {from: reads, at: b, deadline: 1 s}}
"""
CLUSTER = """
shimekiri: 1
nodes: {a: {address: "127.0.0.1:7700"}, b: {address: "127.0.0.1:7701"}}
links: [{between: [a, b], latency: 1 ms}]
"""
MADE: dict[str, Any] = {
    "array": np.ones(2), "scalar": np.int64(4), "tuple": (1, 2), "nan": {"in": [float("nan")]}, "set": {1},
    "key": {1: 2}, "long": "x" * (1 << 20), "plain": {"x": 1},
}  # fmt: skip


@operator("t.makes")
def makes(name: str) -> Any:
    return MADE[name]


@operator("t.reads")
def reads(value: Any) -> str:
    return repr(value)


@pytest.mark.parametrize("checks", [False, True])
def test_nothing_depends_on_the_placement(tmp_path: Path, checks: bool) -> None:
    from node_agent.virtual.run import operators_here

    query, cluster = tmp_path / "query.yaml", tmp_path / "cluster.yaml"
    query.write_text(QUERY)
    cluster.write_text(CLUSTER)
    found = {}
    for node in "ab":
        registry = operators_here((), checks, [makes, reads])
        done = simulated(
            query, cluster, {"s": list(MADE)}, registry, choices=Choices(place={"reads": node}), may_fail=True
        )
        (failure,) = done.failures
        assert failure.startswith(
            "operator makes on node a raised 4 times, first: UnencodableError: t.makes gave what a stream"
        )
        found[node] = [(each.seq, each.payload) for each in done["o"].deliveries]
    assert found["a"] == found["b"] == [(1, "[1.0, 1.0]"), (2, "4"), (3, "[1, 2]"), (8, "{'x': 1}")]
