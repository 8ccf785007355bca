"""Checks of windows, limits and late tuples that need the whole graph, or what is installed."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.spec import expressions, graph, windows
from coordinator.spec.catalog import AGGREGATE, Catalog, Installed
from coordinator.spec.checks import aggregates
from coordinator.spec.expressions.kinds import Kind
from coordinator.spec.query import Operator, Query
from coordinator.units import show_ns
from protos.plan.operators import ADD, Window

JOIN = "join"


def check(query: Query, catalog: Catalog, types: Mapping[str, str]) -> None:
    """Notes what is wrong in a query whose streams are known to be right; `types`: of every stream."""
    for source in query.sources:
        known = _kind(catalog, source.type)
        if source.limit is not None and source.limit.value and known is not None:
            expressions.checked(query.file, (*source.keys, "value"), source.limit.value, known)
    for operator in query.operators:
        if operator.closes:
            continue
        if operator.window is not None:
            _window(query, catalog, types, operator, operator.window)
        elif _is_aggregate(catalog, operator):
            text = f"operator '{operator.name}' aggregates, but over what?"
            mend = "add a window, like 'window: {time: 5 s}'"
            query.file.wrong("aggregate_without_window", (*operator.keys, "run"), text, mend)
        _on_late(query, catalog, types, operator)
    _late_for_what(query)
    if windows.collecting(query):
        _ever_late(query)
        _counted(query, catalog)
        _reached(query, catalog)
        _side_by_side(query)


def _kind(catalog: Catalog, type_: str) -> Kind:
    """What is known of the tuples of a stream of this type."""
    return catalog.fields.get(type_)


def _is_aggregate(catalog: Catalog, operator: Operator) -> bool:
    installed = catalog.operators.get(operator.run)
    return installed is not None and installed.kind == "aggregate"


def _window(query: Query, catalog: Catalog, types: Mapping[str, str], operator: Operator, window: Window) -> None:
    installed = catalog.operators.get(operator.run)
    if installed is not None and installed.kind != "aggregate" and operator.run != JOIN:
        text = f"operator '{operator.said}' has a window, but {operator.run} takes one tuple at a time"
        query.file.wrong(
            "window_of_map", (*operator.keys, "window"), text, "write 'run: aggregate', or remove 'window:'"
        )
        return
    for name in operator.inputs:
        kind = _kind(catalog, types[name])
        if operator.run == AGGREGATE:
            for keys, mistake in aggregates.wrong(operator.parameters, kind):
                query.file.add((*operator.keys, "with", *keys), mistake.within(f"operator '{operator.said}'"))
        if window.by and (no_key := aggregates.no_key(window.by, kind)):
            query.file.add((*operator.keys, "window", "by"), no_key.within(f"operator '{operator.said}', by"))
    if operator.run == JOIN and operator.parameters:
        query.file.wrong(
            "join_with_parameters",
            (*operator.keys, "with"),
            f"operator '{operator.said}' joins: remove 'with:', it takes none",
        )
    if operator.run == JOIN and window.by:
        text = f"operator '{operator.said}' joins, and groups of pairs are none"
        mend = "remove 'by:', or aggregate behind it"
        query.file.wrong("join_in_groups", (*operator.keys, "window", "by"), text, mend)
    for name, field in zip(operator.inputs, window.on, strict=False):
        if no_key := aggregates.no_key(field, _kind(catalog, types[name])):
            query.file.add((*operator.keys, "on"), no_key.within(f"operator '{operator.said}', on, of '{name}'"))
    if window.kind != "time" and operator.run == JOIN:
        text = f"operator '{operator.said}' joins two streams, which have no count"
        query.file.wrong("join_by_count", (*operator.keys, "window"), text, "write 'window: {time: 5 s}'")
    if window.kind == "sized":
        _sized(query, catalog, types, operator, window)


def _sized(query: Query, catalog: Catalog, types: Mapping[str, str], operator: Operator, window: Window) -> None:
    """The function that says how long a window is."""
    installed = catalog.operators.get(window.size)
    keys = (*operator.keys, "window", "size")
    if installed is None:
        if catalog.complete:
            text = f"windows of '{operator.said}' are as long as '{window.size}' says, which no node has installed"
            query.file.wrong("unknown_operator", keys, text, catalog.unknown(window.size))
    elif installed.kind != "map" or installed.side or any(one.required for one in installed.parameters.values()):
        text = f"windows of '{operator.said}': {window.size} cannot say how long one is from its first tuple alone"
        query.file.wrong(
            "no_window_length_function",
            keys,
            text,
            "name an operator with one input, no side inputs and no parameters it needs",
        )
    else:
        wanted, given = next(iter(installed.inputs.values()), "any"), types[operator.inputs[0]]
        if "any" not in (wanted, given) and wanted != given:
            text = f"windows of '{operator.said}': {window.size} takes {wanted}, but '{operator.inputs[0]}' is {given}"
            query.file.wrong("type_mismatch", keys, text, "convert it before")


def _on_late(query: Query, catalog: Catalog, types: Mapping[str, str], operator: Operator) -> None:
    """A cheaper variant takes the place of the operator, so it has to look like it."""
    given = operator.on_late
    if given is None or not given.run:
        return
    keys = (*operator.keys, "on_late", "degrade")
    mine, other = catalog.operators.get(operator.run), catalog.operators.get(given.run)
    if other is None:
        if catalog.complete:
            text = f"operator '{operator.name}' degrades to '{given.run}', which no node has installed"
            query.file.wrong("unknown_operator", (*keys, "run"), text, catalog.unknown(given.run))
        return
    if given.cost_ns >= operator.cost_ns:
        text = f"operator '{operator.name}' degrades to {given.run}, which costs {show_ns(given.cost_ns)}, no less than"
        query.file.wrong(
            "degraded_no_cheaper",
            (*keys, "cost"),
            f"{text} {show_ns(operator.cost_ns)}",
            "name a cheaper one, or write 'drop'",
        )
    if mine is not None and (unlike := _unlike(operator, mine, other, types)):
        text = f"operator '{operator.name}' cannot degrade to {given.run}: {unlike}"
        query.file.wrong("degraded_unlike", (*keys, "run"), text, "name one with the same inputs and output")
    for mistake in catalog.wrong_parameters(given.run, given.parameters):
        query.file.add((*keys, "with"), mistake.within(f"operator '{operator.name}'"))


def _late_for_what(query: Query) -> None:
    """What leads to no output is late for none: there is no age at which it would be."""
    latest = windows.latest_ns(query)
    for operator in query.operators:
        if operator.on_late is not None and not latest[operator.name]:
            text = f"operator '{operator.said}' leads to side inputs only, which have no deadline to be late for"
            mend = "remove 'on_late:'; how old a value may be says 'max_age:' of the side input"
            query.file.wrong("no_deadline_behind", (*operator.keys, "on_late"), text, mend)


def _ever_late(query: Query) -> None:
    """A window by count may be as long in coming as it likes, so nothing on its way there is ever too late; nor is it
    for windows that are given however late."""
    latest = windows.latest_ns(query)
    for operator in query.operators:
        if operator.on_late is not None and windows.endless(latest[operator.name]):
            text = (
                f"operator '{operator.name}' leads to windows that no tuple is too late for: by count, with deadlines "
                "from their last tuple on, or given however late"
            )
            mend = "remove 'on_late:', or write 'deadline: first' there"
            query.file.wrong("never_late", (*operator.keys, "on_late"), text, mend)


def _unlike(operator: Operator, mine: Installed, other: Installed, types: Mapping[str, str]) -> str:
    """How two operators look different on these streams; empty: they do not."""
    if (mine.kind, mine.variadic) != (other.kind, other.variadic):
        return f"it is a {other.kind}, not a {mine.kind}"
    if not mine.variadic and len(mine.inputs) != len(other.inputs):
        return f"it has {len(other.inputs)} inputs"
    ports = list(other.inputs.values()) * (len(operator.inputs) if other.variadic else 1)
    for name, wanted in zip(operator.inputs, ports, strict=False):
        if "any" not in (wanted, types[name]) and wanted != types[name]:
            return f"it takes {wanted}, and '{name}' is {types[name]}"
    if missing := sorted(set(other.side) - set(operator.side)):
        return f"it has a side input '{missing[0]}', which '{operator.name}' does not read"
    gives = types[operator.inputs[0]] if other.output == "same" else other.output
    if "any" not in (gives, types[operator.name]) and gives != types[operator.name]:
        return f"it gives {gives}, not {types[operator.name]}"
    return ""


def _counted(query: Query, catalog: Catalog) -> None:
    """What every tuple that leads to a window has to have: an age, one result per operator, one way."""
    found = windows.paths(query, catalog)
    sources = {source.name: source for source in query.sources}
    on_the_way = windows.counted(query)
    for operator in query.operators:
        declared = operator.selectivity
        many = declared is not None and (declared.mean > 1 or any(m > k for k, m in declared.at_most))
        if operator.name in on_the_way and many:
            text = f"operator '{operator.name}' leads to a window and may give several results for a tuple"
            mend = "windows count tuples by their numbers: give one result, or make them behind the window"
            query.file.wrong("several_results_to_window", (*operator.keys, "selectivity"), text, mend)
    aged: set[str] = set()
    for operator in windows.collecting(query):
        ways: dict[str, int] = {}
        for stream in operator.inputs:
            for name, count in found[stream].items():
                ways[name] = ways.get(name, 0) + count
        for name, count in ways.items():
            if name not in sources:
                text = f"window '{operator.said}' takes results of window '{name.removesuffix(ADD)}'"
                query.file.wrong(
                    "window_of_window_results",
                    (*operator.keys, "in"),
                    text,
                    "take the tuples that one takes, or make it longer",
                )
            elif count > 1:
                text = f"tuples of source '{name}' come to window '{operator.said}' on {count} ways"
                query.file.wrong(
                    "several_ways_to_window",
                    (*operator.keys, "in"),
                    f"{text}, and would count {count} times",
                    "leave one of them",
                )
            elif not sources[name].max_age_ns and name not in aged:
                aged.add(name)
                text = f"source '{name}' leads to window '{operator.said}', which has to know when no older tuple comes"
                query.file.wrong("no_max_age", sources[name].keys, text, "add 'max_age:', like 'max_age: 200 ms'")
        window = operator.window
        if window is not None and window.kind != "time" and len(ways) > 1 and operator.run != JOIN:
            what = "counts tuples" if window.kind == "count" else "asks its first tuple how long it is"
            text = f"window '{operator.said}' {what}, and {len(ways)} sources have no common order"
            query.file.wrong(
                "no_common_order", (*operator.keys, "in"), text, "take one source, or write 'window: {time: 5 s}'"
            )


def _reached(query: Query, catalog: Catalog) -> None:
    """Deadlines that no result of a window can meet."""
    closing = windows.closing(query)
    found = windows.paths(query, catalog)
    ages = {source.name: source.max_age_ns for source in query.sources}
    for operator in windows.collecting(query):
        window, end = operator.window, closing[operator.name]
        assert window is not None
        known_ns = max((ages.get(name, 0) for name in windows.feeds(operator, found)), default=0)
        least_ns = min(window.lateness_ns, known_ns) if window.kind != "count" else 0
        if window.first and window.kind == "time":
            least_ns += window.length
        behind = _behind(query, end.name)
        for output in query.outputs:
            if output.origin in behind and output.deadline_ns <= least_ns:
                text = f"output '{output.name}' is due after {show_ns(output.deadline_ns)}, but window '{end.name}'"
                since = "its first tuple" if window.first else "its end"
                what = f"closes {show_ns(least_ns)} after {since} at the earliest"
                mend = f"make it longer{', or write deadline: end there' if window.first else ', or the lateness less'}"
                query.file.wrong("closes_after_deadline", (*output.keys, "deadline"), f"{text} {what}", mend)


def _behind(query: Query, name: str) -> set[str]:
    """What an operator leads to through trigger inputs, itself among it."""
    found = {name}
    for operator in graph.order(query):
        if found.intersection(operator.inputs):
            found.add(operator.name)
    return found


def _side_by_side(query: Query) -> None:
    """Windows over one stream are made of the same tuples, so one shedder decides for all of them."""
    first: dict[str, Operator] = {}
    for operator in windows.collecting(query):
        for stream in operator.inputs:
            other = first.setdefault(stream, operator)
            mine, its = (one.window.policy if one.window else None for one in (operator, other))
            if mine is not None and its is not None and mine != its:
                text = f"windows '{other.said}' and '{operator.said}' over '{stream}' have shedders {its} and {mine}"
                query.file.wrong(
                    "different_shedders",
                    (*operator.keys, "window"),
                    text,
                    "a tuple goes for both or for none: write one",
                )
