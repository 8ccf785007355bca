"""Shedders: the share of windows in time against the best one, the control, marks that cost no window they need not."""

from collections import Counter
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core.windows.aggregates import Count, Together
from node_agent.core.windows.allocator import Grid
from node_agent.core.windows.intake import Limits
from node_agent.core.windows.open_windows import Closed
from node_agent.core.windows.shedding_control import (
    PPM,
    AtRandom,
    DropTail,
    Front,
    RateControl,
    RemovedRange,
    RemovedRanges,
    excess,
)
from node_agent.core.windows.window_aware import Kind, Load, WindowAware, fit
from node_agent.core.windows.window_kinds import time_windows
from tests.node_agent.core.simulated.best_share_of_windows import best_share
from tests.sampling import examples

SECOND = 1_000_000_000
COST = 2_000_000
DEAR = 8_000_000  # fewer tuples to simulate


def f_star(load: str, length: int = 5, hop: int = 4, latency: int = 5) -> float:
    """As a float, of seconds."""
    return float(best_share(Fraction(load), Fraction(length), Fraction(hop), Fraction(latency)))


def test_best_share_has_the_printed_values() -> None:
    assert best_share(Fraction("1.1"), Fraction(5), Fraction(4), Fraction(5)) == Fraction(480, 539)
    assert round(f_star("1.1"), 2) == 0.89
    assert best_share(Fraction("1.6"), Fraction(5), Fraction(4), Fraction(5)) == Fraction(1, 2)
    assert round(f_star("1.3"), 2) == 0.71
    assert f_star("0.9") == f_star("1") == 1
    assert f_star("3") == 0  # a single window leaves more than L


@given(st.integers(101, 300), st.integers(1, 20), st.integers(0, 20), st.integers(1, 30))
def test_best_share_is_a_share_and_falls_with_the_load(load: int, hop: int, more: int, latency: int) -> None:
    now, then = (
        best_share(Fraction(each, 100), Fraction(hop + more), Fraction(hop), Fraction(latency))
        for each in (load, load + 10)
    )
    assert 0 <= then <= now <= Fraction(100, load)


def served(load: float, length: int, hop: int, latency: int, seconds: int = 400, seed: int = 1) -> float:
    """Share of windows in time of one server that takes the tuples in order, Poisson arrivals, exact measurements."""
    random, grid = Random(seed), Grid(length * SECOND, hop * SECOND)
    shedder = WindowAware([Kind(grid, latency * SECOND)], 3000, 0)
    gap = DEAR / load
    at = done = 0
    bad: set[int] = set()
    while at < seconds * SECOND:
        at += int(random.expovariate(1 / gap))
        queued = max(0, -(-(done - at) // DEAR))
        if shedder.keeps(at, Load(queued, DEAR, int(gap))):
            done = max(done, at) + DEAR
            bad.update(i for i in grid.of(at) if done > grid.end(i) + latency * SECOND)
        else:
            bad.update(grid.of(at))
    windows = range(0, grid.first(at))
    return 1 - len([i for i in windows if i in bad]) / len(windows)


@pytest.mark.parametrize("load", ["0.9", "1.1", "1.3", "1.6"])
def test_window_aware_delivers_nearly_what_any_policy_can(load: str) -> None:
    assert served(float(load), 5, 4, 5) >= f_star(load) - 0.05


@pytest.mark.parametrize("load", ["1.1", "1.3", "1.6"])
def test_window_aware_sheds_runs_where_windows_overlap_strongly(load: str) -> None:
    assert served(float(load), 10, 1, 5) >= f_star(load, 10, 1) - 0.1


def test_a_window_fits_by_its_end() -> None:
    """Z = 5, L = 5 s, c = 2 ms: q c + lambda c Z - Z <= 5 s."""
    kind, length = Kind(Grid(5 * SECOND, 4 * SECOND), 5 * SECOND), 5 * SECOND
    gap = 1_600_000  # load 1.25: 1.25 s are left of a window that finds nothing

    def fits(queued: int, most: int, rest: int = length, by_luck: bool = False) -> bool:
        return fit(Load(queued, COST, gap), kind, most, rest, by_luck)

    assert fits(1875, 10_000) and not fits(1876, 10_000)
    assert fits(1375, 2000) and not fits(1376, 2000), "q + 625 <= M"
    assert fits(2500, 10_000, 0) and not fits(2501, 10_000, 0), "as it ends"
    assert fits(2033, 10_000, by_luck=True) and not fits(2034, 10_000, by_luck=True), "158 = sqrt(8 * 3125) tuples less"
    assert fits(1533, 2000, by_luck=True) and not fits(1534, 2000, by_luck=True)
    assert fit(Load(0, 0, 0), kind, 1, length, by_luck=False), "nothing is known yet"


def test_a_tuple_is_shed_only_when_no_admitted_window_of_any_kind_needs_it() -> None:
    short, long = Kind(Grid(SECOND, SECOND), SECOND), Kind(Grid(10 * SECOND, 10 * SECOND), 1)
    shedder = WindowAware([short, long], 3000, 0)
    assert shedder.keeps(0, Load(0, COST, COST))
    busy = Load(2000, COST, COST)
    assert shedder.keeps(SECOND, busy), "the long window was admitted"
    assert not shedder.keeps(10 * SECOND, busy) and shedder.denied == 3


def test_at_twice_the_load_a_window_is_tried_where_nothing_waits() -> None:
    """Z = L: it takes all of L. The margins of before denied every one."""
    shedder = WindowAware([Kind(Grid(5 * SECOND, 5 * SECOND), 5 * SECOND)], 10_000, 0)
    assert shedder.keeps(0, Load(0, COST, COST // 2))
    assert not shedder.keeps(5 * SECOND, Load(1, COST, COST // 2))
    assert shedder.keeps(10 * SECOND, Load(0, COST, 985_000)), "1.5 % more: with some luck"
    assert not shedder.keeps(15 * SECOND, Load(0, COST, COST // 3)), "three times the load: no luck is enough"


def test_a_window_that_cannot_be_had_any_more_is_given_up() -> None:
    """[0, 5) and [4, 9). At 4.5 s a burst leaves too much for the first, but the load has fallen since."""
    shedder = WindowAware([Kind(Grid(5 * SECOND, 4 * SECOND), 5 * SECOND)], 10_000, 0)
    assert shedder.keeps(0, Load(0, COST, COST)) and shedder.keeps(4 * SECOND, Load(0, COST, COST))
    assert shedder.keeps(4_500_000_000, Load(3000, COST, COST))
    assert not shedder.give_up(Load(2500, COST, COST)), "5 s of work: just in time"
    assert shedder.give_up(Load(2900, COST, 2 * COST))
    assert shedder.given_up == 1 and not shedder.needs(SECOND), "3.8 s at 9 s, but 5.55 s at 5 s"
    assert shedder.needs(4_500_000_000) and shedder.keeps(4_600_000_000, Load(0, COST, COST))


def test_a_full_queue_costs_the_windows_that_a_tuple_is_in() -> None:
    shedder = WindowAware([Kind(Grid(4 * SECOND, 4 * SECOND), 5 * SECOND)], 10, 0)
    assert shedder.keeps(0, Load(0, COST, 2 * COST)) and shedder.keeps(SECOND, Load(9, COST, 2 * COST))
    assert not shedder.keeps(2 * SECOND, Load(10, COST, 2 * COST))
    assert shedder.given_up == 1 and not shedder.needs(SECOND)
    assert not shedder.keeps(3 * SECOND, Load(0, COST, 2 * COST)) and shedder.keeps(4 * SECOND, Load(0, COST, 2 * COST))


@given(st.integers(0, 2**32))
@settings(deadline=None)
def test_marks_meet_no_admitted_window(seed: int) -> None:
    """For any order of origins, a shedder's marks cost no window that it admitted."""
    random = Random(seed)
    kinds = [Kind(Grid(random.randint(5, 30), random.randint(1, 20)), 40) for _ in range(random.randint(1, 2))]
    shedder, marks = WindowAware(kinds, 50, 10), RemovedRanges(10, 3)
    told: list[RemovedRange] = []
    kept: set[int] = set()
    for number in range(200):
        origin = number * 2 + random.randint(0, 10)
        if shedder.keeps(origin, Load(random.choice((0, 40)), 3, 2)):
            kept.add(number)
            told += marks.take()
        elif marks.shed(number, origin, shedder.free):
            told += marks.take()
        for each in told:
            assert shedder.free(each.least_ns, each.greatest_ns)
    told += marks.take()
    numbers = [number for each in told for number in range(each.first, each.last + 1)]
    assert sorted([*numbers, *kept]) == list(range(200))


@given(st.integers(0, 2**32))
@settings(max_examples=examples(200, 4), deadline=None)
def test_what_window_aware_admits_is_delivered_and_exact(seed: int) -> None:
    """The shedder before the operator, origins out of order: no admitted window is lost to what was shed."""
    random = Random(seed)
    grid, lateness = Grid(random.randint(5, 30), random.randint(3, 20)), random.choice((0, 4, 10))
    shedder, marks = WindowAware([Kind(grid, 40)], 50, lateness), RemovedRanges(lateness)
    it = time_windows(grid, Together({"n": (Count, None)}), Limits(lateness, 1000))
    it.begin(0, 0, 0)
    admitted: set[int] = set()
    exact: Counter[int] = Counter()
    youngest = 0
    for number in range(300):
        at = number * 2
        origin = max(0, at - random.randint(0, 12))
        if origin >= youngest - lateness:
            exact.update(grid.of(origin))
        youngest = max(youngest, origin)
        if not shedder.keeps(origin, Load(random.choice((0, 40)), 3, 2)):
            marks.shed(number, origin, shedder.free)
            continue
        admitted |= shedder._rows[0].admitted
        for each in marks.take():
            it.lost(0, at, 0, (each.first, each.last), (each.least_ns, each.greatest_ns), True)
        it.present(0, at, 0, number, origin, None)
    closed = {each.window.number: each.window.count for each in it.take() if isinstance(each, Closed)}
    assert all(count == exact[window] for window, count in closed.items())
    assert {window for window in admitted if grid.end(window) <= it.sources[0].watermark_ns} <= set(closed)


def test_marks_merge_when_the_survivor_goes_later() -> None:
    marks = RemovedRanges(100)
    assert not marks.shed(3, 30) and not marks.shed(4, 25) and not marks.shed(5, 50)
    assert marks.take() == [RemovedRange(3, 5, 25, 50)] and marks.take() == []


def test_the_rate_follows_the_backlog_and_stays_a_share() -> None:
    control = RateControl(SECOND, 200_000, 50_000)
    assert control.step(500, COST) == 0
    assert control.step(1000, COST) == 250_000  # e = 1 s: 0.2 for the change, 0.05 for itself
    assert control.step(1000, COST) == 300_000
    assert control.step(100_000, COST) == PPM
    assert control.step(0, COST) == 0


def test_simple_shedders() -> None:
    assert excess(1000, 250_000, 300, 3000) == 250 and excess(1000, 0, 3100, 3000) == 100
    assert excess(1000, PPM, 300, 3000) == 300 and excess(0, 0, 0, 3000) == 0
    assert DropTail(2).keeps(1) and not DropTail(2).keeps(2)
    some = AtRandom(RateControl(0, 0, 100_000), 10)
    some.period(1000, 1_000_000)
    assert some.control.rate_ppm == 100_000
    assert not some.keeps(99_999, 0) and some.keeps(100_000, 9) and not some.keeps(999_999, 10)
    front = Front(RateControl(SECOND), 3000)
    for _ in range(400):
        front.arrived()
    assert front.period(500, COST) == 0 and front.period(3100, COST) == 100
