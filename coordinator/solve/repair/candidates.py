"""Candidates for a repair: what may be changed, every key that may be why an output is not guaranteed, likely ones
first."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from coordinator.solve.repair import numbers, relaxation, structure
from coordinator.solve.repair.remedy import Remedy
from coordinator.solve.repair.what_if_runs import Case
from protos.plan_document import Plan


def candidates(case: Case, missed: Mapping[str, str], plan: Plan | None) -> list[Remedy]:
    """What changes no number before what does, what is asked before what is there, what is declared of the work last.
    `plan`: of the case without a change, None: there is none."""
    return [
        *structure.policy(case),
        *structure.places(case, missed),
        *structure.streams(case),
        *deadlines(case, missed),
        *relaxation.speeds(case),
        *(remedy for number in numbers.WISHES for remedy in number.remedies(case)),
        *(remedy for number in numbers.CAPACITY for remedy in number.remedies(case)),
        *structure.links(case),
        *relaxation.inputs(case),
        *(remedy for number in numbers.ARRIVING for remedy in number.remedies(case)),
        *structure.timeouts(case),
        *structure.windows(case),
        *numbers.side_ages(case),
        *structure.outputs_of_operators(case),
        *(remedy for number in numbers.WORK for remedy in number.remedies(case)),
        *relaxation.charges(case),
        *structure.wishes(case),
        *structure.moves(case, plan),
        *structure.deliveries(case),
    ]


def deadlines(case: Case, missed: Mapping[str, str]) -> list[Remedy]:
    """Of missed outputs; without a plan, of all."""
    return numbers.DEADLINE.remedies(case, missed)


def younger(case: Case, names: Collection[str]) -> list[Remedy]:
    """Shorter ages on admission of those sources."""
    return [
        one
        for number in numbers.ARRIVING
        if (number.key, number.direction) == ("max_age", "less")
        for one in number.remedies(case, names)
    ]


__all__ = ["candidates", "deadlines", "younger"]
