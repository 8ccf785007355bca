"""The share of each output that can at most be served, against small steps."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

from coordinator.model.problem import Item, Problem, Terminal
from coordinator.solve.overload import precedence, served_shares
from tests.coordinator.solve.overload.small_problems import node, random_problem

STEP = Fraction(1, 200)


def in_small_steps(problem: Problem, place: dict[int, int]) -> dict[str, Fraction]:
    """Rank by rank, each output that still finds room a little more at a time: what it needs runs as often as the most
    served output that needs it."""
    served = {one.name: Fraction(0) for one in problem.terminals}

    def fits(shares: dict[str, Fraction]) -> bool:
        used = dict.fromkeys((node.index for node in problem.nodes), Fraction(0))
        for index, item in enumerate(problem.items):
            share = max((shares[one.name] for one in problem.terminals if index in one.items), default=Fraction(0))
            used[place[index]] += share * item.load[place[index]]
        return all(one <= 1 for one in used.values())

    for deadline_ns in sorted({one.deadline_ns for one in problem.terminals}):
        growing = [one.name for one in problem.terminals if one.deadline_ns == deadline_ns]
        while growing:
            for name in list(growing):
                more = {**served, name: served[name] + STEP}
                if more[name] > 1 or not fits(more):
                    growing.remove(name)
                else:
                    served = more
    return served


def test_as_in_small_steps(seed: int) -> None:
    draw = Random(seed)
    for _ in range(8):
        problem = random_problem(draw)
        place = {index: draw.choice(item.nodes) for index, item in enumerate(problem.items)}
        found, expected = served_shares.served(problem, place), in_small_steps(problem, place)
        assert found.keys() == expected.keys()
        for name, share in found.items():
            assert abs(share - expected[name]) <= 4 * STEP, (name, float(share), float(expected[name]), place)


def test_what_is_shared_runs_as_often_as_the_most_served_needs() -> None:
    """Two outputs behind one operator of 60 %: what the first is served, the second has of it for nothing."""
    loads = [Fraction(6, 10), Fraction(2, 10), Fraction(5, 10)]
    items = tuple(
        Item((f"o{number}",), (0,), {0: 1}, 1, {0: load}, (1,), () if number == 0 else (0,))
        for number, load in enumerate(loads)
    )
    terminals = (Terminal("quick", 1, 10, (0, 1), 1), Terminal("slow", 2, 20, (0, 2), 1))
    problem = Problem((node(0),), items, terminals, (), frozenset(), (0, 1, 2), {})
    place = {0: 0, 1: 0, 2: 0}
    assert served_shares.served(problem, place) == {"quick": 1, "slow": Fraction(4, 10)}  # 20 % are left for its 50 %
    alike = replace(problem, terminals=tuple(replace(one, deadline_ns=10) for one in terminals))
    assert served_shares.served(alike, place) == dict.fromkeys(("quick", "slow"), Fraction(10, 13))
    assert [len(rank) for rank in precedence.ranks(alike)] == [2]
