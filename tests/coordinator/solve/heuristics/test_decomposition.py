"""Traffic part by part against every placement: at any prices, and at those that the master finds."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from coordinator.model import problem, routes
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.solve import sub_deadline_allocation
from coordinator.solve.columns.laxity_shares import latest_ns
from coordinator.solve.heuristics.bound import TrafficModel
from coordinator.solve.heuristics.decomposition import Decomposition
from coordinator.solve.milp import milp
from coordinator.spec import input_files
from infra.bench.planner import instances
from infra.bench.planner.instances import Recipe, write

SECONDS = 60.0


def _built(recipe: Recipe, directory: Path) -> Problem:
    query, cluster, _ = input_files.read_files(*write(recipe, directory))
    assert cluster is not None
    return problem.build(query, cluster, {})


def _least(built: Problem) -> tuple[float | None, float | None]:
    """Traffic of the best placement with every sub-deadline at (1), and of the best of all; None: there is none."""
    due = milp.proportional(built)
    even, every = [], []
    for nodes in product(*(item.nodes for item in built.items)):
        place = dict(enumerate(nodes))
        load = [sum(i.load[n] for k, i in enumerate(built.items) if place[k] == n) for n in range(len(built.nodes))]
        if any(used > built.nodes[node].cap for node, used in enumerate(load)):
            continue
        least = sub_deadline_allocation.least_ns(built, place)
        traffic = float(routes.traffic(built, routes.direct(built, place)))
        if all(least[index] <= due[index] for index in due):
            even.append(traffic)
        if all(
            sub_deadline_allocation.longest_path(built, one, least)[0] <= one.deadline_ns for one in built.terminals
        ):
            every.append(traffic)
    return min(even, default=None), min(every, default=None)


def _bound(built: Problem, due_ns: dict[int, int], drawn: random.Random | None) -> tuple[float, bool]:
    whole = TrafficModel(built, due_ns)
    until = time.monotonic() + SECONDS
    relaxed = whole.bound(Limits(), until, False)
    parts = Decomposition(whole, Limits())
    prices = whole.prices(relaxed)
    if drawn:
        prices = {row: drawn.random() * 3 for row in whole.room}
    parts.run(prices, until, lambda: False)
    if relaxed.infeasible or parts.infeasible:
        return 0.0, True
    parts.cut(whole)
    closed = whole.bound(Limits(), until, True)
    return max(parts.bound, closed.value), closed.infeasible


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "LARGEST_PART", 3)


def _against_every_placement(dice: random.Random, directory: Path, rounds: int) -> None:
    for _ in range(rounds):
        recipe = Recipe(
            dice.choice((2, 3)), dice.choice((4, 6)), "mixed", dice.choice((0.7, 1.0, 1.5)), dice.randrange(10**6)
        )
        built = _built(recipe, directory)
        even, every = _least(built)
        drawn = dice if dice.random() < 0.5 else None
        for due_ns, least in ((milp.proportional(built), even), (latest_ns(built), every)):
            bound, infeasible = _bound(built, due_ns, drawn)
            if least is not None:
                assert not infeasible and bound <= least * (1 + 1e-9), recipe


def test_no_bound_is_above_the_least_of_every_placement(seed: int, tmp_path: Path, small_parts: None) -> None:
    _against_every_placement(random.Random(seed), tmp_path, 12)


@pytest.mark.soak
def test_no_bound_is_above_the_least_of_many_problems(seed: int, tmp_path: Path, small_parts: None) -> None:
    _against_every_placement(random.Random(seed), tmp_path, 400)


def test_parts_are_bounded_better_than_the_linear_relaxation(tmp_path: Path) -> None:
    """And the whole model, with what is proven of the parts, has that bound in its own relaxation."""
    built = _built(replace(Recipe(6, 40), slack=1.5), tmp_path)
    whole = TrafficModel(built, milp.proportional(built))
    until = time.monotonic() + SECONDS
    relaxed = whole.bound(Limits(), until, False)
    parts = Decomposition(whole, Limits())
    parts.run(whole.prices(relaxed), until, lambda: False)
    assert parts.bound > relaxed.value * 1.02
    cut_short = Decomposition(whole, Limits())
    cut_short.run({}, until, lambda: True)
    cut_short.cut(whole)  # nothing is proven, so nothing is said
    assert whole.bound(Limits(), until, False).value == pytest.approx(relaxed.value)
    assert parts.guide.keys() == set(range(len(built.items)))
    parts.cut(whole)
    assert whole.bound(Limits(), until, False).value == pytest.approx(parts.bound, rel=1e-3)
