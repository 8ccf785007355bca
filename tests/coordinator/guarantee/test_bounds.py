"""End to end: the figures of theory 3 exactly, every reason why there is no guarantee, and what plan.json says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.calculus.curves import Bursts
from coordinator.calculus.flow import Jittered
from coordinator.errors import BadInputError, MistakeError
from coordinator.guarantee.analysis import analyse, unit_by_unit
from coordinator.guarantee.bounds import bounds, claims, failure
from coordinator.guarantee.propagate import Flow, Late, joined
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import MEASURED, NOTHING, RuntimeOverhead
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import MS, cluster, paper, written
from tests.coordinator.wording import facts
from tests.sentences import refused
from tests.whole_plans import altered

CHOSEN = {"O1": 30, "O2": 16}  # the least for O2 that holds: its 15 jobs, and one of O1 that has just begun
CHAIN = (
    "query: q\nsources:\n  s: {at: a, type: json, arrival: ARRIVAL}\noperators:\n  X: {run: pass, in: s, cost: 1 ms}\n"
)
OUTPUT = "outputs:\n  out: {from: X, at: a, deadline: 20 ms}\n"


def from_admission_ms(plan: Plan) -> dict[str, float]:
    return {name: (claim.from_admission_ns or 0) / MS for name, claim in bounds(plan, NOTHING).items()}


def chain(arrival: str = "{burst: 2, period: 100 ms}, max_age: 1 ms", **choices: Any) -> Plan:
    return written("shimekiri: 1\n" + CHAIN.replace("ARRIVAL", arrival) + OUTPUT, cluster(policy="edf"), **choices)


# -- theory 3


def test_the_bound_of_out2_is_147_ms_with_o3_on_node_2() -> None:
    assert from_admission_ms(paper(15, **CHOSEN)) == {"control": 25, "warning": 147, "advisory": 343}
    assert paper(15).sub_deadlines_ns["O1"] == 30 * MS  # the unit's deadline; its response is sharper
    assert all(verdict.holds for verdict in analyse(read(paper(15, **CHOSEN)), NOTHING).verdicts.values())


def _emulate_nothing(plan: dict[str, Any]) -> None:
    for node in plan["cluster"]["nodes"].values():
        node["emulate_cost_ns"] = 0


def test_without_shaping_it_is_161_unit_by_unit_and_147_as_a_whole_way() -> None:
    """Nothing is emulated, so a tuple may cost nothing, and the outputs of O2 may come all at once: but then none of
    them has waited for the others."""
    plan = altered(paper(15, **CHOSEN), _emulate_nothing)
    assert from_admission_ms(plan) == {"control": 25, "warning": 147, "advisory": 343}
    assert claims(unit_by_unit(read(plan), NOTHING))["warning"].from_admission_ns == 161 * MS


def test_with_every_input_passing_it_is_259() -> None:
    assert from_admission_ms(paper(15, every=True, **CHOSEN))["warning"] == 259


def test_with_o3_on_node_1_it_is_142() -> None:
    found = from_admission_ms(paper(15, "a", O1=30, O2=40, O4=260))
    assert (found["control"], found["warning"]) == (30, 142)


def test_with_equal_sub_deadlines_of_o1_and_o2_it_is_156_and_147_would_be_wrong() -> None:
    """The model of [P] gives both 30 ms. Then O1's burst may come first, and 154 ms do happen."""
    plan = paper(15)
    assert from_admission_ms(plan)["warning"] == 156
    sensor_first = simulate(plan, Scenario(bursts=2, phase_ns={"v2v": 1}), trace=False).outputs["warning"]
    assert 147 * MS < max(sensor_first.latencies_ns) <= 156 * MS


@pytest.mark.parametrize(
    "phases", [{}, {"v2v": 1}, {"sensor": 1}, {"centre": 1}, {"sensor": MS, "v2v": 1}, {"v2v": MS}]
)
def test_simulations_stay_within_these_bounds(phases: dict[str, int]) -> None:
    plan = paper(15, **CHOSEN)
    allowed = from_admission_ms(plan)
    for name, output in simulate(plan, Scenario(bursts=2, phase_ns=phases), trace=False).outputs.items():
        assert max(output.latencies_ns) <= allowed[name] * MS


def test_a_declared_age_is_counted_and_the_claim_is_made() -> None:
    claims = bounds(paper(15, ages=True, **CHOSEN), NOTHING)
    assert {name: (claim.bound_ns, claim.guaranteed) for name, claim in claims.items()} == {
        "control": (25 * MS + 1, True),
        "warning": (147 * MS + 1, True),
        "advisory": (343 * MS + 1, True),
    }
    for claim in claims.values():
        assert sum(ns for _, ns in claim.trail) == claim.bound_ns


def test_what_the_runtime_does_is_charged() -> None:
    none, measured = bounds(paper(15, ages=True), NOTHING), bounds(paper(15, ages=True), MEASURED)
    assert all((measured[name].bound_ns or 0) > (none[name].bound_ns or 0) for name in none)
    assert measured["warning"].guaranteed
    with refused("negative", MistakeError):
        RuntimeOverhead(decision_ns=-1)


# -- no guarantee, and why


def test_no_declared_age_is_no_guarantee_but_the_bound_from_admission_is_told() -> None:
    claim = chain("{burst: 2, period: 100 ms}").guarantee["out"]
    assert (claim.bound_ns, claim.from_admission_ns, claim.guaranteed) == (None, 2 * MS, False)
    assert claim.why == "s admits tuples of any age; 2 ms from admission, so declare a 'max_age' of at most 18 ms"


def test_the_mend_for_a_missing_age_mends_it() -> None:
    claim = chain("{burst: 2, period: 100 ms}, max_age: 18 ms").guarantee["out"]
    assert (claim.bound_ns, claim.guaranteed) == (20 * MS, True)
    claim = chain("{burst: 2, period: 100 ms}, max_age: 19 ms").guarantee["out"]
    assert (claim.bound_ns, claim.guaranteed) == (21 * MS, False) and "exceeds the deadline by 1 ms" in claim.why


def test_a_policy_without_a_test_has_no_bound() -> None:
    claim = chain(policy="fifo").guarantee["out"]
    assert claim.bound_ns is None and claim.why == "policy fifo on node a has no bound: the test covers edf only"


def test_batches_are_covered_up_to_a_limit() -> None:
    plan = chain("{burst: 4, period: 100 ms}, max_age: 1 ms")
    for batch, expected in ((1, 5), (4, 5), (0, None)):
        plan.nodes["a"].policy.largest_batch = batch
        claim = bounds(plan, NOTHING)["out"]
        assert claim.bound_ns == (expected * MS if expected else None)
    assert "no limit" in claim.why


def test_a_node_that_is_full_in_the_worst_case() -> None:
    plan = chain("{burst: 9, period: 10 ms}, max_age: 1 ms")
    plan = altered(plan, lambda values: values["graph"]["sources"]["s"]["arrival"].update(burst=10))
    assert bounds(plan, NOTHING)["out"].why == "node a has no bound: U >= 1: its work takes 1 of it in the worst case"


def test_more_outputs_than_inputs_have_to_be_declared() -> None:
    twice = {"mean": 2.0, "at_most": []}
    plan = altered(chain(), lambda values: values["graph"]["operators"]["X"].update(selectivity=twice))
    assert "X has 2 outputs per input on average and no 'at_most'" in bounds(plan, NOTHING)["out"].why


def test_a_source_without_a_curve() -> None:
    apart = {"kind": "jcp", "burst": 1, "period_ns": 5, "min_gap_ns": 7, "early_ns": 0, "late_ns": 0}
    plan = altered(chain(), lambda values: values["graph"]["sources"]["s"].update(arrival=apart))
    assert "node a has no bound: the arrivals of source s are unbounded" in bounds(plan, NOTHING)["out"].why


def test_a_link_that_carries_less_than_is_sent() -> None:
    query = "shimekiri: 1\n" + CHAIN.replace("ARRIVAL", "{burst: 10, period: 10 ms}, max_age: 1 ms").replace(
        "cost: 1 ms", "cost: 10 us, nodes: [b]"
    )
    links = "{between: [a, b], bandwidth: BW}"
    for bandwidth, bounded in (("13 Mbit/s", True), ("12 Mbit/s", False)):
        text = query + OUTPUT.replace("at: a", "at: b").replace("20 ms", "90 ms")
        claim = written(text, cluster("ab", links.replace("BW", bandwidth))).guarantee["out"]
        assert (claim.bound_ns is not None) is bounded
        assert bounded or "the link from a to b has no bound: U >= 1" in claim.why


def test_a_burst_waits_on_its_link() -> None:
    """Ten tuples of 1500 bytes at 12 Mbit/s take 1 ms each; then all ten may arrive within the jitter of that."""
    query = "shimekiri: 1\n" + CHAIN.replace("ARRIVAL", "{burst: 10, period: 100 ms}, max_age: 1 ms")
    query = query.replace("cost: 1 ms", "cost: 1 us, nodes: [b]") + OUTPUT.replace("at: a", "at: b").replace("20", "90")
    links = "{between: [a, b], latency: 2 ms, bandwidth: 12 Mbit/s}"
    assert written(query, cluster("ab", links)).guarantee["out"].from_admission_ns == 12 * MS + 10_000


def test_a_union_takes_the_longer_way_and_a_join_waits_for_it() -> None:
    for kind, last in (("union", 2), ("join", 1)):
        query = (
            "shimekiri: 1\nquery: q\nsources:\n  s: {at: a, type: json, arrival: {period: 100 ms}, max_age: 1 ms}\n"
            "operators:\n  A: {run: pass, in: s, cost: 1 ms, nodes: [b]}\n"
            "  B: {run: pass, in: s, cost: 1 ms, nodes: [a]}\n"
            f"  X: {{run: {kind}, in: [A, B], cost: 1 ms, nodes: [c]}}\n"
            "outputs:\n  out: {from: X, at: c, deadline: 1 s}\n"
        )
        links = "{between: [a, b], latency: 3 ms}, {between: [b, c], latency: 4 ms}, {between: [a, c], latency: 1 ms}"
        plan = written(query, cluster("abc", links))
        assert plan.guarantee["out"].from_admission_ns == (3 + 1 + 4 + last) * MS


def test_a_join_bunches_what_waited_for_the_slower_branch() -> None:
    slow = Flow(Jittered(Bursts(1, 10), 25), Bursts(1, 10), {"s": Late(25, 0, ())})
    fast = Flow(Bursts(1, 10), Bursts(1, 10), {"s": Late(0, 0, ())})
    assert joined([slow, fast]).curve.count(0) == 3 and joined([slow, fast]).late["s"].most_ns == 25


def test_a_failing_node_is_told_with_u_star_and_who_demands_what() -> None:
    plan = paper(15, O1=30, O2=15)
    verdict = analyse(read(plan), NOTHING).verdicts["a"]
    assert not verdict.holds and (verdict.u, verdict.demand) == (15 * MS, 16 * MS)
    assert failure(verdict) == (
        "demand by 15 ms is 16 ms, exceeds it by 1 ms (unit 2 (O2) 15 jobs 15 ms, unit 1 (O1) blocks for 1 ms)"
    )


# -- the file


def test_a_recording_is_a_curve(files: Callable[[str, str], tuple[Any, Any]]) -> None:
    from coordinator.model.choices import Choices
    from coordinator.solve import planner

    query, cluster_path = files(
        "shimekiri: 1\n" + CHAIN.replace("ARRIVAL", "{trace: r.txt}, max_age: 1 ms") + OUTPUT, cluster()
    )
    instants = [0, 0, 0, 5 * MS, 100 * MS, 101 * MS, 300 * MS]
    (query.parent / "r.txt").write_text("\n".join(map(str, instants)))
    plan = planner.make_plan(query, cluster_path, Choices(charges=NOTHING))
    assert plan.guarantee["out"].bound_ns == 4 * MS  # three at once, and the age


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("run: pass, selectivity: {mean: 0.6, at_most: [[20, 10]]}", "0.6"),
        ("run: filter, with: {keep: 2, of: 3}, selectivity: {mean: 0.5, at_most: [[2, 1]]}", "2 of 3"),
    ],
)
def test_a_mean_above_its_worst_case_is_bad_input(given: str, said: str) -> None:
    with pytest.raises(BadInputError) as raised:
        written(
            "shimekiri: 1\n" + CHAIN.replace("ARRIVAL", "{period: 1 s}").replace("run: pass", given) + OUTPUT, cluster()
        )
    (problem,) = raised.value.problems
    assert facts(problem) == ("query.yaml", 6, "mean_above_worst_case", "operators.X.selectivity")
    assert said in problem.mistake.text


def test_the_plan_says_what_its_bounds_rest_on() -> None:
    analysis = chain().analysis
    assert analysis.charges.decision_ns == 0
    assert analysis.nodes["a"].sub_deadlines_hold and analysis.nodes["a"].utilisation == 0.02
    assert analysis.units_ns == {"1": 2 * MS}
