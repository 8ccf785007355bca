"""What would mend an age: limits on side inputs that hold when they are pasted, and cost no other promise."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from coordinator.guarantee.analysis import Analysis
from coordinator.guarantee.freshness import judgement, side_limits
from coordinator.guarantee.freshness.judgement import SideLimit
from coordinator.guarantee.system import Side
from coordinator.spec.quality import Freshness
from coordinator.units import duration_ns
from tests.coordinator.guarantee.written_systems import LONG, MS, analysed, asking, source, timer, unit


def _sampled(max_age_ns: int = 0) -> Analysis:
    """A timer every 100 ms reads what a camera (50 ms, 5 on admission) shows after 10 of work and 1 of the link; 2."""
    units = [
        unit(1, "see", "a", ["camera"], 10),
        unit(2, "act", "b", ["tick"], 2, [Side("seen", "see", max_age_ns)]),
    ]
    sources = [source("camera", "a", 50, 5), timer("tick", "b", 100)]
    return analysed(sources, units, {"act": "b"}, {"see": [("a", "b")]})


def _limits(analysis: Analysis) -> Sequence[SideLimit]:
    (age, *_) = side_limits.checks(analysis)["act"]
    return age.limits


def test_a_limit_is_proposed_where_it_would_do() -> None:
    """79 is too much for 60; 58 and the 2 of work are not. 18 and less would leave out every value."""
    assert not _limits(asking(_sampled(), "act", 79))
    (too_old,) = side_limits.checks(asking(_sampled(), "act", 60))["act"]
    assert too_old.sentence.endswith("of camera; a 'max_age: 58 ms' for side input seen of act would bound it")
    (mended,) = judgement.checks(asking(_sampled(58 * MS), "act", 60))["act"]
    assert (mended.bound_ns, mended.holds) == (60 * MS, True)
    assert not _limits(asking(_sampled(), "act", 18))


@pytest.mark.parametrize("more_ns", [1, 567_890, 49_999])
def test_a_limit_is_rounded_down(more_ns: int) -> None:
    """What is printed is what is pasted."""
    analysis = asking(_sampled(), "act", 60)
    output = replace(analysis.system.outputs["act"], age=Freshness(60 * MS + more_ns))
    asked = replace(analysis, system=replace(analysis.system, outputs={"act": output}))
    (limit,) = _limits(asked)
    pasted_ns = duration_ns(limit.sentence.split("'")[1].removeprefix("max_age: "))
    assert 58 * MS <= pasted_ns == limit.max_age_ns <= 58 * MS + more_ns
    limited = replace(asked, system=replace(_sampled(pasted_ns).system, outputs={"act": output}))
    assert judgement.checks(limited)["act"][0].holds


def _two(age_ms: int, reaction: bool = False) -> Analysis:
    """A timer reads one value every 500 ms and one every 400."""
    act = unit(1, "act", "a", ["tick"], 2, [Side("p", "p"), Side("q", "q")])
    sources = [source("p", "a", 500, 5), source("q", "a", 400, 5), timer("tick", "a", 100)]
    asked = asking(analysed(sources, [act], {"act": "a"}), "act", age_ms)
    output = replace(asked.system.outputs["act"], reaction=LONG if reaction else None)
    return replace(asked, system=replace(asked.system, outputs={"act": output}))


def test_all_limits_are_named_that_an_age_needs() -> None:
    (age,) = side_limits.checks(_two(100))["act"]
    assert age.limits == (SideLimit("act", "p", 98 * MS), SideLimit("act", "q", 98 * MS))
    said = "a 'max_age: 98 ms' for side input p of act and a 'max_age: 98 ms' for side input q of act would bound it"
    assert age.sentence.endswith(f"; {said}")
    assert [each.port for each in _limits(_two(450))] == ["p"]


def test_no_limit_is_proposed_that_costs_a_reaction() -> None:
    """A value that may be too old when it is read shows a change at no known time."""
    age, reaction = side_limits.checks(_two(100, reaction=True))["act"]
    assert not age.holds and reaction.holds
    assert not age.limits and "max_age" not in age.sentence
