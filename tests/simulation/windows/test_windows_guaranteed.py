"""Bounds of results behind windows, and beside limits: nothing that comes is later than its bound, nothing that is
guaranteed is left out.

Random queries with windows of all kinds, limits, shedders and what is done with late tuples are planned (model `sound`,
which polices, and others) and run in the virtual cluster, their sources as dense as they may be. `make test` takes a
few; many with

    SHIMEKIRI_SETS=1000 .venv/bin/python -m pytest -s tests/simulation/windows/test_windows_guaranteed.py
"""

import os
from collections import Counter
from statistics import fmean, median
from typing import Any

import pytest

from coordinator.guarantee.analysis import Analysis, analyse
from coordinator.guarantee.bounds import claims
from coordinator.guarantee.losses import behind
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import NOTHING
from node_agent.virtual.run import Simulation, simulate
from node_agent.virtual.scenario import Scenario
from protos import records
from protos.plan_document import Plan
from tests.simulation.windows.window_queries import registry
from tests.simulation.windows.window_worlds import Dense, case, planned

SETS = int(os.environ.get("SHIMEKIRI_SETS", "6"))
FIRST = int(os.environ.get("SHIMEKIRI_FIRST_SET", "0"))


def facts(done: Simulation) -> list[records.Record]:
    """Of all nodes."""
    return [fact for trace in done.traces for fact in records.unpack_records(trace.records)]


def admissions(done: Simulation) -> dict[tuple[int, int, int], int]:
    """When each tuple, and each window, was admitted."""
    return {(f.source, f.epoch, f.seq): f.at_ns for f in facts(done) if isinstance(f, records.Admitted)}


def check_releases(analysis: Analysis, done: Simulation, seed: int) -> None:
    """No unit is released more densely than its curve says."""
    found: dict[int, list[int]] = {}
    for fact in facts(done):
        if isinstance(fact, records.Ran):
            found.setdefault(fact.unit, []).append(fact.release_ns)
    for unit, at_ns in found.items():
        if unit in analysis.streams.triggers and not analysis.delays.broken:
            curve, ordered = analysis.streams.triggers[unit].curve, sorted(at_ns)
            for i, first in enumerate(ordered):
                for n, last in enumerate(ordered[i : i + 30], start=1):
                    assert n <= curve.count(last - first), f"seed {seed}: unit {unit}: {n} in {last - first} ns"


def check_results(analysis: Analysis, plan: Plan, told: dict[str, Any], done: Simulation, seed: int) -> list[float]:
    """No result is later than its bounds, from its origin and from its admission on. Returns how near they come."""
    names = {one.id: name for name, one in plan.graph.outputs.items()}
    sources = {one.id: name for name, one in plan.graph.sources.items()}
    sources |= {one.source: one.add for one in plan.graph.windows.values()}
    admitted, ratios = admissions(done), []
    worst: Counter[str] = Counter()
    for fact in facts(done):
        if not isinstance(fact, records.Output):
            continue
        name = names[fact.ref]
        claim, at_ns = told[name], admitted[fact.source, fact.epoch, fact.seq]
        flow = analysis.streams.flows.get((analysis.system.outputs[name].stream, analysis.system.outputs[name].node))
        if flow is not None:
            took, most_ns = fact.at_ns - at_ns, flow.late[sources[fact.source]].most_ns
            assert took <= most_ns, f"seed {seed}: {name}: {took} > {most_ns} from admission on"
        if claim.bound_ns is not None:
            worst[name] = max(worst[name], fact.at_ns - fact.origin_lo_ns)
            assert worst[name] <= claim.bound_ns, f"seed {seed}: {name}: {worst[name]} > {claim.bound_ns} {claim.parts}"
    for name, took in worst.items():
        ratios.append(took / told[name].bound_ns)
    return ratios


def check_windows(analysis: Analysis, plan: Plan, told: dict[str, Any], done: Simulation, seed: int) -> int:
    """Where an output is guaranteed and nothing can be left out, every window is given. Returns how many were."""
    whole = {
        add
        for name, claim in told.items()
        if claim.guaranteed and not claim.missing
        for add in analysis.system.windows
        for units in [behind(analysis, plan.graph.outputs[name].origin)[0]]
        if any(stage.operator == add for number in units for stage in analysis.system.units[number].stages)
    }
    adds = {plan.graph.operators[add].id: add for add in whole}
    given = 0
    for fact in facts(done):
        if isinstance(fact, records.Window) and fact.operator in adds:
            given += fact.state == records.WINDOW_CLOSED
            cause = records.WINDOW_CAUSES[fact.cause]
            lost = fact.state in (records.WINDOW_ABANDONED, records.WINDOW_SKIPPED) and cause not in ("-", "stopped")
            assert not lost, (
                f"seed {seed}: {adds[fact.operator]}: window {fact.seq} of {fact.start} to {fact.end} ns: {cause}"
            )
    return given


@pytest.mark.parametrize("flooded", [False, True])
def test_results_of_windows_stay_within_their_bounds(flooded: bool) -> None:
    """`flooded`: one source sends three times what it declares, and is policed: what comes is in time all the same."""
    ratios: list[float] = []
    counts: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + (SETS if not flooded else max(2, SETS // 4))):
        query, cluster = case(seed)
        plan = planned(query, cluster, sound=flooded or seed % 2 == 0)
        if plan is None:
            counts["no plan"] += 1
            continue
        analysis = analyse(read(plan), NOTHING)
        told = claims(analysis)
        sources = sorted(plan.graph.sources)
        flood = sources[seed % len(sources)] if flooded else ""
        emulated = any(node.emulate_cost_ns for node in plan.cluster.nodes.values())
        scale = 1.0 if seed % 3 or emulated else 0.6  # a node that emulates never takes less
        scenario = Scenario(trials=2, seed=seed, cost_scale=scale)
        done = simulate(plan, scenario, registry(), Dense(plan, seed, flood))
        if flooded and (plan.analysis.policing or {})[flood].why:
            continue
        assert not done.failures, f"seed {seed}: {done.failures}"
        ratios += check_results(analysis, plan, told, done, seed)
        check_releases(analysis, done, seed)
        counts["outputs"] += len(told)
        counts["bounded"] += sum(claim.bound_ns is not None for claim in told.values())
        counts["guaranteed"] += sum(claim.guaranteed for claim in told.values())
        if not flooded:
            counts["windows that had to be given"] += check_windows(analysis, plan, told, done, seed)
            policed = sum(isinstance(f, records.Shed) and f.policy == records.POLICY_ARRIVALS for f in facts(done))
            assert not policed, f"seed {seed}: {policed} tuples or windows that conform were shed by policing"
    near = f"mean {fmean(ratios):.3f}, median {median(ratios):.3f}, largest {max(ratios):.3f}"
    print(f"\nsets from {FIRST} on: {dict(counts)}; worst / bound: {near}")
    assert counts["guaranteed"] > counts["no plan"]
    assert flooded or counts["windows that had to be given"] > 0
