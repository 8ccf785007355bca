"""What sharing is worth in bounds, and that a shared operator is as quick as the quickest query that needs it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.bounds import Claim, claims
from coordinator.guarantee.system import System, read
from coordinator.model import problem, routes
from coordinator.model.choices import Choices
from coordinator.model.task_units import Units
from coordinator.plan import policy_choice
from coordinator.plan.assemble import laid
from coordinator.plan.layout import Layout
from coordinator.solve import planner
from coordinator.solve.audit.audit import audit
from coordinator.spec import core_assignment, graph
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Query
from coordinator.spec.runtime_charges import MEASURED, NOTHING, RuntimeOverhead
from coordinator.spec.sharing import compose
from protos.plan_document import Plan
from tests.coordinator.spec.sharing.random_queries import several

MS = 1_000_000


def laid_out(
    query: Query, cluster: Cluster, place: dict[str, str], due_ns: Mapping[str, int], grouping: Units
) -> System:
    """With these places and sub-deadlines, every stream straight to where it is needed."""
    built = problem.build(query, cluster, place)
    names = list(cluster.nodes)
    at = {i: names.index(place[item.members[0]]) for i, item in enumerate(built.items)}
    types = graph.types(query, cluster.catalog)
    layout = Layout(query, cluster, types, place, due_ns, routes.direct(built, at), policy_choice.SOUND, grouping)
    return read(laid(layout))


def both(seed: int, grouping: Units) -> tuple[tuple[System, System], dict[str, str]] | None:
    """Two queries with what they share run once, and apart, where copies are at the same place with the same
    sub-deadline; and whose copy each operator is. None: nothing is shared."""
    dice = random.Random(seed)
    _, queries, cluster = several(seed)
    one, two = (compose.compose(queries, cluster, share) for share in (True, False))
    if not one.shared:
        return None
    place = {each.name: dice.choice(core_assignment.allowed(each, cluster)) for each in one.query.operators}
    due_ns = {each.name: dice.randint(2, 40) * MS for each in one.query.operators}
    names: dict[str, str] = {}
    for query in one.members:
        names |= dict(zip(two.members[query].operators, one.members[query].operators, strict=True))
    apart = (
        {copy_: place[name] for copy_, name in names.items()},
        {copy_: due_ns[name] for copy_, name in names.items()},
    )
    systems = laid_out(one.query, cluster, place, due_ns, grouping), laid_out(two.query, cluster, *apart, grouping)
    return systems, names


def bounds_of(systems: tuple[System, System], charges: RuntimeOverhead) -> list[tuple[str, Claim, Claim]]:
    shared, apart = (claims(analyse(system, charges)) for system in systems)
    return [(name, shared[name], apart[name]) for name in shared]


@pytest.mark.parametrize("charges", [NOTHING, MEASURED])
@pytest.mark.parametrize("seeds", [range(0, 20)])
def test_no_bound_is_above_what_it_is_apart(charges: RuntimeOverhead, seeds: range) -> None:
    """Where every operator is a task unit of its own: apart there is the same work and more of it. With `units: path`
    there are exceptions, the next test says which."""
    below = 0
    for seed in seeds:
        if (found := both(seed, "operator")) is None:
            continue
        for name, shared, apart in bounds_of(found[0], charges):
            if apart.bound_ns is not None:
                assert shared.bound_ns is not None and shared.bound_ns <= apart.bound_ns, (seed, name)
                below += shared.bound_ns < apart.bound_ns
    assert below > 20


@pytest.mark.parametrize("seeds", [[*range(8), 29, 76, 131]])
def test_merged_paths_may_be_worse_where_they_part(seeds: list[int]) -> None:
    """Paths are one unit up to where another query reads along: what follows queues once more, for a unit of its own.
    Only there is a bound above what it is apart."""
    above = 0
    for seed in seeds:
        if (found := both(seed, "path")) is None:
            continue
        systems, names = found
        for name, shared, apart in bounds_of(systems, NOTHING):
            if apart.bound_ns is None or (shared.bound_ns is not None and shared.bound_ns <= apart.bound_ns):
                continue
            above += 1
            own = {tuple(names[stage.operator] for stage in unit.stages) for unit in systems[1].units.values()}
            merged = {tuple(stage.operator for stage in unit.stages) for unit in systems[0].units.values()}
            split = [unit for unit in own if len(unit) > 1 and not any(_within(unit, other) for other in merged)]
            assert split, (seed, name)
    assert above


def _within(unit: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return any(other[i : i + len(unit)] == unit for i in range(len(other)))


@pytest.mark.parametrize("model", ["paper", "sound"])
@pytest.mark.parametrize("seed", [1, 4, 8])
def test_what_is_shared_is_quick_enough_for_all(seed: int, model: Any) -> None:
    """On every way to every output of every query the sub-deadlines are within its deadline; the audit says so too,
    and says where one is not."""
    _, queries, cluster = several(seed)
    composite = compose.compose(queries, cluster)
    types = dict(graph.types(composite.query, cluster.catalog))
    plan = planner.plan(composite.query, cluster, types, Choices(model=model, best_effort=True, quick=True))
    due_ns, operators = plan.sub_deadlines_ns, plan.graph.operators
    assert audit(plan) == []

    def longest_ns(name: str) -> int:
        before = [longest_ns(one) for one in operators[name].inputs if one in operators]
        return int(due_ns[name]) + max(before, default=0)

    spare = {name: facts.deadline_ns - longest_ns(facts.origin) for name, facts in plan.graph.outputs.items()}
    assert min(spare.values()) >= 0
    assert composite.shared
    for name in composite.shared:
        served = [output for output, facts in plan.graph.outputs.items() if name in ways(plan, facts.origin)]
        if served:
            longer_ns = due_ns[name] + max(facts.deadline_ns for facts in plan.graph.outputs.values())
            told = "\n".join(audit(replace(plan, sub_deadlines_ns={**due_ns, name: longer_ns})))
            assert all(output in told for output in served)


def ways(plan: Plan, end: str) -> set[str]:
    """An operator and those that trigger it."""
    operators = plan.graph.operators
    found, waiting = {end}, [end]
    while waiting:
        more = [one for one in operators[waiting.pop()].inputs if one in operators and one not in found]
        found |= set(more)
        waiting += more
    return found
