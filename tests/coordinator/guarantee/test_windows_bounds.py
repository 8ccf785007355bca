"""Results behind windows: how their bounds are made up, where there are none, and what may be left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coordinator.change.transition import _beating_apart
from coordinator.guarantee.analysis import Analysis, analyse
from coordinator.guarantee.bounds import Claim, bounds, claims
from coordinator.guarantee.system import read
from coordinator.solve.audit.audit import audit
from coordinator.spec.runtime_charges import MEASURED, NOTHING
from protos.plan.search import Task
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import MS, cluster, written
from tests.whole_plans import altered

SOURCE = "{at: a, type: json, max_age: 20 ms, arrival: {burst: BURST, period: 10 ms}LIMIT}"
QUERY = """\
shimekiri: 1
query: q
sources:
  s: SOURCE
operators:
BEFORE
  W: {run: aggregate, in: IN, cost: 1 ms, with: {n: count}, window: {WINDOW, close: 2 ms}}
outputs:
  out: {from: W, at: a, deadline: 400 ms}
"""


def planned(window: str, limit: str = "", before: str = "", burst: int = 1, **choices: Any) -> Plan:
    """Of one window on one node, read from `s` or from an operator `F`."""
    text = (
        QUERY.replace("SOURCE", SOURCE.replace("LIMIT", limit)).replace("WINDOW", window).replace("BURST", str(burst))
    )
    text = text.replace("BEFORE\n", f"  F: {before}\n" if before else "").replace(
        "in: IN", f"in: {'F' if before else 's'}"
    )
    return written(text, cluster(policy="edf"), **choices)


def claim(window: str, **given: Any) -> Claim:
    """Without charges."""
    return bounds(planned(window, **given), NOTHING)["out"]


def parts_ms(found: Claim) -> dict[str, float]:
    """By kind, units apart."""
    return {part.what if part.kind == "unit" else part.kind: part.ns / MS for part in found.parts}


def analysed(plan: Plan) -> Analysis:
    return analyse(read(plan), NOTHING)


# -- how long


def test_a_window_waits_for_ages_heartbeats_and_its_tuples_way() -> None:
    """A tuple runs 1 ms behind a window's 2 that have just begun, a window 2 ms behind a tuple's 1."""
    found = claim("time: 100 ms, shed: none, wait: 10 ms")
    assert parts_ms(found) == {"age": 20, "beat": 25, "unit 1 (W.add) on a": 3, "unit 2 (W) on a": 3}
    assert (found.bound_ns, found.from_admission_ns, found.guaranteed) == (51 * MS, 3 * MS, True)
    assert not found.missing


def test_lateness_costs_nothing() -> None:
    assert claim("time: 100 ms, shed: none, wait: 10 ms, lateness: 50 ms").bound_ns == 51 * MS


def test_from_the_oldest_tuple_on_the_windows_length_counts() -> None:
    found = claim("time: 100 ms, hop: 50 ms, shed: none, deadline: first")
    assert parts_ms(found)["window"] == 100
    assert found.bound_ns == sum(part.ns for part in found.parts)
    assert parts_ms(found)["beat"] == 12.5  # a quarter of the hop


def test_by_count_there_is_nothing_to_wait_for() -> None:
    """The last tuple is 20 ms old, and waits for another window to be closed before it is collected."""
    found = claim("count: 5, shed: none, wait: 10 ms")
    assert parts_ms(found) == {"age": 20, "unit 1 (W.add) on a": 3, "unit 2 (W) on a": 3}


@pytest.mark.parametrize(
    ("window", "given", "why"),
    [
        (
            "count: 5, deadline: first",
            {},
            "nothing says how soon 5 tuples come, and deadlines of W count from the oldest",
        ),
        (
            "count: 5",
            {"before": "{run: filter, in: s, cost: 1 ms}"},
            "count from the youngest that passes the operators before it",
        ),
    ],
)
def test_by_count_no_declaration_says_how_soon_tuples_come(window: str, given: dict[str, str], why: str) -> None:
    found = claim(f"{window}, shed: none", **given)
    assert (found.bound_ns, found.guaranteed) == (None, False)
    assert found.from_admission_ns is not None
    assert why in found.why


def test_an_operator_that_passes_everything_leaves_windows_by_count_bounded() -> None:
    assert claim("count: 5, shed: none", before="{run: pass, in: s, cost: 1 ms}").bound_ns is not None


def test_two_nodes_clocks_and_links() -> None:
    text = QUERY.replace("SOURCE", SOURCE.replace("LIMIT", "")).replace(
        "WINDOW", "time: 100 ms, shed: none, wait: 20 ms"
    )
    text = text.replace("BEFORE\n", "").replace("BURST", "1").replace("in: IN", "in: s, nodes: [b]")
    nodes = cluster("ab", "{between: [a, b], latency: 3 ms}", policy="edf")
    plan = written(text, nodes)
    found = bounds(plan, NOTHING)["out"]
    assert found.bound_ns == (20 + 25 + 3 + 3 + 3 + 3) * MS  # clocks of virtual time are one
    told = [part for part in bounds(plan, MEASURED)["out"].parts if part.what == "clocks of a and b apart"]
    assert told[0].ns > 2 * 3 * MS


def test_where_the_way_leads_back_the_clocks_of_each_hop_are_named() -> None:
    text = QUERY.replace("SOURCE", SOURCE.replace("LIMIT", "")).replace("WINDOW", "time: 100 ms, shed: none")
    text = text.replace("BEFORE\n", "  F: {run: pass, in: s, cost: 1 ms, nodes: [b]}\n").replace("BURST", "1")
    nodes = cluster("ab", "{between: [a, b], latency: 3 ms}", policy="edf")
    plan = written(text.replace("in: IN", "in: F, nodes: [a]"), nodes)
    told = [part.what for part in bounds(plan, MEASURED)["out"].parts if part.what.startswith("clocks")]
    assert told == ["clocks of a and b apart"], "and not those of a and a"


# -- how densely, and who sees to it


def test_windows_close_within_what_they_are_of_use_for_or_may_take() -> None:
    analysis = analysed(planned("time: 100 ms, shed: none, wait: 200 ms"))
    window_closings = analysis.streams.window_closings["W.add"]
    assert window_closings.spread_ns == (20 + 25 + 3 + 200) * MS
    curve = analysis.streams.flows["W.add", "a"].curve
    assert [curve.count(t * MS) for t in (0, 51, 52, 152)] == [1, 1, 2, 3]  # nothing is lost: 48 ms without the wait
    later = analysed(planned("time: 100 ms, shed: none, wait: 10 s")).streams.flows["W.add", "a"].curve
    assert [later.count(t * MS) for t in (0, 51, 52, 152)] == [1, 1, 2, 3]


def test_windows_by_count_follow_their_tuples() -> None:
    curve = analysed(planned("count: 5, hop: 2, shed: none, wait: 100 ms")).streams.flows["W.add", "a"].curve
    assert [curve.count(t * MS) for t in (0, 6, 7, 17, 27)] == [1, 1, 1, 2, 2]  # ceil((t + 3) / 10 ms + 1) / 2


@pytest.mark.parametrize("window", ["time: 100 ms, wait: 50 ms", "count: 5, wait: 50 ms"])
def test_a_sound_plan_polices_windows_and_the_audit_knows_how(window: str) -> None:
    plan = planned(f"{window}, shed: none", model="sound", quick=True)
    assert audit(plan) == []
    (held,) = (each for each in plan.nodes["a"].sources if each.window)
    assert held.paces or held.spans
    if held.paces:
        held.paces[0].slack = 1
    else:
        held.spans[0].span_ns = 1
    assert "node a: source W.add is held to other arrivals than the plan's" in audit(plan)


def test_a_window_is_collected_where_it_closes() -> None:
    plan = planned("time: 100 ms")
    apart = altered(plan, lambda values: values["graph"]["windows"]["W"].update(at="b"))
    assert "windows of W are collected on a, closed on a and admitted on b" in audit(apart)
    together = replace(plan, tasks={"a": (Task(id=1, operators=("W.add", "W"), sub_deadline_ns=1),)})
    assert "windows of W are collected, or closed, within a longer task unit" in audit(together)


# -- what may be left out


@pytest.mark.parametrize(
    ("window", "limit", "said"),
    [
        ("time: 100 ms, shed: none", "", ()),
        ("time: 100 ms, shed: drop-tail", "", ()),
        ("time: 100 ms, shed: drop-tail, queue: 4", "", ("windows of W are left out where more than 4 tuples wait",)),
        ("time: 100 ms", "", ("window-aware leaves out windows of W where it measures too much load",)),
        (
            "time: 100 ms, shed: none, wait: 3 ms",
            "",
            ("W gives up a number after 3 ms, and tuples of s may take 3 ms",),
        ),
        ("time: 100 ms, shed: none", ", max_rate: 100", ()),
        ("time: 100 ms, shed: none", ", max_rate: 50", ("of s at most 50 tuples in 1 s go on, and more may come",)),
        ("count: 9, hop: 9, shed: none, wait: 3 s", "", ()),
    ],
)
def test_what_may_be_left_out_is_told(window: str, limit: str, said: tuple[str, ...]) -> None:
    found = claim(window, limit=limit, burst=5 if "queue" in window else 1)
    assert len(found.missing) == len(said)
    assert all(text in told for text, told in zip(said, found.missing, strict=True))


def test_a_limit_bounds_what_goes_on() -> None:
    plan = planned("time: 100 ms, shed: none", limit=", max_rate: {tuples: 3, per: 50 ms}")
    flow = analysed(plan).streams.flows["s", "a"]
    assert [flow.curve.count(t * MS) for t in (0, 20, 49, 50, 60, 100)] == [1, 3, 3, 6, 6, 9]
    assert flow.events.count(0) > flow.curve.count(0)  # what is shed leaves marks


def test_a_cheaper_operator_that_is_not_is_charged() -> None:
    before = "{run: pass, in: s, cost: 1 ms, on_late: {degrade: {run: pass, cost: 100 us}}}"
    plan = planned("time: 100 ms, shed: none", before=before)
    cheap = bounds(plan, NOTHING)["out"].bound_ns
    (late,) = (each.late for each in plan.nodes["a"].operators if each.HasField("late"))
    late.cost_ns = 2 * MS
    dear = bounds(plan, NOTHING)["out"].bound_ns
    assert cheap is not None
    assert dear is not None
    assert dear > cheap


# -- charges, changes


def test_heartbeats_and_windows_are_read_like_tuples() -> None:
    plan = planned("time: 100 ms, shed: none, wait: 10 ms")
    analysis = analyse(read(plan), MEASURED)
    assert len(analysis.streams.arriving["a"]) == 3  # tuples, heartbeats, windows
    found = claims(analysis)["out"]
    assert found.bound_ns is not None
    assert 51 * MS < found.bound_ns < 60 * MS


def test_a_change_counts_the_slower_heartbeats() -> None:
    larger, smaller = (read(planned(f"time: 100 ms, hop: {hop} ms, shed: none")) for hop in (50, 100))
    together = claims(analyse(_beating_apart(larger, smaller), NOTHING))["out"]
    alone = claims(analyse(larger, NOTHING))["out"]
    assert together.bound_ns is not None
    assert alone.bound_ns is not None
    assert together.bound_ns - alone.bound_ns == 12.5 * MS


def test_service_curves_around_windows_are_delay_bounds() -> None:
    """Windows per second say nothing of how soon their tuples have to be there."""
    text = QUERY.replace("SOURCE", SOURCE.replace("LIMIT", "").replace("BURST", "1")).replace("BEFORE\n", "")
    text = text.replace("WINDOW", "time: 100 ms, shed: none").replace("in: IN", "in: s")
    text = text.replace("deadline: 400 ms}", "deadline: 400 ms, throughput: 5, latency: 100 ms, queue: 64 KiB}")
    plan = written(text, cluster(policy="qed"))
    curves = [unit.service for unit in plan.nodes["a"].units]
    assert len(curves) == 2
    assert not any(each.period_ns for curve in curves for each in curve)
    (queue,) = (
        check for check in bounds(written(text, cluster(policy="edf")), NOTHING)["out"].qos if check.name == "queue"
    )
    assert queue.holds
    assert "not analysed" not in queue.why
