"""Aggregates and joins against what is computed from all values at once, in any interleaving of the sources."""

from collections import defaultdict
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.core.windows.accumulator import Aggregate
from node_agent.core.windows.aggregates import (
    Count,
    Extreme,
    Grouped,
    Mean,
    Quantile,
    Sum,
    Together,
    Users,
    field,
)
from node_agent.core.windows.allocator import Grid
from node_agent.core.windows.intake import Limits
from node_agent.core.windows.open_windows import Abandoned, Cause, Closed, UnfitError
from node_agent.core.windows.window_join import Join
from node_agent.core.windows.window_kinds import time_windows
from tests.sentences import Wording

SAID = Wording("engine", "window aggregates")

VALUE = field("speed")
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(-1e300, 1e300), st.sampled_from((0.0, -0.0, 0, 1, 1.0, 5e-324, 1e16))
)
LANES = st.sampled_from((1, 2, "left", True))
TUPLES = st.lists(st.tuples(st.integers(0, 2), LANES, NUMBERS), max_size=30)


def figures() -> Together:
    return Together(
        {
            "n": (Count, None),
            "sum": (Sum, VALUE),
            "mean": (Mean, VALUE),
            "least": (partial(Extreme, False), VALUE),
            "most": (partial(Extreme, True), VALUE),
            "p95": (partial(Quantile, 950_000), VALUE),
        }
    )


def over(aggregate: Aggregate, tuples: list[tuple[int, Any, Any]]) -> dict[str, Any]:
    filled = aggregate.start()
    for source, lane, speed in tuples:
        filled.add(source, {"speed": speed, "lane": lane})
    return filled.result()


def shuffled(tuples: list[tuple[int, Any, Any]], random: Random) -> list[tuple[int, Any, Any]]:
    """The sources otherwise interleaved; each keeps its order."""
    rows: dict[int, list[tuple[int, Any, Any]]] = defaultdict(list)
    for each in tuples:
        rows[each[0]].append(each)
    turns = [each[0] for each in tuples]
    random.shuffle(turns)
    return [rows[turn].pop(0) for turn in turns]


@given(TUPLES)
def test_figures_are_exact(tuples: list[tuple[int, Any, Any]]) -> None:
    values = [speed for _, _, speed in tuples]
    got = over(figures(), tuples)
    assert got["n"] == len(values)
    if not values:
        assert got == {"n": 0, "sum": 0, "mean": None, "least": None, "most": None, "p95": None}
        return
    total = sum(map(Fraction, values))
    whole = all(isinstance(value, int) for value in values)
    assert got["sum"] == (total if whole else float(total)) and isinstance(got["sum"], int) == whole
    assert got["mean"] == float(total / len(values))
    assert (got["least"], got["most"]) == (min(values), max(values))
    assert got["p95"] == sorted(values)[-(-95 * len(values) // 100) - 1]


class Chain:
    """Depends on the order of its tuples."""

    def start(self) -> list[Any]:
        return []

    def add(self, state: list[Any], payload: Any) -> list[Any]:
        return [*state, payload["speed"]]

    def result(self, state: list[Any]) -> list[Any]:
        return state


@given(TUPLES, st.integers(0, 99))
def test_no_interleaving_of_sources_changes_a_result(tuples: list[tuple[int, Any, Any]], seed: int) -> None:
    lane = field("lane")
    other = shuffled(tuples, Random(seed))
    aggregates: list[Aggregate] = [
        figures(), Grouped(lane, figures()), Users(Chain(), 3), Join((lane, lane), 3, frozenset({2})),
    ]  # fmt: skip
    for aggregate in aggregates:
        assert repr(over(aggregate, tuples)) == repr(over(aggregate, other))


@given(TUPLES)
def test_groups_and_pairs(tuples: list[tuple[int, Any, Any]]) -> None:
    lane = field("lane")
    names = {1: "1", 2: "2", "left": "left"}
    rows = [(source, "true" if by is True else names[by], speed) for source, by, speed in tuples]
    groups = over(Grouped(lane, figures()), tuples)["groups"]
    assert list(groups) == sorted({by for _, by, _ in rows})
    for key, got in groups.items():
        assert got == over(figures(), [row for row in rows if row[1] == key])
    pairs = over(Join((lane, lane), 3, frozenset({1})), tuples)["pairs"]
    want = sorted(
        (by, speed, other)
        for source, by, speed in rows for right, key, other in rows
        if source != 1 and right == 1 and by == key
    )  # fmt: skip
    assert len(pairs) == len(want)
    got_pairs = [(pair["left"]["speed"], pair["right"]["speed"]) for pair in pairs]
    assert sorted(got_pairs) == sorted((a, b) for _, a, b in want)


@pytest.mark.parametrize("speed", [None, "1", True, float("nan"), float("inf"), [1]])
def test_what_is_no_number_abandons_the_windows_it_is_in(speed: Any) -> None:
    windows = time_windows(Grid(10, 10), Together({"v": (Mean, VALUE)}), Limits(0, 10))
    windows.begin(0, 0, 0)
    for number, value in enumerate([1, speed, 2, 3, 4]):
        windows.present(0, 50, 0, number, 6 * number, {"speed": value})
    ends = [each for each in windows.take() if isinstance(each, Abandoned | Closed)]
    assert isinstance(ends[0], Abandoned) and ends[0].number == 0 and ends[0].cause == Cause.VALUE
    assert isinstance(ends[1], Closed) and ends[1].window.state.result() == {"v": 2.5}


def test_a_missing_field_and_a_key_that_is_none() -> None:
    with SAID.refuses("value", kind=UnfitError):
        field("car.speed")({"car": {}})
    assert field("car.real")({"car": 3}) == 3
    with SAID.refuses("value", kind=UnfitError):
        over(Grouped(field("lane"), figures()), [(0, None, 1)])
    with SAID.refuses("value", kind=UnfitError):
        over(figures(), [(0, 1, 1.7e308), (0, 1, 1.7e308)])


def test_states_are_bounded() -> None:
    lane = field("lane")
    three: list[Any] = [(0, by, 1) for by in (1, 2, 3)]
    both: list[Any] = [(0, 1, 1), (1, 1, 2), (1, 1, 3)]
    for aggregate, tuples in (
        (Together({"q": (partial(Quantile, 500_000, 2), VALUE)}), three),
        (Grouped(lane, figures(), 2), three),
        (Users(Chain(), 2, 2), three),
        (Join((lane, lane), 2, frozenset({1}), 2), both),
        (Join((lane, lane), 2, frozenset({1}), 9, 1), both),
    ):
        with pytest.raises(UnfitError) as caught:
            over(aggregate, tuples)
        assert caught.value.cause == Cause.MEMORY


def test_a_users_failure_ends_the_window_only() -> None:
    class Fails(Chain):
        def add(self, state: list[Any], payload: Any) -> list[Any]:
            return [*state, 1 / payload]

    windows = time_windows(Grid(10, 10), Users(Fails()), Limits(0, 10))
    windows.begin(0, 0, 0)
    for number, value in enumerate([0, 2, 2]):
        windows.present(0, 50, 0, number, 10 * number, value)
    ends = [each for each in windows.take() if isinstance(each, Abandoned | Closed)]
    assert ends[0] == Abandoned(0, Cause.ERROR, "ZeroDivisionError: division by zero")
    assert isinstance(ends[1], Closed)
