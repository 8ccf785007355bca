"""Worlds that say themselves what is admitted, and the crossing in virtual time around a small query."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from node_agent.operators.registry import Registry
from node_agent.virtual.run import operators_here, simulate
from node_agent.virtual.scenario import Scenario as Conditions
from node_agent.virtual.world import Admission, Delivery, Offer
from protos import records
from protos.plan_document import Plan
from protos.segments import records_in
from sim_vehicles.closed_loop.in_virtual_time import replay_virtual
from sim_vehicles.closed_loop.lap import Lap
from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.inputs.feed import feeds
from sim_vehicles.inputs.stimuli import StimulusOptions
from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.world.scene import Scenario
from tests.sentences import Wording
from tests.simulation.cluster.operators_for_loop import __file__ as operators_file
from tests.simulation.planned_queries import MS, planned

SAID = Wording("simulate", "loop")

ONE_NODE = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", memory: 64 MiB}
operators: operators.json
security: insecure-loopback
"""
TWO_SOURCES = """
shimekiri: 1
query: two
sources:
  p: {at: a, type: json, arrival: {burst: 3, period: 1 s}}
  q: {at: a, type: json, arrival: {burst: 3, period: 1 s}}
operators:
  O1: {run: pass, in: p, cost: 1 ms}
  O2: {run: pass, in: q, cost: 1 ms}
outputs:
  one: {from: O1, at: a, deadline: 100 ms}
  two: {from: O2, at: a, deadline: 100 ms}
"""
ALARM = """
shimekiri: 1
query: alarm
sources:
  v2v: {at: a, type: vehicle.Cpm, arrival: {burst: 20, period: 500 ms}, max_age: 90 ms}
operators:
  O1: {run: test.alarm, in: v2v, cost: 10 ms, with: {level: LEVEL}}
outputs:
  warning: {from: O1, at: a, deadline: 300 ms}
"""


class Planned:
    """Admits what it is given; at its first result, something else from then on."""

    def __init__(self, first: Sequence[Admission], then: Sequence[Admission] | None = None) -> None:
        self.first, self.then = first, then
        self.told: list[Delivery] = []

    def begin(self, trial: int) -> Sequence[Admission]:
        self.told.clear()
        return self.first

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        raise AssertionError("never asked")

    def deliver(self, delivery: Delivery) -> Sequence[Admission] | None:
        self.told.append(delivery)
        return self.then if len(self.told) == 1 else None


def admission(at_ms: float, source: str, *values: Any, age_ms: int = 0) -> Admission:
    return Admission(round(at_ms * MS), source, tuple(Offer(value, age_ms * MS) for value in values))


def test_a_world_admits_in_its_own_order_with_its_own_ages() -> None:
    world = Planned(
        [
            admission(10, "q", "c", age_ms=7),
            admission(10, "p", "d", "e"),
            admission(-5, "p", "a", age_ms=100),
            admission(10, "q", "f", age_ms=9),
        ]
    )
    done = simulate(planned(TWO_SOURCES, ONE_NODE), Conditions(trials=2, policy="fifo"), world=world)
    assert done.admitted == 10
    told = [(one.payload, one.at_ns // MS, one.latency_ns // MS, one.seq) for one in world.told]
    assert told == [("a", -4, 101, 1), ("c", 11, 8, 1), ("d", 12, 2, 2), ("e", 13, 3, 3), ("f", 14, 13, 2)]


def test_a_world_may_plan_anew_what_comes_after_a_result_but_not_at_its_instant() -> None:
    first = [admission(0, "p", "a"), admission(1, "p", "b"), admission(1.000001, "p", "never"), admission(9, "q", "no")]
    then = [admission(0.5, "p", "past"), admission(1, "p", "now"), admission(5, "q", "x"), admission(6, "p", "y")]
    world = Planned(first, then)
    simulate(planned(TWO_SOURCES, ONE_NODE), world=world)  # "a" is there at 1 ms
    assert [one.payload for one in world.told] == ["a", "b", "x", "y"]


def test_a_world_that_names_no_source_of_the_plan_is_refused() -> None:
    with SAID.refuses("unknown_source z"):
        simulate(planned(TWO_SOURCES, ONE_NODE), world=Planned([admission(0, "z", 1)]))


@cache
def crossing() -> Scenario:
    return load_scenario("crossing_50")


@cache
def alarm(level: int) -> tuple[Plan, Registry]:
    registry = operators_here([Path(operators_file)])
    return planned(ALARM.replace("LEVEL", str(level)), ONE_NODE, registry=registry), registry


def play(level: int = 2, phases: int = 2, laps: int = 1, age_ms: int = 50, **more: Any) -> list[Lap]:
    plan, registry = alarm(level)
    options = StimulusOptions(9_000_000_000, 13_000_000_000, age_ns=age_ms * MS)
    found = feeds(plan, Path("plan.json"), None)
    return replay_virtual(plan, crossing(), found, options, AUTO, phases, laps, registry, **more).laps


def test_the_crossing_in_virtual_time_phase_by_phase(tmp_path: Path) -> None:
    steps: list[None] = []
    laps = play(out=tmp_path / "run", progress=lambda: steps.append(None))
    assert len(steps) == 2
    assert [(lap.phase, lap.phases, lap.phase_ns) for lap in laps] == [(0, 2, 0), (1, 2, 250 * MS)]
    assert laps[0].inputs_hash != laps[1].inputs_hash
    for number, lap in enumerate(laps):
        found = lap.verdict.document()
        assert (found["outcome"], found["valid"], found["burst_phase_ns"]) == ("AVOIDED", True, 250 * MS * number)
        assert found["warnings"]["false"] > 0, "this query warns of everybody"
        deciding = found["deciding"]
        assert (deciding["source"], deciding["epoch"], deciding["object"]) == (1, number + 1, "X")
        (lo_ns, hi_ns), measured_s = deciding["latency_ns"], deciding["measured_s"]
        assert lo_ns == hi_ns == pytest.approx((deciding["delivered_s"] - measured_s) * 1e9, abs=2)
        burst = next(one for one in lap.loop.bursts if one.at_ns / 1e9 >= measured_s and one.source == "v2v")
        place = deciding["delivered_s"] - burst.at_ns / 1e9
        assert place * 100 == pytest.approx(round(place * 100), abs=1e-6), "10 ms for each tuple of the burst before it"
        assert found["first_perceivable"]["at_s"] < measured_s
    assert [len(lap.loop.log) for lap in laps] == [160, 160], "8 bursts of 20 in each"


def test_a_run_of_laps_is_a_run_for_the_report_and_holds_the_deciding_tuple(tmp_path: Path) -> None:
    laps = play(out=tmp_path / "run")
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert [(each["epoch"], each["phase"], each["outcome"]) for each in run["laps"]] == [
        (1, 0, "AVOIDED"),
        (2, 1, "AVOIDED"),
    ]
    document = verdict(read_run(tmp_path / "run")).document()
    assert document["conservation"]["admitted"] == document["conservation"]["accounted"] == 320
    (trace,) = (tmp_path / "run").glob("trace/raw/a/*/0000.trace")
    facts = list(records.unpack_records(records_in(trace.read_bytes())))
    for lap in laps:
        deciding = lap.verdict.document()["deciding"]
        outputs = [
            fact
            for fact in facts
            if isinstance(fact, records.Output) and (fact.epoch, fact.seq) == (deciding["epoch"], deciding["seq"])
        ]
        assert len(outputs) == 1
        assert outputs[0].at_ns - outputs[0].origin_lo_ns == deciding["latency_ns"][0]
    with SAID.refuses("not_empty --out"):
        play(out=tmp_path / "run")


def test_laps_repeat_the_phases_and_nothing_changes() -> None:
    laps = play(laps=2)
    assert [lap.phase for lap in laps] == [0, 1, 0, 1]
    assert laps[0].verdict.document()["gap_m"] == laps[2].verdict.document()["gap_m"]
    assert laps[0].inputs_hash == laps[2].inputs_hash


def test_no_warning_no_brake() -> None:
    (lap,) = play(level=0, phases=1)
    assert (lap.verdict.document()["outcome"], lap.verdict.document()["brake"]) == ("CRASH", None)
    assert lap.verdict.document()["impact_kmh"] == pytest.approx(50, abs=0.1)
    assert lap.verdict.document()["warnings"] == {"about_crossing": 0, "false": 0, "others": 0, "missed": True}


def test_an_operator_that_raises_makes_the_verdict_invalid_and_is_named() -> None:
    (lap,) = play(level=3, phases=1)
    assert lap.verdict.document()["valid"] is False
    assert lap.verdict.document()["why_not_valid"] == (
        "operator O1 on node a raised 160 times, first: RuntimeError: no such level"
    )


def test_tuples_older_than_their_source_takes_are_refused_as_an_agent_would() -> None:
    (lap,) = play(phases=1, age_ms=100)  # max_age is 90 ms: what was measured 100 ms ago is refused
    oldest = [one.at_ns - round(one.measured_s * 1e9) for one in lap.loop.log]
    assert 0 < len(lap.loop.log) < 160
    assert min(oldest) > 0
    assert lap.refused == sum(len(burst.values) for burst in lap.loop.bursts if burst.age_ns == 100_000_000) > 0


def test_tuples_as_old_as_their_source_takes_are_admitted_and_counted_so() -> None:
    (lap,) = play(phases=1, age_ms=90)
    assert max(burst.age_ns for burst in lap.loop.bursts) == 90 * MS
    assert (len(lap.loop.log), lap.refused) == (160, 0)


@pytest.mark.parametrize(("phases", "laps"), [(0, 1), (1, 0), (70_000, 1)])
def test_counts_that_cannot_be_are_refused(phases: int, laps: int) -> None:
    with SAID.refuses("out_of_range --phases"):
        play(phases=phases, laps=laps)
