"""The least change within declared ranges that makes every output guaranteed ([Q] 4.4, within what its user allows).

Fewest values first, and of as many the least sum of the logarithms of their factors, as repairs compare. Whether some
values suffice is known from one plan with each of them at the end of its range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from coordinator.solve.repair import bisect, remedy, repair_search
from coordinator.solve.repair.bisect import Found, OverError
from coordinator.solve.repair.remedy import Remedy
from coordinator.solve.repair.repair import Repair
from coordinator.solve.repair.what_if_runs import Case, Outcome, WhatIfRuns, outcome
from coordinator.solve.repair.within_ranges.least_sum import Axis, least_sum
from coordinator.solve.repair.within_ranges.ranged import Adjustable

LEAST_S = 0.2  # for the first plan, which may take a PART_FIRST of the time
PART_FIRST = 1 / 3
PART_WITHIN = 0.7  # of what is left, at most, to see whether anything within the ranges suffices


@dataclass(frozen=True)
class Adaptation:
    """`now`: how it is without a change; `within`: the least change within the ranges, None: none was found, or none is
    needed; `decided`: each attempt was, so that none within the ranges helps where none was found; `outside`: the
    nearest changes that leave the ranges, the smallest first."""

    now: Outcome
    within: Repair | None = None
    decided: bool = True
    outside: tuple[Repair, ...] = ()
    attempts: int = 0

    @property
    def is_guaranteed(self) -> bool:
        """Whether nothing has to change."""
        return guaranteed(self.now)

    def document(self) -> dict[str, Any]:
        """For --json."""
        return {
            "guaranteed": self.is_guaranteed,
            "infeasible": list(map(str, self.now.reasons)),
            "missed": {**self.now.missed, **dict.fromkeys(self.now.ageless, "a source admits tuples of any age")},
            "change": self.within.document() if self.within is not None else None,
            "decided": self.decided,
            "outside": [one.document() for one in self.outside],
            "attempts": self.attempts,
        }


def guaranteed(found: Outcome) -> bool:
    """Whether every output is, from a tuple's origin on."""
    return found.holds and not found.ageless


def adapt(
    case: Case, values: Sequence[Adjustable], seconds: float, tell: Callable[[str], None] = lambda _: None
) -> Adaptation:
    """What to change. `values`: that may; `seconds`: for all of it, the first plan as well."""
    trials = WhatIfRuns(replace(case, choices=replace(case.choices, quick=True)), seconds, tell)
    now = outcome(_limited(case, seconds))
    if guaranteed(now):
        return Adaptation(now)
    search = _Search(trials, [one for one in values if one.remedies])
    found = search.run()
    if found is not None:
        if now.undecided:  # the changed files are planned without this limit, so those that are there are as well
            now = outcome(case)
        return Adaptation(now, None if guaranteed(now) else found, attempts=trials.count)
    decided = not search.is_over and not search.is_doubtful
    outside = _outside(case, values, now, trials.left_s, tell) if trials.left_s > 0 else ()
    return Adaptation(now, None, decided, outside, trials.count)


def _limited(case: Case, seconds: float) -> Case:
    most_s = max(LEAST_S, min(seconds * PART_FIRST, case.choices.limits.seconds))
    limits = replace(case.choices.limits, seconds=most_s)
    return replace(case, choices=replace(case.choices, limits=limits, quick=True))


def _outside(
    case: Case, values: Sequence[Adjustable], now: Outcome, seconds: float, tell: Callable[[str], None]
) -> tuple[Repair, ...]:
    """The smallest repair of any kind, and the smallest that changes only values with a range, beyond it."""
    found = repair_search.find(case, seconds, tell, now).repairs
    ranged = {one.range.key for one in values}
    own = [one for one in found if one.edits and {edit.key for edit in one.edits} <= ranged][:1]
    return (*own, *(one for one in found[:1] if one not in own))


class _Search:
    """Of the values that may change. `is_over`: the time did not do for all of it; `is_doubtful`: an attempt ended
    without a plan and without a proof that there is none."""

    def __init__(self, trials: WhatIfRuns, values: Sequence[Adjustable]) -> None:
        self._trials, self._values = trials, values
        self.is_over = False
        self.is_doubtful = False

    def run(self) -> Repair | None:
        """The least change; None: none was found."""
        self._trials.slice(1, self._trials.left_s * (1 - PART_WITHIN))
        try:
            for count in range(1, 1 + min(2, len(self._values))):
                if (found := self._of(self._subsets(count))) is not None:
                    return found
            if len(self._values) > 2:
                return self._of_many()
        except OverError:
            self.is_over = True
        return None

    def _of_many(self) -> Repair | None:
        """Of three values or more: none suffice where all do not. Raises OverError."""
        whole = next((one for one in self._choices(self._values) if self._suffice(one)), None)
        if whole is None:
            return None
        few = self._without_needless(whole)
        for count in range(3, len(few)):
            if (found := self._of(self._subsets(count))) is not None:
                return found
        return self._of(self._subsets(len(few)), few)

    def _without_needless(self, remedies: Sequence[Remedy]) -> tuple[Remedy, ...]:
        """Remedies that suffice, none of which can be left out. Raises OverError."""
        left = tuple(remedies)
        for one in remedies:
            fewer = tuple(each for each in left if each is not one)
            if self._suffice(fewer):
                left = fewer
        return left

    def _subsets(self, count: int) -> Iterator[tuple[Remedy, ...]]:
        """So many of the values, each in every direction that may help."""
        for several in combinations(self._values, count):
            yield from self._choices(several)

    @staticmethod
    def _choices(values: Iterable[Adjustable]) -> Iterator[tuple[Remedy, ...]]:
        yield from product(*(one.remedies for one in values))

    def _of(self, subsets: Iterable[tuple[Remedy, ...]], known: tuple[Remedy, ...] = ()) -> Repair | None:
        """The least change of any of these sets; None: none suffices. `known`: one that does. Raises OverError where no
        set is known to."""
        enough: list[tuple[Remedy, ...]] = [known] if known else []
        try:
            for one in subsets:
                if one != known and self._suffice(one):
                    enough.append(one)
        except OverError:
            if not enough:
                raise
            self.is_over = True
        best: Repair | None = None
        for position, one in enumerate(enough):
            self._trials.slice(len(enough) - position)
            found = self._least(one, best)
            if found is not None and (best is None or found.size < best.size):
                best = found
        return replace(best, settled=best.settled and not self.is_over) if best is not None else None

    def _least(self, remedies: Sequence[Remedy], best: Repair | None) -> Repair | None:
        """The least change of a set that suffices, of which no part does; None: not less than the best of the sets
        before."""

        def holds(point: tuple[int, ...]) -> bool:
            return self._holds(list(zip(remedies, point, strict=True)))

        def size(point: tuple[int, ...]) -> float:
            return self._repair(remedies, point).size

        point, settled = tuple(one.utmost for one in remedies), True
        if len(remedies) > 1:
            axes = [Axis(one.start, one.utmost, one.near) for one in remedies]
            found = least_sum(holds, size, axes, best.size if best is not None else float("inf"))
            if found is None:
                return None
            point, settled = found.point, found.settled
        try:
            for i in range(len(remedies)):
                along = self._least_along(remedies, point, i)
                point = (*point[:i], along.value, *point[i + 1 :])
                settled &= along.settled
        except OverError:
            settled = False
        self.is_over |= not settled
        return replace(self._repair(remedies, point), settled=settled)

    def _least_along(self, remedies: Sequence[Remedy], point: tuple[int, ...], i: int) -> Found:
        """The least of one of them, where the others stay as they are in a point that holds. Raises OverError."""
        one = remedies[i]

        def holds(value: int) -> bool:
            return self._holds(list(zip(remedies, (*point[:i], value, *point[i + 1 :]), strict=True)))

        limits = [limit for limit in one.limits if abs(limit - one.start) < abs(point[i] - one.start)]
        return bisect.least(holds, one.start, [*limits, point[i]], one.near) or Found(point[i], True)

    def _repair(self, remedies: Sequence[Remedy], point: Sequence[int]) -> Repair:
        return Repair(tuple(remedy.changes(self._trials.case, list(zip(remedies, point, strict=True)))))

    def _suffice(self, remedies: Sequence[Remedy]) -> bool:
        """Whether the set does where each is at its utmost. Raises OverError."""
        return self._holds([(one, one.utmost) for one in remedies])

    def _holds(self, values: Sequence[tuple[Remedy, int]]) -> bool:
        found = remedy.outcome(self._trials, values)
        self.is_doubtful |= found.undecided
        return guaranteed(found)


__all__ = ["Adaptation", "adapt", "guaranteed"]
