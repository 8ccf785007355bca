"""Two queries, one shared operator, two deadlines, as the planner writes them: on two virtual nodes the far query gets
what is too late for the near one, and a link gives up only what is too late for both."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from coordinator.model.choices import Choices
from coordinator.solve import planner
from node_agent.operators.registry import Registry
from node_agent.runtime.deployments.lifecycle import installed
from node_agent.virtual.run import Simulation, operators_here, simulate
from node_agent.virtual.scenario import Scenario
from protos import plan_document, records
from protos.plan_document import Plan
from tests.simulation.policies.paper_policies import OWN, handed
from tests.traces import Kind, of

MS = 1_000_000
QUERY = """
shimekiri: 1
query: {name}
sources:
  belt: {{at: a, type: json, arrival: {{burst: 2, period: 10 ms}}, max_age: 50 ms}}
operators:
  look: {{run: pass, in: belt, cost: 500 us, nodes: [a]}}
  act_{name}: {{run: busy, with: {{cpu_us: {own}}}, in: look, cost: 500 us, nodes: [b]}}
outputs:
  out_{name}: {{from: act_{name}, at: b, deadline: {deadline} ms}}
"""
CLUSTER = """
shimekiri: 1
nodes: {a: {address: "127.0.0.1:7700"}, b: {address: "127.0.0.1:7710"}}
links: [{between: [a, b], latency: 1 ms}]
"""


@cache
def plan(near_ms: int = 20, far_ms: int = 60) -> Plan:
    """Both queries, `look` on a for both, the rest on b."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "operators.json").write_text(json.dumps(Registry().describe()))
        (folder / "cluster.yaml").write_text(CLUSTER)
        paths = [folder / "near.yaml", folder / "far.yaml"]
        for path, own, deadline in zip(paths, (1, 2), (near_ms, far_ms), strict=True):
            path.write_text(QUERY.format(name=path.stem, own=own, deadline=deadline))
        return planner.make_plan(paths, folder / "cluster.yaml", Choices(model="paper"))


def facts(done: Simulation, kind: type[Kind]) -> list[Kind]:
    return [each for trace in done.traces for each in of(kind, records.unpack_records(trace.records))]


def met(done: Simulation) -> dict[str, int]:
    return {name: output.met for name, output in done.outputs.items()}


@pytest.mark.parametrize("policy", ["bts1", "ats1", "adaptive", "ideal", "slack"])
def test_what_is_too_old_for_the_near_query_is_met_for_the_far_one(policy: str) -> None:
    """At 30 ms the near query's 20 are over. The shared operator runs for the far one; the near one's own sheds."""
    phi_ns, own = MS if policy in ("bts1", "ats1") else None, policy in OWN
    policies = handed(OWN[policy]) if own else installed
    named = None if own else policy
    old = Scenario(policy=named, bursts=5, ages_ns={"belt": 30 * MS}, phi_ns=phi_ns)
    done = simulate(plan(), old, policies=policies)
    assert done.admitted == 10
    assert met(done) == {"out_near": 0, "out_far": 10}
    assert len(facts(done, records.Shed)) == 10
    young = simulate(plan(), Scenario(policy=named, bursts=5, phi_ns=phi_ns), policies=policies)
    assert met(young) == {"out_near": 10, "out_far": 10} and not facts(young, records.Shed)


def test_a_link_resends_until_the_last_query_has_no_use_for_it() -> None:
    """The last tuples of a trial are lost, so nothing that comes later acknowledges them. The link connects again every
    three seconds. After six the near query's deadline is over; the far one's is not before eight."""
    done = simulate(plan(4_000, 8_000), Scenario(bursts=10, loss=0.5, seed=4))
    origins = {each.seq: each.at_ns for each in facts(done, records.Admitted)}
    sent, received = facts(done, records.Sent), facts(done, records.Received)
    assert len(sent) == len(origins) == 20  # the stream travels once for both queries
    assert met(done) == dict.fromkeys(("out_near", "out_far"), len(received))
    gave_up = facts(done, records.GaveUp)
    assert 0 < len(gave_up) < len(sent) - len(received)
    assert all(8_000 * MS < each.at_ns - origins[each.seq] < 12_000 * MS for each in gave_up)


SPOILS = """
from node_agent.sdk import operator

@operator("test.spoils")
def spoils(value):
    value["seen"] = value.get("seen", 0) + 1
    return value
"""


def test_simulate_says_which_operator_changed_what_others_read(tmp_path: Path) -> None:
    """Its tuples are lost; without the check they are delivered, and the other reader sees what it left."""
    (tmp_path / "spoils.py").write_text(SPOILS)
    document = json.loads(plan().text().replace('"busy"', '"test.spoils"').replace('"cpu_us"', '"none"'))
    for local in document["nodes"].values():
        for operator in local.get("operators", ()):
            operator["withJson" if "withJson" in operator else "with_json"] = "{}"
    for checks, delivered in ((False, 2), (True, 0)):
        registry = operators_here([tmp_path / "spoils.py"], checks)
        for local in document["nodes"].values():
            local["installed"] = [asdict(registry.identity(each["run"])) for each in local.get("installed", ())]
        found = simulate(plan_document.shaped(document), Scenario(), registry)
        assert met(found) == dict.fromkeys(("out_near", "out_far"), delivered)
        assert any("test.spoils changed its input" in str(each) for each in found.failures) is checks
