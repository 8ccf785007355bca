"""What nodes enforce is what the bounds rest on: the admitted stream keeps the analysed curve, and a source that keeps
the declared one is never shed."""

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.calculus.curves import Recorded, recorded_spans
from coordinator.calculus.flow import Known, jittered
from coordinator.calculus.selectivity import Selectivity
from coordinator.guarantee import policing
from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.system import arrival_curve, read
from coordinator.solve.audit.audit import audit
from coordinator.spec.runtime_charges import MEASURED, NOTHING, RuntimeOverhead
from node_agent.core.plan import Operator, Pace, Source
from node_agent.core.shedding.policing import ArrivalPolice, SelectivityPolice
from node_agent.wire.plan_message import core_plan
from protos import plan_document, plan_pb2
from protos.plan.analysis import Policed
from protos.plan.arrivals import Arrival, BurstArrival, JcpArrival, RateArrival, TraceArrival
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import MS, cluster, written
from tests.sampling import examples

recordings = st.lists(st.integers(0, 40), min_size=2, max_size=30).filter(lambda gaps: sum(gaps) > 0)


@st.composite
def arrivals(draw: st.DrawFn) -> Arrival:
    """As a plan has them."""
    kind = draw(st.sampled_from(["burst", "jcp", "rate", "trace"]))
    if kind == "burst":
        return BurstArrival(burst=draw(st.integers(1, 5)), period_ns=draw(st.integers(1, 60)))
    if kind == "jcp":
        period_ns = draw(st.integers(1, 60))
        gap_ns, late_ns = draw(st.integers(0, period_ns - 1)), draw(st.integers(0, 80))
        return JcpArrival(burst=1, period_ns=period_ns, min_gap_ns=gap_ns, early_ns=0, late_ns=late_ns)
    if kind == "rate":
        return RateArrival(burst=draw(st.integers(1, 5)), rate_per_s=draw(st.floats(1e7, 9e8)))
    instants = [0]
    for gap in draw(recordings):
        instants.append(instants[-1] + gap)
    counts, spans_ns = map(tuple, recorded_spans(instants))
    told = {"file": "", "sha256": "", "burst": 1, "tuples": len(instants), "span_ns": instants[-1]}
    return TraceArrival(**told, counts=counts, spans_ns=spans_ns)


def police(arrival: Arrival, jitter_ns: int, horizon_ns: int) -> ArrivalPolice:
    """Of what a plan would tell a node."""
    if isinstance(arrival, TraceArrival):
        curve = arrival_curve(arrival)
        assert isinstance(curve, Recorded)
        return ArrivalPolice(Source(1, "s", 1, 0, (), tuple(policing.recorded(curve, jitter_ns, horizon_ns))))
    paces = policing.paces(arrival, jitter_ns, horizon_ns)
    return ArrivalPolice(
        Source(1, "s", 1, 0, tuple(Pace(p.tuples, p.interval, p.slack, p.parts, p.most) for p in paces))
    )


@settings(max_examples=examples(150, 4), deadline=None)
@given(arrivals(), st.integers(0, 60), st.integers(0, 400), st.lists(st.integers(0, 40), max_size=120))
def test_whatever_comes_what_is_admitted_keeps_the_analysed_curve(
    arrival: Arrival, jitter_ns: int, horizon_ns: int, gaps: list[int]
) -> None:
    curve = jittered(arrival_curve(arrival), jitter_ns)
    at_ns, asked, admitted = 0, police(arrival, jitter_ns, horizon_ns), []
    for gap in gaps:
        at_ns += gap // 3
        if asked.passes(at_ns):
            admitted.append(at_ns)
    for i, first in enumerate(admitted):
        for n, last in enumerate(admitted[i:], start=1):
            if last - first <= horizon_ns:
                assert n <= curve.count(last - first)


@settings(max_examples=examples(150, 4), deadline=None)
@given(arrivals(), st.integers(0, 60), st.integers(0, 400), st.integers(0, 2**32))
def test_a_source_that_keeps_its_declaration_is_never_shed_however_late_its_tuples_are_read(
    arrival: Arrival, jitter_ns: int, horizon_ns: int, seed: int
) -> None:
    """As dense as may be, or with pauses; each tuple read up to the jitter later, none overtakes another."""
    draw, declared = Random(seed), arrival_curve(arrival)
    asked, sent, read_ns = police(arrival, jitter_ns, horizon_ns), list[int](), 0
    for _ in range(60):
        at_ns = (sent[-1] if sent else 0) + draw.choice([0, 0, 0, 3, 70])
        while any(n + 1 > declared.count(at_ns - first) for n, first in enumerate(reversed(sent), start=1)):
            at_ns += 1
        sent.append(at_ns)
        read_ns = max(read_ns, at_ns + draw.choice([0, jitter_ns, draw.randint(0, jitter_ns)]))
        assert asked.passes(read_ns), f"tuple {len(sent)} of {sent}"


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5)), min_size=1, max_size=3),
    st.lists(st.integers(0, 4), max_size=50),
)
def test_of_any_number_of_inputs_no_more_results_than_the_curve_of_the_pairs(
    pairs: list[tuple[int, int]], made: list[int]
) -> None:
    sigma = Selectivity(tuple(pairs))
    asked = SelectivityPolice(Operator(1, "o", "x", (1,), 2, 1, at_most=tuple(pairs)))
    passed = [asked.passes(results) for results in made]
    for i in range(len(passed)):
        for k in range(1, len(passed) - i + 1):
            assert sum(passed[i : i + k]) <= sigma(k)


QUERY = """
shimekiri: 1
query: promised
sources:
  bursts: {at: a, type: json, arrival: {burst: 3, period: 100 ms}, max_age: 1 ms}
  strict: {at: a, type: json, arrival: {burst: 3, period: 100 ms}, max_age: 1 ms, tolerance: 0 ms}
  rated:  {at: b, type: json, arrival: {rate: 33.3, burst: 2}, max_age: 1 ms, tolerance: 2 ms}
  paced:  {at: a, type: json, arrival: {jcp: {period: 50 ms, min_gap: 5 ms, late: 3 ms}}, max_age: 1 ms}
operators:
  both: {run: union, in: [bursts, strict, rated, paced], cost: 1 ms, nodes: [a]}
  half: {run: filter, in: both, cost: 1 ms, selectivity: {mean: 0.5, at_most: [[2, 1]]}, nodes: [a]}
outputs:
  out: {from: half, at: a, deadline: 800 ms}
"""


def sources(charges: RuntimeOverhead) -> tuple[Plan, dict[str, plan_pb2.Source], dict[str, Policed]]:
    """The plan; what nodes police of each source; what was found of it."""
    plan = written(QUERY, cluster("ab", "{between: [a, b]}"), charges=charges)
    nodes, told = policing.enforced(plan, analyse(read(plan), charges))
    found: dict[str, plan_pb2.Source] = {}
    for local in nodes.values():
        core_plan(local, 1, 1)  # a node takes it
        found |= {source.name: source for source in local.sources}
    return replace(plan, nodes=nodes), found, told


def test_a_plan_tells_its_nodes_the_declared_curves_and_nothing_beside_in_virtual_time() -> None:
    plan, found, told = sources(NOTHING)
    assert {name: each.jitter_ns for name, each in told.items()} == dict.fromkeys(found, 0)
    (burst,) = found["bursts"].paces
    assert (burst.tuples, burst.interval, burst.slack, burst.parts) == (3, 100 * MS, 0, 1)
    (rate,) = found["rated"].paces
    assert (rate.tuples, rate.interval, rate.parts) == (1, 10**10, 333) and rate.slack == 10**10 + 333
    assert [(pace.interval, pace.slack) for pace in found["paced"].paces] == [(50 * MS, 3 * MS), (5 * MS, 0)]
    held = {each.name: [(pair.inputs, pair.results) for pair in each.at_most] for each in plan.nodes["a"].operators}
    assert (held["half"], held["both"]) == ([(1, 1), (2, 1)], [(1, 1)])


def test_where_the_runtime_is_charged_tolerance_and_reading_are_in_what_is_enforced_and_in_the_bound() -> None:
    plan, found, told = sources(MEASURED)
    analysis = analyse(read(plan), MEASURED)
    for name, tolerance_ms in (("bursts", 10), ("strict", 0), ("rated", 2), ("paced", 0)):
        at = (name, analysis.system.sources[name].node)
        jitter_ns = tolerance_ms * MS + analysis.delays.drains[at[1]]
        assert told[name].jitter_ns == jitter_ns > tolerance_ms * MS
        flow, curve = analysis.streams.flows[at].curve, analysis.system.sources[name].curve
        assert isinstance(flow, Known) and curve is not None and told[name].horizon_ns > flow.asked
        for t in range(0, 400 * MS, 7 * MS):
            assert flow.count(t) == curve.count(t + jitter_ns)
    assert found["bursts"].paces[0].slack == told["bursts"].jitter_ns


def test_a_node_without_a_bound_polices_no_source() -> None:
    plan = written(QUERY, cluster("ab", "{between: [a, b]}"), charges=MEASURED, policy="fifo")
    nodes, told = policing.enforced(plan, analyse(read(plan), MEASURED))
    assert not any(source.paces for source in nodes["a"].sources)
    assert "fifo" in told["bursts"].why


def test_a_recording_that_would_take_too_much_is_not_policed() -> None:
    found = policing.recorded(Recorded((1, 100_000), (0, 10**9)), 10**8, 10**9)
    assert found[-1][0] > policing.MOST_TUPLES
    found = policing.recorded(Recorded((1, 2), (0, 10)), 0, 10**9)
    assert len(found) > policing.MOST_SPANS


def test_no_promise_that_a_node_polices_changes_unseen() -> None:
    plan = written(QUERY, cluster("ab", "{between: [a, b]}"), charges=MEASURED, model="sound", best_effort=True)
    assert plan.model == "sound" and audit(plan) == []
    policed = [("a", "sources", i, "paces") for i in range(3)] + [("b", "sources", 0, "paces")]
    policed += [("a", "operators", i, "at_most") for i in range(2)]
    for node, kind, number, field in policed:
        for i, entry in enumerate(plan.to_json()["nodes"][node][kind][number][field]):
            for key in entry:
                values = plan.to_json()
                told = values["nodes"][node][kind][number][field][i]
                told[key] = int(told[key]) + 1
                assert audit(plan_document.shaped(values)), f"{kind} {number}: {entry} with another {key}"
        values = plan.to_json()
        del values["nodes"][node][kind][number][field]
        assert audit(plan_document.shaped(values))
    other = replace(plan, model="paper")
    assert len([text for text in audit(other) if "differs" in text or "held to" in text]) == 6
