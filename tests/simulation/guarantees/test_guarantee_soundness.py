"""What the analysis admits never misses, no bound is ever exceeded: on single nodes, and end to end in virtual time.

`make test` takes a seeded subset. The full run, with at least 10 000 admitted sets, prints how tight the bounds are:

    SHIMEKIRI_SETS=10000 .venv/bin/python -m pytest -s tests/simulation/guarantees/test_guarantee_soundness.py
"""

import os
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from statistics import fmean, median

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.calculus import demand
from coordinator.calculus.curves import Bursts, Jcp, RateBurst, Spanned
from coordinator.calculus.demand import Task, UnboundedError
from coordinator.calculus.response import load_responses
from coordinator.calculus.selectivity import ONE, declared
from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import bounds, claims
from coordinator.guarantee.system import read
from coordinator.spec.runtime_charges import MEASURED, NOTHING
from node_agent.virtual.run import Simulation, simulate
from node_agent.virtual.scenario import Scenario
from protos import plan_document, records
from protos.plan_document import Plan
from tests.simulation.guarantees.edf_node import Job, instants, passes, run
from tests.simulation.random_plans import documents, registry

SETS = int(os.environ.get("SHIMEKIRI_SETS", "150"))
PLANS = max(30, SETS // 20)
MS = 1_000_000
FILTERS: tuple[tuple[tuple[int, int], ...], ...] = (
    ((1, 1),),
    ((1, 1), (2, 1)),
    ((1, 1), (3, 3), (6, 3)),
    ((1, 2), (4, 4)),
)


def random_set(draw: Random) -> list[Task]:
    """Two to four units; often nearly full, sometimes not schedulable."""
    tasks = []
    share = draw.uniform(0.4, 0.98) / (count := draw.randint(2, 4))
    for number in range(count):
        period = draw.choice([20, 30, 50, 80, 130])
        streams: list[Spanned] = [
            Jcp(period, draw.randint(0, period - 1), draw.randint(0, 2 * period)),
            Bursts(size := draw.randint(1, 4), size * period),
            RateBurst(draw.randint(1, 3), Fraction(1, period)),
        ]
        curve = draw.choice(streams)
        pairs = draw.choice(FILTERS)
        cost = max(1, round(share * period * draw.uniform(0.3, 1.6)))
        first = draw.randint(1, cost)
        stages = ((first, ONE), (max(1, cost - first), declared(pairs, 1))) if draw.random() < 0.4 else ((cost, ONE),)
        deadline = draw.randint(cost, 6 * period)
        tasks.append(Task(f"{number}", curve, deadline, stages, draw.choice([1, 1, 1, 2, 4])))
    return tasks


def jobs_of(tasks: Sequence[Task], number: int, after: int, until: int, draw: Random | None) -> list[Job]:
    """One unit's conforming arrivals from `after` on: as dense and as costly as may be, or drawn."""
    unit = tasks[number]
    assert isinstance(unit.curve, Spanned)
    if draw is None:
        found = instants(unit.curve.span, until, lambda: 0)
    else:
        found = instants(unit.curve.span, until, lambda: draw.choice([0, 0, 0, 1, draw.randint(0, 40)]))
    costs = [int(unit.stages[0][0])] * len(found)
    for cost, selectivity in unit.stages[1:]:
        extra = passes(selectivity.pairs, len(found), draw)
        costs = [each + int(cost) * more for each, more in zip(costs, extra, strict=True)]
    return [Job(after + at, number, cost) for at, cost in zip(found, costs, strict=True)]


def traces(tasks: Sequence[Task], until: int, draw: Random) -> list[list[Job]]:
    """All at once; each unit a little before the others, so that it blocks; deadlines lined up; drawn."""
    every = range(len(tasks))
    found = [[job for i in every for job in jobs_of(tasks, i, 1, until, None)]]
    for first in every:
        found.append([job for i in every for job in jobs_of(tasks, i, 0 if i == first else 1, until, None)])
        late = max(int(unit.deadline) for unit in tasks)
        lined = [late - int(unit.deadline) + (i != first) for i, unit in enumerate(tasks)]
        found.append([job for i in every for job in jobs_of(tasks, i, lined[i], until, None)])
    for _ in range(3):
        found.append([job for i in every for job in jobs_of(tasks, i, draw.randint(0, 60), until, draw)])
    return found


def test_no_admitted_set_misses_and_no_response_exceeds_its_bound() -> None:
    admitted, tried, ratios = 0, 0, []
    while admitted < SETS:
        seed, tried = tried, tried + 1
        draw = Random(seed)
        tasks = random_set(draw)
        try:
            loaded = demand.load(tasks)
        except UnboundedError:
            continue
        if loaded.busy > 3000:
            continue
        holds, found = demand.test_load(loaded).holds, load_responses(loaded)
        admitted += holds
        worst = dict.fromkeys(range(len(tasks)), 0)
        for jobs in traces(tasks, int(loaded.busy) + 50, draw):
            seen = run(jobs, [int(unit.deadline) for unit in tasks], [unit.batch for unit in tasks])
            for number, took in seen.items():
                worst[number] = max(worst[number], took)
                assert took <= found[str(number)].end, f"seed {seed}: unit {number} took {took}: {tasks}"
                assert not holds or took <= tasks[number].deadline, f"seed {seed}: unit {number} missed: {tasks}"
        assert not holds or all(found[unit.name].end <= unit.deadline for unit in tasks), f"seed {seed}"
        if holds:
            ratios += [worst[i] / float(found[str(i)].end) for i in worst]
    print(
        f"\n{admitted} admitted sets of {tried}: no miss. Simulated worst / response bound: mean {fmean(ratios):.3f}, "
        f"median {median(ratios):.3f}, least {min(ratios):.3f}; 1 in {sum(r == 1 for r in ratios) / len(ratios):.0%}"
    )
    assert median(ratios) > 0.8


KINDS = ("pass", "filter", "union", "join", "test.attach", "test.fragile")


@st.composite
def busy_plans(draw: st.DrawFn) -> Plan:
    """Random plans with periods as short as their delays, so that jitter matters; some on emulated nodes."""
    plan = draw(documents(KINDS)).to_json()
    for source in plan["graph"]["sources"].values():
        period_ns = draw(st.integers(25, 150)) * MS
        jcp = {"kind": "jcp", "burst": 1, "period_ns": period_ns, "min_gap_ns": draw(st.integers(0, period_ns - 1))}
        jcp |= {"early_ns": 0, "late_ns": draw(st.integers(0, 3)) * period_ns}
        source["arrival"] = draw(
            st.sampled_from([{"kind": "burst", "burst": draw(st.integers(1, 4)), "period_ns": period_ns}, jcp])
        )
    if draw(st.booleans()):
        for name, local in plan["nodes"].items():
            plan["cluster"]["nodes"][name]["emulate_cost_ns"] = MS
            local["emulate_cost_ns"] = str(MS)
    return plan_document.shaped(plan)


def released(done: Simulation) -> dict[int, list[int]]:
    """When the instances of every unit were released."""
    found: dict[int, list[int]] = {}
    for trace in done.traces:
        for fact in records.unpack_records(trace.records):
            if isinstance(fact, (records.Ran, records.Lost)):
                found.setdefault(fact.unit, []).append(fact.release_ns if isinstance(fact, records.Ran) else -1)
    return {unit: sorted(at for at in instants_ if at >= 0) for unit, instants_ in found.items()}


def test_the_virtual_cluster_never_exceeds_the_bounds_of_random_plans() -> None:
    """Neither a bound, nor the curve by which any unit is released, over every window."""
    ratios: list[float] = []
    bounded = [0, 0]

    @settings(max_examples=PLANS, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(busy_plans(), st.lists(st.integers(0, 30), min_size=2, max_size=2), st.integers(0, 99))
    def check(plan: Plan, phases: list[int], seed: int) -> None:
        analysis = analyse(read(plan), NOTHING)
        told = claims(analysis)
        charged = bounds(plan, MEASURED) if not seed % 4 and not analysis.delays.broken else {}
        phase_ns = {name: phases[i % 2] * MS for i, name in enumerate(plan.graph.sources)}
        done = simulate(plan, Scenario(bursts=8, seed=seed, phase_ns=phase_ns), registry())
        for unit, instants_ns in released(done).items():
            if unit in analysis.streams.triggers and not analysis.delays.broken:
                curve = analysis.streams.triggers[unit].curve
                for i, first in enumerate(instants_ns):
                    for n, last in enumerate(instants_ns[i : i + 40], start=1):
                        assert n <= curve.count(last - first), f"unit {unit}: {n} in {last - first} ns"
        for name, output in done.outputs.items():
            bound_ns = told[name].from_admission_ns
            wider_ns = charged[name].from_admission_ns if charged else None
            bounded[bound_ns is not None] += 1
            if bound_ns is not None and output.latencies_ns:
                took = max(output.latencies_ns)
                assert took <= bound_ns, f"{name}: {took} > {bound_ns}"
                assert wider_ns is None or bound_ns <= wider_ns, "charges only add"
                ratios.append(took / bound_ns)

    check()
    assert 2 * bounded[True] > bounded[False], "too few plans with bounds say nothing"
    print(f"\n{PLANS} random plans, {len(ratios)} outputs: no bound exceeded. Simulated worst / end-to-end bound: "
          f"mean {fmean(ratios):.3f}, median {median(ratios):.3f}")  # fmt: skip


if __name__ == "__main__":
    pytest.main(["-s", __file__])
