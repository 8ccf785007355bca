"""Steps that relieve late outputs: where units are cut, what a step may change, and that the search gets there."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from coordinator.calculus.selectivity import ONE, Selectivity
from coordinator.errors import InfeasibleError
from coordinator.guarantee.system import Stage
from coordinator.model import routes
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.solve.audit.audit import audit
from coordinator.solve.guaranteed import large, lower_bounds
from coordinator.solve.guaranteed.candidate import Setting, candidate
from coordinator.solve.guaranteed.objective_rank import objective_rank
from coordinator.solve.guaranteed.relief import Relief, Step, cut, longest
from coordinator.solve.guaranteed.search import Finder
from coordinator.spec import input_files
from coordinator.spec.runtime_charges import MEASURED, NOTHING
from infra.bench.planner.instances import Recipe, write
from infra.reference_system import reference_files
from tests.coordinator.guarantee.written_plans import cluster, written
from tests.coordinator.solve.guaranteed.sound_graphs import finder, placements
from tests.sampling import sample

HALF, TWICE = Selectivity(((2, 1), (1, 1))), Selectivity(((1, 2),))
HOT_PATH = (
    "PointsTransformerFront", "PointsTransformerRear", "PointCloudFusion", "VoxelGridDownsampler", "RayGroundFilter",
    "EuclideanClusterDetector", "ObjectCollisionEstimator",
)  # fmt: skip
BLOCKED = """\
shimekiri: 1
query: q
sources:
  slow: {at: a, type: json, max_age: 1 ms, arrival: {burst: 1, period: 1 s}}
  fast: {at: a, type: json, max_age: 1 ms, arrival: {burst: 1, period: 1 s}}
operators:
  l1: {run: pass, in: slow, cost: 10 ms, nodes: [a]}
  l2: {run: pass, in: l1, cost: 10 ms, nodes: [a]}
  l3: {run: pass, in: l2, cost: 10 ms, nodes: [a]}
  quick: {run: pass, in: fast, cost: 1 ms, nodes: [a]}
outputs:
  long: {from: l3, at: a, deadline: 900 ms}
  short: {from: quick, at: a, deadline: DEADLINE ms}
"""


def setting(recipe: Recipe, folder: Path) -> Setting:
    query, nodes, types = input_files.read_files(*write(recipe, folder))
    assert nodes is not None  # a path was given
    return Setting(query, nodes, types, "path")


def test_no_piece_of_a_cut_is_longer_and_none_could_be_joined(seed: int) -> None:
    draw = Random(seed)
    for _ in range(200):
        passes = [draw.choice([ONE, HALF, TWICE]) for _ in range(draw.randint(1, 6))]
        stages = tuple(Stage(f"o{i}", draw.randint(1, 9), 0, each) for i, each in enumerate(passes))
        room_ns = draw.randint(1, 30)
        begins = cut(stages, room_ns)
        if begins is None:
            assert max(stage.cost_ns for stage in stages) > room_ns
            continue
        at = [0, *(i for i, stage in enumerate(stages) if stage.operator in begins), len(stages)]
        for start, end in pairwise(at):
            assert longest(stages[start:end]) <= room_ns
        for start, end in zip(at, at[2:], strict=False):  # two pieces as one, or part of the second, are too long
            assert longest(stages[start:end]) > room_ns


@pytest.mark.parametrize("number", range(2))
def test_a_step_moves_only_what_is_free_and_stays_within_loads(number: int, tmp_path: Path) -> None:
    given = setting(Recipe(3, 24, slack=0.8, seed=number), tmp_path)
    found = Finder(given, MEASURED, Limits(300), {})
    worst = large.worst(found.conditions, MEASURED)
    items, nodes = found.problem.items, found.problem.nodes
    place = {i: item.nodes[(i * 7 + number) % len(item.nodes)] for i, item in enumerate(items)}
    names = {name: nodes[place[i]].name for i, item in enumerate(items) for name in item.members}
    laid = candidate(given, names, routes.direct(found.problem, place))
    due = dict.fromkeys(laid.system.units, 10**7)
    objective = objective_rank(laid.with_deadlines(due), MEASURED)
    assert objective.late  # else there is nothing to relieve
    names_of = {name for item in items for name in item.members}
    before = _loads(worst, place)
    count = 0
    for step in Relief(worst, Step(place, frozenset()), objective).steps():
        count += 1
        assert step.cuts <= names_of
        assert all(step.place[i] in item.nodes for i, item in enumerate(items))
        assert step.key != Step(place, frozenset()).key
        for node, load in _loads(worst, step.place).items():
            assert load <= max(nodes[node].cap, before[node]), f"{nodes[node].name} has {float(load)}"
    assert count


def test_no_step_along_a_way_fills_a_node_beyond_its_cap(tmp_path: Path) -> None:
    query, nodes, types = input_files.read_files(*reference_files.write(tmp_path, 0.7, 2))
    assert nodes is not None  # a path was given
    found = Finder(Setting(query, nodes, types, "path"), NOTHING, Limits(300), {})
    on_b = {*HOT_PATH, "NDTLocalizer", "PointCloudMapLoader"}
    place = {i: int(item.name in on_b) for i, item in enumerate(found.problem.items)}
    names = {item.name: "ab"[place[i]] for i, item in enumerate(found.problem.items)}
    laid = candidate(found.setting, names, routes.direct(found.problem, place))
    objective = objective_rank(laid.with_deadlines(dict.fromkeys(laid.system.units, 10**7)), NOTHING)
    assert objective.late  # else there is nothing to relieve
    before = _loads(found.problem, place)
    for step in Relief(found.problem, Step(place, frozenset()), objective).steps():
        for node, load in _loads(found.problem, step.place).items():
            assert load <= max(found.problem.nodes[node].cap, before[node])


def _loads(problem: Problem, place: Mapping[int, int]) -> dict[int, Fraction]:
    found = dict.fromkeys(range(len(problem.nodes)), Fraction(0))
    for item, node in place.items():
        found[node] += problem.items[item].load[node]
    return found


@pytest.mark.parametrize(("deadline", "units"), [(40, 2), (20, 4)])
def test_a_unit_is_cut_where_it_makes_an_urgent_output_late(deadline: int, units: int) -> None:
    """And in no other case; every check of a plan agrees."""
    plan = written(BLOCKED.replace("DEADLINE", str(deadline)), cluster("a"), model="sound", charges=MEASURED)
    assert len(plan.tasks["a"]) == units and not audit(plan)
    assert all(claim.guaranteed for claim in plan.guarantee.values())


def test_what_no_cut_mends_is_proven_impossible() -> None:
    with pytest.raises(InfeasibleError):
        written(BLOCKED.replace("DEADLINE", "11"), cluster("a"), model="sound", charges=MEASURED)


@pytest.mark.parametrize("number", sample(range(60), 10))
def test_no_cut_contradicts_a_proof_that_a_placement_is_late(number: int, seed: int) -> None:
    draw = Random(f"{seed} {number}")
    found = finder(draw.randrange(10**6), draw.choice([NOTHING, MEASURED]))
    for _, whole in placements(found):
        if lower_bounds.late(whole.system, found.charges) is None:
            continue
        names = list(whole.place)
        longest_ns = max(output.deadline_ns for output in whole.system.outputs.values())
        for _ in range(4):
            cuts = frozenset(name for name in names if draw.random() < 0.6)
            laid = candidate(found.setting, whole.place, whole.hops, cuts)
            due = {one: draw.randint(1, longest_ns) for one in laid.system.units}
            assert not objective_rank(laid.with_deadlines(due), found.charges).holds
        return
