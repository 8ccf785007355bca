"""Age and reaction by hand where not every tuple of a way comes by: joins of unlike inputs, windows, what was met."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from coordinator.calculus.curves import Bursts
from coordinator.guarantee.analysis import Analysis
from coordinator.guarantee.freshness import data_walk
from coordinator.guarantee.freshness.arrival_gaps import ArrivalGaps
from coordinator.guarantee.freshness.judgement import Fresh, checks
from coordinator.guarantee.system import Side, Source, Unit
from coordinator.guarantee.window_closing import clocks
from coordinator.spec.runtime_charges import MEASURED, NOTHING, RuntimeOverhead
from protos.plan.operators import Sync
from tests.coordinator.guarantee.written_systems import MS, analysed, source, timer, unit, window


def _found(analysis: Analysis, output: str) -> tuple[Fresh, Fresh]:
    age, reaction = checks(analysis)[output]
    return age, reaction


def _ms(fresh: Fresh) -> Mapping[str, float | None]:
    return {name: None if path.ns is None else path.ns / MS for name, path in fresh.paths.items()}


# -- joins of which an input has tuples that another one lacks


def _unlike(sides: Sequence[Side] = ()) -> Analysis:
    """Of `a` every second tuple completes a lineage, of `b` none does; `act` looks every 10 ms."""
    units = [
        unit(1, "u", "a", ["a", "b"], 1),
        unit(2, "w", "a", ["u"], 1, sides),
        unit(3, "v", "a", ["a"], 1),
        unit(4, "j", "a", ["w", "v"], 1, join=True),
        unit(5, "act", "b", ["tick"], 1, [Side("last", "j")]),
    ]
    sources = [source("a", "a", 1000, 5), source("b", "a", 10, 5), source("pose", "a", 10, 5), timer("tick", "b", 10)]
    return analysed(sources, units, {"act": "b", "j": "a"}, {"j": [("a", "b")]})


def test_a_join_comes_as_often_as_the_lineages_of_all_its_inputs() -> None:
    analysis = _unlike()
    came = 5 + sum(part.ns for part in analysis.streams.flows["j", "b"].late["a"].parts) / MS
    age = _ms(_found(analysis, "act")[0])["a"]
    assert age is not None and age >= came + 1000 + 1


def test_what_completes_no_lineage_shows_nowhere() -> None:
    reaction = _found(_unlike(), "j")[1]
    own = _ms(reaction)
    assert own["b"] is None and "b come to j without those that it joins" in reaction.paths["b"].why
    assert own["a"] is not None


def test_nor_does_what_was_read_for_it() -> None:
    """`w` starts every 10 ms, but on tuples of `b`."""
    age, reaction = _found(_unlike([Side("pose", "pose")]), "j")
    assert _ms(age)["pose"] is not None
    assert _ms(reaction)["pose"] is None
    assert "not every tuple of w has one of each other input at j" in reaction.paths["pose"].why


def test_a_join_behind_a_fusion_needs_results_of_that_fusion() -> None:
    """All of `fuse` come by both branches; of a union with another source not all do."""
    units = [
        unit(1, "fuse", "a", ["a", "b"], 1, sync=Sync(within_ns=None), whole=[True, True]),
        unit(2, "one", "a", ["fuse"], 1),
        unit(3, "other", "a", ["fuse"], 1),
        unit(4, "more", "a", ["fuse", "a"], 1),
        unit(5, "alike", "a", ["one", "other"], 1, join=True),
        unit(6, "unlike", "a", ["one", "more"], 1, join=True),
        unit(7, "act", "a", ["tick"], 1, [Side("x", "alike")]),
        unit(8, "acts", "a", ["tick"], 1, [Side("x", "unlike")]),
    ]
    sources = [source("a", "a", 50, 1), source("b", "a", 400, 1), timer("tick", "a", 100)]
    analysis = analysed(sources, units, {"act": "a", "acts": "a"})
    assert (_ms(_found(analysis, "act")[0])["b"] or 0) > 400
    assert (_ms(_found(analysis, "acts")[0])["b"] or 0) > 400, "not the 50 of those that come beside it"


# -- windows of which a tuple may be shed


def _windowed(seen: Source, before: Unit | None = None, sheds: str = "") -> Analysis:
    """A timer reads the results of windows of 1 s, which hold what `before` leaves of what was seen, and a pose."""
    stream = "seen" if before is None else before.stages[0].operator
    add = replace(unit(2, "w.add", "a", [stream, "pose"], 1, sheds=sheds), join=False)
    units = [
        *([] if before is None else [before]),
        add,
        unit(3, "w", "a", ["w.add"], 1),
        unit(4, "act", "b", ["tick"], 1, [Side("last", "w")]),
    ]
    pose = replace(source("pose", "a", 100, 5), beat_ns=100 * MS)
    beating = replace(seen, beat_ns=100 * MS)
    windows = [window("w", "a", 1000, 500, ["seen", "pose"])]
    sources = [beating, pose, source("map", "a", 100, 5), timer("tick", "b", 100)]
    return analysed(sources, units, {"act": "b", "w": "a"}, {"w": [("a", "b")]}, windows=windows)


SEEN = source("seen", "a", 100, 5)


def test_windows_of_which_nothing_is_shed_come_one_after_the_other() -> None:
    for analysis in (_windowed(SEEN), _windowed(SEEN, unit(1, "f", "a", ["seen"], 1, drops="f filters"))):
        assert (_ms(_found(analysis, "act")[0])["pose"] or 0) > 2000
        assert (_ms(_found(analysis, "w")[1])["pose"] or 0) > 1000


@pytest.mark.parametrize(
    ("seen", "before", "sheds", "why"),
    [
        (replace(SEEN, limit=Bursts(5, 1000 * MS)), None, "", "beyond its 'max_rate' are shed"),
        (SEEN, unit(1, "f", "a", ["seen"], 1, sheds="f has a queue"), "", "f has a queue"),
        (SEEN, None, "w.add has a queue", "w.add has a queue"),
        (SEEN, unit(1, "f", "a", ["seen"], 1, [Side("m", "map", 20 * MS, True)]), "", "f sheds a tuple while"),
    ],
)
def test_a_window_that_may_lack_a_tuple_may_never_come(seen: Source, before: Unit | None, sheds: str, why: str) -> None:
    """Whichever of its sources it is."""
    analysis = _windowed(seen, before, sheds)
    age, reaction = _found(analysis, "act")[0], _found(analysis, "w")[1]
    assert _ms(age)["pose"] is None and why in age.paths["pose"].why
    assert _ms(reaction)["pose"] is None and why in reaction.paths["pose"].why


def test_a_side_input_that_is_always_there_sheds_nothing_of_a_window() -> None:
    before = unit(1, "f", "a", ["seen"], 1, [Side("m", "map", 200 * MS, True)])
    assert _ms(_found(_windowed(SEEN, before), "act")[0])["pose"] is not None


# -- results of windows that meet others


def test_what_a_result_of_a_window_meets_is_as_old_as_its_windows_end() -> None:
    """It runs 300 + 250 and more after its end, of which it meets what is 20 older at most."""
    units = [
        unit(1, "w.add", "a", ["seen"], 1),
        unit(2, "w", "a", ["w.add"], 1),
        unit(3, "m", "a", ["w", "b"], 1, sync=Sync(within_ns=20 * MS, each=True), whole=[False, True]),
    ]
    seen = replace(source("seen", "a", 100, 300), beat_ns=250 * MS)
    windows = [window("w", "a", 1000, 500, ["seen"])]
    analysis = analysed([seen, source("b", "a", 100, 5)], units, {"m": "a"}, windows=windows)
    assert (_ms(_found(analysis, "m")[0])["b"] or 0) >= 300 + 250 + 20


def _crossing(max_age_ns: int, charges: RuntimeOverhead) -> Analysis:
    """A timer on another host reads the results of windows of 1 s, and is shed without one."""
    units = [
        unit(1, "w.add", "a", ["seen"], 1),
        unit(2, "w", "a", ["w.add"], 1),
        unit(3, "act", "b", ["tick"], 1, [Side("last", "w", max_age_ns, shed=True)]),
    ]
    seen = replace(source("seen", "a", 100, 50), beat_ns=100 * MS)
    sources, windows = [seen, timer("tick", "b", 100)], [window("w", "a", 1000, 500, ["seen"])]
    hops = {"w": [("a", "b")]}
    return analysed(sources, units, {"act": "b"}, hops, latency_ms=20, windows=windows, charges=charges)


@pytest.mark.parametrize("charges", [NOTHING, MEASURED])
def test_a_result_of_a_window_looks_older_by_what_clocks_are_apart(charges: RuntimeOverhead) -> None:
    walked = data_walk.walk(_crossing(0, charges), ["act"])
    gap_ns = data_walk.follow(walked, ArrivalGaps(walked))["w", "b"].ns
    oldest_ns = walked.value_age_ns(("w", "b"), gap_ns)
    assert oldest_ns is not None
    apart_ns = clocks(walked.system, walked.analysis.delays, charges, "w", "w.add")[0]
    assert bool(apart_ns) == charges.drained

    def tick_ns(max_age_ns: int) -> int | None:
        return _found(_crossing(max_age_ns, charges), "act")[1].paths["tick"].ns

    assert tick_ns(oldest_ns + apart_ns - 1) is None
    assert tick_ns(oldest_ns + apart_ns) is not None
