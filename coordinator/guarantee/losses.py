"""Losses on the way to an output although everything declared is kept.

A bound says when results come, not that each of them does.

Only what the analysis cannot rule out is told: a limit above what is declared sheds nothing, nor does a queue with room
for all that can wait in it, nor a shedder that goes by such a queue alone.
"""

from __future__ import annotations

from collections.abc import Set

from coordinator.calculus.curves import Time
from coordinator.calculus.flow import jittered
from coordinator.guarantee import fusion_waits
from coordinator.guarantee.analysis import Analysis
from coordinator.guarantee.system import Source, Unit
from coordinator.guarantee.window_sources import EntryShedder
from coordinator.spec.runtime_charges import on_wire
from coordinator.units import counted, show_bytes, show_ns

IN_MEMORY = 64  # bytes that an encoded byte may take there: a dict of one entry, '{"":0}', takes some 48 for each


def losses(analysis: Analysis, output: str) -> tuple[str, ...]:
    """Of a bounded output, a sentence each."""
    system = analysis.system
    units, sources = behind(analysis, system.outputs[output].stream)
    found = [_limited(analysis, system.sources[name]) for name in sorted(sources)]
    found += [_full(analysis, system.units[number]) for number in sorted(units)]
    found += [text for number in sorted(units) for text in system.units[number].required]
    found += [_unmet(analysis, system.units[number]) for number in sorted(units)]
    for name, windows in system.windows.items():
        if any(stage.operator == name for number in units for stage in system.units[number].stages):
            found += [_shed(analysis, shedder) for shedder in system.entry_shedders if name in shedder.windows]
            closing = analysis.streams.window_closings.get(windows.add)
            found.append(closing.unsure if closing is not None else "")
    return tuple(dict.fromkeys(text for text in found if text))


def behind(analysis: Analysis, stream: str) -> tuple[Set[int], Set[str]]:
    """Units and sources that lead to a stream through trigger inputs."""
    system = analysis.system
    made = {stage.operator: unit for unit in system.units.values() for stage in unit.stages}
    units: set[int] = set()
    sources: set[str] = set()
    waiting = [stream]
    while waiting:
        name = waiting.pop()
        if name in system.sources:
            sources.add(name)
        elif name in made and made[name].id not in units:
            units.add(made[name].id)
            waiting += made[name].inputs
    return units, sources


def _limited(analysis: Analysis, source: Source) -> str:
    """A limit sheds nothing where what comes is within it: of any span, less than all of it, at most so many tuples."""
    if source.limit is None:
        return ""
    size, span = source.limit.size, source.limit.period
    if source.curve is not None:
        late_ns = source.tolerance_ns + analysis.delays.drains.get(source.node, 0) if analysis.charges.drained else 0
        if jittered(source.curve, late_ns).count(span - 1) <= size:
            return ""
    return f"of {source.name} at most {counted(size, 'tuple')} in {show_ns(int(span))} go on, and more may come"


def _full(analysis: Analysis, unit: Unit) -> str:
    """A queue that is long enough drops nothing."""
    if not unit.queue_bytes:
        return ""
    response = analysis.delays.units.get(unit.id)
    declared = max((analysis.system.max_bytes.get(name, 0) for name in unit.inputs), default=0)
    size = on_wire(declared, analysis.charges.tuple_bytes) * IN_MEMORY
    waiting = None if response is None else _waiting(analysis, unit, response.end)
    if waiting is not None and waiting * size <= unit.queue_bytes:
        return ""
    return f"the queue of {unit.name} holds {show_bytes(unit.queue_bytes)}, and more may wait"


def _shed(analysis: Analysis, shedder: EntryShedder) -> str:
    """A shedder that goes by measured load cannot be told beforehand; one that goes by the queue alone can."""
    if shedder.policy == "drop-tail" and _room(analysis, shedder):
        return ""
    *names, last = sorted(analysis.system.windows[name].name for name in shedder.windows)
    over = f"{', '.join(names)} and {last}" if names else last
    if shedder.policy == "drop-tail":
        return f"windows of {over} are left out where more than {counted(shedder.most, 'tuple')} wait, and more may"
    return f"{shedder.policy} leaves out windows of {over} where it measures too much load; 'shed: none' would not"


def _room(analysis: Analysis, shedder: EntryShedder) -> bool:
    """Whether no more than its tuples can be on their way from the shedder to the windows."""
    responses = [analysis.delays.units.get(number) for number in {*shedder.units, *shedder.path}]
    if None in responses:
        return False
    within = sum((each.end for each in responses if each is not None), 0)
    inside = [_waiting(analysis, analysis.system.units[number], within) for number in shedder.units]
    return None not in inside and sum(each or 0 for each in inside) <= shedder.most


def _unmet(analysis: Analysis, unit: Unit) -> str:
    """Of an interval join, whose memory is limited."""
    if unit.sync is None or not unit.sync.each:
        return ""
    flows = [analysis.streams.flows.get((name, unit.node)) for name in unit.inputs]
    known = [flow for flow in flows if flow is not None]
    if len(known) < len(flows):
        return ""
    return fusion_waits.left_out(analysis.system, analysis.delays, analysis.charges, unit, known)


def _waiting(analysis: Analysis, unit: Unit, within: Time) -> int | None:
    """The most that are released in so long a time, and so wait or run at once. None: what comes has no bound."""
    trigger = analysis.streams.triggers.get(unit.id)
    return None if trigger is None else trigger.curve.count(within)


__all__ = ["behind", "losses"]
