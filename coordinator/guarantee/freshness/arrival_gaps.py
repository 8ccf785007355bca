"""Arrival gaps: the longest time without a tuple of a stream at a place, once its first has come.

A source with a period leaves at most that between two of its tuples; each stretch of the way adds by how much its times
differ. What may drop a tuple ends it. docs/explanation/age.md has the argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from coordinator.guarantee.freshness.data_walk import DataWalk, Place, Stretch
from coordinator.guarantee.system import Side, Source, Unit


@dataclass(frozen=True)
class Gap:
    """`ns` None: nothing says how soon the next comes, for `why`; `whole`: every lineage comes, of all the sources,
    fusions and windows that they begin at."""

    ns: int | None
    why: str = ""
    whole: bool = True


@dataclass(frozen=True)
class ArrivalGaps:
    """The rules of one walk."""

    walked: DataWalk

    def admitted(self, source: Source) -> Gap:
        """By its period, where all that comes goes on."""
        if why := self._refused(source):
            return Gap(None, why)
        if source.gap_ns:
            return Gap(source.gap_ns + self.walked.analysis.delays.drains.get(source.node, 0))
        if source.call_ns:
            return Gap(None, f"a call of source {source.name} may give nothing")
        return Gap(None, f"the arrivals of {source.name} have no period")

    def travelled(self, value: Gap, stretch: Stretch) -> Gap:
        """The one before it may have come early, and the next late."""
        return value if value.ns is None else replace(value, ns=value.ns + stretch.most_ns - stretch.least_ns)

    def released(self, unit: Unit, inputs: Sequence[Gap]) -> Gap:
        """Between two releases of a unit."""
        if unit.sync is not None:
            return self._fused(unit, inputs)
        known, whole = [gap.ns for gap in inputs if gap.ns is not None], all(gap.ns and gap.whole for gap in inputs)
        if not unit.join:
            return Gap(min(known), whole=whole) if known else inputs[0]
        name = unit.stages[0].operator
        if not whole:
            why = next((gap.why for gap in inputs if gap.why), "")
            return Gap(None, why or f"not every tuple of the inputs of {name} may come")
        ways = zip(known, self.join_waits(unit), self.walked.complete(unit), strict=True)
        found = [gap_ns + wait_ns for gap_ns, wait_ns, complete in ways if complete]
        return Gap(min(found)) if found else Gap(None, f"every input of {name} has tuples that another one lacks")

    def _fused(self, unit: Unit, inputs: Sequence[Gap]) -> Gap:
        sync, name = unit.sync, unit.stages[0].operator
        assert sync is not None
        if sync.each or sync.within_ns is not None:
            return Gap(None, f"nothing says how often inputs of {name} come near enough to each other")
        known = [gap.ns for gap in inputs if gap.ns is not None]
        found = [max(known)] if len(known) == len(inputs) else []
        if sync.timeout_ns and known:
            drain_ns = self.walked.analysis.delays.drains.get(unit.node, 0)
            found.append(min(known) + sync.timeout_ns + self.walked.charges.tick_ns + drain_ns)
        return Gap(min(found)) if found else next(gap for gap in inputs if gap.ns is None)

    def join_waits(self, unit: Unit) -> list[int]:
        """Of a join by lineage: how long a tuple of each input waits at most until its lineage is complete."""
        late = self.walked.analysis.streams.triggers[unit.id].late
        flows = [self.walked.flow((stream, unit.node)) for stream in unit.inputs]
        return [
            max((late[name].most_ns - flow.late[name].least_ns for name in late), default=0) if flow else 0
            for flow in flows
        ]

    def left(self, unit: Unit, stage: int, released: Gap, found: Mapping[Place, Gap]) -> Gap:
        """Where no operator up to that stage drops a tuple."""
        operator = unit.stages[stage].operator
        if operator in self.walked.system.windows:
            return self.window_gap(operator, found)
        if released.ns is None:
            return released
        if why := self.dropped(unit, stage, found):
            return Gap(None, why)
        return self.travelled(released, self.walked.left_after(unit, stage))

    def dropped(self, unit: Unit, stage: int, found: Mapping[Place, Gap]) -> str:
        """Why a tuple that releases the unit may not leave that stage, once side inputs have come; empty: it does."""
        for place, each in enumerate(unit.stages[: stage + 1]):
            if why := each.drops or self._sheds(unit, place, found):
                return why
        return ""

    def _sheds(self, unit: Unit, stage: int, found: Mapping[Place, Gap]) -> str:
        each = unit.stages[stage]
        stale = (one.port for one in each.sides if one.shed and not self.is_present(unit, stage, one, found))
        port = next(stale, "")
        return each.sheds or (f"{each.operator} sheds a tuple while its side input {port} is too old" if port else "")

    def is_present(self, unit: Unit, stage: int, side: Side, found: Mapping[Place, Gap]) -> bool:
        """Whether a side input has a value at every read, once its first has come."""
        if not side.max_age_ns:
            return True
        place = (side.stream, unit.node)
        if self.walked.is_back(unit, stage, side) or place not in found:
            return False
        age_ns = self.walked.value_age_ns(place, found[place].ns)
        return age_ns is not None and age_ns + self.walked.apart_ns(place) <= side.max_age_ns

    def window_gap(self, add: str, found: Mapping[Place, Gap]) -> Gap:
        """Windows of time close one after the other, empty ones too."""
        system = self.walked.system
        windows, closing = system.windows[add], self.walked.analysis.streams.window_closings[add]
        name, spread_ns = windows.name, closing.spread_ns
        if windows.kind != "time" or spread_ns is None:
            return Gap(None, f"nothing says how often a window of {name} closes")
        if closing.unsure or (windows.useful_ns and spread_ns > windows.useful_ns):
            return Gap(None, closing.unsure or f"a window of {name} may be given up before it is complete")
        if any(add in shedder.windows or name in shedder.windows for shedder in system.entry_shedders):
            return Gap(None, f"windows of {name} may be shed")
        why = next((why for one in self.walked.leading(add) if (why := self._lost(one, found))), "")
        return Gap(None, f"{why}, so a window of {name} may never come") if why else Gap(windows.hop + spread_ns)

    def _lost(self, name: str, found: Mapping[Place, Gap]) -> str:
        """Why a tuple may be shed at a source or an operator, or nothing says how soon it is known to have no result;
        empty: neither is so. What is filtered leaves its windows whole."""
        if name in self.walked.system.sources:
            return self._refused(self.walked.system.sources[name])
        unit, stage = self.walked.stages[name]
        sync = unit.sync if stage == 0 else None
        if sync is not None and sync.within_ns is not None and not sync.each and not sync.timeout_ns:
            return f"a tuple may wait at {name} for others that are near enough"
        return self._sheds(unit, stage, found)

    def _refused(self, source: Source) -> str:
        """Why not all that a source declares goes on; empty: it does."""
        if source.limit is not None:
            return f"tuples of {source.name} beyond its 'max_rate' are shed"
        if 0 < source.max_age_ns <= self.walked.analysis.delays.drains.get(source.node, 0):
            return f"fresh tuples of {source.name} may be older than its 'max_age' when they are looked at"
        return ""

    def missing(self, stream: str, why: str) -> Gap:
        """Nothing is known of it."""
        del stream
        return Gap(None, why)


__all__ = ["ArrivalGaps", "Gap"]
