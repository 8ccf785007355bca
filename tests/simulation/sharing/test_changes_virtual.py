"""A query is added while another runs, and removed again: the one that stands notices nothing.

Random queries, instants, spreads between the nodes' commits, phases and costs. `make test` takes a few cases; more:

    SHIMEKIRI_CASES=2000 .venv/bin/python -m pytest -s tests/simulation/sharing/test_changes_virtual.py
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, note, reject
from hypothesis import strategies as st

from coordinator.change import next_plan
from coordinator.change.next_plan import Wish
from coordinator.errors import InfeasibleError
from coordinator.model import incumbent
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.change_schedule import Change
from node_agent.virtual.cost_model import parse_jitter
from node_agent.virtual.run import Simulation, simulate, write_run
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Admission, Delivery, Offer
from protos.plan.arrivals import BurstArrival, JcpArrival
from protos.plan.sources import Source
from tests.sampling import sample
from tests.simulation.sharing.random_queries_virtual import (
    BURSTS,
    MS,
    Load,
    Two,
    by_traffic,
    cluster_of,
    pairs,
    registry,
)
from tests.simulation.sharing.test_sharing_virtual import EXAMPLES, Told, of, run

DENSE = st.sampled_from([7, 12, 20]).map("{{jcp: {{period: {} ms, min_gap: 1 ms, early: 0 ms, late: 30 ms}}}}".format)
BUSY = Load(st.one_of(BURSTS, DENSE), deadlines_ms=(60, 150, 900))


def judged(done: Simulation) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        write_run(done, Path(folder) / "run")
        return verdict(read_run(Path(folder) / "run")).document()


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    return Scenario(
        seed=draw(st.integers(0, 2**32)),
        bursts=12,
        jitter=parse_jitter(draw(st.sampled_from(["none", "uniform:0.3,1"]))),
        phase_ns={"s0": draw(st.integers(0, 30)) * MS},
        spread_ns=draw(st.sampled_from([0, 1, 7, 60, 150])) * MS,
    )


def _period_ns(source: Source) -> int:
    assert isinstance(source.arrival, BurstArrival | JcpArrival)
    return source.arrival.period_ns


@pytest.mark.hypothesis
def test_a_standing_query_gives_what_it_gives_without_a_change() -> None:
    seen: Counter[str] = Counter()

    @EXAMPLES
    @given(pairs(BUSY), scenarios(), st.integers(0, 1000), st.integers(1, 1000))
    def check(two: Two, scenario: Scenario, add: int, remove: int) -> None:
        try:
            alone = two.plan("first", choices=by_traffic())
            stays = replace(by_traffic(), incumbent=incumbent.read(alone, alone.placement))
            both = two.plan("first", "second", choices=stays)
        except InfeasibleError:  # more work than nodes can do
            reject()
        if "s0" not in alone.graph.sources:
            scenario = replace(scenario, phase_ns={})
        span_ns = scenario.bursts * max(_period_ns(each) for each in both.graph.sources.values())
        add_ns, later_ns = span_ns * add // 1000, span_ns * remove // 1000
        then = [Change(both, add_ns), Change(alone, add_ns + scenario.spread_ns + later_ns)]
        never = [Change(both, 100 * span_ns)]  # the same arrivals, all of them before
        still, expected = run(alone, scenario, never)
        done, results = run(alone, scenario, then)
        assert of(results, "first") == expected
        books = judged(done)
        note(str(books["conservation"]["problems"]))
        assert books["completeness"]["complete"] and books["conservation"]["balanced"]
        assert books["conservation"]["admitted"] == books["conservation"]["accounted"] == done.admitted
        unchanged = judged(still)["outputs"]
        for name in (name for name in unchanged if name.startswith("first")):
            output, told = unchanged[name], books["outputs"][name]
            keys = ("shed", "lost", "undecidable", "shed_unsure", "lost_unsure", "delivered")
            assert {key: told[key] for key in keys} == {key: output[key] for key in keys}, name
        second = of(results, "second").total()
        seen.update(cases=1, results=expected.total(), second=second, ran=bool(second))

    check()
    print(f"\n{seen['cases']} changes, {seen['results']} results of what stood, {seen['second']} of what came and went")
    assert 2 * seen["ran"] > seen["cases"]


FIRST = """
shimekiri: 1
query: first
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 10 ms}, max_age: 1 ms}
operators:
  F: {run: filter, in: s, cost: 1 ms, nodes: [b], selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}}
outputs:
  first_F: {from: F, at: b, deadline: 60 ms}
"""
SECOND = """
shimekiri: 1
query: second
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 10 ms}, max_age: 1 ms}
operators:
  F: {run: filter, in: s, cost: 1 ms, nodes: [b], selectivity: {mean: 0.5, at_most: [[1, 1], [2, 1]]}}
  G: {run: pass, in: F, cost: 1 ms, nodes: [b]}
outputs:
  second_G: {from: G, at: b, deadline: 60 ms}
"""


@pytest.mark.parametrize("seed", sample(range(2), 2))
def test_an_operator_that_runs_under_both_plans_by_turns_is_policed_as_one(seed: int) -> None:
    """Node b may commit before a does: then old tuples come between the commit and the first new one."""
    two = Two(cluster_of("ab"), FIRST, SECOND)
    with TemporaryDirectory() as folder:
        _, second, _ = two.write(Path(folder))
        one = two.plan("first", choices=Choices(quick=True, charges=NOTHING))
        both = next_plan.added(one, Path(folder) / "plan.json", second, Wish(Limits(seconds=5.0)))
    assert both.after is not None and both.verdict.admitted
    scenario = Scenario(bursts=20, seed=seed, spread_ns=35 * MS)
    _, expected = run(one, scenario)
    for at_ms in range(0, 40, 3):
        done, results = run(one, scenario, [Change(both.after, at_ms * MS)])
        assert of(results, "first") == expected and not judged(done)["conservation"]["by_cause"], at_ms


ATTACHED = """
shimekiri: 1
query: first
sources:
  s: {at: a, type: json, arrival: {burst: 1, period: 10 ms}}
  t: {at: b, type: json, arrival: {burst: 1, period: 10 s}}
operators:
  T: {run: pass, in: t, cost: 1 ms, nodes: [b]}
  A: {run: test.attach, in: s, side: {ref: T}, cost: 1 ms, nodes: [c]}
outputs:
  first_A: {from: A, at: c, deadline: 60 ms}
"""
BESIDE = ATTACHED.replace("first", "second").replace("cost: 1 ms, nodes: [c]", "cost: 2 ms, nodes: [c]")


@pytest.mark.parametrize("fresh", [False, True])
def test_what_was_read_beside_is_known_to_the_next_plan(fresh: bool) -> None:
    """A side input that comes once only, before the change or while it is made."""
    first = ATTACHED.replace("cost: 1 ms, nodes: [c]", "cost: 1 ms, state: fresh, nodes: [c]") if fresh else ATTACHED
    two = Two(cluster_of("abc"), first, BESIDE)
    one = two.plan("first", choices=by_traffic())
    both = two.plan("first", "second", choices=replace(by_traffic(), incumbent=incumbent.read(one, one.placement)))
    forgotten = 0
    for at_ms in range(20):
        scenario = Scenario(bursts=1, seed=at_ms, spread_ns=9 * MS, burst={"s": 0})
        world = Sparse(one, [Change(both, at_ms * MS)], scenario)
        simulate(one, scenario, registry(), world, then=[Change(both, at_ms * MS)])
        known = [each for _, each in sorted(world.known["first_A"])]
        assert len(known) == 30 and (fresh or any(known))
        forgotten += known != sorted(known)
    assert forgotten == 0 if not fresh else forgotten > 0


class Sparse(Told):
    """t once, at 3 ms; s every 2 ms. What A said of its side input, by seq."""

    known: dict[str, list[tuple[int, bool]]]

    def begin(self, trial: int) -> list[Admission]:  # type: ignore[override]
        self.known = {}
        often = [Admission(2 * n * MS, "s", (Offer({"seq": n, "source": "s"}),)) for n in range(30)]
        return sorted([*often, Admission(3 * MS, "t", (Offer({"seq": 1, "source": "t"}),))], key=lambda one: one.at_ns)

    def deliver(self, delivery: Delivery) -> None:
        self.known.setdefault(delivery.output, []).append((delivery.seq, delivery.payload["known"]))
