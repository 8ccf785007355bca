"""Where what is too much goes, and what comes first, against every placement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from random import Random

from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.solve.milp import least_violation
from coordinator.solve.milp.least_violation import NEARLY, PIECE, PIECES, STEEPER
from coordinator.solve.overload import precedence
from tests.coordinator.solve.overload.small_problems import random_problem

LIMITS = Limits(seconds=10.0)


def placements(problem: Problem) -> Iterator[dict[int, int]]:
    for nodes in product(*(item.nodes for item in problem.items)):
        yield dict(enumerate(nodes))


def used(problem: Problem, place: Mapping[int, int], items: frozenset[int]) -> list[Fraction]:
    """Of each node by these items."""
    found = [Fraction(0) for _ in problem.nodes]
    for index in items:
        found[place[index]] += problem.items[index].load[place[index]]
    return found


def weight(problem: Problem, place: Mapping[int, int]) -> float:
    """Of what is too much on all nodes together: each tenth of a cap more than the one before."""
    total = 0.0
    for node, load in zip(problem.nodes, used(problem, place, frozenset(place)), strict=True):
        left = max(0.0, float(load / node.cap) - 1)
        for number in range(PIECES):
            piece = min(left, PIECE) if number + 1 < PIECES else left
            total += float(node.cap) * (1 + STEEPER * number) * piece
            left -= piece
    return total


def within(problem: Problem, place: Mapping[int, int], items: frozenset[int]) -> bool:
    loads = used(problem, place, items)
    return all(load <= node.cap for node, load in zip(problem.nodes, loads, strict=True))


def test_against_every_placement(seed: int) -> None:
    draw, looked_at = Random(seed), 0
    while looked_at < 6:
        problem = random_problem(draw)
        every = list(placements(problem))
        if any(within(problem, place, frozenset(place)) for place in every):
            continue  # not too much
        looked_at += 1
        first = frozenset(precedence.first(problem, LIMITS))
        ranks = precedence.ranks(problem)
        prefixes = [precedence.items_of(ranks[:number]) for number in range(len(ranks))]
        fitting = [items for items in prefixes if any(within(problem, place, items) for place in every)]
        assert first == fitting[-1], (first, fitting)
        found = least_violation.spread(problem, LIMITS, first)
        assert found is not None and within(problem, found.place, first)
        least = min(weight(problem, place) for place in every if within(problem, place, first))
        assert weight(problem, found.place) <= least * (1 + NEARLY) + 1e-4
        for node, load in zip(found.problem.nodes, used(problem, found.place, frozenset(found.place)), strict=True):
            assert node.cap == max(problem.nodes[node.index].cap, load)
