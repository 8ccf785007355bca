"""Data age: how old the data behind a tuple may be at a place, by their sources, along the longest path of each.

A tuple's own data, of its lineage and of what was merged into it, are as old as latency bounds say. Beside them it
carries what was read as side inputs on the way and what windows collected; this pass adds these up. A value that is
read came as old as it was and has been there since, at most until the next one comes, or as long as `max_age` lets it.
docs/explanation/age.md has the argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coordinator.guarantee import fusion_waits
from coordinator.guarantee.freshness import data_paths
from coordinator.guarantee.freshness.arrival_gaps import ArrivalGaps, Gap
from coordinator.guarantee.freshness.data_paths import Path, Paths, Reading
from coordinator.guarantee.freshness.data_walk import DataWalk, Place, Stretch, behind
from coordinator.guarantee.propagate import age
from coordinator.guarantee.streams import Flow, Part
from coordinator.guarantee.system import Side, Source, Unit
from coordinator.units import counted


@dataclass(frozen=True)
class DataAge:
    """The rules of one walk, of what a tuple carries beside its own data; `gaps`: of the same walk."""

    walked: DataWalk
    gaps: Mapping[Place, Gap]

    def of(self, place: Place, carried: Paths) -> dict[str, Path]:
        """All data behind the tuples of a stream."""
        return data_paths.longest([self._own(place), carried])

    def _own(self, place: Place) -> dict[str, Path]:
        flow = self.walked.flow(place)
        return {} if flow is None else self._of_flow(flow)

    def _of_flow(self, flow: Flow) -> dict[str, Path]:
        return {name: path for name, path in self._stamped(flow).items() if name in self.walked.system.sources}

    def _stamped(self, flow: Flow) -> dict[str, Path]:
        """Since the instants that deadlines count from: of tuples by their sources, and of results of windows."""
        system, streams = self.walked.system, self.walked.analysis.streams
        found = {}
        for name, late in flow.late.items():
            admitted, why = age(system, streams, name), ""
            if admitted is None and name in system.windows:
                why = streams.window_closings[name].why
            elif admitted is None:
                why = f"{name} admits tuples of any age: give it a 'max_age:'"
            found[name] = Path((*(admitted.parts if admitted else ()), *late.parts), why)
        return found

    def admitted(self, source: Source) -> Paths:
        """Nothing but its own data."""
        del source
        return {}

    def travelled(self, value: Paths, stretch: Stretch) -> Paths:
        """Everything grows older on the way."""
        return data_paths.after(value, stretch.parts)

    def released(self, unit: Unit, inputs: Sequence[Paths]) -> Paths:
        """Of several inputs, also what a tuple carries while it waits for those of the others."""
        if unit.sync is not None:
            return self._fused(unit, inputs)
        if not unit.join:
            return data_paths.longest(inputs)
        waits = ArrivalGaps(self.walked).join_waits(unit)
        return self._waited(unit, inputs, waits)

    @staticmethod
    def _waited(unit: Unit, inputs: Sequence[Paths], waits: Sequence[int]) -> Paths:
        parts = [partner(unit, wait_ns) for wait_ns in waits]
        return data_paths.longest([data_paths.after(paths, [one]) for paths, one in zip(inputs, parts, strict=True)])

    def _fused(self, unit: Unit, inputs: Sequence[Paths]) -> Paths:
        flows = [self.walked.flow((stream, unit.node)) for stream in unit.inputs]
        known = [flow for flow in flows if flow is not None]
        if len(known) < len(flows):
            return data_paths.longest(inputs)
        assert unit.sync is not None
        if unit.sync.each:
            return self._met(unit, known, inputs)
        analysis = self.walked.analysis
        waits = fusion_waits.holds(self.walked.system, analysis.delays, analysis.charges, unit, known)
        if None in waits:  # then nothing that comes of it has a bound
            return data_paths.longest(inputs)
        return self._waited(unit, inputs, [wait_ns or 0 for wait_ns in waits])

    def _met(self, unit: Unit, flows: Sequence[Flow], inputs: Sequence[Paths]) -> Paths:
        """Of each tuple those that it met, which came before it and are older by the tolerance at most, but for what
        clocks are apart; and what they carry."""
        sync, name = unit.sync, unit.stages[0].operator
        assert sync is not None and sync.within_ns is not None
        apart_ns = sum(sorted(self.walked.apart_ns((stream, unit.node)) for stream in unit.inputs)[-2:])
        near = Part("partner", f"between a tuple that {name} met and the one that ran", sync.within_ns, unit.node)
        clocks = Part("beat", f"clocks of the inputs of {name} apart", apart_ns, unit.node)
        found = list(inputs)
        for port, flow in enumerate(flows):
            others = [
                path for other, each in enumerate(flows) if other != port for path in self._stamped(each).values()
            ]
            if not others:
                continue
            longest = others[0]
            for path in others[1:]:
                longest = data_paths.longer(longest, path)
            partner = longest.after([near, clocks])
            found.append(dict.fromkeys(self._of_flow(flow), partner))
            found.append(
                {
                    source: path.after(partner.parts) if not partner.why else path.stopped(partner.why)
                    for source, path in inputs[port].items()
                }
            )
        return data_paths.longest(found)

    def left(self, unit: Unit, stage: int, released: Paths, found: Mapping[Place, Paths]) -> Paths:
        """With what operators up to that stage have read."""
        operator = unit.stages[stage].operator
        if operator in self.walked.system.windows:
            return self._collected(unit, operator, released)
        reads = [
            data_paths.after(self._read(unit, place, side, found), [self.walked.read_after(unit, stage)])
            for place, each in enumerate(unit.stages[: stage + 1])
            for side in each.sides
        ]
        return data_paths.longest([data_paths.after(released, self.walked.left_after(unit, stage).parts), *reads])

    def _read(self, unit: Unit, stage: int, side: Side, found: Mapping[Place, Paths]) -> Paths:
        """What is behind the latest value when an operator reads it."""
        operator, place = unit.stages[stage].operator, (side.stream, unit.node)
        if self.walked.is_back(unit, stage, side):
            why = f"{operator} reads by {side.port} what comes of its own results, with data of any age behind it"
            return self.missing(side.stream, why)
        gap = self.gaps[place]
        limit = Part("age", f"'max_age' of side input {side.port} of {operator}", side.max_age_ns, unit.node)
        since = Part("gap", f"{side.stream} at {operator}, until its next tuple", gap.ns or 0, unit.node)
        why = f"{gap.why}, so nothing says how long {operator} reads the last value of {side.stream}"
        own = {}
        for name, path in self._own(place).items():
            came = path.after([since]) if gap.ns is not None else path.stopped(why)
            if side.max_age_ns and (came.ns is None or came.ns > side.max_age_ns):
                came = Path((limit,))
            own[name] = Path(came.parts, came.why, Reading(operator, side.port, path.ns))
        if side.max_age_ns and (gap.ns is None or gap.ns > side.max_age_ns):
            return data_paths.longest([own, data_paths.after(found[place], [limit])])
        carried = data_paths.after(found[place], [since])
        return data_paths.longest([own, carried if gap.ns is not None else data_paths.stopped(carried, why)])

    def _collected(self, unit: Unit, add: str, released: Paths) -> Paths:
        """What a window holds: it came at its beginning at the earliest, and is there until the window is complete."""
        windows, closing = self.walked.system.windows[add], self.walked.analysis.streams.window_closings[add]
        trigger = self.walked.analysis.streams.triggers[unit.id]
        inside = data_paths.longest([self._of_flow(trigger), released])
        if closing.age is None or windows.kind == "count":
            soon = f"nothing says how soon {counted(windows.length, 'tuple')} of {windows.name} come"
            return data_paths.stopped(inside, closing.why or soon)
        span = Part("window", f"length of a window of {windows.name}", windows.length, windows.node)
        complete = [part for part in closing.age.parts if part.kind != "window"]
        apart_ns = max((self.walked.apart_ns((stream, unit.node)) for stream in unit.inputs), default=0)
        apart = Part("beat", f"clocks before {windows.name} apart", apart_ns, windows.node)
        whole = Path((span, *complete)).after([apart])
        own = {name: whole if not path.why else path for name, path in self._of_flow(trigger).items()}
        return data_paths.longest([own, data_paths.after(released, whole.parts)])

    def missing(self, stream: str, why: str) -> Paths:
        """Of every source behind it."""
        sources = behind(self.walked.stages, [stream]) & self.walked.system.sources.keys()
        return {name: Path(why=why) for name in sources}


def partner(unit: Unit, wait_ns: int) -> Part:
    """A tuple's wait for those of other inputs."""
    return Part("partner", f"until {unit.stages[0].operator} runs, for its other inputs", wait_ns, unit.node)


__all__ = ["DataAge", "partner"]
