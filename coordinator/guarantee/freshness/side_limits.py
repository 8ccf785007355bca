"""Limits on side inputs with which an age would hold: proposed where all is judged anew with them, and nothing is lost.

A value that may be older than its `max_age` when it is read shows a change at no known time. So a limit that makes an
age hold may cost a reaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from coordinator.guarantee.analysis import Analysis
from coordinator.guarantee.freshness import judgement
from coordinator.guarantee.freshness.judgement import Fresh, SideLimit
from coordinator.guarantee.system import Stage
from coordinator.units import step_of

Judged = Mapping[str, tuple[Fresh, ...]]


def checks(analysis: Analysis) -> Judged:
    """By output, of those that ask for any, with what would mend them."""
    judged = judgement.checks(analysis)
    return {
        output: tuple(
            each if each.name != "age" or each.holds else replace(each, limits=_needed(analysis, judged, output))
            for each in asked
        )
        for output, asked in judged.items()
    }


def _needed(analysis: Analysis, before: Judged, output: str) -> tuple[SideLimit, ...]:
    """One after the other, each for the longest path that is left."""
    found: dict[tuple[str, str], SideLimit] = {}
    judged = before
    while not (age := _age(judged, output)).holds:
        limit = _next(age)
        if limit is None or (limit.operator, limit.port) in found:
            return ()
        found[limit.operator, limit.port] = limit
        analysis = _limited(analysis, limit)
        judged = judgement.checks(analysis)
    return tuple(found.values()) if _is_no_worse(before, judged) else ()


def _age(judged: Judged, output: str) -> Fresh:
    return next(each for each in judged[output] if each.name == "age")


def _next(age: Fresh) -> SideLimit | None:
    """Of the side input that the oldest data came by, where what is left of the time allows any: rounded down, and a
    value is not older than that as it comes."""
    reading = age.worst[1].reading
    if reading is None or reading.after_ns is None:
        return None
    most_ns = max(0, age.limit_ns - reading.after_ns)
    max_age_ns = most_ns // step_of(most_ns) * step_of(most_ns)
    return None if max_age_ns <= (reading.value_ns or 0) else SideLimit(reading.operator, reading.port, max_age_ns)


def _limited(analysis: Analysis, limit: SideLimit) -> Analysis:
    """The same with that limit, which delays nothing."""
    system = analysis.system
    units = {
        number: replace(unit, stages=tuple(_stage(stage, limit) for stage in unit.stages))
        for number, unit in system.units.items()
    }
    return replace(analysis, system=replace(system, units=units))


def _stage(stage: Stage, limit: SideLimit) -> Stage:
    if stage.operator != limit.operator:
        return stage
    sides = (replace(one, max_age_ns=limit.max_age_ns) if one.port == limit.port else one for one in stage.sides)
    return replace(stage, sides=tuple(sides))


def _is_no_worse(before: Judged, after: Judged) -> bool:
    """Whether all that holds or has a bound still does, of all outputs."""
    pairs = [pair for output, asked in before.items() for pair in zip(asked, after[output], strict=True)]
    return all(
        (new.holds or not old.holds) and (new.bound_ns is not None or old.bound_ns is None) for old, new in pairs
    )


__all__ = ["checks"]
