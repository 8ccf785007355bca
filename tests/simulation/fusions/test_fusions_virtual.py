"""Fusions on the virtual cluster: nothing is later than its bound, no unit runs more often than its curve, every tuple
ends once in the books of the report, and what a set is made of is what its records say.

`make test` takes a few; many with

    SHIMEKIRI_SETS=1000 .venv/bin/python -m pytest -s tests/simulation/fusions
"""

import os
from collections import Counter
from pathlib import Path
from statistics import fmean, median
from typing import Any

from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.system import read
from coordinator.report.blame.misses import misses
from coordinator.report.facts.reader import read_run
from coordinator.report.verdict import verdict
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.run import Simulation, simulate, write_run
from node_agent.virtual.scenario import Scenario
from protos import records
from protos.plan_document import Plan
from tests.simulation.fusions.fusion_worlds import Periodic, case
from tests.simulation.windows.test_windows_guaranteed import check_releases, check_results, facts
from tests.simulation.windows.window_worlds import planned

SETS = int(os.environ.get("SHIMEKIRI_SETS", "12"))


def made(seed: int, late: str = "") -> Plan | None:
    query, cluster = case(seed, late)
    return planned(query, cluster, sound=seed % 2 == 0)


def values(world: Periodic) -> list[dict[str, Any]]:
    return [delivery.payload for delivery in world.delivered if delivery.output == "out"]


def check_sets(plan: Plan, done: Simulation, world: Periodic, unit: int) -> None:
    """Every contributor that merged names the tuple whose lineage its result has: the oldest, and not too much so."""
    how = plan.graph.operators["F"].sync
    assert how is not None
    if how.each:
        assert not [f for f in facts(done) if isinstance(f, records.Merged)]
        assert all(all(result.values()) for result in values(world))  # a list of each input, none is empty
        return
    origins = {(f.source, f.epoch, f.seq): f.origin_lo_ns for f in facts(done) if isinstance(f, records.Admitted)}
    ran = {(f.source, f.epoch, f.seq) for f in facts(done) if isinstance(f, records.Ran) and f.unit == unit}
    merged = [f for f in facts(done) if isinstance(f, records.Merged)]
    for each in merged:
        parent = each.parent_source, each.parent_epoch, each.parent_seq
        older_ns = origins[each.source, each.epoch, each.seq] - origins[parent]
        assert parent in ran and older_ns >= 0 and (how.within_ns is None or older_ns <= how.within_ns)
    parts = sum(value is not None for result in values(world) for value in result.values())
    assert parts == len(merged) + len(values(world))


def test_fusions_stay_within_their_bounds_and_every_tuple_ends_once(tmp_path: Path) -> None:
    ratios: list[float] = []
    counts: Counter[str] = Counter()
    for seed in range(SETS):
        plan = made(seed)
        if plan is None:
            counts["no plan"] += 1
            continue
        analysis = analyse(read(plan), NOTHING)
        told = claims(analysis)
        world = Periodic(plan, seed)
        done = simulate(plan, Scenario(trials=2, seed=seed), world=world)
        assert not done.failures, f"seed {seed}: {done.failures}"
        ratios += check_results(analysis, plan, told, done, seed)
        check_releases(analysis, done, seed)
        head = next(unit.id for unit in analysis.system.units.values() if unit.sync is not None)
        check_sets(plan, done, world, head)
        counts["results"] += len(values(world))
        counts["partial"] += sum(None in result.values() for result in values(world))
        counts["bounded"] += told["out"].bound_ns is not None
        for each in facts(done):
            if isinstance(each, records.Shed):
                counts[records.SHED_POLICIES[each.policy]] += 1
        run = tmp_path / f"run{seed}"
        write_run(done, run)
        found = verdict(read_run(run)).document()
        assert found["conservation"]["admitted"] == found["conservation"]["accounted"], f"seed {seed}"
        assert not found["conservation"]["problems"], f"seed {seed}: {found['conservation']}"
        assert found["conservation"]["by_outcome"]["open"] == 0
        assert found["outputs"]["out"]["delivered"] == len(values(world))
        assert not found["outputs"]["out"]["miss_ratio"] or not told["out"].guaranteed, f"seed {seed}"
    near = f"mean {fmean(ratios):.3f}, median {median(ratios):.3f}, largest {max(ratios):.3f}"
    print(f"\n{SETS} sets: {dict(counts)}; worst / bound: {near}")
    assert counts["results"] and counts["partial"] and counts["replaced"] and counts["bounded"]


def test_dropping_what_is_late_before_a_fusion_keeps_bounds_where_nothing_is() -> None:
    """A period is kept as long as no tuple may be late, and none is dropped where that is promised."""
    counts: Counter[str] = Counter()
    for seed in range(SETS):
        plan, plain = made(seed, ", on_late: drop"), made(seed)
        if plan is None or plain is None:
            continue
        analysis = analyse(read(plan), NOTHING)
        told = claims(analysis)
        done = simulate(plan, Scenario(trials=2, seed=seed), world=Periodic(plan, seed))
        assert not done.failures, f"seed {seed}: {done.failures}"
        check_results(analysis, plan, told, done, seed)
        check_releases(analysis, done, seed)
        shed = {records.SHED_POLICIES[each.policy] for each in facts(done) if isinstance(each, records.Shed)}
        assert not told["out"].guaranteed or not shed - {"replaced", "unmatched"}, f"seed {seed}: {shed}"
        counts["guaranteed"] += told["out"].guaranteed
        counts["plain"] += plain.guarantee["out"].guaranteed
    assert counts["guaranteed"] == counts["plain"] > 0, counts


LATE = """
shimekiri: 1
query: late
sources:
  camera: {at: a, type: json, max_age: 20 ms, arrival: {burst: 1, period: 90 ms}}
  lidar: {at: a, type: json, max_age: 20 ms, arrival: {burst: 1, period: 900 ms}}
operators:
  F: {run: join, in: [camera, lidar], cost: 1 ms, sync: {on: all, timeout: 60 ms}}
outputs:
  out: {from: F, at: a, deadline: 50 ms}
"""
ALONE = 'shimekiri: 1\nnodes: {a: {address: "127.0.0.1:7700"}}\noperators: operators.json\n'


def test_a_result_that_waited_for_its_other_inputs_is_late_for_that(tmp_path: Path) -> None:
    plan = planned(LATE, ALONE, sound=False)
    assert plan is not None
    assert plan.guarantee["out"].why.startswith("the bound exceeds the deadline")
    write_run(simulate(plan, Scenario(bursts=10)), tmp_path / "run")
    run = read_run(tmp_path / "run")
    found = misses(run, verdict(run))
    assert found.by_cause["out"].keys() == {"inputs"}
    assert found.worst[0].causes[0].text == "F on a waited 60 ms for its other inputs"
