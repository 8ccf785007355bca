"""Joins by themselves: what arrives, what is complete, what is given up."""

from random import Random

import pytest

from node_agent.core.engine.joins import GONE, JoinEnd, all_absent, arrive, expired, numbers, stopped
from node_agent.core.lineage import Lineage
from node_agent.core.model import Join, Unit, Waiting
from node_agent.core.punctuation import ABSENCE, Progress, Removal
from tests.node_agent.core.engine.compiled import diamond, union


def tuple_(number: int, origin_ns: int = 0) -> Lineage:
    return 1, 0, number, 0, origin_ns, origin_ns


@pytest.fixture
def join() -> Join:
    return diamond().joins[0]


def values(ends: list[JoinEnd]) -> list[tuple[bool, list[object], int]]:
    return [(end.complete, end.entry.values, end.entry.absent) for end in ends]


def test_a_result_is_complete_when_every_port_has_delivered(join: Join) -> None:
    assert not arrive(5, join, 0, tuple_(1), "left")
    assert not arrive(6, join, 1, tuple_(2), "other")
    ends = list(arrive(7, join, 1, tuple_(1), "right"))
    assert values(ends) == [(True, ["left", "right"], 0)] and ends[0].unit is join.unit
    assert list(join.waiting) == [tuple_(2)[:4]]


@pytest.mark.parametrize(("mark", "bits"), [(ABSENCE, Waiting.FILTERED), (GONE, Waiting.REMOVED)])
def test_a_branch_that_is_absent_completes_the_row_without_a_value(join: Join, mark: object, bits: int) -> None:
    arrive(5, join, 0, tuple_(1), mark)
    ends = list(arrive(6, join, 1, tuple_(1), "right"))
    assert values(ends) == [(True, [None, "right"], bits)] and ends[0].entry.punctuation == tuple_(1)


def test_a_lineage_that_comes_twice_waits_for_partners_of_its_own(join: Join) -> None:
    arrive(5, join, 0, tuple_(1), "a")
    arrive(5, join, 0, tuple_(1), "b")
    assert values(list(arrive(6, join, 1, tuple_(1), "x"))) == [(True, ["a", "x"], 0)]
    assert values(list(arrive(6, join, 1, tuple_(1), "y"))) == [(True, ["b", "y"], 0)]
    assert not join.waiting


def test_at_most_so_many_of_one_lineage_wait_and_an_absence_that_is_too_many_is_forgotten(join: Join) -> None:
    for _ in range(Join.IN_A_ROW):
        assert not arrive(5, join, 0, tuple_(1), "a")
    (end,) = arrive(5, join, 0, tuple_(1), "b")
    assert not end.complete and end.entry.lineages == [tuple_(1)]
    assert not arrive(5, join, 0, tuple_(1), ABSENCE)
    assert len(stopped(join)) == Join.IN_A_ROW


def test_beyond_the_limit_the_oldest_is_given_up(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Join, "LIMIT", 2)
    for number in (1, 2):
        arrive(5, join, 0, tuple_(number), number)
    ends = list(arrive(5, join, 0, tuple_(3), 3))
    assert values(ends) == [(False, [1, None], 0)] and len(join.waiting) == 2


def test_what_waits_for_too_long_is_given_up_with_what_stands_behind_it(join: Join) -> None:
    arrive(5, join, 0, tuple_(1), "a")
    arrive(6, join, 0, tuple_(1), "b")
    arrive(7, join, 1, tuple_(2), "c")
    due_ns = 5 + join.wait_ns
    assert not list(expired(due_ns - 1, join))
    assert [end.entry.values[0] for end in expired(due_ns, join)] == ["a", "b"]
    assert [end.complete for end in stopped(join)] == [False] and not join.waiting


def test_every_contributor_ends_once() -> None:
    """Random arrivals at both ports, absences among them, expiry in between."""
    for seed in range(30):
        chance, join = Random(seed), diamond().joins[0]
        came: list[object] = []
        left: list[object] = []
        at_ns = 0
        for step in range(200):
            at_ns += chance.choice((0, 1, join.wait_ns // 20))
            port, number = chance.randrange(2), chance.randrange(8)
            payload = chance.choice((ABSENCE, GONE, step, step, step))
            if payload is step:
                came.append(step)
            ends = list(arrive(at_ns, join, port, tuple_(number), payload))
            ends += expired(at_ns, join)
            left += [each for end in ends for each in end.entry.values if each is not None]
            for end in ends:
                full = end.entry.taken == 3
                assert end.complete == full, f"seed {seed}"
        left += [each for end in stopped(join) for each in end.entry.values if each is not None]
        assert sorted(left, key=str) == sorted(came, key=str), f"seed {seed}"


def test_a_union_is_absent_when_all_its_inputs_are() -> None:
    unit = union().units[-1]
    assert unit.inputs == 2
    assert [all_absent(unit, tuple_(number)) for number in (1, 2, 1)] == [False, False, True]
    for number in range(3, Unit.LIMIT + 3):  # number 2 is forgotten
        all_absent(unit, tuple_(number))
    assert not all_absent(unit, tuple_(2))


def test_a_removed_range_is_its_numbers_the_latest_ones_if_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [each[2] for each in numbers(tuple_(5), Removal(3))] == [3, 4, 5]
    assert numbers(tuple_(5), Progress(3)) == [] == numbers(tuple_(5), ABSENCE)
    monkeypatch.setattr(Join, "LIMIT", 2)
    assert [each[2] for each in numbers(tuple_(5), Removal(1))] == [4, 5]
