"""Search for repairs within a time: of every candidate alone, and where none does, of two together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

from coordinator.solve.repair import ages, bisect, remedy
from coordinator.solve.repair.bisect import OverError
from coordinator.solve.repair.candidates import candidates, deadlines, younger
from coordinator.solve.repair.numbers import WAIT
from coordinator.solve.repair.remedy import Remedy
from coordinator.solve.repair.repair import Change, Repair
from coordinator.solve.repair.what_if_runs import Case, Outcome, WhatIfRuns, outcome

MOST_PAIRS = 6  # that are given


@dataclass(frozen=True)
class Findings:
    """`now`: what is without a change. `repairs`: the smallest first. `useless`: candidates that alone do not help,
    `untried`: those that there was no time for; `untried_pairs`: of how many pairs there was no time for; `undecided`:
    some attempts ended without a plan and without a proof; `hopeless`: sources whose ages on admission take a whole
    deadline, so that a repair has to change them or the deadline; `doubtful`: of those of no use, the ones whose utmost
    is not proven to be of none."""

    now: Outcome
    repairs: tuple[Repair, ...] = ()
    useless: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    attempts: int = 0
    undecided: bool = False
    hopeless: tuple[str, ...] = ()
    untried_pairs: int = 0
    doubtful: tuple[str, ...] = ()

    @property
    def exhausted(self) -> bool:
        """Whether each candidate was tried alone, to a decision."""
        return not self.untried and not self.doubtful

    def document(self) -> dict[str, Any]:
        """For --json."""
        return {
            "infeasible": list(map(str, self.now.reasons)),
            "missed": dict(self.now.missed),
            "mends": [repair.document() for repair in self.repairs],
            "useless": [f"{name} alone does not help" for name in self.useless],
            "untried": list(self.untried),
            "not_proven_useless": list(self.doubtful),
            "untried_pairs": self.untried_pairs,
            "too_old": list(self.hopeless),
            "attempts": self.attempts,
        }


def find(
    case: Case, seconds: float, tell: Callable[[str], None] = lambda _: None, known: Outcome | None = None
) -> Findings:
    """Repairs of a case; none where every output is guaranteed already. `known`: how it is without a change.

    Each candidate may take an equal part of the time that is left.
    """
    now = known or outcome(case)
    if now.holds and not now.ageless:
        return Findings(now, tuple(_waits(case, now, seconds, tell)) if now.lossy else ())
    hopeless = ages.hopeless(case)
    whole = WhatIfRuns(replace(case, choices=replace(case.choices, quick=True)), seconds, tell)
    undeclared = ages.undeclared(case)
    names = [*hopeless, *undeclared]
    loose = ages.aged(whole.case, dict.fromkeys(hopeless, 0))
    start = outcome(whole.limited(loose)) if hopeless else now
    first = _search(whole, undeclared if hopeless else ())
    if hopeless:
        first.aged(hopeless, share=1 if start.holds else 2)
    elif start.holds:
        first.run([("max_age", partial(_declared_ages, whole, start, names))])
    searches = [first]
    if not (start.holds and first.repairs):
        rest = _search(whole, names)
        begin = outcome(rest.trials.limited(rest.trials.case)) if names else now
        if begin.holds and rest.age is not None:
            rest.repairs.append(Repair((rest.age,), settled=False))
        else:
            rest.alone(begin)
        searches.append(rest)
    return _findings(now, searches, hopeless)


def _search(whole: WhatIfRuns, names: Sequence[str]) -> _Search:
    """With an age of those sources that is declared with each repair."""
    if not names:
        return _Search(whole)
    age = ages.modest(whole.case, names)
    return _Search(whole.of(age.case), age)


def _findings(now: Outcome, searches: Sequence[_Search], hopeless: Sequence[str]) -> Findings:
    runs = {id(search.trials): search.trials for search in searches}.values()
    return Findings(
        now,
        tuple(sorted((repair for search in searches for repair in search.repairs), key=lambda repair: repair.size)),
        tuple(dict.fromkeys(name for search in searches for name in search.useless)),
        tuple(dict.fromkeys(name for search in searches for name in search.untried)),
        sum(trials.count for trials in runs),
        any(trials.undecided for trials in runs),
        tuple(hopeless),
        untried_pairs=sum(search.untried_pairs for search in searches),
        doubtful=tuple(dict.fromkeys(name for search in searches for name in search.doubtful)),
    )


def _waits(case: Case, now: Outcome, seconds: float, tell: Callable[[str], None]) -> Iterator[Repair]:
    """Of a plan that holds: for how long windows have to wait so that none is given up while nothing is lost."""
    trials = WhatIfRuns(replace(case, choices=replace(case.choices, quick=True)), seconds, tell)
    for one in WAIT.remedies(case):

        def sure(value: int, it: Remedy = one) -> bool:
            found = remedy.outcome(trials, [(it, value)])
            return found.holds and found.lossy < now.lossy

        with suppress(OverError):
            if found := bisect.least(sure, one.start, one.limits, one.near):
                yield Repair((one.change(case, found.value),), found.settled)


def _declared_ages(trials: WhatIfRuns, start: Outcome, names: Sequence[str]) -> Repair | None:
    """Of a plan that holds but for ages that are not declared."""
    assert start.plan is not None  # it holds
    found = ages.declare_ages(trials, trials.case, start.plan, names)
    return None if found is None else Repair((found,))


Look = Callable[[], Repair | None]


class _Search:
    """Repairs found so far. `age`: what is declared with every repair, and the case of `trials` has already."""

    def __init__(self, trials: WhatIfRuns, age: Change | None = None) -> None:
        self.trials, self.age = trials, age
        self.repairs: list[Repair] = []
        self.useless: list[str] = []
        self.untried: list[str] = []
        self.untried_pairs = 0
        self.doubtful: list[str] = []

    def alone(self, start: Outcome) -> None:
        """Each candidate; then deadlines together, and two of any kind."""
        declared = [edit.name for edit in self.age.edits] if self.age is not None else []
        taken = {f"{direction} 'max_age' of {name}" for name in declared for direction in ("less", "more")}
        found = [one for one in candidates(self.trials.case, start.missed, start.plan) if one.name not in taken]
        self.run([(one.name, partial(remedy.least, self.trials, one)) for one in found])
        asked = deadlines(self.trials.case, start.missed)
        if len(asked) > 1 and not any(repair.way == "deadline" for repair in self.repairs):
            self.trials.slice(2)
            self._look("deadlines together", partial(remedy.together, self.trials, asked))
        if not self.repairs:
            self._pairs([one for one in found if not one.alone])

    def aged(self, names: Sequence[str], share: int) -> None:
        """Deadlines and the ages of those sources, each alone and all together, in a share of the time that is left:
        nothing else helps alone where an age takes a whole deadline."""
        case = self.trials.case
        asked = deadlines(case, {})
        shorter = younger(case, names)
        jobs = [(one.name, partial(remedy.least, self.trials, one)) for one in (*shorter, *asked)]
        for what, several in (("ages", shorter), ("deadlines", asked)):
            if len(several) > 1:
                jobs.append((f"{what} together", partial(remedy.together, self.trials, several)))
        self.run(jobs, self.trials.left_s * (share - 1) / share)

    def run(self, jobs: Sequence[tuple[str, Look]], spare_s: float = 0.0) -> None:
        """Twice: what was cut short goes on where it was with what the others have left. `spare_s`: seconds that are
        left for others."""
        self.untried = [name for name, _ in jobs]
        looks = dict(jobs)
        for last_round in (False, True):
            names, self.untried = self.untried, []
            for position, name in enumerate(names):
                self.trials.slice(len(names) - position, spare_s)
                found = self._look(name, looks[name], last_round)
                if found is None:
                    self.untried.append(name)
                elif not found:
                    self.useless.append(name)

    def _look(self, name: str, look: Look, last_round: bool = True) -> bool | None:
        """Whether it helps. None: not known in time, or not settled in a round that is not the last."""
        try:
            found = look()
            if found is None:
                if self.trials.doubt:
                    self.doubtful.append(name or "two together")
                return False
            if not found.settled and not last_round:
                return None
            self.repairs.append(self._with_ages(found))
        except OverError:
            return None
        return True

    def _pairs(self, found: Sequence[Remedy]) -> None:
        """Two together, those first that alone leave least missed."""
        pairs = sorted(
            combinations(enumerate(found), 2),
            key=lambda pair: (sum(self._left(one) for _, one in pair), sum(position for position, _ in pair)),
        )
        several: list[tuple[Sequence[Remedy], Repair]] = []
        for count, ((_, one), (_, other)) in enumerate(pairs):
            if len(self.repairs) >= MOST_PAIRS:
                break
            self.trials.slice(1)
            if self.trials.left_s <= 0 or self._look("", partial(self._together, (one, other), several)) is None:
                self.untried_pairs = len(pairs) - count
                break
        self._balance(several)

    def _together(self, pair: Sequence[Remedy], several: list[tuple[Sequence[Remedy], Repair]]) -> Repair | None:
        found = remedy.together(self.trials, pair)
        if found is not None:
            several.append((pair, found))
        return found

    def _balance(self, several: Sequence[tuple[Sequence[Remedy], Repair]]) -> None:
        """Pairs so far change one as little as the other one at its utmost allows, and then that one. The time that is
        left is for the least of both together."""
        least: list[Repair] = []
        for position, (pair, found) in enumerate(several):
            self.trials.slice(len(several) - position)
            least.append(remedy.balanced(self.trials, pair, found))
        self.repairs = [self._with_ages(one) for one in least]

    def _left(self, one: Remedy) -> int:
        """How many outputs its utmost leaves missed, as far as is known; without a plan, all and one."""
        known = self.trials.known(one.change(self.trials.case, one.utmost).exact)
        every = len(self.trials.case.query.outputs) + 1
        return every if known is None or known.plan is None else len(known.missed)

    def _with_ages(self, repair: Repair) -> Repair:
        """The repair, and the ages on admission that it leaves room for, at least those that it was found with."""
        if self.age is None:
            return repair
        names = [edit.name for edit in self.age.edits]
        exact = ", ".join(change.exact for change in repair.changes)
        also = replace(self.age, case=repair.case)
        with suppress(OverError):
            fresh = ages.aged(repair.case, dict.fromkeys(names, 0))
            any_age = self.trials.outcome(fresh, f"{exact}, any age")
            if any_age.holds and not any_age.ageless:
                return repair
            if any_age.plan is not None:
                also = ages.declare_ages(self.trials, fresh, any_age.plan, names, exact) or also
        return replace(repair, changes=(*repair.changes, also))
