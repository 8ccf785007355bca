"""Reaction: the time from a change at a source until it shows at a place, by sources, along the longest path of each.

A change is a tuple of the source. By the bound, that tuple or a later one of its source is behind a tuple that has
come, and behind every tuple that comes from then on. Along main inputs this is a latency. A change of a side input
shows in the next instance that starts to read. A tuple that is replaced shows by its successor.
docs/explanation/age.md has the argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from coordinator.guarantee.freshness import data_paths
from coordinator.guarantee.freshness.arrival_gaps import ArrivalGaps, Gap
from coordinator.guarantee.freshness.data_age import partner
from coordinator.guarantee.freshness.data_paths import Path, Paths
from coordinator.guarantee.freshness.data_walk import DataWalk, Place, Stretch, behind
from coordinator.guarantee.propagate import age
from coordinator.guarantee.streams import Part
from coordinator.guarantee.system import Side, Source, Unit


@dataclass(frozen=True)
class Reflection:
    """How soon changes show at a place. `own`: by the tuples themselves and what was merged into them; `carried`: by
    what was read on the way. `always`: sources whose data are behind every tuple; `ordered`: no tuple reflects less
    than one that came before it."""

    own: Paths = field(default_factory=dict)
    carried: Paths = field(default_factory=dict)
    always: frozenset[str] = frozenset()
    ordered: bool = True

    @property
    def slowest(self) -> dict[str, Path]:
        """By every way."""
        return data_paths.longest([self.own, self.carried])

    @property
    def first(self) -> dict[str, Path]:
        """By the way that shows it first."""
        found = dict(self.carried)
        for name, path in self.own.items():
            other = found.get(name, path)
            found[name] = path if data_paths.longer(path, other) is other else other
        return found

    def after(self, parts: Sequence[Part]) -> Reflection:
        """More on the way."""
        return replace(self, own=data_paths.after(self.own, parts), carried=data_paths.after(self.carried, parts))

    def stopped(self, why: str) -> Reflection:
        """From here on nothing bounds it."""
        own, carried = data_paths.stopped(self.own, why), data_paths.stopped(self.carried, why)
        return Reflection(own, carried, ordered=False)


@dataclass(frozen=True)
class Reaction:
    """The rules of one walk; `gaps`: of the same walk."""

    walked: DataWalk
    gaps: Mapping[Place, Gap]

    @property
    def _arrivals(self) -> ArrivalGaps:
        return ArrivalGaps(self.walked)

    def admitted(self, source: Source) -> Reflection:
        """As old as it is by then."""
        name, drain_ns = source.name, self.walked.analysis.delays.drains.get(source.node, 0)
        found, why = age(self.walked.system, self.walked.analysis.streams, name), ""
        if found is None:
            why = f"{name} admits tuples of any age: give it a 'max_age:'"
        elif source.limit is not None:
            why = f"tuples of {name} beyond its 'max_rate' are shed"
        elif 0 < source.max_age_ns <= drain_ns and not source.timer:
            why = f"fresh tuples of {name} may be older than its 'max_age' when they are looked at"
        return Reflection({name: Path(found.parts if found else (), why)}, always=frozenset([name]))

    def travelled(self, value: Reflection, stretch: Stretch) -> Reflection:
        """Streams keep their order on links."""
        return value.after(stretch.parts)

    def released(self, unit: Unit, inputs: Sequence[Reflection]) -> Reflection:
        """Of one input or several."""
        if unit.sync is not None:
            return self._fused(unit, inputs)
        if unit.join:
            return self._joined(unit, inputs)
        if len(inputs) == 1:
            return inputs[0]
        return Reflection(
            data_paths.longest([each.own for each in inputs]),
            data_paths.longest([each.carried for each in inputs]),
            frozenset.intersection(*(each.always for each in inputs)),
            ordered=False,
        )

    def _joined(self, unit: Unit, inputs: Sequence[Reflection]) -> Reflection:
        """A lineage is complete when the last of its tuples has come, where none of them is dropped on its way. A
        tuple that another input lacks shows nothing, nor what was read for it."""
        name = unit.stages[0].operator
        lost = next((path.why for each in inputs for path in each.own.values() if path.why), "")
        waits, complete = self._arrivals.join_waits(unit), self.walked.complete(unit)
        carried = []
        for stream, each, wait_ns, all_come in zip(unit.inputs, inputs, waits, complete, strict=True):
            paths = data_paths.after(each.carried, [partner(unit, wait_ns)])
            why = lost or ("" if all_come else f"not every tuple of {stream} has one of each other input at {name}")
            carried.append(data_paths.stopped(paths, why) if why else paths)
        leaving = behind(self.walked.stages, sorted(self.walked.origins[name]))
        own = {
            one: path if one in leaving else path.stopped(f"tuples of {one} come to {name} without those that it joins")
            for one, path in data_paths.longest([each.own for each in inputs]).items()
        }
        always = frozenset[str]().union(*(each.always for each in inputs))
        return Reflection(own, data_paths.longest(carried), always, all(each.ordered for each in inputs))

    def _fused(self, unit: Unit, inputs: Sequence[Reflection]) -> Reflection:
        """A set has the latest tuple of each input by then, or the next set has."""
        sync, name = unit.sync, unit.stages[0].operator
        assert sync is not None
        found = []
        for port, each in enumerate(inputs):
            waited = self._waited(unit, port)
            if waited.ns is None:
                found.append(each.stopped(waited.why).slowest)
                continue
            what = f"{name} runs on the latest tuple of {unit.inputs[port]}"
            latest = self._latest((unit.inputs[port], unit.node), each, what)
            found.append(data_paths.after(latest, [partner(unit, waited.ns)]))
        complete = sync.within_ns is None and not sync.timeout_ns
        always = frozenset[str]().union(*(each.always for each in inputs)) if complete else frozenset[str]()
        ordered = complete and all(each.ordered for each in inputs)
        return Reflection(data_paths.longest(found), always=always, ordered=ordered)

    def _waited(self, unit: Unit, port: int) -> Gap:
        """From a tuple of that input until a set runs that has it or a later one of that input."""
        sync, name = unit.sync, unit.stages[0].operator
        assert sync is not None
        if sync.timeout_ns:
            drain_ns = self.walked.analysis.delays.drains.get(unit.node, 0)
            hold_ns = sync.timeout_ns + self.walked.charges.tick_ns + drain_ns
            flow = self.walked.flow((unit.inputs[port], unit.node))
            if sync.within_ns is None or (flow is not None and flow.curve.count(hold_ns) <= sync.keep):
                return Gap(hold_ns)
            return Gap(None, f"tuples of {unit.inputs[port]} may be replaced at {name} before they are in a set")
        if sync.within_ns is not None:
            return Gap(None, f"nothing says which tuples of {unit.inputs[port]} are in a set of {name}")
        others = [self.gaps[one, unit.node] for place, one in enumerate(unit.inputs) if place != port]
        lost = next((gap for gap in others if gap.ns is None), None)
        return lost or Gap(max(gap.ns for gap in others if gap.ns is not None))

    def _latest(self, place: Place, shown: Reflection, what: str) -> dict[str, Path]:
        """What the latest tuple of a stream shows, for which every tuple has to. Where tuples may overtake each other,
        from the next one on."""
        gap, found = self.gaps[place], {}
        for name, path in shown.slowest.items():
            if name not in shown.always:
                found[name] = path.stopped(f"{what}, which does not always reflect {name}")
            elif shown.ordered:
                found[name] = path
            elif gap.ns is None:
                found[name] = path.stopped(f"{gap.why}, so nothing says how soon the next tuple of {place[0]} comes")
            else:
                found[name] = path.after([Part("gap", f"{place[0]}, until its next tuple", gap.ns, place[1])])
        return found

    def left(self, unit: Unit, stage: int, released: Reflection, found: Mapping[Place, Reflection]) -> Reflection:
        """Where no operator up to that stage drops a tuple; with what these read."""
        operator = unit.stages[stage].operator
        if operator in self.walked.system.windows:
            return self._collected(unit, operator, released)
        result = released.after(self.walked.left_after(unit, stage).parts)
        back: dict[str, Path] = {}
        for place, each in enumerate(unit.stages[: stage + 1]):
            for side in each.sides:
                if self.walked.is_back(unit, place, side):
                    why = f"{each.operator} reads by {side.port} what comes of its own results"
                    back |= self.missing(side.stream, why).carried
                else:
                    result = self._with(result, self._read(unit, stage, place, side, found))
        only = {name: path for name, path in back.items() if name not in result.slowest}
        result = replace(result, carried={**result.carried, **only})
        why = self._arrivals.dropped(unit, stage, self.gaps)
        return result.stopped(why) if why else result

    @staticmethod
    def _with(result: Reflection, read: Reflection) -> Reflection:
        return Reflection(
            result.own,
            data_paths.longest([result.carried, read.carried]),
            result.always | read.always,
            result.ordered and read.ordered,
        )

    def _read(self, unit: Unit, stage: int, place: int, side: Side, found: Mapping[Place, Reflection]) -> Reflection:
        """What results of that stage show of a side input that an operator before it reads, or itself."""
        operator, at = unit.stages[place].operator, (side.stream, unit.node)
        shown = found[at]
        paths = self._latest(at, shown, f"{operator} reads the latest tuple of {side.stream}")
        gap = self._arrivals.released(unit, [self.gaps[one, unit.node] for one in unit.inputs])
        present = self._arrivals.is_present(unit, place, side, self.gaps)
        if not present:
            paths = data_paths.stopped(paths, f"side input {side.port} of {operator} may be older than its 'max_age'")
        if gap.ns is None:
            paths = data_paths.stopped(paths, f"{gap.why}, so nothing says how soon {operator} reads {side.stream}")
        else:
            starts = Part("gap", f"until {operator} starts on its next tuple", gap.ns, unit.node)
            paths = data_paths.after(paths, [starts, *self.walked.left_after(unit, stage).parts])
        return Reflection(carried=paths, always=shown.always if present else frozenset(), ordered=shown.ordered)

    def _collected(self, unit: Unit, add: str, released: Reflection) -> Reflection:
        """Until the window that holds it ends and is complete; another may be empty."""
        windows, closing = self.walked.system.windows[add], self.walked.analysis.streams.window_closings[add]
        gap, inside = self._arrivals.window_gap(add, self.gaps), released.slowest
        if gap.ns is None or closing.age is None:
            return Reflection(data_paths.stopped(inside, gap.why), ordered=False)
        apart_ns = max((self.walked.apart_ns((stream, unit.node)) for stream in unit.inputs), default=0)
        parts = [
            Part("window", f"until a window of {windows.name} ends", windows.hop, windows.node),
            *(part for part in closing.age.parts if part.kind != "window"),
            Part("beat", f"clocks before {windows.name} apart", apart_ns, windows.node),
        ]
        return Reflection(data_paths.after(inside, parts))

    def missing(self, stream: str, why: str) -> Reflection:
        """Of every source behind it."""
        sources = behind(self.walked.stages, [stream]) & self.walked.system.sources.keys()
        return Reflection(carried={name: Path(why=why) for name in sources}, ordered=False)


__all__ = ["Reaction", "Reflection"]
