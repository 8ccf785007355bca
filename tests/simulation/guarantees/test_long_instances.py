"""Tuples that arrive during a long instance are stamped together: policing allows for the instances that are declared.

A source of a tuple every 10 ms shares its node with instances of 80 ms, so eight tuples come with one look at the
sockets. Of them none is beyond the declared curve, and a source that sends more than it declares still is.
"""

from __future__ import annotations

import re

import pytest

from coordinator.explain import plan_summary
from coordinator.spec.runtime_charges import MEASURED
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from protos import records
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import cluster, written
from tests.simulation.guarantees.socket_nodes import facts_of, use_sockets
from tests.simulation.random_plans import registry

BURSTS = 100
QUERY = """
shimekiri: 1
query: long
sources:
  quick: {at: a, type: json, arrival: {burst: 1, period: 10 ms}, tolerance: 0 ms, max_age: 300 ms}
  rare:  {at: a, type: json, arrival: {burst: 1, period: 400 ms}, tolerance: 0 ms, max_age: 300 ms}
operators:
  short: {run: pass, in: quick, cost: 100 us}
  long:  {run: pass, in: rare, cost: 80 ms}
outputs:
  soon:  {from: short, at: a, deadline: 2 s}
  later: {from: long, at: a, deadline: 2 s}
"""


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    """On nodes that look at their sockets between instances."""
    use_sockets(monkeypatch)
    return guaranteed(QUERY)


def guaranteed(query: str) -> Plan:
    """Its plan, with a bound for each output."""
    made = written(query, cluster("a"), model="sound", charges=MEASURED)
    assert all(claim.guaranteed for claim in made.guarantee.values())
    return made


def aged(max_age: str) -> Plan:
    """With tuples of source quick up to that age."""
    return guaranteed(QUERY.replace("max_age: 300 ms", f"max_age: {max_age}", 1))


def told_of_ages(made: Plan) -> list[str]:
    """Sentences about max_age; what would break first is not looked for, since it takes ten seconds."""
    return [line for line in plan_summary.lines(made, stop=lambda: True) if "max_age" in line]


def run(made: Plan, scenario: Scenario) -> tuple[int, int, int]:
    """Of source quick: tuples admitted, shed by policing, and at most how many with one instant."""
    found = facts_of(simulate(made, scenario, registry()))
    (quick,) = (source.id for local in made.nodes.values() for source in local.sources if source.name == "quick")
    came = [each for each in found if isinstance(each, records.Admitted) and each.source == quick]
    shed = [each for each in found if isinstance(each, records.Shed) and each.source == quick]
    assert {each.policy for each in shed} <= {records.POLICY_ARRIVALS}
    instants = [each.at_ns for each in came]
    return len(came), len(shed), max(map(instants.count, instants))


def test_nothing_that_conforms_is_shed_beside_the_long_instances_that_are_declared(plan: Plan) -> None:
    assert run(plan, Scenario(bursts=BURSTS)) == (BURSTS, 0, 8)


def test_a_source_that_sends_more_is_held_to_its_curve_all_the_same(plan: Plan) -> None:
    came, shed, _ = run(plan, Scenario(bursts=BURSTS, burst={"quick": 3}))
    policed = plan.analysis.policing["quick"].jitter_ns
    assert came == 3 * BURSTS and came - shed <= BURSTS + policed // 10_000_000 + 1


def test_instances_beyond_their_declared_cost_make_policing_shed_of_what_conforms(plan: Plan) -> None:
    """What docs/explanation/guarantee.md says of it: a pause of the node is not told from a burst of the source."""
    found = {scale: run(plan, Scenario(bursts=BURSTS, cost_scale=scale)) for scale in (1.1, 1.2, 2.0, 3.0)}
    assert found == {1.1: (BURSTS, 0, 8), 1.2: (BURSTS, 3, 9), 2.0: (BURSTS, 21, 16), 3.0: (BURSTS, 42, 24)}


def test_a_source_that_loses_fresh_tuples_to_its_max_age_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    use_sockets(monkeypatch)
    short = aged("40 ms")
    (told,) = told_of_ages(short)
    waits = re.fullmatch(
        r"source quick takes tuples up to 40 ms old, but a may read its sockets only after (.+?):.*", told
    )
    assert waits is not None and 80 < float(waits[1].removesuffix(" ms")) < 90
    enough = aged(waits[1])
    assert told_of_ages(enough) == []
    assert run(short, Scenario(bursts=BURSTS))[0] < BURSTS == run(enough, Scenario(bursts=BURSTS))[0]
