"""Remedies: each is one thing that may be changed, with a scale from as it is to the utmost, and is tried by planning.

`least` finds the least of one that holds; `together` some of several that hold together, `balanced` the least of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from coordinator.solve.repair import bisect
from coordinator.solve.repair.repair import Change, Repair
from coordinator.solve.repair.what_if_runs import Case, Outcome, WhatIfRuns
from coordinator.solve.repair.within_ranges.least_sum import Axis, Point, least_sum, tightened


@dataclass(frozen=True)
class Remedy:
    """`change`: a case with it at a value of its scale; `start`: as it is; `limits`: away from there, a likely value
    first and the utmost last; `near`: how close to a value that does not hold is close enough, by the value. `alone`:
    it is not tried together with others, of which it would be one of very many."""

    name: str
    change: Callable[[Case, int], Change]
    start: int = 0
    limits: tuple[int, ...] = (1,)
    near: Callable[[int], int] = lambda _: 1
    alone: bool = False

    @property
    def utmost(self) -> int:
        """The end of its scale."""
        return self.limits[-1]


def least(trials: WhatIfRuns, remedy: Remedy) -> Repair | None:
    """The least of a remedy that holds. None: not even its utmost does. Raises OverError."""

    def holds(value: int) -> bool:
        return outcome(trials, [(remedy, value)]).holds

    found = bisect.least(holds, remedy.start, remedy.limits, remedy.near)
    return None if found is None else Repair((remedy.change(trials.case, found.value),), found.settled)


def together(trials: WhatIfRuns, remedies: Sequence[Remedy]) -> Repair | None:
    """One after the other the least that the others, further ones at their utmost, leave. None: they do not hold at
    their utmost. Raises OverError where there was no time to know."""
    values = {remedy.name: remedy.utmost for remedy in remedies}
    settled = True

    def holds(remedy: Remedy, value: int) -> bool:
        return outcome(trials, [(one, value if one is remedy else values[one.name]) for one in remedies]).holds

    if not outcome(trials, [(one, one.utmost) for one in remedies]).holds:
        return None
    for remedy in remedies:
        try:
            if holds(remedy, remedy.start):
                values[remedy.name] = remedy.start
                continue
            found = bisect.least(lambda value, it=remedy: holds(it, value), remedy.start, remedy.limits, remedy.near)  # type: ignore[misc]
        except bisect.OverError:
            settled = False
            continue
        if found is not None:
            values[remedy.name] = found.value
            settled &= found.settled
    needed = [(remedy, values[remedy.name]) for remedy in remedies if values[remedy.name] != remedy.start]
    return Repair(tuple(changes(trials.case, needed)), settled)


def balanced(trials: WhatIfRuns, remedies: Sequence[Remedy], found: Repair) -> Repair:
    """The least change of all of them, where it is less than that of one that is known, as far as there is time."""

    def repair(point: Point) -> Repair:
        return Repair(tuple(changes(trials.case, list(zip(remedies, point, strict=True)))))

    def holds(point: Point) -> bool:
        return outcome(trials, list(zip(remedies, point, strict=True))).holds

    axes = [Axis(one.start, one.utmost, one.near) for one in remedies]
    least = least_sum(holds, lambda point: repair(point).size, axes, found.size)
    if least is None or repair(least.point).size >= found.size:
        return found
    nearest = tightened(holds, axes, least.point)
    return replace(repair(nearest.point), settled=least.settled and nearest.settled)


def outcome(trials: WhatIfRuns, values: Sequence[tuple[Remedy, int]]) -> Outcome:
    """The plan with remedies at these values, one after the other. Raises OverError."""
    made = changes(trials.case, values)
    return trials.outcome(made[-1].case if made else trials.case, ", ".join(change.exact for change in made))


def changes(case: Case, values: Sequence[tuple[Remedy, int]]) -> list[Change]:
    """Each made in what those before it made of the case."""
    found: list[Change] = []
    for remedy, value in values:
        if value != remedy.start:
            found.append(remedy.change(found[-1].case if found else case, value))
    return found
