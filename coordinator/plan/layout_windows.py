"""Layout of windows: a local plan's sources, windows and tuples that come too late, and plan.json's windows.

How long a number may be missing before the windows that it may lie in are given up (`wait`): a second, unless the query
says otherwise. What is queued is not missing. A unit that sheds, loses or gives up a tuple says so. So only what a node
took with it as it died is waited for. Rejected: as long as a result is of use, which holds up the windows that follow
for as long as that.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from coordinator.plan.layout import Layout
from coordinator.spec import windows
from coordinator.spec.query import Operator
from protos import plan_pb2
from protos.plan.arrivals import BurstArrival
from protos.plan.graph import Windows
from protos.plan.operators import Window
from protos.plan.sources import Connector, Pull


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


def sources(layout: Layout, node: str) -> list[plan_pb2.Source]:
    """Of a node: those of clients, then those of the windows that close there."""
    found = []
    for source in layout.query.sources:
        if source.at != node:
            continue
        limit = source.limit
        found.append(
            plan_pb2.Source(
                id=layout.source_id[source.name],
                name=source.name,
                stream=layout.stream_id[source.name],
                max_age_ns=source.max_age_ns,
                limit=plan_pb2.Limit(
                    tuples=limit.tuples, span_ns=limit.span_ns, value_json=_compact(limit.tree) if limit.value else ""
                )
                if limit
                else None,
                beat_ns=layout.beat_ns.get(source.name, 0),
                on_full="" if source.on_full == "refuse" else source.on_full,
                pull=_pull(source.pull),
                connector=connector(source.connector),
            )
        )
    for operator in layout.windows:
        if layout.place[operator.name] == node:
            name = operator.name
            number, window = layout.source_id[name], layout.operator_id[name]
            found.append(plan_pb2.Source(id=number, name=name, stream=layout.stream_id[name], window=window))
    return found


def connector(given: Connector | None) -> plan_pb2.Connector | None:
    """Of a source, or of an output."""
    return None if given is None else plan_pb2.Connector(**asdict(given))


def _pull(given: Pull | None) -> plan_pb2.Pull | None:
    if given is None:
        return None
    return plan_pb2.Pull(
        every_ns=given.every_ns,
        offset_ns=given.offset_ns,
        run=given.run,
        with_json=_compact(given.parameters) if given.run else "",
    )


def queue(head: Operator) -> dict[str, Any]:
    """The limit of a unit's queue, as its first operator says."""
    return {"queue_bytes": head.queue.most_bytes, "on_full": head.queue.on_full} if head.queue else {}


def late(layout: Layout, operator: Operator) -> plan_pb2.Late | None:
    """Of an operator that drops or degrades what is late; None of all others, and where nothing is ever too late."""
    if operator.on_late is None:
        return None
    late_ns = layout.late_ns[operator.name]
    if windows.endless(late_ns):
        return None
    given = operator.on_late
    return plan_pb2.Late(
        late_ns=max(1, late_ns),
        run=given.run,
        with_json=_compact(given.parameters) if given.run else "",
        cost_ns=given.cost_ns,
    )


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def documents(layout: Layout) -> dict[str, Windows]:
    """For plan.json, by the name that users know: every window, with what it is made of."""
    closing = windows.closing(layout.query)
    return {
        closing[operator.name].name: _document(layout, operator)
        for operator in layout.windows
        if operator.window is not None
    }


def _document(layout: Layout, operator: Operator) -> Windows:
    window = operator.window
    assert window is not None
    return Windows(
        add=operator.name,
        source=layout.source_id[operator.name],
        at=layout.place[operator.name],
        kind=window.kind,
        length=window.length,
        hop=window.hop,
        lateness_ns=window.lateness_ns,
        first=window.first,
        by=window.by,
        on=window.on,
        size=window.size,
        most=window.most,
        useful_ns=useful_ns(layout, operator),
        wait_ns=wait_ns(window),
        sources=tuple(feeds(layout, operator)),
        shed=window.policy,
        arrival=None if window.kind == "count" else BurstArrival(burst=1, period_ns=window.hop),
    )
