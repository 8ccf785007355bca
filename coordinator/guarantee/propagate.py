"""One pass of all streams through units and links, in topological order, given how long each of these may take.

alpha_out(t) = min(alpha(t + d - best), floor(t / c_best) + 1) of the theory, stage by stage of a unit: d is the
unit's response bound up to that operator, best and c_best are least costs, which only emulated nodes have (elsewhere
a tuple may cost nothing, so nothing is spaced). A tuple that a stage drops has passed the stages before it, so the
runs of stage p are spaced by the least cost up to p, and what leaves after stage e is sigma of that, for every p <=
e; the least of all is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from coordinator.calculus.curves import Curve, Time
from coordinator.calculus.flow import Spaced, jittered, least, selected, total
from coordinator.calculus.response import Response
from coordinator.calculus.selectivity import Selectivity
from coordinator.guarantee import fusion_waits, window_closing
from coordinator.guarantee.link_delay import sending_ns
from coordinator.guarantee.streams import Closing, Delays, Flow, Kind, Late, Part, Streams, Trail
from coordinator.guarantee.system import Source, Stage, System, Unit
from coordinator.guarantee.whole_ways.limited_flows import limited
from coordinator.spec.runtime_charges import RuntimeOverhead, chunks


def propagate(system: System, delays: Delays, charges: RuntimeOverhead) -> Streams:
    """All streams, once."""
    streams = Streams(arriving={node: [] for node in system.nodes}, sent={pair: [] for pair in system.links})
    for name, source in system.sources.items():
        _enter(delays, charges, source, name in system.marked, streams, system.max_bytes.get(name, 0))
        _travel(system, delays, charges, name, streams)
    for number in system.order:
        unit = system.units[number]
        _run(system, delays, charges, unit, streams)
        for stream in unit.exits:
            _travel(system, delays, charges, stream, streams)
    return streams


def _enter(
    delays: Delays, charges: RuntimeOverhead, source: Source, marked: bool, streams: Streams, max_bytes: int
) -> None:
    """A source at its node: what its clients send, and of that what is admitted and goes on. `marked`: what does not is
    told; `max_bytes`: of a payload, 0: not declared."""
    at = (source.name, source.node)
    if source.curve is None:
        streams.unread[source.node] = source.why
    if source.curve is None and source.limit is None:
        streams.why[at] = source.why
        return
    if why := _stuck(delays, charges, source.node):
        streams.why[at] = why  # how long its tuples wait to be read
        return
    drain_ns = delays.drains.get(source.node, 0)  # its stamp, and so its admission, may wait for a drain
    if source.timer:
        streams.ticks_ns[source.name] = drain_ns
    entered = delays.reuse.of(
        ("entered", source.name, drain_ns), partial(_entered, delays, charges, source, marked, max_bytes)
    )
    streams.arriving[source.node] += entered.read
    streams.flows[at] = entered.admitted


@dataclass(frozen=True)
class _Entered:
    """What a source brings to the sockets of its node, and what goes on."""

    read: tuple[Flow, ...]
    admitted: Flow


def _entered(delays: Delays, charges: RuntimeOverhead, source: Source, marked: bool, max_bytes: int) -> _Entered:
    """Nothing but the wait of its node for a drain differs between passes."""
    drain_ns = delays.drains.get(source.node, 0)
    late = {source.name: Late(0, 0, ())}
    stamped: list[Curve] = [] if source.limit is None else [source.limit]
    punctuation: list[Curve] = []
    read: list[Flow] = []
    if source.curve is not None:
        early = jittered(source.curve, source.tolerance_ns if charges.drained else 0)
        read.append(Flow.of(early, early, late, max_bytes))
        declared = jittered(early, drain_ns)
        if source.limit is not None:  # what is shed leaves punctuation, which waits for the next heartbeat at most
            punctuation.append(jittered(declared, source.beat_ns + charges.tick_ns + drain_ns if source.beat_ns else 0))
        stamped.append(declared)
    curve = least(stamped)
    beats = window_closing.heartbeats(source, delays, charges)
    if beats is not None:
        read.append(Flow.of(beats, beats, {}))  # saying one costs about what reading one does
        punctuation.append(beats)
    events = total([curve, *punctuation]) if punctuation and marked else curve
    return _Entered(tuple(read), Flow.of(curve, events, late))


def _travel(system: System, delays: Delays, charges: RuntimeOverhead, stream: str, streams: Streams) -> None:
    """Along its hops: wait for the sender's sockets to be written, the link, the receiver's to be read."""
    for start, end in system.hops.get(stream, ()):
        pair = (start, end)
        if (stream, start) not in streams.flows:
            why = streams.why.get((stream, start), f"stream {stream} never reaches {start}")
        else:
            why = _stuck(delays, charges, start) or delays.cut.get(pair, "")
        if why:  # so nothing bounds how densely it comes either
            streams.why[stream, end] = streams.unknown[pair] = streams.unread[end] = why
            continue
        leaving = _written(system, delays, stream, start, streams.flows[stream, start])
        streams.sent[pair].append(leaving)
        large = chunks(leaving.max_bytes)
        if large:  # writing a chunk costs about what reading one does
            streams.arriving[start].append(leaving)
        link_ns = (delays.large_links if large else delays.links).get(pair, 0)
        own_ns = sending_ns(system.links[pair], charges, leaving.max_bytes)
        alone_ns = min(link_ns, system.links[pair].latency_ns + own_ns)
        there = _delayed(delays, leaving, Part("link", f"link {start} to {end}", link_ns, start, alone_ns))
        streams.arriving[end].append(there)
        if why := _stuck(delays, charges, end):
            streams.why[stream, end] = why
            continue
        read = Part("socket", f"{end} reads its sockets", delays.drains.get(end, 0), end)
        arrived, limits = _delayed(delays, there, read), delays.paths.places.get((stream, end))
        streams.flows[stream, end] = limited(system, delays.reuse, streams, arrived, limits)


def _written(system: System, delays: Delays, stream: str, start: str, flow: Flow) -> Flow:
    """As it is on the link, after the sender's sockets are written."""
    part = Part("socket", f"{start} writes its sockets", delays.drains.get(start, 0), start)
    max_bytes = system.max_bytes.get(stream, 0)
    return delays.reuse.of(("sent", flow, part, max_bytes), lambda: replace(flow.delayed(part), max_bytes=max_bytes))


def _delayed(delays: Delays, flow: Flow, part: Part) -> Flow:
    return delays.reuse.of(("delayed", flow, part), lambda: flow.delayed(part))


def _stuck(delays: Delays, charges: RuntimeOverhead, node: str) -> str:
    """Why nothing bounds how long a node leaves its sockets alone, or nothing."""
    return delays.broken.get(node, "") if charges.drained else ""


def _run(system: System, delays: Delays, charges: RuntimeOverhead, unit: Unit, streams: Streams) -> None:
    """Release and run one unit; its exits are then flows at its node."""
    inputs = [streams.flows.get((name, unit.node)) for name in unit.inputs]
    missing = next((name for name, flow in zip(unit.inputs, inputs, strict=True) if flow is None), None)
    endless = ""
    if missing is not None:
        streams.unreleased[unit.id] = streams.why[missing, unit.node]
    else:
        present = [flow for flow in inputs if flow is not None]
        if unit.sync is not None and not unit.sync.each:
            found = fusion_waits.fused(system, delays, charges, unit, present)
            streams.triggers[unit.id], endless = found.trigger, found.why
        else:
            gather = joined if unit.join and unit.sync is None else united
            key = (gather.__name__, *present)
            trigger, limits = delays.reuse.of(key, lambda: gather(present)), delays.paths.releases.get(unit.id)
            streams.triggers[unit.id] = limited(system, delays.reuse, streams, trigger, limits)
    why = unit.unsound or delays.broken.get(unit.node) or streams.unreleased.get(unit.id) or endless
    batch = system.nodes[unit.node].batch
    for stream, stage in unit.exits.items():
        if why:
            streams.why[stream, unit.node] = why
        else:
            response, trigger = delays.units.get(unit.id), streams.triggers[unit.id]
            if stream in system.windows:
                own = _part(unit, stage, *_took_ns(unit, stage, response), response)
                window_closing.close(system, delays, charges, system.windows[stream], trigger, own, streams)
            else:
                key = ("left", unit.id, stream, trigger, response)
                leaving = delays.reuse.of(
                    key, partial(_leave, unit, stage, batch, trigger, response, stream in system.marked)
                )
                limits = delays.paths.places.get((stream, unit.node))
                streams.flows[stream, unit.node] = limited(system, delays.reuse, streams, leaving, limits)


def united(inputs: Sequence[Flow]) -> Flow:
    """Every tuple of every input."""
    late: dict[str, Late] = {}
    for flow in inputs:
        for name, each in flow.late.items():
            late[name] = worse(late[name], each) if name in late else each
    if len(inputs) == 1:
        return inputs[0]
    return Flow.of(total([flow.curve for flow in inputs]), total([flow.events for flow in inputs]), late)


def joined(inputs: Sequence[Flow]) -> Flow:
    """By lineage: released when the last input of a lineage comes. What is released in a window of t came, on each
    input, in a window longer by the longest wait of that input."""
    common = set.intersection(*(set(flow.late) for flow in inputs))
    late: dict[str, Late] = {}
    for name in common:
        for flow in inputs:
            each = flow.late[name]
            late[name] = worse(late[name], each) if name in late else each
        late[name] = replace(late[name], least_ns=max(flow.late[name].least_ns for flow in inputs))
    waits = [max((late[name].most_ns - flow.late[name].least_ns for name in common), default=0) for flow in inputs]
    curves = [jittered(flow.curve, wait) for flow, wait in zip(inputs, waits, strict=True)]
    events = [jittered(flow.events, wait) for flow, wait in zip(inputs, waits, strict=True)]
    return Flow.of(least(curves), total(events), late)


def worse(one: Late, other: Late) -> Late:
    """The longer way; the shorter least."""
    longer = one if one.most_ns >= other.most_ns else other
    absent_ns = max(one.most_ns + one.absent_ns, other.most_ns + other.absent_ns) - longer.most_ns
    return replace(longer, least_ns=min(one.least_ns, other.least_ns), absent_ns=absent_ns)


def _leave(unit: Unit, stage: int, batch: int, trigger: Flow, response: Response | None, marked: bool) -> Flow:
    """What leaves a unit after one of its stages."""
    stages = unit.stages[: stage + 1]
    most_ns, best_ns = _took_ns(unit, stage, response)
    passes = [each.selectivity for each in stages]
    curve = least([selected(jittered(trigger.curve, most_ns - best_ns), passes), *_spacings(stages, batch)])
    events = curve
    if marked:
        largest = 1
        for each in passes:
            largest = max(1, each(largest))
        events = selected(jittered(trigger.events, most_ns), [Selectivity(((1, largest),))])
    part = _part(unit, stage, most_ns, best_ns, response)
    late = {name: each.after(part, best_ns) for name, each in trigger.late.items()}
    return Flow.of(curve, events, late)


def _took_ns(unit: Unit, stage: int, response: Response | None) -> tuple[int, int]:
    """From the release until a stage has run: at most, and at least."""
    best_ns = sum(each.best_ns for each in unit.stages[: stage + 1])
    return (max(best_ns, _whole(response.stages[stage])) if response else best_ns), best_ns


def _part(unit: Unit, stage: int, most_ns: int, best_ns: int, response: Response | None) -> Part:
    """Of the time until that stage has run: own work, blocking, and waiting, in whole ns that sum up to it."""
    what = f"{unit.name} on {unit.node}"
    if response is None or not response.moments or most_ns == best_ns:
        return Part("unit", what, most_ns, unit.node, most_ns, 0, unit.id, stage)
    moment = response.moments[stage]
    work_ns = min(_whole(moment.own), most_ns)
    blocking_ns = min(_whole(moment.blocking), most_ns - work_ns)
    return Part("unit", what, most_ns, unit.node, work_ns, blocking_ns, unit.id, stage)


def _spacings(stages: Sequence[Stage], batch: int) -> list[Curve]:
    """One bound per stage p: its runs are spaced by the least cost up to it, and the later stages select of them."""
    found: list[Curve] = []
    gap_ns, runs = 0, 1  # runs: of stage p in one instance, at most
    for p, stage in enumerate(stages):
        gap_ns += stage.best_ns
        if gap_ns and runs:
            per_job = Selectivity(((1, runs),))
            found.append(selected(Spaced(batch, gap_ns), [per_job, *(each.selectivity for each in stages[p:])]))
        runs = stage.selectivity(runs)
    return found


def _whole(t: Time) -> int:
    return int(-(-t // 1))


def age(system: System, streams: Streams, source: str) -> Late | None:
    """How old what a source admits may be, in parts; of windows, from the instant that their deadlines count from.
    None: of any age."""
    if source in system.windows:
        return streams.window_closings[source].age
    given = system.sources[source]
    tick_ns = streams.ticks_ns.get(source)
    if tick_ns is not None and not 0 < given.max_age_ns < tick_ns:
        return Late(0, 0, ()).after(Part("age", f"until {given.node} looks at the timer {source}", tick_ns, given.node))
    if not given.max_age_ns:
        return None
    part = Part("age", f"age of {source} on admission", given.max_age_ns, given.node)
    return Late(given.max_age_ns, 0, (part,))


__all__ = [
    "Closing", "Delays", "Flow", "Kind", "Late", "Part", "Streams", "Trail", "age", "joined", "propagate", "united",
    "worse",
]  # fmt: skip
