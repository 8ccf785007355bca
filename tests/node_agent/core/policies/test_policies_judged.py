"""What the papers' policies really do: printed PQED misses in an admitted set, the printed controller never grows, the
feed-forward law, and how much a decision costs in operations."""

import heapq
from itertools import accumulate
from math import log, log2
from typing import Any

import pytest

from infra.papers.policies import POLICIES, policy
from node_agent.core import queues
from node_agent.core.engine import ready_queue
from node_agent.core.plan import Arrivals, Parameters
from node_agent.core.policies.papers.ats import Control
from node_agent.virtual import random_draws
from protos import records
from tests.node_agent.core.simulated.policy_node import Arrival, Node, Shape

MS, US = 1_000_000, 1_000


def count(arrivals: tuple[Arrivals, ...], span_ns: int) -> int:
    """Tuples in a closed span."""
    return 0 if span_ns < 0 else min(1 + (span_ns + each.ahead_ns) // each.period_ns for each in arrivals)


def admitted(units: list[Shape], horizon: int) -> bool:
    """The demand test with the longest blocking (theory 3), for delay bounds; below full use beyond the horizon."""
    if sum(unit.cost_ns / max(each.period_ns for each in unit.arrivals) for unit in units) >= 1:
        return False
    for u in range(min(unit.sub_ns for unit in units), horizon):
        demand = sum(count(unit.arrivals, u - unit.sub_ns) * unit.cost_ns for unit in units)
        if demand + max((unit.cost_ns for unit in units if unit.sub_ns > u), default=0) > u:
            return False
    return True


def late(node: Node) -> list[int]:
    found = records.unpack_records(node.facts.data())
    return [each.seq for each in found if isinstance(each, records.Ran) and each.end_ns > each.due_ns]


def test_printed_pqed_misses_in_a_set_that_is_admitted_and_qed_does_not() -> None:
    """At 85 unit 1 has queued 43 tuples, the first due at 100; unit 2's is due at 102 and needs 10. No *new* demand is
    due within 17, so Z = 17: the batch runs up to 102, and what unit 2 has queued already misses."""
    units = [
        Shape(100, 10**6, 1, arrivals=(Arrivals(0, 2),)),
        Shape(30, 10**6, 10, arrivals=(Arrivals(0, 300),)),
        Shape(99, 10**6, 5, arrivals=(Arrivals(16 * 300, 300),)),
    ]
    assert admitted(units, 2000)
    arrivals = [Arrival(1, 2 * i, 1) for i in range(100)] + [Arrival(3, 0, 5) for _ in range(17)]
    arrivals.append(Arrival(2, 72, 10))
    assert late(Node(units, policy("pqed-printed")).run(arrivals)) == [len(arrivals)]
    assert late(Node(units, policy("qed")).run(arrivals)) == []
    assert late(Node(units, policy("pqed")).run(arrivals)) == []


def poisson(unit: int, count_: int, gap_ns: float, cost_ns: int, seed: int) -> list[Arrival]:
    gaps = (round(-gap_ns * log(1 - random_draws.uniform(random_draws.key(seed, unit, i)))) for i in range(count_))
    return [Arrival(unit, at_ns, cost_ns) for at_ns in accumulate(gaps)]


@pytest.mark.parametrize("gap_us", [900, 440, 150])
def test_the_printed_controller_does_not_grow_k(gap_us: int) -> None:
    """Ten Poisson queries, cost 22 us, decisions 50 us, from underload to overload: 0 growth events from k = 1."""
    units = [Shape(100 * MS * (1 + i % 5), 100 * MS * (1 + i % 5), 22 * US) for i in range(10)]
    arrivals = [each for i in range(1, 11) for each in poisson(i, 400, gap_us * US, 22 * US, seed=gap_us)]
    for name in ("ats", "ats1"):
        node = Node(units, policy(name, parameters=Parameters(phi_ns=10 * MS)), 50 * US).run(arrivals)
        assert isinstance(node.engine.ready.tuner, Control)
        assert (node.engine.ready.tuner.grown, node.engine.ready.tuner.k) == (0, 1)


class Counted(int):
    """An instant that counts how often it is compared."""

    compared = 0

    def __lt__(self, other: Any) -> bool:
        Counted.compared += 1
        return int(self) < int(other)

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return int(self) == other

    __hash__ = int.__hash__

    def __add__(self, other: int) -> "Counted":
        return Counted(int(self) + int(other))


def operations(name: str, units: int, queued: int, decisions: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """(heap operations, comparisons) of that many decisions with so many tuples queued and as many released again."""
    calls = [0]
    for each in ("heappush", "heappop", "heapreplace"):
        original = getattr(heapq, each)

        def counted(*arguments: Any, original: Any = original) -> Any:
            calls[0] += 1
            return original(*arguments)

        for module in (ready_queue, queues):
            monkeypatch.setattr(module, each, counted, raising=False)
    shape = [Shape(1000 + 7 * i, 10**9, 5, arrivals=(Arrivals(0, 10),)) for i in range(units)]
    node = Node(shape, policy(name, parameters=Parameters(phi_ns=1)))
    engine, loaded = node.engine, node.loaded

    def release(number: int) -> None:
        lineage = (1, 1, number, 0, number, number)
        engine.admit(Counted(number * 3), loaded.source_routes[1 + number * 7 % units], lineage, None, 0)

    for number in range(queued):
        release(number)
    at_ns = 3 * queued
    assert engine.next(at_ns) is not None
    calls[0], Counted.compared = 0, 0
    for number in range(queued, queued + decisions):
        release(number)
        assert engine.step(at_ns, at_ns + 1) is not None
        at_ns += 1
    found = calls[0], Counted.compared
    monkeypatch.undo()
    return found


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"edf-e2e", "edf-op"}))
def test_a_decision_costs_log_units_and_a_tuple_nothing_that_grows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the queued tuples cost no operation more; 32 times the units five levels of the heap."""
    decisions = 300
    heap, few = operations(name, 16, 2000, decisions, monkeypatch)
    more_heap, more = operations(name, 16, 20_000, decisions, monkeypatch)
    assert max(heap, more_heap) <= 3 * decisions
    assert more <= few + 4 * decisions
    for units in (16, 512):
        heap, compared = operations(name, units, 4 * units, decisions, monkeypatch)
        assert heap <= 3 * decisions
        # two comparisons of tuples per level (== and <, for key and release) on the way down and on the way up
        assert compared <= decisions * (8 * log2(units) + 16)
