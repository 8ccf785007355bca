"""Reasons why no placement exists at any deadlines: utilisation, memory, bandwidth, links that cut the graph."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from coordinator.error_codes import Code
from coordinator.errors import Mistake
from coordinator.model.capacity import Store
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem, Stream
from coordinator.solve.milp import milp
from coordinator.spec.cluster import Node
from coordinator.units import counted, show_bps, show_bytes

EXPLAIN_SECONDS = 10.0
SHOWN = 8


def unplaceable(problem: Problem, limits: Limits | None = None) -> list[Mistake]:
    """Reasons for people: what is pinned together, then pairs of operators without a way between them, then the
    rooms of the placement that exceeds them least."""
    reasons = [*_pinned(problem), *_state_too_large(problem)] or [*_cut(problem)]
    total = sum(min(float(load) for load in item.load.values()) for item in problem.items)
    room = sum(float(node.cap) for node in problem.nodes)
    if not reasons and total > room:
        text = f"all operators together use {total:.2f} processors, the nodes' caps leave {room:.2f}"
        reasons.append(Mistake("caps_exceeded", text))
    return (
        reasons
        or _crowded(problem, limits or Limits())
        or [
            Mistake(
                "infeasible",
                "no placement is within every node's utilisation cap with every stream on links that exist",
                "relax 'nodes:', 'cap:', 'forbid_streams:' or add a link",
            )
        ]
    )


def _pinned(problem: Problem) -> Iterator[Mistake]:
    for node in problem.nodes:
        pinned = [item for item in problem.items if item.nodes == (node.index,)]
        load = sum(float(item.load[node.index]) for item in pinned)
        if load > node.cap:
            held, cap = counted(sum(len(item.members) for item in pinned), "operator"), float(node.cap)
            text = f"node {node.name}: the {held} pinned to it use {load:.1%}, its cap is {cap:.1%}"
            if calls := problem.calls.get(node.name):
                text += f" beside the {float(calls):.1%} that calls of its sources use"
            yield Mistake("cap_exceeded", text, subject=node.name)


def _state_too_large(problem: Problem) -> Iterator[Mistake]:
    """State that does not fit: of what is pinned to one host, of one item anywhere, of all together."""
    for store in problem.stores:
        pinned = [item for item in problem.items if store.nodes.issuperset(item.nodes)]
        size = sum(item.memory_bytes for item in pinned)
        if size > store.memory_bytes:
            names = ", ".join([item.name for item in pinned if item.memory_bytes][:SHOWN])
            text = (
                f"node {store.host}: {names}, which may run nowhere else, keep {show_bytes(size)}, its memory is "
                f"{show_bytes(store.memory_bytes)}"
            )
            yield Mistake("memory_exceeded", text, subject=store.host)
    room = {node: store.memory_bytes for store in problem.stores for node in store.nodes}
    for item in problem.items:
        if len(item.nodes) > 1 and all(item.memory_bytes > room.get(node, item.memory_bytes) for node in item.nodes):
            most = show_bytes(max(room[node] for node in item.nodes))
            text = (
                f"{item.name} keeps {show_bytes(item.memory_bytes)}, the nodes that it may run on have {most} at most"
            )
            yield Mistake("memory_exceeded", text, subject=item.name)
    hosts = {problem.nodes[node].host for item in problem.items for node in item.nodes}
    total, have = sum(item.memory_bytes for item in problem.items), sum(store.memory_bytes for store in problem.stores)
    if hosts <= {store.host for store in problem.stores} and total > have:
        text = f"all operators together keep {show_bytes(total)}, the nodes' memories are {show_bytes(have)}"
        yield Mistake("memories_exceeded", text)


def _cut(problem: Problem) -> list[Mistake]:
    """The first operators that no links join, found by ruling out nodes until nothing changes or none is left."""
    places = {i: {problem.held[i]} if i in problem.held else set(item.nodes) for i, item in enumerate(problem.items)}
    reach = {stream.name: _reach(problem, stream) for stream in problem.streams}
    changed = True
    while changed:
        changed = False
        for stream in problem.streams:
            starts = places[stream.item] if stream.item is not None else {stream.node or 0}
            ends = [(problem.items[one].name, places[one]) for one in stream.readers]
            ends += [("its output", {node}) for node in stream.sinks]
            for reader, there in ends:
                sending = {node for node in starts if reach[stream.name][node] & there}
                getting = {node for node in there if any(node in reach[stream.name][one] for one in starts)}
                if not sending or not getting:
                    return [_no_way(problem, stream, starts, reader, there)]
                changed = changed or sending != starts or getting != there
                starts.intersection_update(sending)
                there.intersection_update(getting)
    return []


def _reach(problem: Problem, stream: Stream) -> dict[int, set[int]]:
    """From each node, the nodes that a stream can get to."""
    after: dict[int, set[int]] = {}
    for one, other in problem.links - stream.forbidden:
        after.setdefault(one, set()).add(other)
    found = {}
    for node in range(len(problem.nodes)):
        seen, waiting = {node}, [node]
        while waiting:
            new = after.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        found[node] = seen
    return found


def _no_way(problem: Problem, stream: Stream, starts: Iterable[int], reader: str, ends: Iterable[int]) -> Mistake:
    begin, end = (sorted(problem.nodes[node].name for node in nodes) for nodes in (starts, ends))
    first, last = problem.nodes[min(starts)].host, problem.nodes[min(ends)].host
    barred = " that forbid_streams leaves it" if stream.forbidden else ""
    text = f"stream {stream.name} has no way from {_any(begin)} to {reader} on {_any(end)}: no links{barred} lead there"
    mend = f"link {first} and {last}, or let one of the two run elsewhere"
    return Mistake("no_way", text, mend, stream.name)


def _any(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"any of {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''}"


def _crowded(problem: Problem, limits: Limits) -> list[Mistake]:
    """Rooms that the placement which exceeds them least still exceeds, with figures."""
    model = milp.base(problem, elastic=True)
    values = milp.bound(
        model,
        model.total([lack for _, lack in model.lack]),
        limits,
        time.monotonic() + min(EXPLAIN_SECONDS, limits.seconds),
    ).values
    reasons = []
    for room, lack in model.lack if values else ():
        share = 1 + (values or {}).get(lack, 0.0)
        if share < 1 + 1e-6:
            continue
        if isinstance(room, Node):
            text = f"its operators would use {share * float(room.cap):.1%}, its cap is {float(room.cap):.1%}"
            reasons.append(_nearest("cap_exceeded", "node", room.name, text))
        elif isinstance(room, Store):
            need = show_bytes(round(share * room.memory_bytes))
            text = f"its operators would keep {need}, its memory is {show_bytes(room.memory_bytes)}"
            reasons.append(_nearest("memory_exceeded", "node", room.host, text))
        else:
            need, have = show_bps(round(share * room.bits_per_s)), show_bps(room.bits_per_s)
            text = f"{need} would be sent on its bandwidth of {have}"
            reasons.append(_nearest("bandwidth_exceeded", "link", f"{room.start} to {room.end}", text))
    return reasons


def _nearest(code: Code, kind: str, name: str, text: str) -> Mistake:
    return Mistake(code, f"{kind} {name}: {text}, in the placement that comes nearest", subject=name)
