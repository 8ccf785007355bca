"""Schedules as columns: a node's programme against every subset, bounds and dives against every placement."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from coordinator.model import problem
from coordinator.model.problem import Problem
from coordinator.solve import sub_deadline_allocation
from coordinator.solve.columns.generation import Generation
from coordinator.solve.columns.lagrangian import Lagrangian, Multipliers
from coordinator.solve.columns.laxity_shares import latest_ns, longest_path, shares
from coordinator.solve.columns.pricing import NodePricing, Piece, Price, Schedule
from coordinator.spec import input_files
from infra.bench.planner.instances import SHAPES, Recipe, write
from tests.coordinator.solve.milp.laxity_oracle import Laxity

SLACKS = (0.5, 0.6, 0.7, 0.8, 1.0)
CLOSE = 1e-6


def _built(recipe: Recipe, directory: Path) -> Problem:
    query, cluster, _ = input_files.read_files(*write(recipe, directory))
    assert cluster is not None
    return problem.build(query, cluster, {})


def _nodes(built: Problem, index: int) -> tuple[int, ...]:
    return (built.held[index],) if index in built.held else built.items[index].nodes


def _placements(built: Problem) -> list[dict[int, int]]:
    """Those that hold every deadline and cap."""
    found = []
    for nodes in product(*(_nodes(built, index) for index in range(len(built.items)))):
        place = dict(enumerate(nodes))
        least = sub_deadline_allocation.least_ns(built, place)
        load = [sum(i.load[n] for k, i in enumerate(built.items) if place[k] == n) for n in range(len(built.nodes))]
        within = all(
            sub_deadline_allocation.longest_path(built, one, least)[0] <= one.deadline_ns for one in built.terminals
        )
        if within and all(used <= built.nodes[node].cap for node, used in enumerate(load)):
            found.append(place)
    return found


def _least(built: Problem) -> float | None:
    """NLR of the best placement, by a linear programme for each; None where no placement holds."""
    laxity = Laxity(built)
    return min((laxity.of(place) for place in _placements(built)), default=None)


def _prices(dice: random.Random, built: Problem) -> list[Price]:
    found = []
    for own in shares(built):
        pieces = tuple(
            Piece(one.due_ns, one.per_ns * (1 + dice.random()), one.per_ns * dice.choice((0.0, 0.3))) for one in own
        )
        found.append(Price(dice.choice((0.0, dice.random() * 4)), pieces))
    return found


def _value(prices: list[Price], found: Schedule) -> float:
    ends = np.array(found.ends_ns, dtype=np.float64)
    return float(sum(prices[index].at(ends[at : at + 1])[0] for at, index in enumerate(found.items)))


def _every_schedule(pricing: NodePricing) -> list[Schedule]:
    found = []
    for size in range(len(pricing.jobs) + 1):
        for jobs in combinations(pricing.jobs, size):
            ends = [sum(job.cost_ns for job in jobs[: at + 1]) for at in range(size)]
            within = all(end <= job.latest_ns for job, end in zip(jobs, ends, strict=True))
            if within and all(job in jobs for job in pricing.jobs if job.pinned):
                found.append(Schedule(pricing.node, tuple(job.index for job in jobs), tuple(ends)))
    return found


def test_a_nodes_best_schedule_is_that_of_all_subsets(seed: int, tmp_path: Path) -> None:
    """With many labels the value is exact; with few it is no more, and what is traced is a schedule."""
    dice = random.Random(seed)
    for _ in range(6):
        built = _built(Recipe(2, 9, "mixed", dice.choice(SLACKS), dice.randrange(10**6)), tmp_path)
        prices, latest = _prices(dice, built), latest_ns(built)
        for node in range(2):
            pricing = NodePricing(built, node, latest)
            every = _every_schedule(pricing)
            least = min((_value(prices, each) for each in every), default=float("inf"))
            exact = pricing.price(prices, 10**4, 2)
            assert exact.value == pytest.approx(least, rel=1e-9, abs=1e-9)
            for priced in (exact, pricing.price(prices, 3, 2), pricing.price(prices, 1, 2)):
                assert priced.value <= least + 1e-9
                for each in priced.schedules:
                    assert _value(prices, each) >= least - 1e-9
                    assert sorted(each.items, key=built.order.index) == list(each.items)


def _multipliers(dice: random.Random, built: Problem) -> Multipliers:
    """Any from 0 on; paths are the longest ones at shares that are drawn."""
    path, slack = {}, {}
    for number, terminal in enumerate(built.terminals):
        for _ in range(2):
            path[longest_path(built, number, {index: dice.random() for index in terminal.items})[1]] = (
                dice.random() * 2 / min(built.items[index].weight_ns for index in terminal.items)
            )
        for index in terminal.items:
            slack[number, index] = dice.choice((0.0, dice.random())) / built.items[index].weight_ns
    return Multipliers(tuple(dice.random() * 5 for _ in built.items), path, slack)


def _against_every_placement(dice: random.Random, directory: Path, rounds: int) -> int:
    """Returns how many have an NLR above 0."""
    uneven = 0
    for _ in range(rounds):
        recipe = Recipe(
            dice.choice((2, 3)),
            dice.choice((4, 5)),
            dice.choice(SHAPES),
            dice.choice(SLACKS),
            dice.randrange(10**6),
        )
        built = _built(recipe, directory)
        if dice.random() < 0.3:
            index = dice.randrange(len(built.items))
            built = replace(built, held={index: dice.choice(built.items[index].nodes)})
        least = _least(built)
        lagrangian = Lagrangian(built)
        bounds: list[float] = [
            lagrangian.at(_multipliers(dice, built), labels).bound for labels in (1, 4, 1000) for _ in range(3)
        ]
        dives: list[dict[int, int]] = []
        start = {index: dice.choice(_nodes(built, index)) for index in range(len(built.items))}
        generation = Generation(built, start, lambda: False, bounds.append, dives.append)
        generation.run(10.0)
        if least is None:
            continue
        assert max(bounds, default=0.0) <= least * (1 + 1e-9) + 1e-9, recipe
        laxity = Laxity(built)
        assert all(laxity.of(place) >= least - CLOSE for place in dives if place in _placements(built)), recipe
        uneven += least > CLOSE
    return uneven


def test_no_bound_is_above_the_least_of_every_placement(seed: int, tmp_path: Path) -> None:
    """At drawn multipliers, and at those that the generation finds."""
    assert _against_every_placement(random.Random(seed), tmp_path, 40) > 0


@pytest.mark.soak
def test_no_bound_is_above_the_least_of_many_problems(seed: int, tmp_path: Path) -> None:
    assert _against_every_placement(random.Random(seed), tmp_path, 1000) > 100


def test_what_a_node_cannot_run_is_impossible(tmp_path: Path) -> None:
    """Pinned items that no deadline leaves room for: the bound is infinite."""
    built = _built(Recipe(10, 60, slack=0.05), tmp_path)
    bounds: list[float] = []
    Generation(
        built, {index: item.nodes[0] for index, item in enumerate(built.items)}, lambda: False, bounds.append, print
    ).run(10.0)
    assert bounds and bounds[-1] == float("inf")
