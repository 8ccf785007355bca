"""The Autoware Reference System: its graph as a query, its KPIs read from traces, and the model beside it."""

from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest

from coordinator.model.choices import Choices
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from coordinator.solve import planner
from coordinator.spec.runtime_charges import NOTHING
from infra.reference_system.executor_model import ExecutorModel
from infra.reference_system.kpis import HotResult, Observed, kpis
from infra.reference_system.live_runs import Live
from infra.reference_system.reference_files import registry, write
from infra.reference_system.reference_graph import (
    CALLBACKS,
    FRONT,
    HOT_PATH,
    MS,
    PERIODS_MS,
    REAR,
    SECOND,
    UNEVEN,
    cost_ns,
    rates,
)
from infra.reference_system.reference_page import BEGIN, NAMES, PAGE, Case, Findings, details, sections
from infra.reference_system.run_kpis import observed
from infra.reference_system.virtual_runs import Lasting, Planned, modelled, phases, shifted
from node_agent.virtual.run import simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos.plan_document import Plan

LOAD = 0.5


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """As a user's, but for the search of sub-deadlines."""
    folder = tmp_path_factory.mktemp("ars")
    choices = Choices(policy="edf", allocator="sqpr", sub_deadlines="proportional", charges=NOTHING)
    return planner.make_plan(*write(folder, LOAD, 1), choices)


def test_loads_are_those_of_rates_at_which_fusions_fire() -> None:
    found = rates()
    assert found["ObjectCollisionEstimator"] == 10 and found["Lanelet2GlobalPlanner"] == pytest.approx(1000 / 120)
    for load, nodes in ((0.5, 1), (1.2, 2)):
        assert sum(found.values()) * cost_ns(load, nodes) / SECOND == pytest.approx(load * nodes, rel=1e-3)


def test_its_kpis_are_those_that_the_report_has(plan: Plan, tmp_path: Path) -> None:
    """With the rear lidar just behind, so that each front sample waits for almost a period."""
    behind = list(phases(2, seed=1))[1]
    done = simulate(shifted(plan, behind), Scenario(policy="edf"), registry(), Lasting(2 * SECOND))
    assert not done.failures
    write_run(done, tmp_path / "run")
    report = verdict(read_run(tmp_path / "run"))
    assert not report.conservation.problems
    found = kpis([observed(tmp_path / "run")])
    hot = report.outputs[HOT_PATH]
    assert found.updates == hot.delivered == found.samples == 20
    assert found.missed == hot.late == 0 and found.hot_drops == 0
    assert hot.latency_ns is not None and found.end_to_end.max * MS == hot.latency_ns.max
    waited_ms = PERIODS_MS[REAR] - 1
    least_ms = waited_ms + 5 * cost_ns(LOAD, 1) / MS  # it goes on when the later sample is transformed
    assert least_ms <= found.end_to_end.mean <= found.end_to_end.max <= waited_ms + PERIODS_MS[FRONT]
    assert found.latency.max <= found.end_to_end.max - waited_ms - cost_ns(LOAD, 1) / MS
    assert set(found.dropped) <= UNEVEN and found.dropped["Lanelet2GlobalPlanner"] > 0
    assert 95 < found.planner.mean < 105
    assert found.age.max == pytest.approx(found.end_to_end.max + PERIODS_MS[FRONT], abs=PERIODS_MS[FRONT])


def test_a_plan_in_another_phase_is_a_plan(plan: Plan) -> None:
    moved = shifted(plan, {REAR: 7 * MS})
    assert moved.intact and moved.hash != plan.hash
    (pull,) = [each.pull for each in moved.nodes["a"].sources if each.name == REAR]
    assert pull.offset_ns == 7 * MS


def test_the_model_drops_only_at_uneven_fusions_below_full_load_and_much_above_it(plan: Plan) -> None:
    calm = kpis([modelled(plan, {}, cost_ns(0.5, 1), 2)])
    assert calm.samples == calm.updates == 20 and set(calm.dropped) <= UNEVEN
    full = kpis([modelled(plan, {}, cost_ns(1.5, 1), 2)])
    assert full.latency.mean > calm.latency.mean and full.dropped["EuclideanIntersection"] > 0


def test_a_timer_of_the_model_that_is_late_skips_the_periods_that_have_passed() -> None:
    """A callback of 60 ms behind a timer of 25 ms; nothing else is due before 99 ms."""
    placement = dict.fromkeys((*PERIODS_MS, *(each.name for each in CALLBACKS)), "a")
    late = {name: 59 * MS if period_ms == 60 else 99 * MS for name, period_ms in PERIODS_MS.items() if period_ms > 25}
    found = ExecutorModel(placement, late, 60 * MS, MS, 101 * MS).run()
    assert found.dropped == {"EuclideanClusterSettings": 2}  # of 0, 25, 50, 75 and 100 ms it runs at 0, 60 and 120


def test_a_sample_whose_deadline_has_not_passed_at_the_end_is_not_missed() -> None:
    hot = HotResult(0, -5 * MS, 0, 20 * MS, 30 * MS)
    run = Observed((0, 100 * MS, 200 * MS), (hot,), (0, 100 * MS, 203 * MS), {}, 450 * MS)
    found = kpis([run])
    assert (found.samples, found.updates, found.missed, found.hot_drops) == (2, 1, 1, 1)
    assert found.latency.max == 20 and found.end_to_end.max == 35 and found.jitter_ms == 3
    late = kpis([replace(run, hot=(replace(hot, end_ns=400 * MS),))])
    assert late.missed == 2 and late.hot_drops == 1


def test_the_page_has_a_place_for_each_table_with_its_columns(plan: Plan) -> None:
    found = kpis([Observed((0, 100 * MS), (HotResult(0, -5 * MS, 0, 20 * MS, 30 * MS),), (0, 100 * MS), {}, 450 * MS)])
    case = Case(LOAD, 1, Planned(plan, "guaranteed", 2.0, 2.0, 70 * MS, 0, MS), dict.fromkeys(NAMES, found))
    all_found = Findings([case], [Live(LOAD, 1, 10, 70 * MS, 0, found)], 1, 3)
    page = PAGE.read_text(encoding="utf-8")
    for name, section in sections(all_found).items():
        shown = page.partition(BEGIN.format(name))[2].lstrip().splitlines()
        assert shown and shown[:2] == section.splitlines()[:2]
    rows = list(takewhile(lambda line: line.startswith("|"), details(all_found).splitlines()))
    assert len(rows) == 2 + len(NAMES)
    assert "| 1 | 50% | guaranteed | 2.0 | 70 | 35 | 2.00 | none |" in sections(all_found)["plans"]
