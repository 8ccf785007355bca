"""Paths from sources to outputs through the units of a candidate: lengths under sub-deadlines, and sub-deadlines that
fit.

(5) of [P] in units: along every way the sub-deadlines add up to at most the output's deadline. Of a unit that is left
before its end, the part that stands in proportion to cost counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from coordinator.guarantee.system import Output, System, Unit


@dataclass(frozen=True)
class UnitPath:
    """Everything behind one output. `units`: number to what is used of it (a share of 1), in topological order;
    `before`: units that feed it, each with the share used until that exit; `end`: unit and share that deliver."""

    output: str
    deadline_ns: int
    units: tuple[int, ...]
    before: Mapping[int, tuple[tuple[int, Fraction], ...]]
    entry_ns: Mapping[int, int]
    fixed_ns: int
    end: tuple[int, Fraction]

    def length(self, due_ns: Mapping[int, int]) -> Fraction:
        """The longest sum of sub-deadlines from a source to the output, in ns."""
        reach: dict[int, Fraction] = {}
        for number in self.units:
            reach[number] = max(
                (reach[one] + due_ns[one] * share for one, share in self.before[number]), default=Fraction(0)
            )
        return reach[self.end[0]] + due_ns[self.end[0]] * self.end[1]


def unit_paths(system: System, held_ns: Mapping[str, int] | None = None) -> list[UnitPath]:
    """One per output. `fixed_ns`: the most that age and links take on any way to it; `held_ns`: sub-deadlines of
    operators that are settled, by which a unit of these is shared out."""
    held_ns = held_ns or {}
    made = {stage.operator: unit for unit in system.units.values() for stage in unit.stages}
    found = []
    for name, output in system.outputs.items():
        last = made[output.stream]
        behind = _behind(last, made, system)
        before = {
            number: tuple(
                (made[stream].id, share_until(made[stream], stream, held_ns))
                for stream in system.units[number].inputs
                if stream in made
            )
            for number in behind
        }
        fixed: dict[int, int] = {}
        gaps: dict[int, int] = {}
        for number in behind:
            unit = system.units[number]
            gap_ns = [gaps[made[one].id] if one in made else system.sources[one].gap_ns for one in unit.inputs]
            gaps[number] = max(gap_ns)
            fixed[number] = max(
                _links_ns(system, stream, unit.node)
                + (fixed[made[stream].id] if stream in made else system.sources[stream].max_age_ns)
                + _until_ns(system, stream)
                for stream in unit.inputs
            ) + _partner_ns(unit, gap_ns)
        fixed_ns = fixed[last.id] + _links_ns(system, output.stream, output.node)
        end = (last.id, share_until(last, output.stream, held_ns))
        found.append(UnitPath(name, _due_ns(system, output), behind, before, fixed, fixed_ns, end))
    return found


def _due_ns(system: System, output: Output) -> int:
    """What the ways of an output have to fit into: its deadline, or what it asks from admission on, after the greatest
    age."""
    admitted_ns = output.qos.admitted_ns
    if admitted_ns is None:
        return output.deadline_ns
    oldest_ns = max(source.max_age_ns for source in system.sources.values())
    return max(1, min(output.deadline_ns, admitted_ns + oldest_ns))


def _until_ns(system: System, stream: str) -> int:
    """What windows take beside their tuples: until their end where a result counts from before it, and until every
    source has said that it has passed."""
    if stream not in system.windows:
        return 0
    windows = system.windows[stream]
    beats_ns = max((system.sources[name].beat_ns for name in windows.sources if name in system.sources), default=0)
    return windows.after_ns + (0 if windows.kind == "count" else beats_ns)


def _partner_ns(unit: Unit, gap_ns: Sequence[int]) -> int:
    """What a fusion waits for its other inputs, roughly: until its timeout, or as long as stamps are apart, or until
    all have come again. `gap_ns`: how soon each does, 0 where nothing says so: the slowest waits for the second."""
    if unit.sync is None or unit.sync.each:
        return 0
    return unit.sync.timeout_ns or unit.sync.within_ns or sorted(gap_ns)[-2:][0]


def share_until(unit: Unit, stream: str, held_ns: Mapping[str, int]) -> Fraction:
    """The share of a unit's cost, or of its settled sub-deadline, up to the operator whose stream leaves it there."""
    held = unit.stages[0].operator in held_ns
    costs = [held_ns[stage.operator] if held else stage.cost_ns for stage in unit.stages]
    return Fraction(sum(costs[: unit.exits[stream] + 1]), sum(costs))


def _behind(last: Unit, made: Mapping[str, Unit], system: System) -> tuple[int, ...]:
    """The units that lead to one, itself included, in topological order."""
    needed, waiting = {last.id}, [last]
    while waiting:
        for stream in waiting.pop().inputs:
            if stream in made and made[stream].id not in needed:
                needed.add(made[stream].id)
                waiting.append(made[stream])
    return tuple(number for number in system.order if number in needed)


def _links_ns(system: System, stream: str, node: str) -> int:
    """The latency of the hops that bring a stream to a node."""
    total, at = 0, node
    entry = {end: start for start, end in system.hops.get(stream, ())}
    for _ in range(len(entry)):
        if at not in entry:
            break
        total += system.links[entry[at], at].latency_ns
        at = entry[at]
    return total


def fitted(
    system: System,
    every: list[UnitPath],
    due_ns: Mapping[int, int | Fraction],
    fixed_ns: Mapping[int, int] | None = None,
) -> dict[int, int]:
    """Sub-deadlines in whole ns that hold (5): those of a way that is too long are made shorter in proportion; at
    least 1 ns per operator. `fixed_ns`: of units that keep theirs, also where that leaves the others no room."""
    fixed = dict(fixed_ns or {})
    wanted = {number: max(len(system.units[number].stages), int(due)) for number, due in due_ns.items()} | fixed
    factor: dict[int, Fraction] = {}
    for way in every:
        if way.length(wanted) <= way.deadline_ns:
            continue
        kept = way.length({number: fixed.get(number, 0) for number in wanted}) if fixed else Fraction(0)
        length = way.length({number: 0 if number in fixed else due for number, due in wanted.items()})
        share = max(Fraction(0), way.deadline_ns - kept) / length if length else Fraction(1)
        for number in way.units:
            if number not in fixed:
                factor[number] = min(factor.get(number, share), share)
    return {
        number: max(len(system.units[number].stages), int(due * factor[number])) if number in factor else due
        for number, due in wanted.items()
    }
