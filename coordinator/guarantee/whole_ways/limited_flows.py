"""What limits of whole ways do to a stream: its tuples take no longer, and come no more densely than that allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from coordinator.calculus.flow import Known, jittered, least, total
from coordinator.guarantee.streams import Flow, Late, Limits, Part, Reuse, Streams
from coordinator.guarantee.system import System


def limited(system: System, reuse: Reuse, streams: Streams, flow: Flow, limits: Limits | None) -> Flow:
    """A stream at a place for which there are limits: its tuples take no longer, and come no more densely than those of
    its sources do, each delayed by something between the least and that. Likewise since a unit all come through."""
    if limits is None:
        return flow
    most_ns = tuple(limits.sources.get(name, each.most_ns) for name, each in flow.late.items())
    late = {name: within(each, ns) for (name, each), ns in zip(flow.late.items(), most_ns, strict=True)}
    curves = [(streams.triggers[unit], since_ns) for unit, since_ns in limits.units.items()]
    once = tuple((entered(system, streams, name), each.spread_ns) for name, each in late.items())
    if not limits.once.issuperset(late):
        once = ()
    if not curves and not once and late == flow.late:
        return flow
    return reuse.of(("limited", flow, most_ns, once, *curves), partial(_limited, flow, late, once, curves))


def _limited(
    flow: Flow, late: Mapping[str, Late], once: Sequence[tuple[Flow, int]], since: Sequence[tuple[Flow, int]]
) -> Flow:
    curves = [jittered(trigger.curve, ns) for trigger, ns in since]
    if once:
        curves.append(total([jittered(source.curve, ns) for source, ns in once]))
    if not curves:
        return replace(flow, late=late)
    curve = Known(least([flow.curve, *curves]))
    return Flow(curve, curve if flow.events is flow.curve else flow.events, late, flow.max_bytes)


def entered(system: System, streams: Streams, name: str) -> Flow:
    """A source as it is admitted."""
    node = system.windows[name].node if name in system.windows else system.sources[name].node
    return streams.flows[name, node]


def within(late: Late, most_ns: int) -> Late:
    """What is waited for less is taken from the last parts: when the tuple comes there, so much more of it has run."""
    less_ns = late.most_ns - most_ns
    if less_ns <= 0:
        return late
    parts: list[Part] = []
    for part in reversed(late.parts):
        cut_ns = min(less_ns, part.ns - part.work_ns)
        less_ns -= cut_ns
        blocking_ns = min(part.blocking_ns, part.ns - part.work_ns - cut_ns)
        parts.append(replace(part, ns=part.ns - cut_ns, blocking_ns=blocking_ns, sooner_ns=part.sooner_ns + cut_ns))
    return replace(late, most_ns=most_ns + less_ns, parts=tuple(reversed(parts)))


__all__ = ["entered", "limited", "within"]
