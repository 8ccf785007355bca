"""Checks of operators that fuse their inputs: they need the whole graph, or what is installed."""

from __future__ import annotations

from coordinator.spec import windows
from coordinator.spec.catalog import Catalog
from coordinator.spec.query import Operator, Query


def check(query: Query, catalog: Catalog) -> None:
    """Notes what is wrong in a query whose streams exist."""
    fusions = [operator for operator in query.operators if operator.sync is not None]
    if not fusions:
        return
    ways = windows.paths(query, catalog)
    for operator in fusions:
        installed = catalog.operators.get(operator.run)
        if installed is not None and installed.kind != "join":
            text = f"operator '{operator.name}' has a sync, but {operator.run} takes one tuple at a time"
            mend = "run an operator that takes one tuple of each input, like 'run: join', or remove 'sync:'"
            query.file.wrong("sync_of_map", (*operator.keys, "sync"), text, mend)
        elif len(operator.inputs) < 2:
            text = f"operator '{operator.name}' has a sync, but one input"
            query.file.wrong("too_few_inputs", (*operator.keys, "in"), text, "give it two or more: in: [a, b]")
        else:
            _sources_apart(query, operator, ways)


def _sources_apart(query: Query, operator: Operator, ways: dict[str, dict[str, int]]) -> None:
    """A result has the lineage of one of its tuples, so a tuple that came twice could lead to two of one lineage."""
    came: dict[str, int] = {}
    for name in operator.inputs:
        for source, number in ways[name].items():
            came[source] = came.get(source, 0) + number
    twice = sorted(source for source, number in came.items() if number > 1)
    if twice:
        text = f"fusion '{operator.name}' gets tuples of '{twice[0]}' by {came[twice[0]]} ways"
        mend = "let each source come by one, or remove 'sync:' to join branches of one source"
        query.file.wrong("several_ways_to_fusion", (*operator.keys, "in"), text, mend)
