"""Fusions: how long a tuple waits for those of other inputs, and how densely sets of them run.

docs/explanation/fusion.md has the argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from coordinator.calculus.curves import Curve
from coordinator.calculus.flow import Spaced, jittered, least, most, total
from coordinator.guarantee.streams import Delays, Flow, Late, Part
from coordinator.guarantee.system import System, Unit
from coordinator.guarantee.window_closing import clocks
from coordinator.spec.runtime_charges import RuntimeOverhead
from coordinator.units import counted


@dataclass(frozen=True)
class Fused:
    """`trigger`: the sets that run. `why`: nothing bounds how long their tuples wait; empty: something does."""

    trigger: Flow
    why: str = ""


def fused(system: System, delays: Delays, charges: RuntimeOverhead, unit: Unit, inputs: Sequence[Flow]) -> Fused:
    """What releases a unit that fuses its inputs."""
    sync = unit.sync
    assert sync is not None
    found = _Waits(system, delays, charges, unit, inputs)
    holds = [found.hold_ns(port) for port in range(len(inputs))]
    if any(hold_ns is None for hold_ns in holds):  # sets still run at the instants at which tuples come
        curve, events = total([flow.curve for flow in inputs]), total([flow.events for flow in inputs])
        return Fused(Flow.of(curve, events, {}), found.why)
    held = [jittered(flow.curve, hold_ns or 0) for flow, hold_ns in zip(inputs, holds, strict=True)]
    events = total([jittered(flow.events, found.absent_ns(port)) for port, flow in enumerate(inputs)])
    late = {name: found.late(port, name) for port, flow in enumerate(inputs) for name in flow.late}
    return Fused(Flow.of(_sets(unit, [flow.curve for flow in inputs], held), events, late))


def holds(
    system: System, delays: Delays, charges: RuntimeOverhead, unit: Unit, inputs: Sequence[Flow]
) -> list[int | None]:
    """For how long at most a tuple of each input waits that becomes part of a set; None: nothing says so."""
    found = _Waits(system, delays, charges, unit, inputs)
    return [found.hold_ns(port) for port in range(len(inputs))]


def left_out(system: System, delays: Delays, charges: RuntimeOverhead, unit: Unit, inputs: Sequence[Flow]) -> str:
    """Why a tuple might meet one of the tolerance too late, which is not kept any more; empty: none does."""
    sync, name = unit.sync, unit.stages[0].operator
    assert sync is not None
    found = _Waits(system, delays, charges, unit, inputs)
    for port, flow in enumerate(inputs):
        reached_ns = found.reached_ns(port)
        if reached_ns is None or flow.curve.count(reached_ns) > sync.keep:
            kept = f"{name} keeps {counted(sync.keep, 'tuple')} of {unit.inputs[port]}"
            return f"{kept}, and more may come while others near to them are on their way"
    return ""


def _sets(unit: Unit, came: Sequence[Curve], held: Sequence[Curve]) -> Curve:
    """Each set that is complete has a tuple of every input. Each other one has one at least; and of kind `all` it runs
    a timeout after the one before at the earliest.

    Complete ones of kind `all` run at arrivals: take the first of some sets, and the input that came last to it. Each
    further set has a later tuple of that input, so its arrivals in that time are as many as the sets."""
    sync = unit.sync
    assert sync is not None
    if not sync.timeout_ns:
        return least(held) if sync.within_ns is not None else least([*held, most(came)])
    if sync.within_ns is not None:
        return total(held)
    return least([total(held), total([least(held), Spaced(1, sync.timeout_ns)])])


@dataclass(frozen=True)
class _Waits:
    """Of one fusion, with its inputs."""

    system: System
    delays: Delays
    charges: RuntimeOverhead
    unit: Unit
    inputs: Sequence[Flow]

    @property
    def why(self) -> str:
        """Why nothing bounds how long a tuple waits."""
        sync, name = self.unit.sync, self.unit.stages[0].operator
        assert sync is not None
        if sync.within_ns is None:
            late = ", ".join(sorted({one for port in range(len(self.inputs)) for one in self._dropping(port)}))
            why = f"nothing says how soon the inputs of {name} come again"
            why += f", of which {late} may drop what is late" if late else ""
        else:
            ageless = next(one for flow in self.inputs for one in flow.late if self._age_ns(one) is None)
            why = f"{ageless} has tuples of any age, so nothing says how long the others wait for it at {name}"
        return f"{why}: give its 'sync:' a 'timeout:'"

    def hold_ns(self, port: int) -> int | None:
        """For how long at most a tuple of that input waits that becomes part of a set; None: nothing says so. A timeout
        counts also where periods promise less: it is there for inputs that fall silent."""
        sync = self.unit.sync
        assert sync is not None
        if sync.timeout_ns:  # then the node looks at its timers, between instances
            return sync.timeout_ns + self.charges.tick_ns + self.delays.drains.get(self.unit.node, 0)
        if sync.within_ns is None:
            gaps = [self._gap_ns(each) for each in range(len(self.inputs))]
            others = [gaps[each] for each in self._others(port)]
            slowest = None if None in others else max(ns for ns in others if ns is not None)
            return min((ns for ns in (gaps[port], slowest) if ns is not None), default=None)
        reached_ns = self.reached_ns(port)
        earliest_ns = min((late.least_ns for late in self.inputs[port].late.values()), default=0)
        return None if reached_ns is None else max(0, reached_ns - earliest_ns)

    def absent_ns(self, port: int) -> int:
        """For how long at most a tuple of that input waits until it is known to be in no set, as the engine has it."""
        sync, hold_ns = self.unit.sync, self.hold_ns(port)
        assert sync is not None and hold_ns is not None
        if sync.within_ns is None or sync.timeout_ns:
            return hold_ns
        return self.unit.unmatched_ns + self.charges.tick_ns + self.delays.drains.get(self.unit.node, 0)

    def late(self, port: int, name: str) -> Late:
        """Of a source's tuples, until their set runs."""
        sync, own, wait_ns = self.unit.sync, self.inputs[port].late[name], self.hold_ns(port)
        assert sync is not None and wait_ns is not None
        if sync.within_ns is not None and not sync.timeout_ns:
            reached_ns = self.reached_ns(port)
            assert reached_ns is not None
            wait_ns = max(0, reached_ns - own.most_ns)
        what = f"until {self.unit.stages[0].operator} runs, for its other inputs"
        fused = own.after(Part("partner", what, wait_ns, self.unit.node))
        return replace(fused, absent_ns=max(own.absent_ns, self.absent_ns(port) - wait_ns))

    def _others(self, port: int) -> list[int]:
        return [each for each in range(len(self.inputs)) if each != port]

    def _gap_ns(self, port: int) -> int | None:
        """For how long at most no tuple of an input comes, where some source of it comes by whole."""
        if not self.unit.whole[port] or self._dropping(port):
            return None
        found = []
        for name, late in self.inputs[port].late.items():
            source = self.system.sources.get(name)
            drain_ns = 0 if source is None else self.delays.drains.get(source.node, 0)
            if source is None or not source.gap_ns or 0 < source.max_age_ns <= drain_ns:
                continue  # in the last case fresh tuples may be refused
            found.append(source.gap_ns + drain_ns + late.most_ns - late.least_ns)
        return min(found, default=None)

    def _dropping(self, port: int) -> list[str]:
        """Operators on the way of an input that may find one of its tuples late. As long as all are in time none does,
        so what they drop is not the first that is not."""
        droppers = self.unit.droppers[port]
        if not droppers:
            return []
        ages = [(self._age_ns(name), late.most_ns) for name, late in self.inputs[port].late.items()]
        oldest_ns = max((way_ns + age_ns for age_ns, way_ns in ages if age_ns is not None), default=0)
        ageless = any(age_ns is None for age_ns, _ in ages)
        return [name for name, late_ns in droppers.items() if ageless or oldest_ns > late_ns]

    def _age_ns(self, name: str) -> int | None:
        """How old what a source admits may be; None: of any age, as windows are."""
        source = self.system.sources.get(name)
        drain_ns = 0 if source is None else self.delays.drains.get(source.node, 0)
        if source is not None and source.timer and not 0 < source.max_age_ns < drain_ns:
            return drain_ns
        return None if source is None else source.max_age_ns or None

    def reached_ns(self, port: int) -> int | None:
        """Of a tuple whose set is within the tolerance: how long after its admission the youngest of the set is here.
        That one is younger by the tolerance at most, but for what clocks are apart."""
        sync = self.unit.sync
        assert sync is not None and sync.within_ns is not None
        found = []
        for other in self._others(port):
            for name, late in self.inputs[other].late.items():
                age_ns = self._age_ns(name)
                if age_ns is None:
                    return None
                found.append(age_ns + late.most_ns + self._apart_ns(other, name))
        apart_ns = max((self._apart_ns(port, name) for name in self.inputs[port].late), default=0)
        return sync.within_ns + apart_ns + max(found, default=0)

    def _apart_ns(self, port: int, name: str) -> int:
        stream = self.unit.inputs[port]
        return clocks(self.system, self.delays, self.charges, stream, name)[0]


__all__ = ["Fused", "fused", "holds", "left_out"]
