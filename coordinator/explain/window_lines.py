"""Windows, fusions, limits and what becomes of late tuples in sentences, of a query or of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coordinator.spec import windows
from coordinator.spec.catalog import Catalog
from coordinator.spec.query import Query
from coordinator.units import counted, show_bytes, show_ns
from protos import json_shape
from protos.plan.operators import ADD, OnLate, Queue, SideRule, Sync, Window
from protos.plan.sources import Limit

if TYPE_CHECKING:
    from protos.plan_document import Plan

TITLE = "Windows, side inputs, and what is shed"


def of_query(query: Query, catalog: Catalog) -> list[str]:
    """What a query declares, a sentence each."""
    closing = windows.closing(query)
    paths = windows.paths(query, catalog) if closing else {}
    lines = [
        f"{closing[one.name].name}: {_window(one.window, windows.feeds(one, paths))}"
        for one in windows.collecting(query)
        if one.window is not None
    ]
    for source in query.sources:
        lines += _source(source.name, source.limit, source.on_full)
    for operator in query.operators:
        lines += _operator(operator.said, operator.on_late, operator.queue)
        lines += _fusion(operator.name, operator.inputs, operator.sync)
        lines += _beside(operator.name, operator.side, operator.side_rules)
    return lines


def values(query: Query, catalog: Catalog) -> dict[str, dict[str, Any]]:
    """The windows that a query declares, by operator: as in plan.json, and the sources that they are over."""
    closing = windows.closing(query)
    paths = windows.paths(query, catalog) if closing else {}
    return {
        closing[one.name].name: json_shape.write(one.window) | {"sources": list(windows.feeds(one, paths))}
        for one in windows.collecting(query)
        if one.window is not None
    }


def of_plan(plan: Plan) -> list[str]:
    """What a plan says, a sentence each."""
    graph, lines = plan.graph, []
    for name, told in graph.windows.items():
        window = graph.operators[told.add].window
        assert window is not None
        useful = show_ns(told.useful_ns) if told.useful_ns else ""
        since = "its oldest tuple" if told.first else "its youngest tuple" if told.kind == "count" else "its end"
        until = f"given up {useful} after {since}" if useful else "given however late"
        lines.append(f"{name} on {told.at}: {_window(window, told.sources)}; {until}")
    for name, source in graph.sources.items():
        lines += _source(name, source.limit, source.on_full)
    every = [one for local in plan.nodes.values() for one in local.operators]
    late_ns = {one.name: one.late.late_ns for one in every if one.HasField("late")}
    for name, operator in graph.operators.items():
        said = name.removesuffix(ADD) if operator.window is not None else name
        after = show_ns(late_ns[name]) if name in late_ns else ""
        lines += _operator(said, operator.on_late, operator.queue, after)
        lines += _fusion(name, operator.inputs, operator.sync)
        lines += _beside(name, operator.side, operator.side_rules)
    return lines


def _fusion(name: str, inputs: Sequence[str], sync: Sync | None) -> list[str]:
    if sync is None:
        return []
    streams = " and ".join(inputs)
    if sync.each:
        kept = f"{counted(sync.keep, 'tuple')} of each are kept"
        near = f"with all that are at most {show_ns(sync.within_ns or 0)} from it"
        return [f"{name} takes each tuple of {streams} {near}; {kept}"]
    if sync.within_ns is None:
        when = f"{name} fuses the latest of {streams}, once each has come again"
    else:
        kept = f"{counted(sync.keep, 'tuple')} of each may wait"
        when = f"{name} fuses tuples of {streams} that are at most {show_ns(sync.within_ns)} apart; {kept}"
    return [f"{when}; after {show_ns(sync.timeout_ns)} what is there" if sync.timeout_ns else when]


def _beside(name: str, side: Mapping[str, str], rules: Mapping[str, SideRule]) -> list[str]:
    lines = []
    for port, rule in rules.items():
        age = f" that is at most {show_ns(rule.max_age_ns)} old" if rule.max_age_ns else ""
        without = "the tuple is shed" if rule.shed else "it gets none"
        lines.append(f"{name}: without a value of {side[port]}{age}, {without}")
    return lines


def _window(window: Window, sources: Iterable[str]) -> str:
    parts = [f"windows of {_length(window)} over {' and '.join(sources)}"]
    if window.by:
        parts.append(f"a result per {window.by}")
    if window.on:
        left, right = window.on
        parts.append(f"pairs with the same {left}" if left == right else f"pairs with {left} = {right}")
    if window.lateness_ns:
        parts.append(f"tuples up to {show_ns(window.lateness_ns)} out of order")
    if window.policy is None:
        parts.append("none is shed")
    else:
        parts.append(f"under overload {window.policy}, at most {window.most} tuples waiting")
    return ", ".join(parts)


def _length(window: Window) -> str:
    """`5 s every 4 s`, `100 tuples`, `up to 20 s, as my.size says, every 4 s`."""
    length, hop = ((f"{one} tuples" if window.kind == "count" else show_ns(one)) for one in (window.length, window.hop))
    found = f"up to {length}, as {window.size} says," if window.kind == "sized" else length
    return found if window.hop == window.length and window.kind != "sized" else f"{found} every {hop}"


def _source(name: str, limit: Limit | None, on_full: str) -> list[str]:
    lines = []
    if limit is not None:
        least = f"what has the least '{limit.value}' goes first" if limit.value else "the latest go first"
        lines.append(f"{name}: at most {limit.tuples} tuples in {show_ns(limit.span_ns)} go on; beyond that {least}")
    if on_full != "refuse":
        what = "what comes goes" if on_full == "drop-tail" else "what is oldest goes"
        lines.append(f"{name}: while the node's queues are full it is still taken, and {what}")
    return lines


def _operator(name: str, late: OnLate | None, queue: Queue | None, after: str = "") -> list[str]:
    lines = []
    if late is not None:
        instead = f"{late.run} runs in its place, at {show_ns(late.cost_ns)}" if late.run else "the tuple is dropped"
        age = f"older than {after}" if after else "too old for every output"
        lines.append(f"{name}: {age} as it would start, {instead}")
    if queue is not None:
        what = "what comes goes" if queue.on_full == "drop-tail" else "what is oldest goes"
        lines.append(f"{name}: at most {show_bytes(queue.most_bytes)} wait for it; beyond that {what}")
    return lines
