"""The model against brute force over placements, with a feasibility test that knows no linear programme."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import InfeasibleError
from coordinator.model import problem, routes
from coordinator.model.allocation import Allocation
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.solve import sub_deadline_allocation
from coordinator.solve.milp import deadline, milp
from coordinator.spec import input_files
from tests.coordinator.solve.milp.laxity_oracle import TIE, Laxity
from tests.seeds import seeds

MS = 10**6
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:1"}
  b: {address: "127.0.0.1:2", speed: 2}
  c: {address: "127.0.0.1:3"}
"""

DUE_IN_ANOTHER_ORDER = """
shimekiri: 1
query: q
sources:
  s1: {at: a, type: json, arrival: {burst: 1, period: 1 s}}
  s2: {at: a, type: json, arrival: {burst: 1, period: 1 s}}
  s3: {at: c, type: json, arrival: {burst: 1, period: 1 s}}
operators:
  i: {run: pass, in: s1, cost: 1 ms, nodes: [a]}
  j: {run: pass, in: s2, cost: 2 ms, nodes: [a]}
  k: {run: pass, in: j, cost: 2 ms, nodes: [c]}
  m: {run: pass, in: s3, cost: 14 ms, nodes: [c]}
outputs:
  one: {from: i, at: a, deadline: 14.9 ms}
  two: {from: k, at: c, deadline: 30 ms}
  three: {from: m, at: c, deadline: 14 ms}
"""

CUT_OFF = """
shimekiri: 1
query: q
sources:
  s1: {at: b, type: json, arrival: {burst: 8, period: 1 s}}
operators:
  o1: {run: pass, in: s1, selectivity: {mean: 1}, cost: 1.459 ms, nodes: [c, a]}
  o2: {run: pass, in: s1, selectivity: {mean: 0.1}, cost: 4 ms, nodes: [c, b]}
  o3: {run: join, in: [o2, o1], cost: 4 ms}
  o4: {run: pass, in: o2, selectivity: {mean: 2}, cost: 5 ms}
  o5: {run: join, in: [o2, o3], cost: 2.4 ms}
  o6: {run: pass, in: o2, selectivity: {mean: 1.5}, cost: 5 ms, nodes: [a, b]}
outputs:
  out_o4: {from: o4, at: a, deadline: 120 ms}
  out_o5: {from: o5, at: a, deadline: 50.922 ms}
  out_o6: {from: o6, at: c, deadline: 46 ms}
  out_o3: {from: o3, at: c, deadline: 36.866 ms}
"""


def _random_query(seed: int) -> str:
    """Two sources, five or six operators; joins of one source's branches, pins, fan-out, deadlines near the cost."""
    dice = random.Random(seed)
    sources = "".join(
        f"  s{i}: {{at: {dice.choice('abc')}, type: json, arrival: {{burst: {dice.randint(1, 8)}, period: 1 s}}}}\n"
        for i in (1, 2)
    )
    reads: dict[str, str] = {}
    operators, streams, lineage = "", ["s1", "s2"], {"s1": "s1", "s2": "s2"}
    for number in range(1, dice.randint(5, 6) + 1):
        name = f"o{number}"
        first = dice.choice(streams)
        others = [one for one in streams if lineage[one] == lineage[first] and one != first]
        if others and dice.random() < 0.25:
            second = dice.choice(others)
            text = f"run: join, in: [{first}, {second}]"
            reads[second] = name
        else:
            text = f"run: pass, in: {first}, selectivity: {{mean: {dice.choice([0.3, 0.5, 1, 2])}}}"
        reads[first] = name
        pin = f", nodes: [{dice.choice('ab')}]" if dice.random() < 0.6 else ""
        operators += f"  {name}: {{{text}, cost: {dice.randint(1, 9)} ms{pin}}}\n"
        streams.append(name)
        lineage[name] = lineage[first]
    ends = [one for one in streams if one not in reads and one.startswith("o")]
    for one in ("s1", "s2"):
        if one not in reads:
            operators += f"  last{one}: {{run: pass, in: {one}, cost: 1 ms}}\n"
            ends.append(f"last{one}")
    tapped = [one for one in reads if one.startswith("o") and dice.random() < 0.3]
    outputs = ""
    for one in ends + tapped:
        at, deadline_ms = dice.choice("abc"), dice.choice((1, 2, 3)) * dice.randint(25, 80)
        outputs += f"  out_{one}: {{from: {one}, at: {at}, deadline: {deadline_ms} ms}}\n"
    return f"shimekiri: 1\nquery: q\nsources:\n{sources}operators:\n{operators}outputs:\n{outputs}"


def _feasible(built: Problem, place: dict[int, int]) -> bool:
    """Demand rows as lower bounds, summed along every path, listed one by one."""
    busy = dict.fromkeys(range(len(built.nodes)), 0)
    least = {}
    for index in built.order:
        busy[place[index]] += built.items[index].cost_ns[place[index]]
        least[index] = busy[place[index]]
    for node in built.nodes:
        load = sum(item.load[node.index] for i, item in enumerate(built.items) if place[i] == node.index)
        if load > node.cap:
            return False

    def longest(index: int) -> int:
        return least[index] + max((longest(one) for one in built.items[index].before), default=0)

    return all(longest(terminal.end) <= terminal.deadline_ns for terminal in built.terminals)


def _even(built: Problem, place: dict[int, int]) -> bool:
    """NLR 0: the EDF demand test with every sub-deadline at (1)."""
    due: dict[int, Fraction] = {}
    for terminal in built.terminals:
        for index in terminal.items:
            due[index] = min(due.get(index, terminal.share(built.items[index])), terminal.share(built.items[index]))
    due_ns = {index: int(value) for index, value in due.items()}
    for node in range(len(built.nodes)):
        here = [index for index in due_ns if place[index] == node]
        for limit in {due_ns[index] for index in here}:
            if sum(built.items[index].cost_ns[node] for index in here if due_ns[index] <= limit) > limit:
                return False
    return True


def _is_least(built: Problem, feasible: list[dict[int, int]], found: Allocation) -> None:
    """No placement has less NLR, and none with the same has less traffic."""
    laxity = Laxity(built)
    of = [(laxity.of(place), routes.traffic(built, routes.direct(built, place))) for place in feasible]
    least = min(nlr for nlr, _ in of)
    tie = least + TIE * (1 + least)
    assert laxity.of(found.place) <= tie
    assert found.nlr == pytest.approx(least, abs=2 * TIE * (1 + least))
    assert found.traffic == min(traffic for nlr, traffic in of if nlr <= tie)


@pytest.mark.parametrize("solver", ["highs", "gscip"])
def test_the_solvers_tolerance_leaves_no_traffic(solver: Any, files: Callable[[str, str], tuple[Path, Path]]) -> None:
    """A row of NLR with less room than the tolerance had cut off the placement of 19.6 tuples for one of 22."""
    query, cluster, _ = input_files.read_files(*files(CUT_OFF, CLUSTER))
    assert cluster is not None
    built = problem.build(query, cluster, {})
    every = [dict(enumerate(nodes)) for nodes in product(*(item.nodes for item in built.items))]
    found = deadline.allocate(built, Limits(solver=solver))
    assert found.proven and float(found.traffic) == 19.6
    _is_least(built, [place for place in every if _feasible(built, place)], found)


@pytest.mark.parametrize("seed", [571, 1319])
@pytest.mark.parametrize("meshed", [True, False])
def test_the_solvers_tolerance_leaves_no_optimum_unproven(
    seed: int, meshed: bool, files: Callable[[str, str], tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same row had left no placement at all, in one of the two forms of routes."""
    query, cluster, _ = input_files.read_files(*files(_random_query(seed), CLUSTER))
    assert cluster is not None
    built = problem.build(query, cluster, {})
    every = [dict(enumerate(nodes)) for nodes in product(*(item.nodes for item in built.items))]
    monkeypatch.setattr(Problem, "meshed", property(lambda _: meshed))
    found = deadline.allocate(built, Limits())
    assert found.proven and found.nlr > 0
    _is_least(built, [place for place in every if _feasible(built, place)], found)


@pytest.mark.parametrize("seed", seeds(range(40)))
def test_against_every_placement(seed: int, files: Callable[[str, str], tuple[Path, Path]]) -> None:
    query, cluster, _ = input_files.read_files(*files(_random_query(seed), CLUSTER))
    assert cluster is not None
    built = problem.build(query, cluster, {})
    every = [dict(enumerate(nodes)) for nodes in product(*(item.nodes for item in built.items))]
    feasible = [place for place in every if _feasible(built, place)]
    even = [place for place in feasible if _even(built, place)]
    if not feasible:
        with pytest.raises(InfeasibleError) as raised:
            deadline.allocate(built, Limits())
        assert raised.value.reasons
        return
    found = deadline.allocate(built, Limits())
    assert dict(found.place) in feasible
    assert (found.nlr == 0) == bool(even)
    assert found.proven
    _is_least(built, feasible, found)
    for terminal in built.terminals:
        assert sub_deadline_allocation.longest_path(built, terminal, found.d_ns)[0] <= terminal.deadline_ns


@pytest.mark.parametrize("seed", [1, 9, 26, 27])
def test_no_placement_is_more_even_than_the_optimum(seed: int, files: Callable[[str, str], tuple[Path, Path]]) -> None:
    """Where NLR is above 0: against the linear programme of every feasible placement."""
    query, cluster, _ = input_files.read_files(*files(_random_query(seed), CLUSTER))
    assert cluster is not None
    built = problem.build(query, cluster, {})
    every = [dict(enumerate(nodes)) for nodes in product(*(item.nodes for item in built.items))]
    feasible = [place for place in every if _feasible(built, place)]
    found = deadline.allocate(built, Limits())
    others = [deadline.allocate(built, Limits(), fixed=place) for place in feasible[:: max(1, len(feasible) // 40)]]
    assert found.nlr <= min(other.nlr for other in others) + 1e-5
    same = deadline.allocate(built, Limits(), fixed=found.place)
    assert same.nlr == pytest.approx(found.nlr, abs=1e-5)


@pytest.mark.parametrize("seed", seeds(range(0, 40, 4)))
def test_both_solvers_and_both_forms_of_routes_agree(
    seed: int, files: Callable[[str, str], tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """HiGHS with direct routes against GSCIP with (7) to (9) and (11) as printed."""
    query, cluster, _ = input_files.read_files(*files(_random_query(seed), CLUSTER))
    assert cluster is not None
    built = problem.build(query, cluster, {})

    def solved(solver: Any) -> tuple[float, float] | None:
        try:
            found = deadline.allocate(built, Limits(solver=solver))
        except InfeasibleError:
            return None
        return round(found.nlr, 5), float(found.traffic)

    highs = solved("highs")
    monkeypatch.setattr(Problem, "meshed", property(lambda _: False))
    gscip = solved("gscip")
    assert (highs is None) == (gscip is None)
    if highs and gscip:
        assert highs == pytest.approx(gscip, abs=1e-4)


@pytest.mark.parametrize("seed", [1, 9, 26])
def test_settling_takes_back_what_was_too_much(seed: int, files: Callable[[str, str], tuple[Path, Path]]) -> None:
    query, cluster, _ = input_files.read_files(*files(_random_query(seed), CLUSTER))
    assert cluster is not None
    built = problem.build(query, cluster, {})
    place = deadline.allocate(built, Limits()).place
    settled = sub_deadline_allocation.settle(built, place, {index: Fraction(10**9) for index in place})
    assert settled is not None
    least = sub_deadline_allocation.least_ns(built, place)
    assert all(settled[index] >= least[index] for index in place)
    for terminal in built.terminals:
        assert sub_deadline_allocation.longest_path(built, terminal, settled)[0] <= terminal.deadline_ns


def test_proportional_rounds_down(files: Callable[[str, str], tuple[Path, Path]]) -> None:
    query, cluster, _ = input_files.read_files(*files(_random_query(3), CLUSTER))
    assert cluster is not None
    built = problem.build(query, cluster, {})
    due = milp.proportional(built)
    for terminal in built.terminals:
        assert sub_deadline_allocation.longest_path(built, terminal, due)[0] <= terminal.deadline_ns


def test_sub_deadlines_may_be_due_in_another_order_than_that_of_the_demand_rows(
    files: Callable[[str, str], tuple[Path, Path]],
) -> None:
    """j and k have d' = 15 ms each of their 30. m leaves k 16 ms at least, so j gets 14: 1 ms off at 2 ms, twice. i is
    before j by d', due after it by d, and keeps its own d' of 14.9 ms: what is due by 14 ms costs 3 ms there at most.
    """
    query, cluster, _ = input_files.read_files(*files(DUE_IN_ANOTHER_ORDER, CLUSTER))
    assert cluster is not None
    built = problem.build(query, cluster, {})
    found = deadline.allocate(built, Limits())
    d_ns = {item.members[0]: found.d_ns[index] for index, item in enumerate(built.items)}
    assert d_ns == {"i": 14_900_000, "j": 14 * MS, "k": 16 * MS, "m": 14 * MS}
    assert (found.nlr, found.bound) == (1.0, 1.0)
    ranked = [built.items[index].members[0] for index in built.order]
    assert ranked.index("i") < ranked.index("j")
