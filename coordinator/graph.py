"""Checks of a query that need the whole graph, and of a query against a cluster; the types of all streams.

A stream is named after the source or operator that produces it. Side inputs trigger nothing, so they are in no
deadline path and may lead back; a cycle of trigger inputs is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from coordinator import places
from coordinator.cluster import Cluster
from coordinator.operators import Catalog
from coordinator.query import Operator, Query
from coordinator.yaml_file import nearest

LARGEST_GRAPH = 20_000  # ids are 16 bits wide


def order(query: Query) -> list[Operator]:
    """The operators so that each stands after those that trigger it; ties in the file's order."""
    by_name = {operator.name: operator for operator in query.operators}
    sorter = TopologicalSorter({name: [one for one in by_name[name].inputs if one in by_name] for name in by_name})
    return [by_name[name] for name in sorter.static_order()]


def ordered_inputs(operator: Operator, catalog: Catalog) -> list[str]:
    """Input streams of a checked operator, in the order of its ports."""
    installed = catalog.operators.get(operator.run)
    if operator.ports is None or installed is None or installed.variadic:
        return list(operator.inputs)
    by_port = dict(zip(operator.ports, operator.inputs, strict=True))
    return [by_port[port] for port in installed.inputs]


def check(query: Query, cluster: Cluster | None) -> Mapping[str, str]:
    """The type of every stream. Raises BadInputError with every problem of the query, its nodes only if a cluster is
    given."""
    catalog = cluster.catalog if cluster else Catalog()
    _size(query)
    _streams_exist(query)
    _operators_exist(query, catalog)
    if cluster:
        _nodes_exist(query, cluster)
    query.file.check()
    _cycles(query)
    _consumers(query)
    _lineages(query, catalog)
    query.file.check()
    found = _types(query, catalog)
    query.file.check()
    return found


def types(query: Query, catalog: Catalog) -> Mapping[str, str]:
    """The type of every stream of a query that is composed of checked ones. Raises BadInputError where it is too large
    as a whole."""
    _size(query)
    return _types(query, catalog)


def _size(query: Query) -> None:
    if len(query.operators) + len(query.sources) > LARGEST_GRAPH:
        query.file.wrong(("operators",), f"has more than {LARGEST_GRAPH} operators and sources; split the query")
        query.file.check()


def _streams_exist(query: Query) -> None:
    streams = [one.name for one in query.producers]
    known, sources = set(streams), {source.name for source in query.sources}
    for operator in query.operators:
        for name in operator.inputs:
            if name not in known:
                text = f"operator '{operator.name}' reads stream '{name}', which is unknown"
                query.file.wrong((*operator.keys, "in"), text + nearest(name, known - {operator.name}))
        if len(set(operator.inputs)) != len(operator.inputs):
            query.file.wrong((*operator.keys, "in"), f"operator '{operator.name}' reads a stream twice; name it once")
        for port, name in operator.side.items():
            if name not in known:
                text = f"side input '{port}' of operator '{operator.name}' reads stream '{name}', which is unknown"
                query.file.wrong((*operator.keys, "side", port), text + nearest(name, known))
    for output in query.outputs:
        if output.origin in sources:
            text = f"output '{output.name}' comes straight from source '{output.origin}'"
            query.file.wrong((*output.keys, "from"), text + "; put an operator between, like 'run: pass'")
        elif output.origin not in known:
            text = f"output '{output.name}' comes from '{output.origin}', which is unknown"
            query.file.wrong((*output.keys, "from"), text + nearest(output.origin, known - sources))


def _operators_exist(query: Query, catalog: Catalog) -> None:
    for operator in query.operators:
        installed = catalog.operators.get(operator.run)
        if installed is None:
            if catalog.complete:
                text = f"operator '{operator.name}' runs '{operator.run}', which no node has installed"
                query.file.wrong((*operator.keys, "run"), text + nearest(operator.run, catalog.operators))
            continue
        count, wanted = len(operator.inputs), len(installed.inputs)
        if installed.variadic and count < 2:
            text = f"operator '{operator.name}' ({operator.run}) has {count} input; give it two or more: in: [a, b]"
            query.file.wrong((*operator.keys, "in"), text)
        elif not installed.variadic and count != wanted:
            ports = ", ".join(installed.inputs)
            text = f"operator '{operator.name}' has {count} inputs, but {operator.run} takes {wanted} ({ports})"
            query.file.wrong((*operator.keys, "in"), text + "; correct 'in:'")
        elif operator.ports and not installed.variadic and set(operator.ports) != set(installed.inputs):
            for port in sorted(set(operator.ports) - set(installed.inputs)):
                text = f"operator '{operator.name}' has no input '{port}'{nearest(port, installed.inputs)}"
                query.file.wrong((*operator.keys, "in", port), text)
        for port in operator.side:
            if port not in installed.side:
                text = f"operator '{operator.name}' ({operator.run}) has no side input '{port}'"
                query.file.wrong((*operator.keys, "side", port), text + nearest(port, installed.side))
        for text in catalog.wrong_parameters(operator.run, operator.parameters):
            query.file.wrong((*operator.keys, "with"), f"operator '{operator.name}': {text}")


def _nodes_exist(query: Query, cluster: Cluster) -> None:
    places.check(query, cluster)
    for source in query.sources:
        if source.type not in cluster.catalog.codecs:
            text = f"source '{source.name}' has type '{source.type}', which no node has a codec for"
            query.file.wrong((*source.keys, "type"), text + nearest(source.type, cluster.catalog.codecs))


def _cycles(query: Query) -> None:
    try:
        order(query)
    except CycleError as error:
        names = list(reversed(error.args[1]))
        first = next(operator for operator in query.operators if operator.name in names)
        text = f"operators feed each other in a cycle: {' -> '.join(names)}; read one of them through 'side:' or cut it"
        query.file.wrong((*first.keys, "in"), text)
        query.file.check()


def _consumers(query: Query) -> None:
    read = {name for operator in query.operators for name in (*operator.inputs, *operator.side.values())}
    read |= {output.origin for output in query.outputs}
    for one in query.producers:
        if one.name not in read:
            query.file.wrong(
                one.keys, f"stream '{one.name}' has no consumer; read it, deliver it as an output, or remove it"
            )
    useful, before = {output.origin for output in query.outputs}, -1
    while len(useful) != before:
        before = len(useful)
        for operator in query.operators:
            if operator.name in useful:
                useful |= {*operator.inputs, *operator.side.values()}
    for operator in query.operators:
        if operator.name not in useful and operator.name in read:
            query.file.wrong(operator.keys, f"operator '{operator.name}' leads to no output; add one, or remove it")


def _lineages(query: Query, catalog: Catalog) -> None:
    """A join waits for all inputs of one lineage, so its inputs must have a source in common, or it never fires."""
    reach: dict[str, set[str]] = {source.name: {source.name} for source in query.sources}
    for operator in order(query):
        inputs = [reach[name] for name in operator.inputs]
        installed = catalog.operators.get(operator.run)
        joins = installed.kind == "join" if installed else len(inputs) > 1
        reach[operator.name] = set.intersection(*inputs) if joins else set.union(*inputs)
        if not reach[operator.name] and all(inputs):
            text = f"join '{operator.name}' has inputs without a source in common, so it never fires"
            query.file.wrong(
                (*operator.keys, "in"), text + "; join branches of one source, or read the other through 'side:'"
            )


def _types(query: Query, catalog: Catalog) -> dict[str, str]:
    """Types by name, in topological order; `any` where the catalogue does not tell."""
    types = {source.name: source.type for source in query.sources}
    for operator in order(query):
        installed = catalog.operators.get(operator.run)
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
                query.file.wrong((*operator.keys, "in"), text + "; convert it before")
    for operator in query.operators:
        installed = catalog.operators.get(operator.run)
        for port, name in operator.side.items():
            wanted = installed.side.get(port, "any") if installed else "any"
            if "any" not in (wanted, types[name]) and wanted != types[name]:
                text = f"side input '{port}' of '{operator.name}' takes {wanted}, but '{name}' is {types[name]}"
                query.file.wrong((*operator.keys, "side", port), text + "; convert it before")
    return types
