"""Interval joins on the virtual cluster: all pairs of two streams within a tolerance, each once, and no others."""

from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer
from tests.sampling import sample
from tests.simulation.planned_queries import planned

MS = 1_000_000
NEAR_NS = 8 * MS
QUERY = """
shimekiri: 1
query: pairs
sources:
  s: {at: a, type: json, max_age: 20 ms, arrival: {burst: 1, period: 4 ms}}
  t: {at: b, type: json, max_age: 20 ms, arrival: {burst: 2, period: 10 ms}}
operators:
  P: {run: pass, in: s, cost: 200 us, nodes: [a]}
  F: {run: join, in: [P, t], cost: 200 us, nodes: [b], sync: {each: 8 ms, keep: KEEP}}
outputs:
  out: {from: F, at: b, deadline: 100 ms}
"""
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7710"}
links: [{between: [a, b], latency: 2 ms}]
"""


class Stamped:
    """Both sources; each value is its stamp and a number."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.stamps: dict[str, dict[int, int]] = {"s": {}, "t": {}}
        self.results: list[dict[str, list[int]]] = []

    def begin(self, trial: int) -> Sequence[Admission]:
        draw, found = Random(self._seed), list[Admission]()
        for name, period_ns, burst in (("s", 4 * MS, 1), ("t", 10 * MS, 2)):
            for at_ns in range(0, 400 * MS, period_ns):
                for _ in range(burst):
                    age_ns, number = draw.randint(0, 20 * MS), len(found)
                    self.stamps[name][number] = at_ns - age_ns
                    found.append(Admission(at_ns, name, (Offer(number, age_ns),)))
        return sorted(found, key=lambda each: each.at_ns)

    def offer(self, source: str, seq: int, at_ns: int) -> None:
        raise AssertionError("never asked")

    def deliver(self, delivery: Delivery) -> None:
        self.results.append(delivery.payload)


@pytest.mark.parametrize("seed", sample(range(4), 2))
def test_each_pair_within_the_tolerance_is_in_one_result(seed: int) -> None:
    world, plan = Stamped(seed), planned(QUERY.replace("KEEP", "64"), CLUSTER)
    assert claims(analyse(read(plan), NOTHING))["out"].missing == ()
    simulate(plan, Scenario(seed=seed), world=world)
    s, t = world.stamps["s"], world.stamps["t"]
    expected = [(one, other) for one, other in product(s, t) if abs(s[one] - t[other]) <= NEAR_NS]
    found = [pair for result in world.results for pair in product(result["P"], result["t"])]
    assert sorted(found) == expected and len(found) > 100


def test_a_plan_says_that_pairs_may_be_left_out() -> None:
    told = claims(analyse(read(planned(QUERY.replace("KEEP", "2"), CLUSTER)), NOTHING))
    assert told["out"].missing == (
        "F keeps 2 tuples of P, and more may come while others near to them are on their way",
    )
