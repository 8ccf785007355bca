"""Large problems' road against brute force over all placements, and the whole street on generated queries."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from coordinator.errors import InfeasibleError, OutOfTimeError
from coordinator.model import problem
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem, Stream
from coordinator.model.progress import Progress
from coordinator.solve import planner
from coordinator.solve.audit.audit import audit
from coordinator.solve.columns.laxity_shares import latest_ns
from coordinator.solve.heuristics import bound, greedy, neighbourhood, scale
from coordinator.solve.heuristics.search_state import Score, SearchState
from coordinator.solve.milp import deadline, milp
from coordinator.spec import input_files
from infra.bench.planner.instances import SHAPES, Recipe, generate, write

pytestmark = pytest.mark.long

SLACKS = (0.7, 1.0, 1.5, 3.0)
MANY = 1e18


def _built(recipe: Recipe, directory: Path) -> Problem:
    query, cluster, _ = input_files.read_files(*write(recipe, directory))
    assert cluster is not None
    return problem.build(query, cluster, {})


def _every(built: Problem) -> Iterator[dict[int, int]]:
    for nodes in product(*(item.nodes for item in built.items)):
        yield dict(enumerate(nodes))


def _least(built: Problem, place: dict[int, int]) -> dict[int, int]:
    busy = dict.fromkeys(range(len(built.nodes)), 0)
    least = {}
    for index in built.order:
        busy[place[index]] += built.items[index].cost_ns[place[index]]
        least[index] = busy[place[index]]
    return least


def _traffic(built: Problem, place: dict[int, int]) -> float:
    found = 0.0
    for stream in built.streams:
        start = stream.node if stream.item is None else place[stream.item]
        found += float(stream.tuples) * len(({place[one] for one in stream.readers} | set(stream.sinks)) - {start})
    return found


def _brute(built: Problem) -> tuple[bool, float | None]:
    """(feasible at all, least traffic with every sub-deadline at (1)), knowing nothing of the state."""
    feasible, best = False, MANY
    due = {
        index: min(int(one.share(item)) for one in built.terminals if index in one.items)
        for index, item in enumerate(built.items)
    }
    for place in _every(built):
        least = _least(built, place)
        load = [sum(i.load[n] for k, i in enumerate(built.items) if place[k] == n) for n in range(len(built.nodes))]
        if any(used > built.nodes[node].cap for node, used in enumerate(load)):
            continue

        def longest(index: int, least: dict[int, int] = least) -> int:
            return least[index] + max((longest(one) for one in built.items[index].before), default=0)

        feasible = feasible or all(longest(one.end) <= one.deadline_ns for one in built.terminals)
        if all(least[index] <= due[index] for index in due):
            best = min(best, _traffic(built, place))
    return feasible, best if best < MANY else None


def _recipe(seed: int) -> Recipe:
    return Recipe(2 + seed % 2, 4 + seed % 3, SHAPES[seed % 4], SLACKS[seed // 4 % 4], seed)


# A group has every shape with every slack.
@pytest.mark.parametrize("group", [0, *(pytest.param(group, marks=pytest.mark.soak) for group in range(1, 8))])
def test_against_every_placement(group: int, tmp_path: Path) -> None:
    """25 graphs each: both roads find what brute force finds, and no bound is above it."""
    for seed in range(group * 25, group * 25 + 25):
        built = _built(_recipe(seed), tmp_path)
        feasible, traffic = _brute(built)
        if not feasible:
            with pytest.raises(InfeasibleError):
                deadline.allocate(built, Limits())
            with pytest.raises((InfeasibleError, OutOfTimeError)):
                scale.allocate(built, Limits(0.05))
            continue
        even = bound.TrafficModel(built, milp.proportional(built)).bound(Limits(), time.monotonic() + 20, True)
        if traffic is None:
            continue
        exact = deadline.allocate(built, Limits())
        assert exact.nlr == 0, seed
        assert float(exact.traffic) == pytest.approx(traffic), seed
        assert even.value <= traffic * (1 + 1e-9), seed
        found = scale.allocate(built, Limits(0.06))
        assert found.traffic_bound is not None
        assert found.traffic_bound <= traffic * (1 + 1e-9) or found.nlr > 0, seed
        if found.proven:
            assert found.nlr == 0, seed
            assert float(found.traffic) == pytest.approx(traffic), seed


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), slack=st.sampled_from((0.6, 0.8, 1.0, 1.2)))
def test_any_plans_traffic_is_bounded_below(seed: int, slack: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    recipe = Recipe(2, 5, SHAPES[seed % 4], slack, seed)
    note(f"{recipe}")
    built = _built(recipe, tmp_path_factory.mktemp("bounds"))
    try:
        exact = deadline.allocate(built, Limits(20))
    except InfeasibleError:
        return
    any_plan = bound.TrafficModel(built, latest_ns(built)).bound(Limits(), time.monotonic() + 20, True)
    assert not any_plan.infeasible
    assert any_plan.value <= float(exact.traffic) + 1e-6


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6), slack=st.sampled_from(SLACKS))
def test_the_board_counts_as_if_from_scratch(seed: int, slack: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    """After any moves the figures are those of the placement, and no step of the search makes it worse."""
    recipe = Recipe(4, 16, "mixed", slack, seed)
    note(f"{recipe}")
    built = _built(recipe, tmp_path_factory.mktemp("state"))
    dice, due = random.Random(seed), milp.proportional(built)
    state = SearchState(built, due)
    score = greedy.start(state, lambda: False)
    for _ in range(2):
        score = _no_worse(state, score, greedy.descend(state, dice, count(60)))
        items = neighbourhood.ball(state, dice, 6)
        greedy.recreate(state, items, dice)
        score = _no_worse(state, score, state.score())
        wanted = state.wanted_ns()
        held = [max(state.least[i], int(wanted[i])) for i in range(len(state.place))]
        neighbourhood.improve(state, items + neighbourhood.crowd(state, items, dice, 4), held, dice, Limits(1))
        score = _no_worse(state, score, state.score())
    fresh = SearchState(built, due)
    fresh.load_placement(dict(enumerate(state.place)))
    assert [fresh.score().over, fresh.score().nlr, fresh.score().traffic] == pytest.approx(
        [score.over, score.nlr, score.traffic], abs=1e-6
    )
    assert fresh.score().traffic == pytest.approx(_traffic(built, dict(enumerate(state.place))))


def count(calls: int) -> Callable[[], bool]:
    """Stops a search after so many questions, on any machine at the same place."""
    left = iter(range(calls))
    return lambda: next(left, None) is None


def _no_worse(state: SearchState, before: Score, after: Score) -> Score:
    assert not before.better(after)
    assert not state.score().better(after)
    assert not after.better(state.score())
    return after


@pytest.mark.parametrize(
    ("shape", "slack"),
    [
        ("mixed", 3.0),
        pytest.param("tree", 1.5, marks=pytest.mark.soak),
        pytest.param("layered", 3.0, marks=pytest.mark.soak),
        pytest.param("shared", 1.2, marks=pytest.mark.soak),
    ],
)
def test_large_plans_pass_the_audit(shape: str, slack: float, tmp_path: Path) -> None:
    recipe = Recipe(12, 44, shape, slack, 1)  # type: ignore[arg-type]
    paths = write(recipe, tmp_path)
    seen: list[Progress] = []
    plan = planner.make_plan(*paths, Choices(model="paper", limits=Limits(2)), seen.append)
    assert audit(plan) == []
    assert seen, "the road for large problems was not taken"
    objective = plan.objective
    if plan.status == "feasible":
        assert objective.traffic_bound is not None and 0 <= objective.traffic_bound <= objective.traffic
    held = [one for one in seen if one.held]
    assert [one.traffic for one in held if one.nlr == 0] == sorted(
        (one.traffic for one in held if one.nlr == 0), reverse=True
    )


def test_an_interrupt_returns_the_best_so_far(tmp_path: Path) -> None:
    built = _built(Recipe(10, 60, slack=3.0), tmp_path)
    assert scale.takes(built, Limits())

    def watch(now: Progress) -> None:
        if now.held:
            raise KeyboardInterrupt

    found = scale.allocate(built, Limits(5), watch)
    assert not found.proven
    assert len(found.place) == len(built.items)


@pytest.mark.parametrize(("units", "proven"), [(Fraction(1, 2), True), (Fraction(2), False)])
def test_a_plan_within_tolerance_of_its_bound_is_optimal_only_if_no_traffic_lies_between(
    units: Fraction, proven: bool, tmp_path: Path
) -> None:
    """A million tuples more: two units are then less than the tolerance at which the search ends."""
    built = _built(Recipe(3, 6, "tree", 3.0, 1), tmp_path)
    place = deadline.allocate(built, Limits()).place
    heavy = next(i for i, stream in enumerate(built.streams) if _hops(built, place, stream))
    streams = list(built.streams)
    streams[heavy] = replace(streams[heavy], tuples=streams[heavy].tuples + 10**8)
    search = scale._Search(replace(built, streams=tuple(streams)), Limits(1), None, 1.0)
    search.state.load_placement(dict(place))
    search._keep()
    assert search.best is not None and search.best[0].nlr == 0
    traffic = Fraction(search.best[0].traffic)
    search.proof.even = float(traffic - units * search.unit)
    assert search._closed(search.best[0])
    assert search.result().proven is proven


def _hops(built: Problem, place: Mapping[int, int], stream: Stream) -> int:
    start = stream.node if stream.item is None else place[stream.item]
    return len(({place[one] for one in stream.readers} | set(stream.sinks)) - {start})


def test_a_recipe_is_the_same_text_each_time() -> None:
    recipe = Recipe(5, 40, "mixed", 1.5, 7)
    assert generate(recipe) == generate(recipe)
    assert generate(recipe) != generate(Recipe(5, 40, "mixed", 1.5, 8))


def test_what_is_impossible_is_proven(tmp_path: Path) -> None:
    built = _built(Recipe(10, 60, slack=0.05), tmp_path)
    with pytest.raises((InfeasibleError, OutOfTimeError)):
        scale.allocate(built, Limits(3))


def test_a_proof_that_goes_on_neither_crashes_nor_keeps_the_process() -> None:
    """HiGHS heeds no interrupter: an interpreter that ends meanwhile crashes, one that waits takes minutes."""
    code = """if True:
        import sys, threading
        from coordinator import __main__ as command
        from coordinator.solve.heuristics import scale
        assert command.PROVER == scale.PROVER
        threading.Thread(target=threading.Event().wait, name=scale.PROVER).start()
        sys.argv = ["coordinator", *sys.argv[1:]]
        command.program()
    """
    for words, ends in ((["--version"], 0), (["explain", "no.json"], 2)):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == ends and (done.stdout or done.stderr), done


def test_the_proof_is_no_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    provers: list[bool] = []

    class Watched(threading.Thread):
        def start(self) -> None:
            if self.name == scale.PROVER:
                provers.append(self.daemon)
            super().start()

    monkeypatch.setattr(threading, "Thread", Watched)
    scale.allocate(_built(Recipe(10, 100, slack=3.0), tmp_path), Limits(20))
    assert provers == [False]
