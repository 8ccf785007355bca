"""Reports in any order that keeps expiry times give the same; what is bounded; single stories."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core.windows.aggregates import Count, Mean, Together, Users, field
from node_agent.core.windows.allocator import Grid
from node_agent.core.windows.intake import Limits
from node_agent.core.windows.open_windows import Abandoned, Cause, Closed, Command, Opened, Skipped
from node_agent.core.windows.window_kinds import count_windows, sized_windows, time_windows
from node_agent.core.windows.window_store import Deadline
from tests.node_agent.core.windows.window_world import Names, size
from tests.sampling import examples
from tests.sentences import Wording

SAID = Wording("engine", "window reports")

COUNT = Together({"n": (Count, None)})


def counted(commands: list[Command]) -> list[tuple[int, int]]:
    """(window, how many tuples) of what closed."""
    return [(each.window.number, each.window.count) for each in commands if isinstance(each, Closed)]


@given(st.integers(0, 2**48))
@settings(max_examples=examples(200, 4), deadline=None)
def test_no_order_of_reports_within_the_wait_changes_a_result(seed: int) -> None:
    """Two sources, described ranges and filters; all reports come within the wait, in two random orders."""
    random = Random(seed)
    reports: list[tuple[int, Any]] = []
    for source in range(2):
        at = number = 0
        while number < 30:
            at += random.randint(0, 9)
            run = random.choice((1, 1, 1, 4))
            origin, what = at - random.randint(0, 12), random.choice("ppppfr")
            reports.append((at, (source, number, run, origin, what)))
            number += run if what == "r" else 1
    results = []
    for turn in range(2):
        aggregate = Together({"v": (Mean, field("v"))})
        it = time_windows(Grid(12, 5), aggregate, Limits(6, 1000), 2)
        commands: list[Command] = []
        for source in range(2):
            it.begin(source, 0, 0)
        delays = Random(seed + turn)
        for at, (source, number, run, origin, what) in sorted(
            ((at + delays.randint(0, 900), report) for at, report in reports), key=lambda each: each[0]
        ):
            if what == "r":
                it.lost(source, at, 0, (number, number + run - 1), (origin, origin + 2))
            elif what == "f":
                it.filtered(source, at, 0, number, origin)
            else:
                it.present(source, at, 0, number, origin, {"v": origin / 7})
            commands += it.take()
        results.append({
            each.window.number: each.window.state.result() for each in commands if isinstance(each, Closed)
        })  # fmt: skip
    assert results[0] == results[1]


def test_empty_windows_are_closed_by_a_heartbeat() -> None:
    it = time_windows(Grid(10, 10), COUNT, Limits(5, 10))
    it.begin(0, 0, 0)
    it.progress(0, 60, 0, 0, 45)
    assert counted(it.take()) == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_without_a_beginning_what_is_not_known_is_skipped() -> None:
    it = time_windows(Grid(10, 10), COUNT, Limits(5, 10))
    it.present(0, 25, 7, 0, 21, None)
    it.present(0, 70, 7, 1, 65, None)
    commands = it.take()
    skipped = [each for each in commands if isinstance(each, Skipped)]
    assert (skipped[0].first, skipped[-1].last, {each.cause for each in skipped}) == (0, 2, {Cause.REMOVED})
    assert counted(commands) == [(3, 0), (4, 0), (5, 0)]
    it = time_windows(Grid(10, 10), COUNT, Limits(5, 10))
    it.begin(0, 7, 500)
    it.present(0, 25, 7, 500, 21, None)
    it.present(0, 70, 7, 501, 65, None)
    assert counted(it.take())[:3] == [(0, 0), (1, 0), (2, 1)]


def test_a_missing_number_is_given_up_when_the_wait_is_over() -> None:
    it = time_windows(Grid(10, 10), COUNT, Limits(0, 10))
    it.begin(0, 0, 0)
    it.present(0, 1, 0, 0, 1, None)
    it.present(0, 25, 0, 2, 24, None)
    it.present(0, 33, 0, 3, 33, None)
    assert it.due_ns == 35 and counted(it.take()) == []
    it.expire(34)
    assert it.due_ns == 35
    it.expire(35)
    assert [each for each in it.take() if not isinstance(each, Opened)] == [
        Abandoned(0, Cause.REMOVED), Skipped(1, 2, Cause.REMOVED),
    ]  # fmt: skip
    it.present(0, 36, 0, 1, 5, None)
    assert it.sources[0].repeated == 1
    it.present(0, 45, 0, 4, 44, None)
    assert counted(it.take()) == [(3, 1)]


def test_a_tuple_that_may_be_late_counts_as_removed() -> None:
    """By the mark the youngest removed one has origin 100, or anything from 16 on; after 100, 14 is late."""
    for exact, want in ((False, [Abandoned(1, Cause.REMOVED)]), (True, [])):
        it = time_windows(Grid(5, 10), COUNT, Limits(10, 10))
        it.begin(0, 0, 0)
        it.present(0, 5, 0, 0, 12, None)
        it.lost(0, 101, 0, (1, 1), (16, 100), exact)
        assert ((1, 1) in counted(it.take())) == exact
        it.present(0, 102, 0, 2, 14, None)
        assert (it.sources[0].late, it.sources[0].doubtful) == (int(exact), int(not exact))
        assert it.take() == want


def test_a_broken_heartbeat_abandons_what_is_open() -> None:
    it = time_windows(Grid(20, 10), COUNT, Limits(5, 10))
    it.begin(0, 0, 0)
    it.progress(0, 50, 0, 0, 45)
    assert counted(it.take()) == [(0, 0), (1, 0), (2, 0)]
    it.present(0, 51, 0, 0, 44, None)
    assert it.take()[-2:] == [Abandoned(3, Cause.REMOVED), Abandoned(4, Cause.REMOVED)]


def test_a_dead_source_holds_no_more_than_most_windows_open_and_deadlines_end_them() -> None:
    it = time_windows(Grid(10, 10), COUNT, Limits(0, 10, windows=4), 2, Deadline(50))
    it.begin(0, 0, 0)
    ends = 0
    for number in range(2000):
        at = 10 * number
        it.present(0, at, 0, number, at, None)
        assert len(it.store.live.open) <= 4 and it.store.live.size <= 100
        for each in it.take():
            assert not isinstance(each, Closed)
            ends += isinstance(each, Abandoned) or (each.last + 1 - each.first if isinstance(each, Skipped) else 0)
    assert ends + len(it.store.live.open) == it.store.live.next >= 2000


def test_a_leap_costs_no_more_than_most_windows() -> None:
    it = time_windows(Grid(2, 1), COUNT, Limits(0, 10, windows=16))
    it.begin(0, 0, 0)
    it.present(0, 10**18, 0, 0, 10**18, None)
    commands = it.take()
    assert len(commands) < 50
    assert any(isinstance(each, Skipped) and each.cause == Cause.CROWDED for each in commands)
    it.present(0, 10**18 + 5, 0, 1, 10**18 + 5, None)
    assert (10**18, 1) in counted(it.take())
    it.lost(0, 2 * 10**18, 0, (2, 2), (10**18 + 9, 2 * 10**18))
    it.present(0, 2 * 10**18 + 9, 0, 3, 2 * 10**18 + 9, None)
    assert len(it.take()) < 50


def test_reports_that_wait_are_bounded() -> None:
    it = time_windows(Grid(10, 10), COUNT, Limits(0, 10**9, ahead=8))
    it.begin(0, 0, 0)
    for number in range(1, 2000, 2):
        it.present(0, number, 0, number, number, None)
        it.progress(0, number, 0, number + 1, number)
        assert it.sources[0].held <= 8
        assert len(it.sources[0]._heard) <= 9 and len(it.sources[0]._progress_reports) <= 8


def test_a_deadline_from_the_oldest_tuple() -> None:
    it = time_windows(Grid(100, 100), COUNT, Limits(50, 10), deadline=Deadline(150, oldest=True))
    it.begin(0, 0, 0)
    it.present(0, 60, 0, 0, 60, None)
    assert it.due_ns == 210
    it.present(0, 62, 0, 1, 30, None)
    assert it.due_ns == 180
    it.expire(180)
    assert it.take()[-1] == Abandoned(0, Cause.DEADLINE)


@pytest.mark.parametrize("oldest", [True, False])
def test_count_windows_stay_exact_after_a_gap_and_a_restart(oldest: bool) -> None:
    it = count_windows(Grid(3, 2), Users(Names()), Limits(0, 5), Deadline(1000, oldest))
    it.begin(0, 1, 0)
    for number in (0, 1, 2, 4, 5, 6, 7):
        it.present(0, 10 + number, 1, number, number, ((0, 1, number), 0))
    it.expire(30)
    it.present(0, 40, 2, 0, 40, ((0, 2, 0), 0))
    it.filtered(0, 41, 2, 1, 41)
    it.present(0, 42, 2, 2, 42, ((0, 2, 2), 0))
    closed = [each.window for each in it.take() if isinstance(each, Closed)]
    assert [(each.number, each.epoch, each.start - each.base) for each in closed] == [(0, 1, 0), (2, 1, 4), (4, 2, 0)]
    assert [[name[2] for name in each.state.result()["result"]] for each in closed] == [[0, 1, 2], [4, 5, 6], [0, 2]]


def test_a_sized_window_is_as_long_as_its_first_tuple_says() -> None:
    it = sized_windows(Grid(20, 10), size, Users(Names()), Limits(0, 5))
    it.begin(0, 0, 0)
    for number, (origin, length) in enumerate([(2, 4), (3, 99), (4, 99), (12, 99), (29, 1), (60, 1)]):
        it.present(0, origin, 0, number, origin, ((0, 0, number), length))
    closed = {each.window.number: each.window for each in it.take() if isinstance(each, Closed)}
    assert [(closed[i].end, [name[2] for name in closed[i].state.result()["result"]]) for i in range(4)] == [
        (4, [0, 1]), (30, [3, 4]), (21, []), (50, []),
    ]  # fmt: skip


def test_windows_that_are_none() -> None:
    for length, hop in ((0, 1), (1, 0), (-1, 1)):
        with SAID.refuses("out_of_range", kind=ValueError):
            Grid(length, hop)
    with SAID.refuses("no_source", kind=ValueError):
        time_windows(Grid(1, 1), COUNT, Limits(0, 0), 0)
    with SAID.refuses("out_of_range", kind=ValueError):
        time_windows(Grid(1, 1), COUNT, Limits(0, 0), 1, Deadline(0))
    with SAID.refuses("out_of_range", kind=ValueError):
        time_windows(Grid(1, 1), COUNT, Limits(-1, 0))


@given(st.integers(1, 30), st.integers(1, 30), st.integers(-50, 50), st.integers(-200, 200), st.integers(0, 50))
def test_the_grid(length: int, hop: int, start: int, position: int, more: int) -> None:
    grid = Grid(length, hop, start)
    near = range(-400, 400)
    assert list(grid.of(position)) == [i for i in near if start + i * hop <= position < start + i * hop + length]
    met = [i for i in near if any(each in grid.meets(position, position) for each in (i,))]
    assert met == list(grid.of(position))
    spanned = [i for i in near if grid.begin(i) <= position + more and grid.end(i) > position]
    assert list(grid.meets(position, position + more)) == spanned
    assert grid.begin(grid.from_(position)) >= position > grid.begin(grid.from_(position) - 1)
