"""Places of one agent as the coordinator sees them: one control, one call, a trace each."""

import json
from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.fleet import addresses as address_file
from coordinator.fleet.addresses import Addresses, AgentAddress, host_of
from coordinator.fleet.agents import Agents
from coordinator.fleet.collection.run_traces import TraceError, place_of
from coordinator.fleet.deployment.deploy import _plans_by_place, _requests
from coordinator.fleet.deployment.two_phase import Verb
from coordinator.fleet.local import local_agents, local_cluster
from coordinator.monitoring.status_response import by_place
from protos import agent_pb2, plan_document, trace_pb2
from protos.records import Header, pack_header
from tests.coordinator.wording import facts, has
from tests.whole_plans import whole

PLACES = {
    "a": AgentAddress("a", "127.0.0.1:1", "127.0.0.1:2"),
    "a.1": AgentAddress("a.1", "127.0.0.1:1", "127.0.0.1:3"),
    "b": AgentAddress("b", "127.0.0.1:4", "127.0.0.1:5"),
}


def test_an_agent_is_called_once_for_all_its_places() -> None:
    assert [host_of(name) for name in PLACES] == ["a", "a", "b"]
    with Agents(PLACES) as agents:
        assert list(agents.addresses) == ["a", "b"] and agents.places_of("a") == ["a", "a.1"]
    with Agents({"a.1": PLACES["a.1"]}) as agents:
        assert list(agents.addresses) == ["a"] and agents.places_of("a") == ["a.1"]


def test_routes_name_every_place() -> None:
    indices = {name: {"index": index} for index, name in enumerate(PLACES)}
    plan = plan_document.of(whole({"cluster": {"nodes": indices}}))
    routes = _requests(plan, b"", 1, PLACES)[Verb.PREPARE].routes
    assert [(route.index, route.node, route.address[-1]) for route in routes] == [
        (0, "a", "2"),
        (1, "a.1", "3"),
        (2, "b", "5"),
    ]


def test_a_place_that_the_agent_lacks_is_told_with_the_mend(tmp_path: Path) -> None:
    file = Addresses(tmp_path / "addresses.json", {"a": PLACES["a"], "b": PLACES["b"]})
    with pytest.raises(BadInputError) as raised:
        file.of(["a", "a.2", "b"])
    (problem,) = raised.value.problems
    assert facts(problem) == ("addresses.json", 0, "too_few_cores", "") and "'a.2'" in problem.mistake.text
    assert "--cores 3" in problem.mistake.mend and "'cores: 3'" in problem.mistake.mend
    with pytest.raises(BadInputError) as raised:
        file.of(["c"])
    assert [facts(problem) for problem in raised.value.problems] == [("addresses.json", 0, "unknown_node", "")]


def test_places_of_one_node_have_one_control(tmp_path: Path) -> None:
    path = tmp_path / "addresses.json"
    Addresses(path, PLACES).write()
    assert dict(address_file.load(path).nodes) == PLACES
    values = json.loads(path.read_text())
    values["nodes"]["a.1"]["control"] = "127.0.0.1:9"
    path.write_text(json.dumps(values))
    with pytest.raises(BadInputError) as raised:
        address_file.load(path)
    (problem,) = raised.value.problems
    assert facts(problem) == ("addresses.json", 0, "agent_twice", "") and "nodes.a.1" in problem.mistake.text


def test_a_chunk_says_which_place_it_is_of() -> None:
    def chunk(node: str) -> trace_pb2.TraceChunk:
        return trace_pb2.TraceChunk(boot=7, header=pack_header(Header(node, 0, 7, "c", 50, 0, 0)))

    assert place_of(chunk("a.1"), "a") == "a.1" and place_of(chunk("a"), "a") == "a"
    with pytest.raises(TraceError, check=has(("other_trace", "a"))):
        place_of(chunk("b.1"), "a")
    with pytest.raises(TraceError, check=has(("damaged", "a"))):
        place_of(trace_pb2.TraceChunk(boot=7), "a")


def test_what_is_left_and_the_status_are_told_by_place() -> None:
    def status(node: str, ready: int) -> agent_pb2.StatusReply:
        return agent_pb2.StatusReply(node=node, plans=[agent_pb2.PlanStatus(hash=b"x", ready=ready)])

    both = status("a", 3)
    both.places.extend([status("a", 1), status("a.1", 2)])
    assert [(name, plan.ready) for name, plan in _plans_by_place(both, None)] == [("a", 1), ("a.1", 2)]
    assert [(name, plan.ready) for name, plan in _plans_by_place(status("b", 3), None)] == [("b", 3)]
    health = agent_pb2.HealthReply(serving=True)
    assert [values.plans[0].ready for values in by_place(both, health, ["a", "a.1"]).values()] == [1, 2]
    assert list(by_place(status("b", 3), health, ["b"])) == ["b"]


CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", cores: %d}
  b: {address: "localhost:%d"}
"""


def test_up_starts_an_agent_per_node_with_a_runtime_per_core(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER % (3, 7704))
    found = local_cluster.wanted(path, tmp_path, False, [])
    assert [(each.name, each.control, each.data, each.cores) for each in found] == [
        ("a", "127.0.0.1:7700", "127.0.0.1:7701", 3),
        ("b", "127.0.0.1:7704", "127.0.0.1:7705", 1),
    ]
    path.write_text(CLUSTER % (4, 7704))
    with pytest.raises(BadInputError) as raised:
        local_cluster.wanted(path, tmp_path, False, [])
    (problem,) = raised.value.problems
    assert (problem.mistake.code, problem.file) == ("port_twice", str(path)) and "7704" in problem.mistake.text
    assert [each.data for each in local_cluster.wanted(path, tmp_path, True, [])] == ["127.0.0.1:0"] * 2


def test_an_agent_is_stopped_once(tmp_path: Path) -> None:
    assert local_agents.stop_by_pid(list(PLACES.values())) == {"a": "not started here", "b": "not started here"}
