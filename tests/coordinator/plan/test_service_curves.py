"""What outputs ask beyond their deadlines: how it is divided among units, what is guaranteed of it, and that policies
that go by service curves keep what they are promised."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.calculus.curves import Jcp
from coordinator.calculus.service import DelayBound, RateLatency, composite
from coordinator.explain import explanation
from coordinator.guarantee.bounds import bounds
from coordinator.plan import deadline_breakdown, reopen
from coordinator.plan.service_curves import Division, affine
from coordinator.solve.audit.audit import audit
from coordinator.spec.quality import Qos
from coordinator.spec.runtime_charges import NOTHING
from node_agent.core.plan import Service, Unit
from node_agent.core.policies.papers.qed import qos
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario, virtual_plan
from protos import records
from protos.plan.arrivals import BurstArrival, TraceArrival
from protos.plan_document import Plan
from tests.coordinator.calculus.service_rules import QueueBound
from tests.coordinator.guarantee.written_plans import MS, written
from tests.sampling import examples
from tests.whole_plans import altered

SOURCE = "{at: a, type: json, arrival: {burst: 4, period: 100 ms}, tolerance: 0 s}"
ONE = f"""
shimekiri: 1
query: q
sources:
  s: {SOURCE}
operators:
  X: {{run: pass, in: s, cost: 1 ms, nodes: [a]}}
outputs:
  out: {{from: X, at: a, deadline: 80 ms, ASKED}}
"""
TWO = ONE.replace("nodes: [a]}\n", "nodes: [a]}\n  Y: {run: pass, in: X, cost: 3 ms, nodes: [b]}\n").replace(
    "from: X, at: a", "from: Y, at: b"
)
CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", policy: A}
  b: {address: "127.0.0.1:7710", policy: B}
links: [{between: [a, b], latency: 2 ms}]
"""


def plan(query: str, asked: str, a: str = "qed", b: str = "", **choices: Any) -> Plan:
    cluster = CLUSTER.replace("policy: A", f"policy: {a}").replace("policy: B", f"policy: {b or a}")
    text = query.replace(", ASKED", f", {asked}" if asked else "")
    return written(text, cluster, **{"model": "paper", **choices})


def services(made: Plan) -> dict[str, list[tuple[int, int, int, bool]]]:
    """Per node, of its only unit: latency, period, tuples, first."""
    return {
        local.node: [(each.latency_ns, each.period_ns, each.tuples, each.first) for each in unit.service]
        for local in virtual_plan(made).nodes
        for unit in local.units
    }


# -- one unit: the paper's deadlines exactly


def test_without_more_than_a_deadline_a_unit_has_its_sub_deadline() -> None:
    made = plan(ONE, "")
    assert services(made) == {"a": []} and made.graph.outputs["out"].qos is None
    assert made.guarantee["out"].qos is None


def test_the_audit_finds_curves_that_are_missing_or_that_nothing_asks_for() -> None:
    made = plan(TWO, "wait: 20 ms")
    assert audit(made) == []
    bare = altered(made, lambda values: values["nodes"]["b"]["units"][0].pop("service"))
    assert any("has service curves that nothing asks for, or none" in text for text in audit(bare))
    unasked = altered(made, lambda values: values["graph"]["outputs"]["out"].pop("qos"))
    assert sum("has service curves" in text for text in audit(unasked)) == 2


def test_policies_that_do_not_go_by_curves_get_none() -> None:
    assert services(plan(ONE, "wait: 3 ms, throughput: 5, latency: 0 s", "edf")) == {"a": []}


def test_each_rule_is_a_curve() -> None:
    assert services(plan(ONE, "wait: 20 ms"))["a"] == [(80 * MS, 0, 1, False), (20 * MS, 0, 1, True)]
    rate = (30 * MS, 10**9, 150, False)
    found = services(plan(ONE, "throughput: 150, latency: 30 ms"))["a"]
    assert found[0] == (80 * MS, 0, 1, False)
    assert (found[1][0], Fraction(*found[1][1:3])) == (rate[0], Fraction(*rate[1:3]))
    # rule 4: of four at once and one more in every 25 ms room for ten is there until six more have come
    assert services(plan(ONE, "queue: 15 kB"))["a"][1] == (150 * MS, 25 * MS, 1, False)
    assert services(plan(ONE, "wait: 90 ms"))["a"] == [(80 * MS, 0, 1, False)]  # the deadline says more


@settings(deadline=None, max_examples=examples(60, 4))
@given(
    st.lists(st.integers(0, 30 * MS), min_size=1, max_size=12),
    st.integers(1, 60 * MS),
    st.integers(1, 2000),
    st.integers(0, 40 * MS),
)
def test_the_deadlines_of_one_unit_are_theorem_2_of_its_parts(
    gaps: list[int], deadline_ns: int, rate: int, latency_ns: int
) -> None:
    rule, instants = qos(of_rate(rate, latency_ns, deadline_ns)), [sum(gaps[: i + 1]) for i in range(len(gaps))]
    exact = composite(instants, [DelayBound(deadline_ns), RateLatency(Fraction(rate, 10**9), latency_ns)])
    assert [rule.next_ns(at, True) for at in instants] == [due // 1 for due in exact]


def of_rate(rate: int, latency_ns: int, deadline_ns: int) -> Unit:
    """A unit as a node has it, of an output that asks for so many a second."""
    query, _, _, _ = reopen.inputs(plan_once(), Path("plan.json"))
    asked = replace(query.outputs[0], deadline_ns=deadline_ns, qos=Qos(None, float(rate), latency_ns))
    division = Division(replace(query, outputs=(asked,)), (("X",),), {"X": deadline_ns}, {}, {"X": "a"})
    service = tuple(Service(one.latency_ns, one.period_ns, one.tuples or 1) for one in division.service(("X",)))
    return Unit(1, (1,), deadline_ns, deadline_ns, service=service)


@cache
def plan_once() -> Plan:
    return plan(ONE, "throughput: 1000, latency: 9 ms")


def test_the_queue_s_curve_is_no_later_than_rule_4_s() -> None:
    """Exact for a period with jitter; of bursts it is the straight line below the stairs."""
    arrival = "arrival: {jcp: {period: 10 ms, late: 35 ms}}"
    made = plan(ONE.replace("arrival: {burst: 4, period: 100 ms}", arrival), "queue: 15 kB")
    (_, rate) = virtual_plan(made).nodes[0].units[0].service
    curve = QueueBound(Jcp(10 * MS, 0, 35 * MS), 10)
    assert [rate.latency_ns + k * rate.period_ns for k in range(1, 9)] == [curve.inverse(k) for k in range(1, 9)]


# -- several units


def test_shares_go_by_sub_deadlines_and_sum_up_to_what_is_asked() -> None:
    made = plan(TWO, "wait: 42 ms, throughput: 100, latency: 60 ms")
    due = made.sub_deadlines_ns
    found, left = services(made), {"a": Fraction(due["X"], due["X"] + due["Y"]), "b": Fraction(0)}
    left["b"] = 1 - left["a"]
    for node, share in left.items():
        delay, first, rate = found[node]
        assert delay[0] == 78 * MS * share // 1 and first == (40 * MS * share // 1, 0, 1, True)
        assert rate[0] == (68 * MS * share - 10 * MS) // 1 and rate[1:3] == (10 * MS, 1)
    assert sum(found[node][2][0] + 10 * MS for node in "ab") <= 68 * MS


def test_a_unit_whose_share_is_less_than_one_over_p_gets_a_delay_bound() -> None:
    made = plan(TWO, "throughput: 25, latency: 10 ms")  # the first within 50 ms, less 2 of the link; 1/P is 40
    assert all(len(found) == 1 for found in services(made).values())
    assert sum(found[0][0] for found in services(made).values()) <= 48 * MS


def test_behind_an_operator_with_more_results_than_inputs_units_get_delay_bounds() -> None:
    many = TWO.replace("X: {run: pass, in: s,", "X: {run: pass, in: s, selectivity: {mean: 2, at_most: [[1, 2]]},")
    found = services(plan(many, "throughput: 200, latency: 60 ms"))
    assert len(found["a"]) == 2 and len(found["b"]) == 1


def test_units_that_lead_to_several_outputs_are_promised_the_least_of_each() -> None:
    query = TWO + "  early: {from: X, at: a, deadline: 30 ms}\n"
    made = plan(query, "wait: 42 ms")
    due = made.sub_deadlines_ns
    assert services(made)["a"][0][0] == min(30 * MS, 78 * MS * due["X"] // (due["X"] + due["Y"]))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 5), st.integers(1, 50), st.integers(0, 400))
def test_the_line_above_arrivals_is_above_them(burst: int, period: int, tolerance: int) -> None:
    b, r = affine(BurstArrival(burst=burst, period_ns=period, tolerance_ns=tolerance))
    for t in range(0, 300, 7):
        assert burst * ((t + tolerance) // period + 1) <= b + r * t
    counts, spans = (1, 2, 4), (0, 3, 20)
    b, r = affine(TraceArrival(file="", sha256="", burst=1, tuples=4, span_ns=20, counts=counts, spans_ns=spans))
    assert all(count <= b + r * span for count, span in zip(counts, spans, strict=True)) and r == Fraction(3, 20)


# -- what is guaranteed of it


def test_what_is_asked_is_checked_by_the_bounds() -> None:
    made = plan(ONE.replace("80 ms", "80 ms").replace("tolerance: 0 s", "tolerance: 0 s, max_age: 5 ms"),
                "wait: 4 ms, throughput: 500, latency: 2 ms, queue: 6 kB", "edf")  # fmt: skip
    claim = made.guarantee["out"]
    assert claim.guaranteed and claim.bound_ns == 9 * MS
    found = claim.qos
    assert found is not None and found.wait is not None and found.throughput is not None and found.queue is not None
    assert [(each.limit_ns, each.bound_ns) for each in (found.wait, found.throughput)] == [(4 * MS, 4 * MS)] * 2
    assert (found.queue.limit_bytes, found.queue.bound_bytes) == (6000, 6000)


def test_a_queue_counts_a_tuple_as_often_as_it_is_there() -> None:
    """Once per unit that takes it, and once per result that an operator makes of it."""
    taken = ONE.replace(
        "outputs:\n", "  Y: {run: pass, in: s, cost: 1 ms}\n  U: {run: union, in: [X, Y], cost: 1 ms}\noutputs:\n"
    )
    made = TWO.replace("cost: 1 ms, ", "cost: 1 ms, selectivity: {mean: 5, at_most: [[1, 5]]}, ")
    for query, times in ((ONE, 1), (taken.replace("from: X", "from: U"), 2), (made, 5)):
        found = plan(query, "queue: 1 MB", "edf").guarantee["out"].qos
        asked = found.queue if found is not None else None
        assert asked is not None and asked.bound_bytes == 4 * times * 1500, asked.why
        assert (f"{4 * times} be there at once" in asked.why) is (times > 1)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("wait: 3 ms", "not its wait (3 ms): 4 ms at most"),
        ("throughput: 1000, latency: 2 ms", "not its throughput (3 ms): 4 ms at most"),
        ("queue: 5 kB", "not its queue (4.8828 KiB): 5.8594 KiB at most"),
    ],
)
def test_a_deadline_that_holds_is_not_enough(asked: str, said: str) -> None:
    made = plan(ONE.replace("tolerance: 0 s", "tolerance: 0 s, max_age: 1 ms"), asked, "edf")
    claim = made.guarantee["out"]
    assert not claim.guaranteed and said in claim.why and claim.why.startswith("the deadline holds, but")
    assert deadline_breakdown.guarantee_status(claim) == deadline_breakdown.MISSED
    assert any("not guaranteed" in line for line in explanation.short(made)[explanation.PARTS])
    with_policy_left_open = plan(ONE.replace("tolerance: 0 s", "tolerance: 0 s, max_age: 1 ms"), asked, "edf", "slack")
    assert with_policy_left_open.cluster.nodes["a"].policy == "edf"


def test_without_a_bound_nothing_is_analysed_and_it_says_why() -> None:
    claim = plan(ONE, "wait: 3 ms, queue: 5 kB").guarantee["out"]
    assert claim.qos is not None
    assert [each.why for each in claim.qos.asked.values()] == [
        "not analysed: policy qed on node a has no bound: the test covers edf only"
    ] * 2
    assert not any(each.guaranteed for each in claim.qos.asked.values())


def test_sound_looks_for_plans_that_keep_it() -> None:
    """By the deadlines alone both units would have 30 ms; the wait of `out` needs its unit to come first."""
    rival = "  Z: {run: pass, in: t, cost: 2 ms, nodes: [a]}\n"
    query = ONE.replace(f"  s: {SOURCE}\n", f"  s: {SOURCE}\n  t: {SOURCE}\n").replace(
        "outputs:\n", rival + "outputs:\n"
    )
    query += "  rival: {from: Z, at: a, deadline: 30 ms}\n"
    made = plan(query.replace("tolerance: 0 s", "tolerance: 0 s, max_age: 1 ms"), "wait: 6 ms", "edf", model="sound")
    assert made.solver.outcome == "guaranteed" and all(each.guaranteed for each in made.guarantee.values())
    asked = made.guarantee["out"].qos
    assert asked is not None and asked.wait is not None and 0 < (asked.wait.bound_ns or 0) <= 6 * MS
    assert bounds(made, NOTHING)["out"].guaranteed


# -- kept by the policies


@pytest.mark.parametrize("policy", ["qed", "pqed"])
def test_units_meet_the_deadlines_of_their_curves_where_there_is_room(policy: str) -> None:
    """A greedy rival of the same node with the same deadline: qed lets the promised rate go first."""
    query = ONE.replace(f"  s: {SOURCE}\n", f"  s: {SOURCE}\n  t: {SOURCE}\n".replace("burst: 4", "burst: 4"))
    query = query.replace("outputs:\n", "  Z: {run: pass, in: t, cost: 10 ms, nodes: [a]}\noutputs:\n")
    query += "  rival: {from: Z, at: a, deadline: 80 ms}\n"
    made = plan(query, "throughput: 200, latency: 10 ms", policy)
    (first, _) = simulate(made, Scenario(bursts=3)).traces
    found = [
        (each.end_ns, each.due_ns)
        for each in records.unpack_records(first.records)
        if isinstance(each, records.Ran) and each.unit == 1
    ]
    assert len(found) == 12 and all(end <= due for end, due in found)
