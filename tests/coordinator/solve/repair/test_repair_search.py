"""Mends: each that is told is applied and holds, and one step less does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import log
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.guarantee.system import arrival_curve
from coordinator.model.choices import Choices
from coordinator.plan import reopen
from coordinator.solve import planner, what_if
from coordinator.solve.repair import shed
from coordinator.solve.repair.bisect import Found, OverError, first, least
from coordinator.solve.repair.repair import Repair
from coordinator.solve.repair.repair_search import Findings, find
from coordinator.solve.repair.what_if_runs import Case, outcome
from coordinator.spec.arrivals import Arrival
from coordinator.spec.runtime_charges import NOTHING
from coordinator.units import step_of
from protos.plan.arrivals import JcpArrival
from tests.coordinator.guarantee.written_plans import FREE, QUERIES, cluster
from tests.sampling import examples

MS = 1_000_000
PAPER = (QUERIES / "collision_paper.yaml").read_text().replace("500 ms", "1000 ms").replace(", max_age: 1 s", "")
PINNED = """
shimekiri: 1
query: pinned
sources: {s: {at: a, type: json, arrival: {burst: 10, period: 100 ms}, max_age: 1 ms}}
operators:
  X: {run: pass, in: s, cost: 3 ms, nodes: [a]}
  Y: {run: pass, in: s, cost: 3 ms, nodes: [a]}
outputs: {x: {from: X, at: a, deadline: 50 ms}, y: {from: Y, at: a, deadline: 50 ms}}
"""


class Files:
    """A query and a cluster in a folder, and mends applied to them by options of the command line."""

    def __init__(self, folder: Path, query: str, nodes: str) -> None:
        self.query, self.cluster = folder / "query.yaml", folder / "cluster.yaml"
        self.query.write_text(query)
        self.cluster.write_text(nodes)
        (folder / "operators.json").write_text((QUERIES / "operators.json").read_text())

    def case(self, options: tuple[str, ...] = (), **choices: Any) -> Case:
        """Changed by options."""
        loaded = what_if.load(self.query, self.cluster, options)
        return Case(*loaded, replace(Choices(charges=NOTHING, model="paper"), **choices))

    def applied(self, mend: Repair, **choices: Any) -> Case:
        """With a mend's options."""
        return self.case(mend.what_if, place=dict(mend.place), **choices)


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str, str], Files]:
    return lambda query, nodes: Files(tmp_path, query, nodes)


def paper_cluster() -> str:
    text = (QUERIES / "cluster_paper.yaml").read_text()
    return text.replace(next(line for line in text.splitlines() if line.startswith("links")), FREE)


def less(mend: Repair) -> tuple[str, ...]:
    """The same change, a step smaller."""
    changed = []
    for option in mend.what_if:
        field, _, value = option.partition("=")
        if field.endswith(".max_age"):
            changed.append(option)
        elif field.endswith(".deadline"):
            ns = what_if_ns(value)
            changed.append(f"{field}={ns - step_of(ns)} ns")
        elif field.endswith(".burst"):
            changed.append(f"{field}={int(value) + 1}")
        elif field.endswith(".speed"):
            changed.append(f"{field}={float(value) - 0.02:.6f}")
        elif field.endswith(".cost_per_tuple"):
            changed.append(f"{field}={what_if_ns(value) * 102 // 100} ns")
        else:
            raise AssertionError(option)
    return tuple(changed)


def what_if_ns(text: str) -> int:
    from coordinator.units import duration_ns

    return duration_ns(text)


def test_the_paper_at_30_is_mended_by_speed_deadline_and_input(files: Callable[[str, str], Files]) -> None:
    """[Q] 4.4's three ways, each applied by its options; one step less is not enough."""
    made = files(PAPER.replace("burst: 20", "burst: 30"), paper_cluster())
    found = find(made.case(), 120)
    assert found.now.plan is None and found.now.reasons
    assert [way for way in ("speed", "deadline", "input") if way in {mend.way for mend in found.repairs}] == [
        "speed",
        "deadline",
        "input",
    ]
    for mend in {mend.way: mend for mend in found.repairs}.values():
        assert outcome(made.applied(mend)).holds, mend.text
        if mend.way in ("speed", "deadline", "input"):
            assert not outcome(made.case(less(mend))).holds, mend.text
    assert "input of sensor" in found.useless
    assert not found.untried


@pytest.mark.parametrize("model", ["paper", "sound"])
def test_an_operator_that_is_pinned_to_a_full_node_is_freed(files: Callable[[str, str], Files], model: str) -> None:
    made = files(PINNED, cluster("ab", FREE[len("links: [") : -1]))
    found = find(made.case(model=model), 60)
    assert found.now.plan is None or found.now.missed
    best = found.repairs[0]
    assert (best.way, best.what_if) == ("free", ("operators.X.nodes=null",))
    plan = outcome(made.applied(best, model=model)).plan
    assert plan is not None and plan.placement == {"X": "b", "Y": "a"}
    for mend in found.repairs:
        assert outcome(made.applied(mend, model=model)).holds, mend.text


def test_the_cores_of_a_node_become_faster_together(files: Callable[[str, str], Files]) -> None:
    """Two cores of one node: one speed, one option; from the plan's own places."""
    made = files(PINNED.replace("cost: 3 ms", "cost: 6 ms"), cluster("a", cores="2"))
    found = find(made.case(), 60)
    mend = next(mend for mend in found.repairs if mend.way == "speed")
    assert len(mend.what_if) == 1 and mend.what_if[0].startswith("nodes.a.speed=")
    assert outcome(made.applied(mend)).holds
    assert {node.speed for node in mend.case.cluster.nodes.values()} == {Fraction(mend.what_if[0].partition("=")[2])}


def test_an_operator_held_by_an_option_is_freed(files: Callable[[str, str], Files]) -> None:
    made = files(PINNED.replace(", nodes: [a]", ""), cluster("ab", FREE[len("links: [") : -1]))
    found = find(made.case(place={"X": "a", "Y": "a"}), 60)
    assert found.repairs[0].way == "free" and "--place" in found.repairs[0].text
    assert outcome(replace(found.repairs[0].case)).holds


def test_a_policy_without_a_bound_is_mended_by_edf(files: Callable[[str, str], Files]) -> None:
    query = PINNED.replace("cost: 3 ms", "cost: 1 ms")
    found = find(files(query, cluster("a", policy="fifo")).case(), 20)
    assert found.repairs[0].way == "policy" and found.repairs[0].what_if == ("nodes.a.policy=edf",)


def test_ages_are_declared_where_nothing_else_is_missing(files: Callable[[str, str], Files]) -> None:
    query = PINNED.replace("cost: 3 ms", "cost: 1 ms").replace(", max_age: 1 ms", "")
    made = files(query, cluster("a"))
    found = find(made.case(), 20)
    assert [mend.way for mend in found.repairs] == ["age"]
    plan = outcome(made.applied(found.repairs[0])).plan
    assert plan is not None and all(claim.guaranteed for claim in plan.guarantee.values())


def test_an_age_beyond_the_deadline_is_part_of_every_mend_but_longer_deadlines(
    files: Callable[[str, str], Files],
) -> None:
    made = files(PINNED.replace("max_age: 1 ms", "max_age: 1 s"), cluster("a"))
    found = find(made.case(), 60)
    assert found.hopeless == ("s",) and found.repairs
    for mend in found.repairs:
        deadlines = all(".deadline=" in option for option in mend.what_if)
        assert deadlines or mend.what_if[-1].startswith("sources.s.max_age="), mend.text
        assert outcome(made.applied(mend)).holds, mend.text


def test_a_plan_that_holds_needs_no_mend(files: Callable[[str, str], Files]) -> None:
    case = files(PINNED.replace("cost: 3 ms", "cost: 1 ms"), cluster("a")).case()
    assert find(case, 5) == Findings(outcome(case))


def test_a_plan_is_rebuilt_from_itself(files: Callable[[str, str], Files]) -> None:
    """Query, cluster and choices of plan.json make the same plan again."""
    for case in (
        files(PAPER, paper_cluster()).case(),
        files(PAPER, paper_cluster()).case(model="sound"),
        files(PINNED.replace("3 ms", "1 ms"), cluster("abc", speed="0.7")).case(place={"X": "a"}),
    ):
        plan = planner.plan(case.query, case.cluster, case.types, case.choices)
        again = planner.plan(*reopen.inputs(plan, Path("plan.json")))
        assert again == plan


# -- bisection and shedding


@given(st.integers(0, 500), st.integers(1, 500))
def test_bisection_finds_the_change(start: int, away: int) -> None:
    change = start + away
    limits = [start + 7, start + 500]
    assert least(lambda value: value >= change, start, limits) == Found(change, True)
    assert least(lambda _: False, start, limits) is None
    assert first(lambda value: value <= -change, 0, -1000) == Found(-max(1, change), True)


@given(st.integers(1, 500), st.integers(0, 12))
def test_bisection_without_time_tells_the_best_so_far(change: int, looks: int) -> None:
    asked: list[int] = []

    def holds(value: int) -> bool:
        if len(asked) == looks:
            raise OverError
        asked.append(value)
        return value >= change

    found = first(holds, 0, 500)
    assert found.value == min([500, *(value for value in asked if value >= change)])
    assert not found.settled or found.value == change


@cache
def _arrivals() -> tuple[Arrival, ...]:
    query = "shimekiri: 1\nquery: q\nsources:\n"
    kinds = (
        "{burst: 7, period: 100 ms}",
        "{period: 100 ms}",
        "{jcp: {period: 10 ms, min_gap: 2 ms, late: 25 ms}}",
        "{rate: 37, burst: 4}",
        "{trace: rec.txt}",
    )
    query += "".join(f"  s{i}: {{at: a, type: json, arrival: {kind}}}\n" for i, kind in enumerate(kinds))
    query += "operators:\n" + "".join(f"  O{i}: {{run: pass, in: s{i}, cost: 1 us}}\n" for i in range(len(kinds)))
    query += "outputs:\n" + "".join(f"  o{i}: {{from: O{i}, at: a, deadline: 1 s}}\n" for i in range(len(kinds)))
    with TemporaryDirectory() as name:
        made = Files(Path(name), query, cluster("a"))
        random, at, lines = Random(5), 0, []
        for _ in range(200):
            at += random.choice((0, 1, 3, 20)) * MS
            lines.append(str(at))
        (Path(name) / "rec.txt").write_text("\n".join(lines))
        return tuple(source.arrival for source in made.case().query.sources)


@settings(max_examples=examples(80, 4), deadline=None)
@given(st.integers(0, 4), st.integers(1, 99), st.randoms(use_true_random=False))
def test_what_is_kept_keeps_its_declaration(kind: int, index: int, random: Random) -> None:
    """Tuples at their densest, or later; the i-th is kept where floor(i rho) steps: no window holds more than told."""
    arrival = _arrivals()[kind]
    rho = shed.share(arrival, min(index, shed.last(arrival)))
    curve, kept_curve = arrival_curve(arrival.written), arrival_curve(shed.thinned(arrival, rho).written)
    spread = random.choice((0, 0, 3)) * MS
    spans = [_span(curve, n) for n in range(1, 60)]
    instants = [0]
    for n in range(1, 59):
        densest = max(instants[m] + spans[n - m] for m in range(n))
        instants.append(densest + random.randint(0, spread))
    shift = Fraction(random.randint(0, 99), 100)
    kept = [at for i, at in enumerate(instants) if int((i + 1) * rho + shift) > int(i * rho + shift)]
    for i in range(len(kept)):
        for j in range(i, len(kept)):
            assert j - i + 1 <= kept_curve.count(kept[j] - kept[i])


def _span(curve: Any, n: int) -> int:
    """The least t with count(t) >= n."""
    low, high = -1, 1
    while curve.count(high) < n:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if middle >= 0 and curve.count(middle) >= n else (middle, high)
    return high


def test_every_nth_of_a_jittered_stream_is_exact() -> None:
    thinned = shed.thinned(_arrivals()[2], Fraction(1, 3)).written
    assert isinstance(thinned, JcpArrival)
    assert (thinned.period_ns, thinned.min_gap_ns, thinned.late_ns) == (30 * MS, 6 * MS, 25 * MS)


def test_deadlines_that_have_to_give_way_together(files: Callable[[str, str], Files]) -> None:
    """Two outputs, each beyond its deadline by its own work: none alone mends it, each by what it lacks does."""
    made = files(
        PINNED.replace("nodes: [a]", "nodes: [b]", 1).replace("50 ms", "25.0005 ms"), cluster("ab", FREE[8:-1])
    )
    found = [mend for mend in find(made.case(), 60).repairs if mend.way == "deadline"]
    assert [mend.what_if for mend in found] == [("outputs.x.deadline=31.0005 ms", "outputs.y.deadline=31.0005 ms")]
    assert outcome(made.applied(found[0])).holds
    for name in "xy":
        assert not outcome(made.case((*found[0].what_if, f"outputs.{name}.deadline=30.99 ms"))).holds


def test_shedding_down_to_whole_bursts_is_the_same_by_options(files: Callable[[str, str], Files]) -> None:
    """One tuple a period is too much work: every so many periods, and the tolerance stays that of the file."""
    query = PINNED.replace("burst: 10, period: 100 ms", "burst: 1, period: 5 ms").replace("50 ms", "90 ms")
    made = files(query, cluster("a"))
    mend = next(mend for mend in find(made.case(), 60).repairs if mend.way == "input")
    assert mend.what_if[0] == "sources.s.arrival.period=10 ms" and mend.what_if[1] == "sources.s.tolerance=500 us"
    applied = made.applied(mend)
    assert applied.query.sources == mend.case.query.sources and outcome(applied).holds


@pytest.mark.soak  # `test_candidates` has smaller pairs
def test_where_nothing_alone_helps_two_together_do(files: Callable[[str, str], Files]) -> None:
    """A link takes longer than the deadline, and the operators need more than a node: each would still be there."""
    query = PINNED.replace("at: a, deadline: 50 ms}}", "at: b, deadline: 50 ms}}").replace("cost: 3 ms", "cost: 9 ms")
    made = files(query, cluster("ab", "{between: [a, b], latency: 60 ms}"))
    found = find(made.case(), 60)
    assert {mend.way for mend in found.repairs} == {"both"} and not found.untried
    for mend in found.repairs:
        assert len(mend.changes) == 2 and outcome(made.applied(mend)).holds, mend.text


@pytest.mark.soak
def test_of_two_together_the_least_change_is_given_not_the_utmost_of_one(files: Callable[[str, str], Files]) -> None:
    """Link and node share the deadline: a link a little quicker than that asks for a node a thousand times as fast."""
    query = PINNED.replace("at: a, deadline: 50 ms}}", "at: b, deadline: 50 ms}}").replace("cost: 3 ms", "cost: 9 ms")
    made = files(query, cluster("ab", "{between: [a, b], latency: 60 ms}"))
    found = find(made.case(), 60).repairs
    latency, speed = "links.a-b.latency", "nodes.a.speed"
    (mend,) = (one for one in found if {edit.key for edit in one.edits} == {latency, speed})
    least = min(
        log(60 / ms) + log(times)
        for ms, times in product([60 * 0.85**i for i in range(1, 24)], [1.2**i for i in range(1, 20)])
        if outcome(made.case((f"{latency}={ms:.3f} ms", f"{speed}={times:.4f}"))).holds
    )
    assert mend.size <= least + 0.02 and outcome(made.applied(mend)).holds


SIDED = """
shimekiri: 1
query: sided
sources:
  s: {at: a, type: json, arrival: {burst: 10, period: 100 ms}}
  known: {at: a, type: json, arrival: {burst: 1, period: 100 ms}%s}
operators:
  K: {run: pass, in: known, cost: 1 ms, nodes: [a]}
  X: {run: vehicle.attach, in: s, side: {ego: K}, cost: 1 ms, nodes: [a]}
outputs: {x: {from: X, at: a, deadline: 50 ms}}
"""


@pytest.mark.parametrize("age", ["", ", max_age: 1 s"])
def test_sources_of_side_inputs_alone_are_asked_for_no_age(files: Callable[[str, str], Files], age: str) -> None:
    text = SIDED.replace("json", "vehicle.Encounter", 1).replace("json", "vehicle.Ego") % age
    made = files(text, paper_cluster())
    case = made.case(model="sound")
    found = find(case, 20.0)
    told = [mend for mend in found.repairs if mend.way == "age"]
    assert told and all("s " in mend.text and "known" not in mend.text for mend in told)
    assert outcome(made.applied(told[0], model="sound")).holds
