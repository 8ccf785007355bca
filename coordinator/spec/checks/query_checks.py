"""Checks of a query that need the whole graph, and of a query against a cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from graphlib import CycleError

from coordinator.spec import core_assignment, graph
from coordinator.spec.catalog import ITERATOR, SOURCE, Catalog, Installed
from coordinator.spec.checks import freshness_checks, fusion_checks, overload_checks, payload_checks
from coordinator.spec.cluster import Cluster
from coordinator.spec.files.yaml_source import nearest
from coordinator.spec.query import Operator, Query


def check(query: Query, cluster: Cluster | None) -> Mapping[str, str]:
    """The type of every stream. Raises BadInputError with every problem of the query, its nodes only if a cluster is
    given."""
    catalog = cluster.catalog if cluster else Catalog()
    graph.size(query)
    _streams_exist(query)
    _operators_exist(query, catalog)
    _sources_exist(query, catalog)
    if cluster:
        _nodes_exist(query, cluster)
    query.file.check()
    _cycles(query)
    _consumers(query)
    _lineages(query, catalog)
    query.file.check()
    fusion_checks.check(query, catalog)
    query.file.check()
    found = graph.resolved_types(query, catalog)
    overload_checks.check(query, catalog, found)
    payload_checks.check(query, found)
    freshness_checks.check(query)
    query.file.check()
    return found


def _listed(name: str, known: Collection[str]) -> str:
    """What to write for names of streams that stand in one text; empty where it is not that."""
    names = name.replace(",", " ").split()
    return f"write 'in: [{', '.join(names)}]'" if len(names) > 1 and all(each in known for each in names) else ""


def _streams_exist(query: Query) -> None:
    sources = {source.name for source in query.sources}
    known = sources | {operator.name for operator in query.operators if operator.window is None}
    for operator in query.operators:
        for name in operator.inputs if not operator.closes else ():
            if name not in known:
                text = f"operator '{operator.said}' reads stream '{name}', which is unknown"
                mend = _listed(name, known) or nearest(name, known - {operator.said})
                query.file.wrong("unknown_stream", (*operator.keys, "in"), text, mend)
        if len(set(operator.inputs)) != len(operator.inputs):
            query.file.wrong(
                "stream_read_twice",
                (*operator.keys, "in"),
                f"operator '{operator.said}' reads a stream twice",
                "name it once",
            )
        for port, name in operator.side.items():
            if name not in known:
                text = f"side input '{port}' of operator '{operator.name}' reads stream '{name}', which is unknown"
                query.file.wrong("unknown_stream", (*operator.keys, "side", port), text, nearest(name, known))
    for output in query.outputs:
        if output.origin in sources:
            text = f"output '{output.name}' comes straight from source '{output.origin}'"
            query.file.wrong(
                "output_of_source", (*output.keys, "from"), text, "put an operator between, like 'run: pass'"
            )
        elif output.origin not in known:
            text = f"output '{output.name}' comes from '{output.origin}', which is unknown"
            query.file.wrong("unknown_stream", (*output.keys, "from"), text, nearest(output.origin, known - sources))


def _operators_exist(query: Query, catalog: Catalog) -> None:
    for operator in query.operators:
        installed = catalog.operators.get(operator.run)
        if operator.closes:
            continue  # its other half is looked at
        if installed is None:
            if catalog.complete:
                text = f"operator '{operator.said}' runs '{operator.run}', which no node has installed"
                query.file.wrong("unknown_operator", (*operator.keys, "run"), text, catalog.unknown(operator.run))
            continue
        if installed.kind in (SOURCE, ITERATOR):
            text = f"operator '{operator.said}' runs '{operator.run}', which is a source"
            mend = f"name it under 'sources:', like '{operator.said}: {{at: NODE, run: {operator.run}, ...}}'"
            query.file.wrong("source_as_operator", (*operator.keys, "run"), text, mend)
            continue
        _inputs_fit(query, operator, installed)
        for port in operator.side:
            if port not in installed.side:
                text = f"operator '{operator.name}' ({operator.run}) has no side input '{port}'"
                query.file.wrong(
                    "unknown_side_input", (*operator.keys, "side", port), text, nearest(port, installed.side)
                )
        for mistake in catalog.wrong_parameters(operator.run, operator.parameters):
            query.file.add((*operator.keys, "with"), mistake.within(f"operator '{operator.said}'"))


def _sources_exist(query: Query, catalog: Catalog) -> None:
    """What sources run is installed, is a source, and goes at the pace that they say."""
    for source in query.sources:
        if source.pull is None or not source.pull.run:
            continue
        run, installed = source.pull.run, catalog.operators.get(source.pull.run)
        keys, what = (*source.keys, "run"), f"source '{source.name}' runs '{source.pull.run}', which"
        if installed is None:
            if catalog.complete:
                query.file.wrong("unknown_operator", keys, f"{what} no node has installed", catalog.unknown(run))
            continue
        if installed.kind not in (SOURCE, ITERATOR):
            mend = "write @source(...) above it, or read a source in an operator that runs it"
            query.file.wrong("operator_as_source", keys, f"{what} is an operator", mend)
        elif installed.kind == SOURCE and not source.pull.every_ns:
            query.file.wrong(
                "other_pace", keys, f"{what} is called tick by tick", "write 'every: 100 ms' for 'arrival:'"
            )
        elif installed.kind == ITERATOR and source.pull.every_ns:
            text = f"{what} is an iterator and has a pace of its own"
            query.file.wrong("other_pace", keys, text, "write 'arrival:' for 'every:', as dense as it may come")
        for mistake in catalog.wrong_parameters(run, source.pull.parameters):
            query.file.add((*source.keys, "with"), mistake.within(f"source '{source.name}'"))


def _inputs_fit(query: Query, operator: Operator, installed: Installed) -> None:
    """As many inputs as the operator takes, called as it calls them."""
    count, wanted = len(operator.inputs), len(installed.inputs)
    if operator.window is not None or installed.kind == "aggregate":
        if not operator.inputs or (operator.ports and installed.kind == "aggregate"):
            text = f"operator '{operator.said}' ({operator.run}) takes any number of streams, all of them alike"
            query.file.wrong("inputs_not_alike", (*operator.keys, "in"), text, "write 'in: a' or 'in: [a, b]'")
    elif installed.variadic and count < 2:
        text = f"operator '{operator.name}' ({operator.run}) has {count} input"
        query.file.wrong("too_few_inputs", (*operator.keys, "in"), text, "give it two or more: in: [a, b]")
    elif not installed.variadic and count != wanted:
        ports = ", ".join(installed.inputs)
        text = f"operator '{operator.name}' has {count} inputs, but {operator.run} takes {wanted} ({ports})"
        query.file.wrong("wrong_number_of_inputs", (*operator.keys, "in"), text, "correct 'in:'")
    elif operator.ports and not installed.variadic and set(operator.ports) != set(installed.inputs):
        for port in sorted(set(operator.ports) - set(installed.inputs)):
            text = f"operator '{operator.name}' has no input '{port}'"
            query.file.wrong("unknown_input", (*operator.keys, "in", port), text, nearest(port, installed.inputs))


def _nodes_exist(query: Query, cluster: Cluster) -> None:
    core_assignment.check(query, cluster)
    for source in query.sources:
        node = cluster.places(source.at)[0] if cluster.places(source.at) else None
        if node is not None and source.calls / node.speed >= node.cap:
            use, cap = f"{float(source.calls / node.speed):.1%}", f"{float(node.cap):.1%}"
            text = f"source '{source.name}' would use {use} of node '{node.name}' for its calls, whose cap is {cap}"
            query.file.wrong(
                "cost_beyond_cap", (*source.keys, "cost"), text, "let it tick more rarely, or lower its cost"
            )
        known = {*cluster.catalog.codecs, *payload_checks.LARGE_TYPES}
        if (source.pull is None or source.type) and source.type not in known:
            text = f"source '{source.name}' has type '{source.type}', which no node has a codec for"
            query.file.wrong("unknown_codec", (*source.keys, "type"), text, nearest(source.type, known))


def _cycles(query: Query) -> None:
    try:
        graph.order(query)
    except CycleError as error:
        inner = {operator.name for operator in query.operators if operator.window is not None}
        names = [name for name in reversed(error.args[1]) if name not in inner]
        first = next(operator for operator in query.operators if operator.name in names)
        text = f"operators feed each other in a cycle: {' -> '.join(names)}"
        query.file.wrong("cycle", (*first.keys, "in"), text, "read one of them through 'side:' or cut it")
        query.file.check()


def _consumers(query: Query) -> None:
    read = {name for operator in query.operators for name in (*operator.inputs, *operator.side.values())}
    read |= {output.origin for output in query.outputs}
    for one in query.producers:
        if one.name not in read:
            query.file.wrong(
                "unread_stream",
                one.keys,
                f"stream '{one.name}' has no consumer",
                "read it, deliver it as an output, or remove it",
            )
    useful, before = {output.origin for output in query.outputs}, -1
    while len(useful) != before:
        before = len(useful)
        for operator in query.operators:
            if operator.name in useful:
                useful |= {*operator.inputs, *operator.side.values()}
    for operator in query.operators:
        if operator.name not in useful and operator.name in read and operator.window is None:
            query.file.wrong(
                "leads_to_no_output",
                operator.keys,
                f"operator '{operator.name}' leads to no output",
                "add one, or remove it",
            )


def _lineages(query: Query, catalog: Catalog) -> None:
    """A join waits for all inputs of one lineage, so its inputs must have a source in common, or it never fires."""
    reach: dict[str, set[str]] = {source.name: {source.name} for source in query.sources}
    for operator in graph.order(query):
        if operator.window is not None or operator.sync is not None:  # its results have lineages of their own
            reach[operator.name] = {operator.name}
            continue
        inputs = [reach[name] for name in operator.inputs]
        installed = catalog.operators.get(operator.run)
        joins = installed.kind == "join" if installed and not operator.closes else len(inputs) > 1
        reach[operator.name] = set.intersection(*inputs) if joins else set.union(*inputs)
        if not reach[operator.name] and all(inputs):
            text = f"join '{operator.name}' has inputs without a source in common, so it never fires"
            query.file.wrong(
                "no_common_source",
                (*operator.keys, "in"),
                text,
                "join branches of one source, fuse them with 'sync:', or read the other through 'side:'",
            )
