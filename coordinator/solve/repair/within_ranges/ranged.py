"""Candidates within declared ranges: the remedies of each key that `may_change:` names, bounded by its range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from coordinator.errors import BadInputError, MistakeError, Problem
from coordinator.solve.repair.case_parts import SOURCES
from coordinator.solve.repair.numbers import NUMBERS, TIME, Bounds, Number
from coordinator.solve.repair.remedy import Remedy
from coordinator.solve.repair.repair import Change, Edit
from coordinator.solve.repair.what_if_runs import Case
from coordinator.solve.repair.within_ranges.ranged_numbers import RANGED
from coordinator.spec.costs import MEASURED
from coordinator.spec.files import declared_ranges
from coordinator.spec.files.declared_ranges import Range
from coordinator.spec.query import Source
from protos.plan.operators import ADD

COSTS = frozenset({"cost", "window.close"})


@dataclass(frozen=True)
class Adjustable:
    """A value that may change. `remedies`: one for each direction that may help; none where its range has no value in
    such a direction."""

    range: Range
    remedies: tuple[Remedy, ...]


def adjustables(case: Case) -> list[Adjustable]:
    """Of every declared range, in the order of the files; of a part that several queries share, where each of them
    declares one, what all of them allow. Raises BadInputError where a part lacks the value, has it elsewhere than in
    its range, or takes it from a measurement."""
    problems, found = [], []
    for key, several in _by_key(case).items():
        low, high = max(one.low for one in several), min(one.high for one in several)
        one = replace(several[0], low=low, high=high)
        try:
            _check(case, several)
        except MistakeError as error:
            mistake = replace(error.mistake.within(f"{declared_ranges.SECTION}.{key}", " "), subject=key)
            problems.append(Problem(mistake, one.file, one.line))
            continue
        if len({each.of for each in several}) == len(_owners(case, one)):
            found.append(Adjustable(one, _choices(case, one)))
    if problems:
        raise BadInputError(problems)
    return found


def _by_key(case: Case) -> Mapping[str, list[Range]]:
    found: dict[str, list[Range]] = {}
    for one in (*case.query.ranges, *case.cluster.ranges):
        found.setdefault(one.key, []).append(one)
    return found


def shared(case: Case) -> list[str]:
    """Keys with a range that a query sharing the part does not declare, and so stay as they are."""
    return [
        key
        for key, several in _by_key(case).items()
        if len({each.of for each in several}) < len(_owners(case, several[0]))
    ]


def _owners(case: Case, one: Range) -> Sequence[str]:
    """The files that have the part, by their queries."""
    if not one.of or not case.query.members:
        return [one.of]
    parts = {name: {"sources": part.sources, "operators": part.operators} for name, part in case.query.members.items()}
    return [name for name, part in parts.items() if one.name in part.get(one.section, ())] or [one.of]


def _numbers(one: Range) -> list[Number[Any]]:
    known: list[Number[Any]] = [*NUMBERS, *RANGED]
    return [each for each in known if (each.section.name, each.range_key) == (one.section, one.field)]


def _check(case: Case, several: Sequence[Range]) -> None:
    """Raises MistakeError."""
    one = several[0]
    if one.field in COSTS and _is_measured(case, one):
        raise MistakeError("measured_cost", "is of a cost that is measured", "remove it, or plan without --costs")
    known = [(each, value) for each in _numbers(one) if (value := each.value(case, one.name)) is not None]
    if not known:
        if _declares_age(case, one):
            return
        mend = "give it the value, or remove the range"
        raise MistakeError("nothing_to_change", f"is of a value that '{one.name}' does not have", mend)
    number, value = known[0]
    for each in several:
        if not each.low <= value <= each.high:
            raise declared_ranges.outside(each, number.unit.show(value))


def _is_measured(case: Case, one: Range) -> bool:
    costs = {each.name: each.cost_from for each in case.query.producers}
    added = f"{one.name}{ADD}"
    found = costs.get(added if one.field == "cost" and added in costs else one.name)
    return found is not None and found.kind == MEASURED


def _choices(case: Case, one: Range) -> tuple[Remedy, ...]:
    if _declares_age(case, one):
        return (_declared_age(one),)
    bounds = Bounds(one.low, one.high)
    return tuple(remedy for number in _numbers(one) for remedy in number.remedies(case, [one.name], bounds))


def _declares_age(case: Case, one: Range) -> bool:
    """Whether the range is of an age on admission that the source does not declare yet."""
    sources: Sequence[Source] = SOURCES.of(case).get(one.name, ()) if one.section == "sources" else ()
    return one.field == "max_age" and any(not source.max_age_ns for source in sources)


def _declared_age(one: Range) -> Remedy:
    """An age where there is none: the largest of the range is the least change."""

    def change(case: Case, value: int) -> Change:
        step = TIME.step(value)
        after = value if value in (one.low, one.high) else max(one.low, value // step * step)
        text = f"admit only tuples of {one.name} that are at most {TIME.show(after)} old (max_age), instead of any age"
        edit = Edit(one.section, one.name, one.field, TIME.write(after))
        changed = SOURCES.changed(case, one.name, lambda source: replace(source, max_age_ns=after))
        return Change("age", text, changed, (edit,), (Fraction(one.high, after),))

    limits = tuple(dict.fromkeys((one.high, max(one.low, 1))))
    near = 1000  # parts of a value that are near
    return Remedy(f"a 'max_age' of {one.name}", change, one.high + 1, limits, lambda value: max(1, value // near))


__all__ = ["Adjustable", "adjustables", "shared"]
