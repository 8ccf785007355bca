"""The least of several numbers together, beside all that there are."""

from __future__ import annotations

from itertools import product
from math import log

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.solve.repair.bisect import OverError
from coordinator.solve.repair.within_ranges.least_sum import CLOSE, Axis, Point, least_sum, tightened
from tests.sampling import examples


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Axis], list[Point]]:
    """Axes in both directions, and points from which on a change holds."""
    axes = []
    for _ in range(draw(st.integers(2, 3))):
        start, utmost = draw(st.integers(1, 30)), draw(st.integers(1, 30))
        axes.append(Axis(start, utmost, lambda _: 1))
    corners = draw(st.lists(st.tuples(*(_along(axis) for axis in axes)), max_size=6))
    return axes, [*corners, tuple(axis.utmost for axis in axes)]


def _along(axis: Axis) -> st.SearchStrategy[int]:
    return st.integers(min(axis.start, axis.utmost), max(axis.start, axis.utmost))


def _reached(axes: list[Axis], corner: Point, point: Point) -> bool:
    return all(
        value >= least if axis.utmost >= axis.start else value <= least
        for axis, least, value in zip(axes, corner, point, strict=True)
    )


def _size(axes: list[Axis], point: Point) -> float:
    return sum(abs(log(value / axis.start)) for axis, value in zip(axes, point, strict=True))


def _values(axis: Axis) -> range:
    return range(min(axis.start, axis.utmost), max(axis.start, axis.utmost) + 1)


@settings(max_examples=examples(300, 40), deadline=None)
@given(problems())
def test_no_point_that_holds_is_less_by_more_than_what_is_close(given: tuple[list[Axis], list[Point]]) -> None:
    axes, corners = given
    found = least_sum(
        lambda point: any(_reached(axes, corner, point) for corner in corners), lambda point: _size(axes, point), axes
    )
    assert found is not None and found.settled
    assert any(_reached(axes, corner, found.point) for corner in corners)
    every = product(*(_values(axis) for axis in axes))
    least = min(_size(axes, one) for one in every if any(_reached(axes, corner, one) for corner in corners))
    assert _size(axes, found.point) <= least + CLOSE + 1e-9


@settings(max_examples=examples(300, 40), deadline=None)
@given(problems())
def test_a_tightened_point_holds_and_no_value_of_it_alone_is_nearer_to_its_start(
    given: tuple[list[Axis], list[Point]],
) -> None:
    axes, corners = given

    def holds(point: Point) -> bool:
        return any(_reached(axes, corner, point) for corner in corners)

    found = tightened(holds, axes, tuple(axis.utmost for axis in axes))
    assert found.settled and holds(found.point)
    for i, axis in enumerate(axes):
        nearer = [value for value in _values(axis) if abs(value - axis.start) < abs(found.point[i] - axis.start)]
        assert not any(holds((*found.point[:i], value, *found.point[i + 1 :])) for value in nearer)


@given(problems(), st.integers(0, 8))
def test_without_time_the_best_so_far_holds(given: tuple[list[Axis], list[Point]], looks: int) -> None:
    axes, corners = given
    left = [looks]

    def holds(point: Point) -> bool:
        left[0] -= 1
        if left[0] < 0:
            raise OverError
        return any(_reached(axes, corner, point) for corner in corners)

    found = least_sum(holds, lambda point: _size(axes, point), axes)
    assert found is not None and any(_reached(axes, corner, found.point) for corner in corners)
    assert found.settled or left[0] < 0


@given(problems())
def test_nothing_is_found_below_what_is_known(given: tuple[list[Axis], list[Point]]) -> None:
    axes, corners = given
    assert least_sum(lambda point: point in corners, lambda point: _size(axes, point), axes, below=0.0) is None
