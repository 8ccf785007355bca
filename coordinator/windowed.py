"""What a local plan says about an operator's windows and about tuples that come too late, and plan.json about windows.

How long a number may be missing before a window is given up (`wait`): a second unless the query says otherwise, and at
least as long as a tuple may still be on its way: until its longest deadline is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from coordinator import windows
from coordinator.overload import Window
from coordinator.placement.problem import tuple_cost_ns
from coordinator.query import Operator
from protos import plan_pb2

if TYPE_CHECKING:
    from coordinator.local_plan import Layout


def feeds(layout: Layout, operator: Operator) -> dict[str, int]:
    """The sources of a window operator, each with the input that it comes by."""
    return windows.feeds(operator, windows.paths(layout.query, layout.cluster.catalog))


def useful_ns(layout: Layout, operator: Operator) -> int:
    """For how long a result is of use: the longest deadline that it leads to; 0: for ever."""
    window = operator.window
    assert window is not None
    if window.keep:
        return 0
    return layout.last_deadline_ns[operator.name] or layout.deadline_ns[operator.name]


def wait_ns(window: Window) -> int:
    """As declared, else a second."""
    return window.wait_ns or windows.WAIT_NS


def message(layout: Layout, operator: Operator) -> plan_pb2.Window | None:
    """Of an operator that collects tuples; None of all others."""
    window = operator.window
    if window is None:
        return None
    at = {source.name: source.at for source in layout.query.sources}
    return plan_pb2.Window(
        kind=window.kind,
        length=window.length,
        hop=window.hop,
        lateness_ns=window.lateness_ns,
        first=window.first,
        useful_ns=useful_ns(layout, operator),
        wait_ns=wait_ns(window),
        by=window.by,
        on=window.on,
        size=window.size,
        source=layout.source_id[operator.name],
        feeds=[
            plan_pb2.Feed(source=layout.source_id[name], input=number, name=f"{name}@{at[name]}")
            for name, number in sorted(feeds(layout, operator).items())
        ],
    )


def late(layout: Layout, operator: Operator) -> plan_pb2.Late | None:
    """Of an operator that drops or degrades what is late; None of all others, and where nothing is ever too late."""
    if operator.on_late is None:
        return None
    late_ns = layout.late_ns[operator.name]
    if late_ns == windows.ENDLESS:
        return None
    given = operator.on_late
    return plan_pb2.Late(
        late_ns=max(1, late_ns), run=given.run, with_json=given.with_json if given.run else "", cost_ns=given.cost_ns
    )


def late_ns(layout: Layout) -> dict[str, int]:
    """Per operator the greatest age at which a tuple that it begins with can still be in time for one output: the
    deadline less what the shortest way there costs, operators at their declared costs and links at their latencies."""
    query, cluster = layout.query, layout.cluster
    found: dict[str, int | None] = {one.name: None for one in query.operators}  # None: leads to no output
    for output in query.outputs:
        left = output.deadline_ns - layout.way_ns(output.origin, output.at)
        now = found[output.origin]
        found[output.origin] = left if now is None else max(now, left)
    for operator in reversed(layout.order):
        name, behind = operator.name, found[operator.name]
        if behind is None:
            continue
        if behind != windows.ENDLESS:
            if operator.window is not None and operator.window.kind == "count" and not operator.window.first:
                behind = windows.ENDLESS
            else:
                cost_ns = tuple_cost_ns(operator, cluster.nodes[layout.place[name]])
                behind += windows.beyond_ns(operator) - cost_ns
        found[name] = behind
        for stream in operator.inputs:
            if stream not in found:
                continue
            now = found[stream]
            if windows.ENDLESS in (now, behind):
                found[stream] = windows.ENDLESS
            else:
                left = behind - layout.way_ns(stream, layout.place[name])
                found[stream] = left if now is None else max(now, left)
    return {name: 0 if left is None else left for name, left in found.items()}


def documents(layout: Layout) -> dict[str, Any]:
    """For plan.json, by the name that users know: every window, with what it is made of."""
    closing = windows.closing(layout.query)
    return {
        closing[operator.name].name: _document(layout, operator)
        for operator in layout.windows
        if operator.window is not None
    }


def _document(layout: Layout, operator: Operator) -> Mapping[str, Any]:
    window = operator.window
    assert window is not None
    given = window.document()
    told = {key: given[key] for key in ("kind", "length", "hop", "lateness_ns", "first", "by", "on", "size", "most")}
    closes_every = {"kind": "burst", "burst": 1, "period_ns": window.hop}
    return {
        "add": operator.name,
        "source": layout.source_id[operator.name],
        "at": layout.place[operator.name],
        **told,
        "useful_ns": useful_ns(layout, operator),
        "wait_ns": wait_ns(window),
        "sources": list(feeds(layout, operator)),
        "shed": window.policy,
        "arrival": None if window.kind == "count" else closes_every,
    }
