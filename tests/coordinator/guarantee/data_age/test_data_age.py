"""Age and reaction by hand: chains, sampled values, fusions, joins, and what has no bound."""

from collections.abc import Mapping

import pytest

from coordinator.calculus.curves import Jcp
from coordinator.guarantee.analysis import Analysis
from coordinator.guarantee.freshness.judgement import Fresh, checks
from coordinator.guarantee.system import Side, Source
from protos.plan.operators import Sync
from tests.coordinator.guarantee.written_systems import MS, analysed, source, timer, unit

Bounds = Mapping[str, float | None]


def _found(analysis: Analysis, output: str) -> tuple[Fresh, Fresh]:
    age, reaction = checks(analysis)[output]
    return age, reaction


def _ms(fresh: Fresh) -> Bounds:
    return {name: None if path.ns is None else path.ns / MS for name, path in fresh.paths.items()}


def _both(analysis: Analysis, output: str) -> tuple[Bounds, Bounds]:
    age, reaction = _found(analysis, output)
    for each in (age, reaction):
        for path in each.paths.values():
            assert path.ns is None or path.ns == sum(part.ns for part in path.parts)
    return _ms(age), _ms(reaction)


def test_along_main_inputs_both_are_the_latency() -> None:
    """5 on admission, 10 of work, 1 of the link, 4 of work."""
    units = [unit(1, "see", "a", ["camera"], 10), unit(2, "act", "b", ["see"], 4)]
    analysis = analysed([source("camera", "a", 100, 5)], units, {"act": "b"}, {"see": [("a", "b")]})
    assert _both(analysis, "act") == ({"camera": 20}, {"camera": 20})


def _sampled(max_age_ms: int = 0, shed: bool = False) -> Analysis:
    """A timer every 100 ms reads what a camera (50 ms, 5 on admission) shows after 10 of work and 1 of the link; 2."""
    side = Side("seen", "see", max_age_ms * MS, shed)
    units = [unit(1, "see", "a", ["camera"], 10), unit(2, "act", "b", ["tick"], 2, [side])]
    sources = [source("camera", "a", 50, 5), timer("tick", "b", 100)]
    return analysed(sources, units, {"act": "b"}, {"see": [("a", "b")]})


def test_a_value_that_a_timer_reads() -> None:
    """It is 16 old as it comes, the next one comes 50 + 11 - 0 later at most; 2 of work. A change shows 16 after its
    origin at the reader, which starts again within 100."""
    assert _both(_sampled(), "act") == ({"camera": 16 + 61 + 2, "tick": 2}, {"camera": 16 + 100 + 2, "tick": 2})


def test_an_age_that_the_side_input_limits() -> None:
    assert _ms(_found(_sampled(40), "act")[0]) == {"camera": 40 + 2, "tick": 2}
    assert _ms(_found(_sampled(90), "act")[0]) == {"camera": 16 + 61 + 2, "tick": 2}


def test_a_change_that_may_be_absent_when_it_is_read_shows_at_no_known_time() -> None:
    reaction = _found(_sampled(76), "act")[1]
    assert _ms(reaction) == {"camera": None, "tick": 2}
    assert "older than its 'max_age'" in reaction.paths["camera"].why
    assert _ms(_found(_sampled(77), "act")[1]) == {"camera": 118, "tick": 2}


def test_a_reader_that_sheds_shows_nothing_while_its_value_is_too_old() -> None:
    reaction = _found(_sampled(76, shed=True), "act")[1]
    assert _ms(reaction) == {"camera": None, "tick": None}
    assert _ms(_found(_sampled(77, shed=True), "act")[1]) == {"camera": 118, "tick": 2}


def test_what_is_behind_a_value_grows_older_with_it() -> None:
    """A value whose operator reads another: 3 + 20 of odometry, 2 of work, then it is read itself after 100 + 2 by one
    that takes 1."""
    units = [
        unit(1, "plan", "a", ["tick"], 2, [Side("pose", "odometry")]),
        unit(2, "act", "a", ["slow"], 1, [Side("plan", "plan")]),
    ]
    sources = [source("odometry", "a", 20, 3), timer("tick", "a", 100), timer("slow", "a", 400)]
    age, reaction = _both(analysed(sources, units, {"act": "a"}), "act")
    took = 3  # either waits for the other: released together, in either order
    assert age == {"odometry": 3 + 20 + 2 + (100 + took) + 1, "tick": took + (100 + took) + 1, "slow": took}
    assert reaction == {"odometry": 3 + 100 + took + 400 + took, "tick": took + 400 + took, "slow": took}


def test_a_max_age_does_not_limit_what_is_behind_the_value() -> None:
    """`plan` may be 30 old at most when it is read, so it has been there for 30 at most."""
    units = [
        unit(1, "plan", "a", ["tick"], 2, [Side("pose", "odometry")]),
        unit(2, "act", "b", ["slow"], 1, [Side("plan", "plan", 30 * MS)]),
    ]
    sources = [source("odometry", "a", 20, 3), timer("tick", "a", 100), timer("slow", "b", 400)]
    analysis = analysed(sources, units, {"act": "b"}, {"plan": [("a", "b")]})
    assert _ms(_found(analysis, "act")[0]) == {"odometry": 3 + 20 + 2 + 1 + 30 + 1, "tick": 30 + 1, "slow": 1}


def test_a_fusion_waits_for_its_other_inputs() -> None:
    """Left every 30 ms, right every 50: a tuple of a set waits for 30 at most. A change at the left may have to wait
    for the right, 50, since the left's next tuple takes its place. Of two sets, one may wait for the other: 3 + 3."""
    fuse = unit(1, "fuse", "a", ["left", "right"], 3, sync=Sync(within_ns=None), whole=[True, True])
    analysis = analysed([source("left", "a", 30, 1), source("right", "a", 50, 1)], [fuse], {"fuse": "a"})
    took = int(analysis.delays.units[1].end / MS)
    assert took in (3, 6)
    age, reaction = _both(analysis, "fuse")
    assert age == {"left": 1 + 30 + took, "right": 1 + 30 + took}
    assert reaction == {"left": 1 + 50 + took, "right": 1 + 30 + took}


def test_a_fusion_with_a_timeout() -> None:
    fuse = unit(1, "fuse", "a", ["left", "right"], 3, sync=Sync(within_ns=None, timeout_ns=20 * MS), whole=[True, True])
    analysis = analysed([source("left", "a", 30, 1), source("right", "a", 50, 1)], [fuse], {"fuse": "a"})
    took = analysis.delays.units[1].end / MS
    hold = 20 + analysis.charges.tick_ns / MS
    age, reaction = _both(analysis, "fuse")
    assert age == reaction == {"left": 1 + hold + took, "right": 1 + hold + took}


def test_what_is_read_in_one_branch_waits_for_the_other() -> None:
    """10 in the one branch, 4 in the other, which reads a pose (3 + 20) and then waits for 10 at most; 2."""
    units = [
        unit(1, "slow", "a", ["camera"], 10),
        unit(2, "fast", "b", ["camera"], 4, [Side("pose", "odometry")]),
        unit(3, "both", "c", ["slow", "fast"], 2, join=True),
    ]
    sources = [source("camera", "a", 100, 5), source("odometry", "b", 20, 3)]
    hops = {"camera": [("a", "b")], "slow": [("a", "c")], "fast": [("b", "c")]}
    age, reaction = _both(analysed(sources, units, {"both": "c"}, hops), "both")
    assert age == {"camera": 5 + 10 + 1 + 2, "odometry": 3 + 20 + 4 + 1 + 11 + 2}
    assert reaction == {"camera": 5 + 10 + 1 + 2, "odometry": 3 + (100 + 1) + 4 + 1 + 11 + 2}


def test_without_a_period_nothing_says_how_long_a_value_is_read() -> None:
    """A button that somebody presses: its age has no bound, the reaction to it has."""
    button = Source("button", "a", Jcp(50 * MS, 0, 0), 5 * MS)
    units = [unit(1, "act", "a", ["tick"], 2, [Side("pressed", "button")])]
    age, reaction = _found(analysed([button, timer("tick", "a", 100)], units, {"act": "a"}), "act")
    assert (_ms(age), _ms(reaction)) == ({"button": None, "tick": 2}, {"button": 5 + 100 + 2, "tick": 2})
    assert "the arrivals of button have no period" in age.sentence


def test_without_a_period_nothing_says_how_soon_a_reader_starts() -> None:
    button = Source("button", "a", Jcp(50 * MS, 0, 0), 5 * MS)
    units = [unit(1, "act", "a", ["button"], 2, [Side("pose", "odometry")])]
    age, reaction = _found(analysed([button, source("odometry", "a", 20, 3)], units, {"act": "a"}), "act")
    assert (_ms(age), _ms(reaction)) == ({"button": 7, "odometry": 3 + 20 + 2}, {"button": 7, "odometry": None})
    assert "how soon act reads odometry" in reaction.sentence


@pytest.mark.parametrize("at", ["see", "act"])
def test_what_drops_tuples_makes_gaps(at: str) -> None:
    side = Side("seen", "see")
    units = [
        unit(1, "see", "a", ["camera"], 10, drops="see drops" if at == "see" else ""),
        unit(2, "act", "b", ["tick"], 2, [side], drops="act drops" if at == "act" else ""),
    ]
    sources = [source("camera", "a", 50, 5), timer("tick", "b", 100)]
    age, reaction = _found(analysed(sources, units, {"act": "b"}, {"see": [("a", "b")]}), "act")
    assert _ms(age) == {"camera": None if at == "see" else 79, "tick": 2}
    assert _ms(reaction) == {"camera": None, "tick": None if at == "act" else 2}
    assert f"{at} drops" in reaction.sentence


def test_the_latest_of_several_sources_hides_the_others() -> None:
    """What is read may be 16 old of the camera, or 6 of the radar, and is replaced within 41 by the radar's next."""
    units = [
        unit(1, "either", "a", ["camera", "radar"], 5),
        unit(2, "act", "b", ["tick"], 2, [Side("seen", "either")]),
    ]
    sources = [source("camera", "a", 50, 5), source("radar", "a", 30, 1), timer("tick", "b", 100)]
    analysis = analysed(sources, units, {"act": "b"}, {"either": [("a", "b")]})
    age, reaction = _found(analysis, "act")
    assert _ms(age) == {"camera": 5 + 11 + (30 + 11) + 2, "radar": 1 + 11 + (30 + 11) + 2, "tick": 2}
    assert _ms(reaction) == {"camera": None, "radar": None, "tick": 2}
    assert "does not always reflect camera" in reaction.paths["camera"].why


def test_what_may_be_overtaken_shows_with_the_next_tuple() -> None:
    """Two branches read the pose: slow within 3 + 1 + 40 + 10 + 1, fast within 45. A slow one that read before the
    change may come after a fast one that read it, and stays until the next comes: 42 + 2 + 1 at most. Then the reader
    starts within 100 and takes 2."""
    pose = Side("pose", "odometry")
    units = [
        unit(1, "slow", "a", ["left"], 10, [pose]),
        unit(2, "fast", "b", ["right"], 1, [pose]),
        unit(3, "either", "c", ["slow", "fast"], 1),
        unit(4, "act", "d", ["tick"], 2, [Side("seen", "either")]),
    ]
    sources = [timer("left", "a", 40), timer("right", "b", 40), source("odometry", "b", 20, 3), timer("tick", "d", 100)]
    hops = {"odometry": [("b", "a")], "slow": [("a", "c")], "fast": [("b", "c")], "either": [("c", "d")]}
    reaction = _found(analysed(sources, units, {"act": "d"}, hops), "act")[1]
    slow = 3 + 1 + 40 + 10 + 1
    assert reaction.paths["odometry"].ns == (slow + 2 + 1 + (42 + 2 + 1) + 100 + 2) * MS


def test_what_leads_back_has_data_of_any_age_behind_it() -> None:
    """A controller that reads what it said before; a change at the camera shows by the main input all the same."""
    units = [unit(1, "act", "a", ["camera"], 2, [Side("last", "said")]), unit(2, "said", "a", ["act"], 1)]
    age, reaction = _found(analysed([source("camera", "a", 50, 5)], units, {"act": "a"}), "act")
    assert (_ms(age), _ms(reaction)) == ({"camera": None}, {"camera": 5 + 3})
    assert "act reads by last what comes of its own results" in age.sentence


def test_a_source_of_any_age() -> None:
    units = [unit(1, "act", "a", ["camera"], 2, [Side("map", "map", 40 * MS)])]
    sources = [source("camera", "a", 50, 0), source("map", "a", 50, 0)]
    age, reaction = _found(analysed(sources, units, {"act": "a"}), "act")
    assert (_ms(age), _ms(reaction)) == ({"camera": None, "map": 40 + 2}, {"camera": None, "map": None})
    assert "give it a 'max_age:'" in age.sentence
