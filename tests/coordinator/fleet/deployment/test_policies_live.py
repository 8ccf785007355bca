"""Every live policy by name through a real agent, one deployment after the other; what no agent runs is refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from coordinator.errors import CoordinatorError
from coordinator.fleet.addresses import Addresses
from coordinator.fleet.agents import Agents
from coordinator.fleet.deployment import deploy
from coordinator.fleet.local import local_agents
from coordinator.fleet.local.local_agents import Wanted
from coordinator.model.choices import Choices
from coordinator.plan import plan_file
from coordinator.solve import planner
from node_agent.sdk import Sink, Source
from protos.plan_document import Plan
from protos.policies import NAMES, PARAMETERS
from tests.coordinator.wording import has
from tests.whole_plans import hashed

QUERY = """
shimekiri: 1
query: one
sources:
  s: {at: a, type: json, arrival: {burst: 20, period: 1 s}}
operators:
  first: {run: pass, in: s, cost: 10 us}
  second: {run: filter, with: {keep: 1, of: 2}, in: s, cost: 10 us}
outputs:
  out: {from: first, at: a, deadline: 20 s, wait: 5 s, throughput: 100, latency: 1 s, queue: 1 MiB}
  half: {from: second, at: a, deadline: 10 s}
"""
CLUSTER = 'shimekiri: 1\nnodes: {a: {address: "127.0.0.1:0", policy: "POLICY"}}\n'
VALUES = {"phi": "2ms", "hop_phi": "1ms", "k": "2", "share": "5%", "batch": "4"}
COUNT = 20
FEW = 5


def plan(root: Path, name: str) -> Plan:
    """Under a policy with every parameter that it has."""
    given = ",".join(f"{key}={VALUES[key]}" for key in PARAMETERS.get(name, ()))
    query, cluster = root / "query.yaml", root / "cluster.yaml"
    query.write_text(QUERY)
    cluster.write_text(CLUSTER.replace("POLICY", f"{name}:{given}" if given else name))
    made = planner.make_plan(query, cluster, Choices(model="paper"))
    plan_file.write(made, root / "plan.json")
    return made


@pytest.fixture
def addresses(tmp_path: Path) -> Iterator[Addresses]:
    (agent,) = local_agents.start([Wanted("a", "127.0.0.1:0", "127.0.0.1:0", tmp_path / "state")])
    assert agent.address is not None
    yield Addresses(tmp_path / "addresses.json", {"a": agent.address})
    local_agents.stop([agent])


def await_room(agents: Agents) -> None:
    """Plans that were replaced take a while to drain, and a node holds eight at most."""
    while any(len(status.plans) > FEW for status in agents.status().values()):
        time.sleep(0.05)


def test_every_policy_runs_in_an_agent_by_name(tmp_path: Path, addresses: Addresses) -> None:
    """Deadlines are far away, so every tuple comes out under every policy, and in order."""
    at = addresses.nodes["a"].data
    for name in NAMES:
        made = plan(tmp_path, name)
        with Agents(addresses.of_plan(made)) as agents:
            await_room(agents)
            assert deploy.deploy(made, agents).changed
            with Sink(at, "out", timeout=20) as sink, Source(at, "s", timeout=20) as source:
                answers = source.send_many([{"policy": name, "n": n} for n in range(COUNT)])
                assert [type(each).__name__ for each in answers] == ["Admitted"] * COUNT, name
                found = [result.value for result in islice(sink, COUNT)]
            assert found == [{"policy": name, "n": n} for n in range(COUNT)], name


@pytest.mark.parametrize("name", ["ideal", "pqed-printed"])
def test_a_policy_of_the_papers_comparisons_is_refused_with_its_reason(
    name: str, tmp_path: Path, addresses: Addresses
) -> None:
    """No plan is made for it; and a plan that was made elsewhere is refused by the agent."""
    with pytest.raises(CoordinatorError, check=has(("policy_never_live", "nodes.a.policy"))):
        plan(tmp_path, name)
    values = plan(tmp_path, "edf").to_json()
    values["nodes"]["a"]["policy"]["name"] = name
    made = hashed(values)
    with (
        Agents(addresses.of_plan(made)) as agents,
        pytest.raises(deploy.DeployError, check=has(("not_deployed", made.hash), ("refused_by_agent", "a"))),
    ):
        deploy.deploy(made, agents)
