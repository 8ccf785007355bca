"""What-if runs: plans a changed query and cluster, and tells whether every output is guaranteed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from coordinator.errors import InfeasibleError, Mistake, OutOfTimeError
from coordinator.model.choices import Choices
from coordinator.plan.deadline_breakdown import ADMITTED, guarantee_status
from coordinator.solve import planner
from coordinator.solve.repair.bisect import OverError
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Query
from protos.plan_document import Plan

LONGEST_ATTEMPT_S = 5.0


@dataclass(frozen=True)
class Case:
    """What is planned. `types`: of every stream."""

    query: Query
    cluster: Cluster
    types: Mapping[str, str]
    choices: Choices


@dataclass(frozen=True)
class Outcome:
    """`plan` None: infeasible, for these `reasons`, or none was found in time. `missed`: outputs that are not
    guaranteed, and why; `ageless`: those that are from admission on only, since a source admits tuples of any age;
    `undecided`: no plan that holds was found, and it is not proven that there is none; `lossy`: for how many reasons
    results may be left out, over all outputs."""

    plan: Plan | None
    reasons: tuple[Mistake, ...] = ()
    missed: Mapping[str, str] = field(default_factory=dict)
    ageless: tuple[str, ...] = ()
    undecided: bool = False
    lossy: int = 0

    @property
    def holds(self) -> bool:
        """Whether every output is within its deadline, at least from admission on."""
        return self.plan is not None and not self.missed


class WhatIfRuns:
    """Plans again and again until its time is over. `tell` is given a line before each attempt."""

    def __init__(self, case: Case, seconds: float, tell: Callable[[str], None] = lambda _: None) -> None:
        self.case = case
        self.count = 0
        self.undecided = False
        self.doubt = False  # of the last
        self._tell = tell
        self._known: dict[str, Outcome] = {}
        self._until = time.monotonic() + seconds
        self._slice = self._until

    @property
    def left_s(self) -> float:
        """Seconds left of all."""
        return self._until - time.monotonic()

    def of(self, case: Case) -> WhatIfRuns:
        """Of another case, in the time that is left."""
        return WhatIfRuns(case, self.left_s, self._tell)

    def slice(self, parts: int, spare_s: float = 0.0) -> None:
        """What follows may take one of so many equal parts of the time left, but for spare seconds."""
        self._slice = time.monotonic() + max(0.0, self.left_s - spare_s) / max(1, parts)

    def outcome(self, case: Case, what: str) -> Outcome:
        """One plan more, or what is known of it: `what` says exactly what is changed. Raises OverError where no time is
        left for it."""
        if what in self._known:
            self.doubt = self._known[what].undecided
            return self._known[what]
        left_s = self._slice - time.monotonic()
        if left_s <= 0:
            raise OverError
        self.count += 1
        self._tell(what)
        found = outcome(self.limited(case, left_s))
        self.undecided |= found.undecided
        self.doubt = found.undecided
        self._known[what] = found
        return found

    def known(self, what: str) -> Outcome | None:
        """What is known of a plan with that change; None: it was not made."""
        return self._known.get(what)

    def limited(self, case: Case, left_s: float = LONGEST_ATTEMPT_S) -> Case:
        """The case with the time of one attempt."""
        limits = case.choices.limits
        seconds = min(LONGEST_ATTEMPT_S, max(0.2, left_s), limits.seconds)
        return replace(case, choices=replace(case.choices, limits=replace(limits, seconds=seconds)))

    def holds(self, case: Case, what: str) -> bool:
        """Whether it does. Raises OverError."""
        return self.outcome(case, what).holds


def outcome(case: Case) -> Outcome:
    """The plan of a case and what its outputs are promised."""
    try:
        made = planner.plan(case.query, case.cluster, case.types, case.choices)
    except InfeasibleError as error:
        return Outcome(None, tuple(error.reasons))
    except OutOfTimeError as error:
        return Outcome(None, tuple(error.mistakes), undecided=True)
    return promised_outcome(made)


def promised_outcome(plan: Plan) -> Outcome:
    """What a plan promises."""
    missed: dict[str, str] = {}
    ageless: list[str] = []
    for name, claim in plan.guarantee.items():
        if claim.holds:
            continue
        if guarantee_status(claim) == ADMITTED:
            ageless.append(name)
        else:
            missed[name] = claim.why
    lossy = sum(len(claim.missing) for claim in plan.guarantee.values())
    undecided = bool(missed) and plan.model == "sound" and not plan.solver.why
    return Outcome(plan, missed=missed, ageless=tuple(ageless), undecided=undecided, lossy=lossy)
