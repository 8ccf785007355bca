"""The graph of a query: the order of its operators, what triggers each, the types of all streams.

A stream is named after the source or operator that produces it. Side inputs trigger nothing, so they are in no
deadline path and may lead back; a cycle of trigger inputs is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter

from coordinator.spec.catalog import Catalog, Installed
from coordinator.spec.query import Operator, Query, Source

LARGEST_GRAPH = 20_000  # ids are 16 bits wide


def order(query: Query) -> list[Operator]:
    """The operators so that each stands after those that trigger it; ties in the file's order."""
    by_name = {operator.name: operator for operator in query.operators}
    sorter = TopologicalSorter({name: [one for one in by_name[name].inputs if one in by_name] for name in by_name})
    return [by_name[name] for name in sorter.static_order()]


def kind(operator: Operator, catalog: Catalog) -> str:
    """What triggers an operator of a checked query: `map`: its one input; `join`: all inputs of one lineage; `fusion`:
    a set of tuples of its inputs; `union`: every input. A window collects every input, and what closes windows begins
    anew, as a union does."""
    if operator.sync is not None:
        return "fusion"
    if operator.is_windowed:
        return "union"
    installed = catalog.operators.get(operator.run)
    if installed is None:  # of a query that stands alone
        return "join" if len(operator.inputs) > 1 else "map"
    return installed.kind


def ordered_inputs(operator: Operator, catalog: Catalog) -> list[str]:
    """Input streams of a checked operator, in the order of its ports; of a window as they are written."""
    installed = catalog.operators.get(operator.run)
    if operator.is_windowed:
        return list(operator.inputs)
    if operator.ports is None or installed is None or installed.variadic:
        return list(operator.inputs)
    by_port = dict(zip(operator.ports, operator.inputs, strict=True))
    return [by_port[port] for port in installed.inputs]


def payload_bytes(query: Query, catalog: Catalog) -> dict[str, int]:
    """By stream: the most bytes of one payload as declared, 0: nothing is. Where an operator gives what it gets, its
    stream is as large as its inputs."""
    found = {source.name: source.max_bytes for source in query.sources}
    for operator in order(query):
        installed = catalog.operators.get(operator.run)
        passes = installed is not None and installed.output == "same" and not operator.is_windowed
        given = max((found[name] for name in operator.inputs), default=0) if passes else 0
        found[operator.name] = operator.max_bytes or given
    return found


def types(query: Query, catalog: Catalog) -> Mapping[str, str]:
    """The type of every stream of a query that is composed of checked ones. Raises BadInputError where it is too large
    as a whole."""
    size(query)
    return resolved_types(query, catalog)


def size(query: Query) -> None:
    """Raises BadInputError where it is too large as a whole."""
    if len(query.operators) + len(query.sources) > LARGEST_GRAPH:
        query.file.wrong(
            "query_too_large", ("operators",), f"has more than {LARGEST_GRAPH} operators and sources", "split the query"
        )
        query.file.check()


def resolved_types(query: Query, catalog: Catalog) -> dict[str, str]:
    """Types by name, in topological order; `any` where the catalogue does not tell. What does not fit is noted in the
    file."""
    types = {source.name: _of_source(query, source, catalog) for source in query.sources}
    for operator in order(query):
        installed = catalog.operators.get(operator.run)
        if operator.is_windowed:
            _collected(query, operator, installed, types)
            continue
        if installed is None:
            types[operator.name] = "any"
            continue
        first = types[operator.inputs[0]]
        types[operator.name] = first if installed.output == "same" else installed.output
        ports = operator.ports if operator.ports and not installed.variadic else tuple(installed.inputs)
        for position, name in enumerate(operator.inputs):
            wanted = next(iter(installed.inputs.values())) if installed.variadic else installed.inputs[ports[position]]
            wanted = first if installed.kind == "union" and wanted == "any" else wanted
            if "any" not in (wanted, types[name]) and wanted != types[name]:
                text = f"operator '{operator.name}' reads '{name}' of type {types[name]}, but takes {wanted}"
                query.file.wrong("type_mismatch", (*operator.keys, "in"), text, "convert it before")
    for operator in query.operators:
        installed = catalog.operators.get(operator.run)
        for port, name in operator.side.items():
            wanted = installed.side.get(port, "any") if installed else "any"
            if "any" not in (wanted, types[name]) and wanted != types[name]:
                text = f"side input '{port}' of '{operator.name}' takes {wanted}, but '{name}' is {types[name]}"
                query.file.wrong("type_mismatch", (*operator.keys, "side", port), text, "convert it before")
    return types


def _of_source(query: Query, source: Source, catalog: Catalog) -> str:
    """The type of a source; one that does not say it gives what its timer or its function does."""
    pull = source.pull
    if pull is None:
        return source.type
    installed = catalog.operators.get(pull.run)
    gives = "json" if not pull.run else installed.output if installed else source.type or "any"
    if source.type and source.type != gives:
        what = f"'{pull.run}' gives" if pull.run else "the ticks of a timer are"
        text = f"source '{source.name}' has type '{source.type}', but {what} {gives}"
        query.file.wrong("type_mismatch", (*source.keys, "type"), text, "leave 'type:' out")
    return gives


def _collected(query: Query, operator: Operator, installed: Installed | None, types: dict[str, str]) -> None:
    """What windows give is JSON, unless a user's own aggregate says otherwise. Any tuple may be in one whose fields can
    be read; a user's own aggregate takes what it says, and a join JSON, since its results hold whole tuples."""
    own = installed if installed is not None and installed.kind == "aggregate" else None
    types[operator.name] = own.output if own is not None and operator.closes else "json"
    wanted = next(iter(own.inputs.values()), "any") if own is not None else "any"
    if installed is not None and installed.kind == "join":
        wanted = next(iter(installed.inputs.values()))
    for name in operator.inputs if operator.window is not None else ():
        if "any" not in (wanted, types[name]) and wanted != types[name]:
            text = f"operator '{operator.said}' reads '{name}' of type {types[name]}, but takes {wanted}"
            query.file.wrong("type_mismatch", (*operator.keys, "in"), text, "convert it before")
