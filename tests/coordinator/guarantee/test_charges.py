"""Charges per node: from the cluster file into the plan, from the plan alone into the bounds."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.errors import BadInputError
from coordinator.guarantee.bounds import assumed, bounds, documents
from coordinator.spec.runtime_charges import MEASURED, NOTHING
from protos import plan_document
from protos.plan.charges import NodeCharged, NodeCharges
from protos.plan_document import Plan
from tests.coordinator.guarantee.written_plans import MS, cluster, written
from tests.coordinator.wording import facts

QUERY = """shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 2, period: 100 ms}, max_age: 1 ms}
operators:
  X: {run: pass, in: s, cost: 1 ms, nodes: [b]}
outputs:
  out: {from: X, at: b, deadline: 20 ms}
"""
DEAR = "{decision: 100 us, drain: 300 us, side: 7 us}"


def plan(charges_of_b: str = "", **choices: Any) -> Plan:
    nodes = cluster("ab", "{between: [a, b]}").splitlines()
    nodes[3] = nodes[3].replace("}", f", charges: {charges_of_b}}}") if charges_of_b else nodes[3]
    return written(QUERY, "\n".join(nodes), **({"charges": MEASURED} | choices))


def test_each_node_is_charged_what_the_plan_says_of_it() -> None:
    """Two tuples read and two instances, each longer by what b costs more than 20 us; the wait for a socket is longer
    by one decision and two reads more."""
    cheap, dear = plan(), plan(DEAR)
    assert dear.cluster.nodes["b"].charges == NodeCharges(decision_ns=100_000, drain_ns=300_000, side_ns=7_000)
    assert dear.cluster.nodes["a"].charges is None
    bounds_ns = [each.guarantee["out"].bound_ns or 0 for each in (cheap, dear)]
    more_ns = bounds_ns[1] - bounds_ns[0]
    assert more_ns == 2 * (80_000 + 280_000) + 80_000 + 2 * 280_000
    assert dear.guarantee == documents(plan_document.of(dear.to_json()))[0]  # of the plan alone


def test_the_analysis_says_where_charges_come_from() -> None:
    nodes = plan(DEAR).analysis.nodes
    assert (nodes["a"].charges.said, nodes["b"].charges.said) == ("assumed", "measured")
    assert nodes["b"].charges.drain_ns == 300_000 and nodes["a"].charges.drain_ns == 20_000


def test_in_virtual_time_nothing_is_charged_whatever_was_measured() -> None:
    free = plan(DEAR, charges=NOTHING)
    assert free.guarantee["out"].from_admission_ns == 2 * MS
    assert free.analysis.nodes["b"].charges == NodeCharged(said="none", decision_ns=0, drain_ns=0, side_ns=0)
    assert bounds(free, MEASURED)["out"].bound_ns == plan(DEAR).guarantee["out"].bound_ns


def test_plan_tells_in_one_line_which_nodes_were_not_measured() -> None:
    """A node that runs nothing is not told."""
    told = assumed(plan())
    assert told.startswith("what the runtime costs on b is assumed (20 us per decision, 20 us per tuple read, ")
    assert "'node-agent charges'" in told and "\n" not in told
    assert not assumed(plan(DEAR)) and not assumed(plan(charges=NOTHING))


@pytest.mark.parametrize(
    ("given", "code", "subject"),
    [
        ("{decision: 20 us, drain: 20 us}", "missing_key", "nodes.b.charges.side"),
        ("{decision: 0 us, drain: 20 us, side: 5 us}", "not_above_zero", "nodes.b.charges.decision"),
        ("{decision: 20, drain: 20 us, side: 5 us}", "missing_unit", "nodes.b.charges.decision"),
        ("{decision: -1 us, drain: 20 us, side: 5 us}", "not_above_zero", "nodes.b.charges.decision"),
        ("20 us", "wrong_shape", "nodes.b.charges"),
    ],
)
def test_charges_that_are_none_are_refused(given: str, code: str, subject: str) -> None:
    with pytest.raises(BadInputError) as raised:
        plan(given)
    assert [facts(problem) for problem in raised.value.problems] == [("cluster.yaml", 4, code, subject)]


def test_no_charge_is_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        NodeCharges(decision_ns=0, drain_ns=0, side_ns=-1)
