"""Runs of operators that share a node, contracted before (6): 5.3 of [P]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from coordinator.spec import graph
from coordinator.spec.catalog import Catalog
from coordinator.spec.query import Query

Contract = Literal["fixed", "linear"]


def chains(
    query: Query, catalog: Catalog, allowed: Mapping[str, tuple[int, ...]], held: Mapping[str, str], contract: Contract
) -> list[tuple[str, ...]]:
    """Runs of operators that certainly share a node, contracted before (6) by the first merge rule of [P] 5.3.

    Without this, (6) takes the members of a chain for jobs released at one instant: the 21 separate operators of the
    query of [P] are infeasible. `fixed`: runs pinned to one node. `linear`: also runs with the same choice of
    nodes, which then move together; used where the model has no solution otherwise. The halves of a window operator
    share a node always.
    """
    readers: dict[str, list[str]] = {operator.name: [] for operator in query.operators}
    for operator in query.operators:
        for name in operator.inputs:
            if name in readers:
                readers[name].append(operator.name)
    delivered = {output.origin for output in query.outputs}
    follows: dict[str, str] = {}
    for operator in query.operators:
        source = operator.inputs[0]
        if operator.closes:
            follows[source] = operator.name
            continue
        single = len(operator.inputs) == 1 and graph.kind(operator, catalog) == "map"
        if single and source in readers and len(readers[source]) == 1 and source not in delivered:
            together = allowed[source] == allowed[operator.name] and held.get(source) == held.get(operator.name)
            if together and (len(allowed[source]) == 1 or contract == "linear"):
                follows[source] = operator.name
    heads = [operator.name for operator in graph.order(query) if operator.name not in set(follows.values())]
    found = []
    for head in heads:
        chain = [head]
        while chain[-1] in follows:
            chain.append(follows[chain[-1]])
        found.append(tuple(chain))
    return found
