"""Annealing against every placement, with items that may be on some nodes only, and its sums against fresh ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from coordinator.model import problem, routes
from coordinator.model.problem import Item, Problem
from coordinator.solve import sub_deadline_allocation
from coordinator.solve.heuristics import greedy
from coordinator.solve.heuristics.annealing import Annealing
from coordinator.solve.heuristics.search_state import SearchState
from coordinator.solve.milp import milp
from coordinator.spec import input_files
from infra.bench.planner.instances import Recipe, write

TURNS = 20  # of some hundred moves each


def _narrowed(item: Item, dice: random.Random) -> Item:
    """Leaves out a node, of an item that has three."""
    if len(item.nodes) < 3 or dice.random() < 0.6:
        return item
    nodes = tuple(sorted(dice.sample(item.nodes, 2)))
    cost_ns = {node: item.cost_ns[node] for node in nodes}
    return replace(item, nodes=nodes, cost_ns=cost_ns, load={node: item.load[node] for node in nodes})


def _built(recipe: Recipe, directory: Path, dice: random.Random | None = None) -> Problem:
    query, cluster, _ = input_files.read_files(*write(recipe, directory))
    assert cluster is not None
    built = problem.build(query, cluster, {})
    return built if dice is None else replace(built, items=tuple(_narrowed(item, dice) for item in built.items))


def _traffic(built: Problem, place: Sequence[int]) -> float | None:
    """Of a placement with every sub-deadline at (1) and every node within its cap; None: it is none."""
    at, due = dict(enumerate(place)), milp.proportional(built)
    if any(node not in item.nodes for node, item in zip(place, built.items, strict=True)):
        return None
    for number, node in enumerate(built.nodes):
        if sum(item.load[number] for index, item in enumerate(built.items) if at[index] == number) > node.cap:
            return None
    least = sub_deadline_allocation.least_ns(built, at)
    if any(least[index] > due[index] for index in due):
        return None
    return float(routes.traffic(built, routes.direct(built, at)))


def _counted(turns: int) -> Callable[[], float]:
    parts = iter(number / turns for number in range(turns + 1))
    return lambda: next(parts)


def _annealed(built: Problem, seed: int, turns: int = TURNS) -> tuple[Annealing, list[tuple[int, ...]]]:
    """The annealing as it ended, and the placements that it found, one after the other."""
    state = SearchState(built, milp.proportional(built))
    greedy.start(state, lambda: False)
    found: list[tuple[int, ...]] = []
    annealing = Annealing(state, random.Random(seed))
    annealing.run(_counted(turns), lambda place: found.append(tuple(place)))
    return annealing, found


def _against_every_placement(dice: random.Random, directory: Path, rounds: int) -> None:
    for _ in range(rounds):
        recipe = Recipe(
            dice.choice((2, 3)), dice.choice((4, 6)), "mixed", dice.choice((0.7, 1.0, 1.5)), dice.randrange(10**6)
        )
        built = _built(recipe, directory, dice)
        every = [_traffic(built, place) for place in product(*(item.nodes for item in built.items))]
        least = min((each for each in every if each is not None), default=None)
        _, found = _annealed(built, dice.randrange(10**6))
        if not any(len(item.nodes) > 1 for item in built.items):
            continue
        seen = [_traffic(built, place) for place in found]
        assert None not in seen and seen == sorted(seen, reverse=True), recipe  # type: ignore[type-var]
        assert (seen[-1] if seen else None) == least, recipe


def test_annealing_finds_the_least_of_every_placement(seed: int, tmp_path: Path) -> None:
    _against_every_placement(random.Random(seed), tmp_path, 15)


@pytest.mark.soak
def test_annealing_finds_the_least_of_many_problems(seed: int, tmp_path: Path) -> None:
    _against_every_placement(random.Random(seed), tmp_path, 500)


def test_its_sums_are_those_of_its_placement(seed: int, tmp_path: Path) -> None:
    built = _built(Recipe(6, 60, slack=1.2, seed=seed % 1000), tmp_path)
    annealing, found = _annealed(built, seed)
    state = SearchState(built, milp.proportional(built))
    state.load_placement(dict(enumerate(annealing.place)))
    fresh = Annealing(state, random.Random(seed))
    assert annealing.traffic == pytest.approx(fresh.traffic)
    assert (annealing.late, annealing.here) == (fresh.late, fresh.here)
    assert (annealing.users, annealing.start) == (fresh.users, fresh.start)
    for place in found:
        assert _traffic(built, place) is not None


def test_the_same_seed_finds_the_same(tmp_path: Path) -> None:
    built = _built(Recipe(6, 60, slack=1.5, seed=3), tmp_path)
    assert _annealed(built, 5)[1] == _annealed(built, 5)[1]
    assert _annealed(built, 5)[1] != _annealed(built, 6)[1]
