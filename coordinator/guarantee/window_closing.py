"""Window closing: one step of the pass of `propagate`. docs/explanation/guarantee.md has the argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from coordinator.calculus.curves import Curve, Jcp
from coordinator.guarantee.streams import Closing, Delays, Flow, Late, Part, Streams
from coordinator.guarantee.system import Source, System, Unit
from coordinator.guarantee.whole_ways.limited_flows import within
from coordinator.guarantee.window_sources import Windows
from coordinator.spec.runtime_charges import RuntimeOverhead
from coordinator.units import counted, show_ns

AHEAD = 4096  # reports of one source that wait for lower numbers: what a node remembers
OPEN = 1024  # windows of an operator that are open, or four times as many as overlap


def heartbeats(source: Source, delays: Delays, charges: RuntimeOverhead) -> Curve | None:
    """One every `beat_ns`, later by what its node does meanwhile, and one more when a plan is committed."""
    if not source.beat_ns:
        return None
    late_ns = charges.tick_ns + delays.drains.get(source.node, 0)
    return Jcp(source.beat_ns, 0, source.beat_ns + late_ns)


def close(
    system: System,
    delays: Delays,
    charges: RuntimeOverhead,
    windows: Windows,
    trigger: Flow,
    own: Part,
    streams: Streams,
) -> None:
    """The windows that leave a unit which collects them. `trigger`: what comes to it; `own`: its instance.

    With nothing lost a window closes between its end and its age, however long the `wait` for lost numbers: each number
    below a heartbeat's, or a sign of what became of it, is there one way after its admission. So its curve has no
    `wait` in it. Not so behind a fusion that waits for its other inputs without a timer: there a number is known to
    find no partner only while others come, and what waits for a source that has fallen silent is given up together, a
    `wait` later.

    Nodes police with the `wait` in any case: after a loss several windows that waited for one number close at once, and
    are to be given.
    """
    limits = delays.paths.places.get((windows.add, windows.node))
    collected: Mapping[str, int] = limits.collected if limits is not None else {}
    paths = {}
    for name in windows.sources:
        if name in trigger.late:
            way = trigger.late[name].after(own)
            paths[name] = _known(windows, within(way, collected.get(name, way.most_ns)))
    found = _age(system, delays, charges, windows, paths, streams)
    at = (windows.add, windows.node)
    apart_ns = None if found.age is None else found.age.most_ns - windows.after_ns
    if windows.kind == "count" and windows.sources[0] in paths:  # not from the tuples' instants on, but admissions
        apart_ns = paths[windows.sources[0]].most_ns
    spread_ns = None if apart_ns is None else apart_ns + windows.wait_ns
    streams.window_closings[windows.add] = replace(found, spread_ns=spread_ns)
    numbers = _numbers(system, windows, streams)
    jitter_ns = spread_ns if _untimed(system, windows) else apart_ns
    curve = windows.curve(numbers, jitter_ns) if numbers is not None else None
    if curve is None:
        streams.why[at] = f"nothing bounds how many windows of {windows.name} close at once: {found.why}"
        return
    flow = delays.reuse.of(
        ("closing", windows.add, windows.jitter_ns(jitter_ns), numbers),
        lambda: Flow.of(curve, curve, {windows.add: Late(0, 0, ())}),
    )
    streams.flows[at] = flow
    streams.arriving[windows.node].append(flow)  # admitting a window costs about what reading a tuple does


def _untimed(system: System, windows: Windows) -> bool:
    """Whether tuples of these windows come through a fusion in which they wait for as long as no other comes."""
    made = {stage.operator: unit for unit in system.units.values() for stage in unit.stages}
    waiting, seen = [windows.add], set[str]()
    while waiting:
        unit = made.get(waiting.pop())
        if unit is not None and unit.name not in seen:
            if unit.sync is not None and not (
                unit.sync.each or unit.sync.timeout_ns or unit.sync.within_ns is not None
            ):
                return True
            seen.add(unit.name)
            waiting += unit.inputs
    return False


def collecting(system: System, streams: Streams, unit: Unit) -> frozenset[str]:
    """Units of which no instance runs when windows close that this unit is released by: the one that collects them,
    where they are of time and of one source.

    A window closes by a report: of a tuple, when its instance has ended; or of a heartbeat, or of what became of a
    number. While the instance of tuple m runs m is not settled, so such a heartbeat was said before m was admitted, and
    such a number is lower. Both go ahead of what is queued, on the way of m, so they came before m did, and closed what
    they close then. (A number that is given up closes windows at any time: not so where one may be.)
    """
    windows = system.windows.get(unit.inputs[0]) if len(unit.inputs) == 1 else None
    if windows is None or windows.kind != "time" or len(windows.sources) > 1:
        return frozenset()
    if windows.add not in streams.window_closings or streams.window_closings[windows.add].unsure:
        return frozenset()
    every = system.units.values()
    return frozenset(one.name for one in every if any(stage.operator == windows.add for stage in one.stages))


def _known(windows: Windows, way: Late) -> Late:
    """Until a number is there, or known not to come: without a timeout a fusion holds it for a partner until then."""
    what = "until a tuple without a partner is known to have none (a 'timeout:' of its 'sync:' says so sooner)"
    return way.after(Part("partner", what, way.absent_ns, windows.node))


def _numbers(system: System, windows: Windows, streams: Streams) -> Curve | None:
    """Of what is admitted at the windows' first source: by count it is the only one."""
    name = windows.sources[0]
    node = system.windows[name].node if name in system.windows else system.sources[name].node
    return streams.flows[name, node].curve if (name, node) in streams.flows else None


def _age(
    system: System,
    delays: Delays,
    charges: RuntimeOverhead,
    windows: Windows,
    paths: Mapping[str, Late],
    streams: Streams,
) -> Closing:
    """By its slowest source."""
    if why := _endless(system, windows, paths):
        return Closing(None, why)
    ages = []
    for name, way in paths.items():
        source = system.sources[name]
        age = Late(0, 0, ()).after(Part("age", f"age of {name} on admission", source.max_age_ns, source.node))
        if windows.kind != "count":
            said_ns = max(source.beat_ns, source.rarely_ns) + charges.tick_ns + delays.drains.get(source.node, 0)
            age = age.after(Part("beat", f"until {source.node} says how far {name} has come", said_ns, source.node))
            clocks_ns, pairs = clocks(system, delays, charges, windows.add, name)
            if pairs:
                age = age.after(Part("beat", f"clocks of {pairs} apart", clocks_ns, windows.node))
        ages.append(Late(age.most_ns + way.most_ns, 0, (*age.parts, *way.parts)))
    slowest = max(ages, key=lambda age: age.most_ns)
    unsure = _unsure(windows, paths, slowest.most_ns, streams, system)
    if windows.after_ns:
        what = f"from the first tuple of a window of {windows.name} to its end"
        first = Part("window", what, windows.after_ns, windows.node)
        slowest = Late(slowest.most_ns + windows.after_ns, 0, (first, *slowest.parts))
    return Closing(slowest, unsure=unsure)


def _endless(system: System, windows: Windows, paths: Mapping[str, Late]) -> str:
    """Why nothing says when a window is complete; empty: something does."""
    name = windows.name
    soon = f"nothing says how soon {counted(windows.length, 'tuple')} come"
    if windows.kind == "count" and windows.first:
        return f"{soon}, and deadlines of {name} count from the oldest of them"
    if windows.kind == "count" and not windows.whole:
        return f"{soon}, and deadlines of {name} count from the youngest that passes the operators before it"
    for source in windows.sources:
        why = ""
        if source in system.windows:
            why = f"{name} is of windows, whose ends no heartbeat tells"
        elif source not in paths:
            why = f"nothing says when tuples of {source} come to {name}"
        elif not system.sources[source].max_age_ns:
            why = f"{source} admits tuples of any age, so nothing says when a window of {name} is complete"
        elif windows.kind != "count" and not system.sources[source].beat_ns:
            why = f"{source} has no heartbeats, so nothing says when a window of {name} is complete"
        if why:
            return why
    return ""


def clocks(system: System, delays: Delays, charges: RuntimeOverhead, stream: str, name: str) -> tuple[int, str]:
    """An instant of a source is one on its node's clock, of which the node that a stream comes to knows an interval: no
    longer than a question to the other clock and its answer take, but for drift. Hop by hop: also whose clocks."""
    if not charges.drained:
        return 0, ""
    pairs: dict[str, None] = {}
    made = {stage.operator: unit for unit in system.units.values() for stage in unit.stages}
    found = 0
    for start, end in sorted(_hops(system, made, stream, name, {}) or ()):
        if system.links[start, end].apart:
            link_ns = delays.links.get((start, end), 0) + delays.links.get((end, start), 0)
            latency_ns = system.links[start, end].latency_ns + system.links[end, start].latency_ns
            found += max(link_ns, latency_ns) + 2 * (delays.drains.get(start, 0) + delays.drains.get(end, 0))
            found += charges.drift_ns
            pairs[" and ".join((start, end) if f"{end} and {start}" not in pairs else (end, start))] = None
    return found, ", ".join(pairs)


def _hops(
    system: System,
    made: Mapping[str, Unit],
    stream: str,
    source: str,
    known: dict[str, frozenset[tuple[str, str]] | None],
) -> frozenset[tuple[str, str]] | None:
    """Of all streams from a source to this one, itself included; None: it does not come from there."""
    if stream not in known:
        own = frozenset(system.hops.get(stream, ()))
        inputs = made[stream].inputs if stream in made else ()
        before = [_hops(system, made, one, source, known) for one in inputs]
        reached = [each for each in before if each is not None]
        known[stream] = own if stream == source else own.union(*reached) if reached else None
    return known[stream]


def _unsure(windows: Windows, paths: Mapping[str, Late], age_ns: int, streams: Streams, system: System) -> str:
    """Why a window might be given up although nothing is lost; empty: none is."""
    for name, way in paths.items():
        if way.most_ns >= windows.wait_ns:
            waits, takes = show_ns(windows.wait_ns), show_ns(way.most_ns)
            return f"{windows.name} gives up a number after {waits}, and tuples of {name} may take {takes}"
        source = system.sources[name]
        told = streams.flows[name, source.node].events.count(way.most_ns + source.beat_ns)
        if told > AHEAD:
            return f"{windows.name} remembers {AHEAD} reports of {name} at once, and {told} may be on their way"
    if windows.kind == "count":
        on_the_way = _numbers(system, windows, streams)
        spread = on_the_way.count(max(way.most_ns for way in paths.values())) if on_the_way is not None else 0
    else:
        spread = age_ns
    begun = (windows.length + spread) // windows.hop + 2
    if begun > max(OPEN, 4 * -(-windows.length // windows.hop)):
        return f"{begun} windows of {windows.name} may be open at once, more than a node keeps"
    return ""


__all__ = ["clocks", "close", "collecting", "heartbeats"]
