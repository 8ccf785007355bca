"""Windows, limits, late tuples and fusions of query.yaml, from its shapes to values. A window operator becomes two."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coordinator.spec import expressions
from coordinator.spec.files import yaml_source
from coordinator.spec.files.query_file import MemberFile, OperatorFile, SourceFile
from coordinator.spec.files.window_file import OnLateFile, WindowFile
from coordinator.spec.query import GUESS_NS, Operator
from coordinator.units import LARGEST, counted
from protos.plan.operators import ADD, OnLate, Queue, SideRule, Sync, Window
from protos.plan.sources import Limit, Pull

DEFAULT_HANG_NS = 10**9
KEEP_WITHIN = 16  # tuples of each input that may wait to be fused


def hang_ns(cost_ns: int) -> int:
    """When an operator of that cost is killed, unless its query says so."""
    return max(DEFAULT_HANG_NS, min(10 * cost_ns, LARGEST))


def limit(given: SourceFile, file: yaml_source.Source, keys: tuple[object, ...]) -> Limit | None:
    """Of a source; None: all that it admits goes on."""
    if given.max_rate is None:
        return None
    found = Limit(tuples=given.max_rate.tuples, span_ns=given.max_rate.per)
    if given.value is None:
        return found
    tree = expressions.checked(file, (*keys, "value"), given.value)
    return replace(found, value=str(given.value), tree=tree)


def pull(given: SourceFile) -> Pull | None:
    """Of a source that its node makes itself; None: clients feed it."""
    if given.run is None and given.every is None:
        return None
    most_ns = GUESS_NS if given.every is None else min(GUESS_NS, given.every // 10)
    return Pull(
        run=given.run or "",
        parameters=plain(given.with_),
        every_ns=given.every or 0,
        offset_ns=given.offset or 0,
        cost_ns=(given.cost or most_ns) if given.run else 0,
        guessed=bool(given.run) and given.cost is None,
    )


def window_operators(
    operator: Operator, given: OperatorFile, window: WindowFile, file: yaml_source.Source
) -> list[Operator]:
    """The two operators of a window: what collects its inputs, at `cost` per tuple, and what makes results of it, at
    `close` per window."""
    on = _on(operator, given, file)
    kept = Window(
        kind="count" if window.count is not None else "sized" if window.size is not None else "time",
        length=window.length,
        hop=window.hop_,
        lateness_ns=window.lateness,
        first=window.deadline == "first",
        wait_ns=window.wait or 0,
        by=window.by or "",
        on=on,
        size=window.size or "",
        shed=window.shed,
        most=window.queue,
        keep=given.late == "deliver",
    )
    name = operator.name + ADD
    close_ns = window.close or operator.cost_ns
    killed_ns = given.hang or hang_ns(close_ns)
    if killed_ns <= close_ns:
        text = f"operator '{operator.name}' would be killed within its 'close:'"
        file.wrong("hang_too_short", (*operator.keys, "window", "close"), text, "make 'hang:' longer")
    # Closing reads what the other has collected, so nothing but the node it is on is left to choose.
    closing = replace(
        operator,
        inputs=(name,),
        ports=None,
        cost_ns=close_ns,
        hang_ns=killed_ns,
        memory_bytes=0,
        closes=name,
        queue=None,
        cost_from=operator.cost_from if window.close is None else None,
    )
    return [replace(operator, name=name, window=kept, forbidden=(), max_bytes=0), closing]


def _on(operator: Operator, given: OperatorFile, file: yaml_source.Source) -> tuple[str, ...]:
    """The key's field of each input of a join in a window."""
    if given.on is None:
        return ()
    keys = (*operator.keys, "on")
    if len(operator.inputs) != 2:
        number = counted(len(operator.inputs), "stream")
        text = f"operator '{operator.name}' joins {number} in a window, which takes two"
        file.wrong(
            "join_of_several_in_window",
            (*operator.keys, "in"),
            text,
            "write 'in: [a, b]', or join the others before or behind it",
        )
        return ("", "")
    if isinstance(given.on, str):
        return (given.on, given.on)
    names = operator.ports or operator.inputs
    if set(given.on) != set(names):
        text = f"operator '{operator.name}' has inputs {' and '.join(names)}, but 'on' names {', '.join(given.on)}"
        file.wrong("join_fields_of_other_inputs", keys, text, f"write 'on: {{{names[0]}: FIELD, {names[1]}: FIELD}}'")
        return ("", "")
    return (given.on[names[0]], given.on[names[1]])


def on_late(given: OperatorFile) -> OnLate | None:
    """None: a late tuple runs like any other, and of windows, which have a field for it."""
    if isinstance(given.late, OnLateFile):
        variant = given.late.degrade
        return OnLate(run=variant.run, cost_ns=variant.cost, parameters=plain(variant.with_))
    return OnLate() if given.late == "drop" and given.window is None else None


def queue(given: OperatorFile) -> Queue | None:
    """Before an operator; None: as long as the node's memory allows."""
    return Queue(most_bytes=given.queue.most, on_full=given.queue.on_full) if given.queue else None


def sync(given: OperatorFile) -> Sync | None:
    """How an operator's inputs are fused; None: they are not."""
    if given.sync is None:
        return None
    each = given.sync.each is not None
    within_ns = given.sync.each if each else given.sync.within
    keep = 1 if within_ns is None else given.sync.keep or KEEP_WITHIN
    return Sync(within_ns=within_ns, timeout_ns=given.sync.timeout or 0, keep=keep, each=each)


def side_rules(given: MemberFile) -> dict[str, SideRule]:
    """By port, of side inputs that may be too old, or without which a tuple is shed."""
    rules = {port: SideRule(max_age_ns=one.max_age or 0, shed=one.absent == "shed") for port, one in given.side.items()}
    return {port: rule for port, rule in rules.items() if rule != SideRule()}


def plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters without ruamel's own types, where they are JSON; what is not is refused later, by name."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(parameters))
    except (TypeError, ValueError):
        return dict(parameters)
    return plain
