"""Two queries at once give what each gives alone, shared or not, and what they share runs once per tuple.

`make test` takes a few cases. More of them, other ones each time:

    SHIMEKIRI_CASES=2000 .venv/bin/python -m pytest -s tests/simulation/sharing/test_sharing_virtual.py
"""

import os
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from coordinator.errors import InfeasibleError
from coordinator.model.task_units import Units
from node_agent.virtual.change_schedule import Change, schedule_of
from node_agent.virtual.run import Simulation, simulate
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.world import Delivery, Stub
from protos import records
from protos.plan_document import Plan
from tests.sampling import examples
from tests.simulation.sharing.random_queries_virtual import MS, Two, by_traffic, pairs, registry

CASES = int(os.environ.get("SHIMEKIRI_CASES", examples(25, 3)))
EXAMPLES = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
Result = tuple[str, str, int, int, str]  # output, source, seq, ordinal, payload


class Told(Stub):
    """The usual tuples; results are kept."""

    def __init__(self, plan: Plan, then: Sequence[Change], scenario: Scenario) -> None:
        super().__init__(schedule_of(plan, then, scenario), scenario.ages_ns, registry().codecs)
        self.results: Counter[Result] = Counter()

    def deliver(self, delivery: Delivery) -> None:
        d = delivery
        self.results[d.output, d.source, d.seq, d.ordinal, repr(d.payload)] += 1


def run(plan: Plan, scenario: Scenario, then: Sequence[Change] = ()) -> tuple[Simulation, Counter[Result]]:
    """One simulation, and what it gave."""
    told = Told(plan, then, scenario)
    return simulate(plan, scenario, registry(), told, then=then), told.results


def of(results: Counter[Result], query: str) -> Counter[Result]:
    """A query's; outputs are named after theirs."""
    return Counter({result: n for result, n in results.items() if result[0].startswith(query)})


def ran(done: Simulation) -> Counter[tuple[str, str, int, int]]:
    """Instances by the operator at their head, source, seq and ordinal."""
    heads = {
        unit.id: task.operators[0]
        for node, tasks in done.plan.made.tasks.items()
        for unit, task in zip(done.plan.made.nodes[node].units, tasks, strict=True)
    }
    names = {source.id: source.name for source in done.plan.sources}
    found: Counter[tuple[str, str, int, int]] = Counter()
    for trace in done.traces:
        for fact in records.unpack_records(trace.records):
            if isinstance(fact, records.Ran):
                found[heads[fact.unit], names[fact.source], fact.seq, fact.ordinal] += 1
    return found


@pytest.mark.hypothesis
def test_composed_queries_give_what_they_give_alone() -> None:
    seen: Counter[str] = Counter()

    @EXAMPLES
    @given(
        pairs(),
        st.sampled_from(("path", "operator")),
        st.booleans(),
        st.lists(st.integers(0, 40), min_size=2, max_size=2),
    )
    def check(two: Two, units: Units, share: bool, phases: list[int]) -> None:
        try:
            both = two.plan("first", "second", choices=by_traffic(units), share=share)
        except InfeasibleError as error:
            assert {each.code for each in error.mistakes} <= {"cap_exceeded", "caps_exceeded"}
            reject()  # unshared, two queries may ask for more than the nodes have
        members = [both.queries[query].operators for query in ("first", "second")]
        together, results = run(both, scenario(both, phases))
        seen.update(cases=1, results=results.total(), shared=len(set.intersection(*map(set, members))))
        for query, operators in zip(("first", "second"), members, strict=True):
            alone = two.plan(query, choices=by_traffic(units))
            done, expected = run(alone, scenario(alone, phases))
            assert of(results, query) == expected, query
            if units == "operator":
                inside = dict(zip(alone.queries[query].operators, operators, strict=True))
                expected_runs = Counter({(inside[name], *key): n for (name, *key), n in ran(done).items()})
                assert expected_runs == Counter({k: n for k, n in ran(together).items() if k[0] in operators}), query

    check()
    print(f"\n{seen['cases']} pairs of queries, {seen['shared']} shared operators, {seen['results']} results")
    assert seen["shared"] and seen["results"] > seen["cases"]


def scenario(plan: Plan, phases: Sequence[int]) -> Scenario:
    """Some bursts, from these instants in ms on; the plan may not have both sources."""
    known = [name for name in ("s0", "s1") if name in plan.graph.sources]
    phase_ns = dict(zip(("s0", "s1"), phases, strict=True))
    return Scenario(bursts=3, phase_ns={name: phase_ns[name] * MS for name in known})
