"""What a user reads when an agent does not answer as it should."""

import threading
from collections.abc import Iterator
from concurrent import futures
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from coordinator.fleet.addresses import AgentAddress
from coordinator.fleet.agents import AgentError, Agents, AgentsError
from coordinator.fleet.identity import tls_probe
from coordinator.monitoring import status_response
from protos import agent_pb2, agent_pb2_grpc
from tests.coordinator.wording import Wording, has, named


class Stubborn(agent_pb2_grpc.AgentServicer):
    """Implements Status and Health, badly."""

    def Status(self, request: agent_pb2.StatusRequest, context: Any) -> agent_pb2.StatusReply:  # noqa: N802
        context.abort(grpc.StatusCode.INTERNAL, "out of order")
        return agent_pb2.StatusReply()

    def Health(self, request: agent_pb2.HealthRequest, context: Any) -> agent_pb2.HealthReply:  # noqa: N802
        futures.wait([self.never])
        return agent_pb2.HealthReply()

    never: "futures.Future[None]"


@pytest.fixture
def address() -> Iterator[AgentAddress]:
    server = grpc.server(futures.ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    servicer = Stubborn()
    servicer.never = futures.Future()
    agent_pb2_grpc.add_AgentServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield AgentAddress("a", f"127.0.0.1:{port}", "127.0.0.1:1")
    servicer.never.set_result(None)
    server.stop(None)


def test_what_goes_wrong_is_named(address: AgentAddress) -> None:
    with Agents({"a": address}) as agents:
        with pytest.raises(AgentsError, check=has(("call_refused", "a"))):
            agents.status()
        silent = agents.try_all("Health", {"a": agent_pb2.HealthRequest()}, 0.2)["a"]
        assert isinstance(silent, AgentError) and named(silent.mistakes) == [("no_answer", "a")]
        other = agents.try_all("Stop", {"a": agent_pb2.StopRequest()}, 5)["a"]
        assert isinstance(other, AgentError) and named(other.mistakes) == [("no_agent", "a")]
        with pytest.raises(AgentError, check=has(("no_agent", "a"))):
            list(agents.trace("a", {}, 5))


def test_nobody_there_is_named_with_address_and_mend() -> None:
    nobody = AgentAddress("b", "127.0.0.1:9", "127.0.0.1:1")
    with Agents({"b": nobody}) as agents:
        with pytest.raises(AgentsError, check=has(("unreachable", "b"))) as raised:
            agents.status()
        Wording("deploy", "agents").check("nobody there", raised.value.lines())
        with pytest.raises(AgentError, check=has(("unreachable", "b"))):
            list(agents.trace("b", {1: 2}, 5))


def test_off_loopback_is_refused_without_tls() -> None:
    with pytest.raises(AgentError, check=has(("insecure_off_loopback", "c"))):
        Agents({"c": AgentAddress("c", "10.0.0.1:7700", "10.0.0.1:7701")})


def test_several_methods_are_called_at_once() -> None:
    """Status is answered when Health has been asked, and the other way round."""
    asked = {"Status": threading.Event(), "Health": threading.Event()}

    class Waiting(agent_pb2_grpc.AgentServicer):
        def Status(self, request: agent_pb2.StatusRequest, context: Any) -> agent_pb2.StatusReply:  # noqa: N802
            asked["Status"].set()
            assert asked["Health"].wait(20)
            return agent_pb2.StatusReply(node="a")

        def Health(self, request: agent_pb2.HealthRequest, context: Any) -> agent_pb2.HealthReply:  # noqa: N802
            asked["Health"].set()
            assert asked["Status"].wait(20)
            return agent_pb2.HealthReply(serving=asked["Status"].is_set())

    server = grpc.server(futures.ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    agent_pb2_grpc.add_AgentServicer_to_server(Waiting(), server)  # type: ignore[no-untyped-call]
    here = AgentAddress("a", f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}", "127.0.0.1:1")
    server.start()
    with Agents({"a": here}) as agents:
        (told,) = status_response.ask(agents, 15).values()
    server.stop(None)
    assert told.is_well


def test_silent_nodes_are_looked_at_once_and_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = {name: AgentAddress(name, "127.0.0.1:9", "127.0.0.1:1") for name in "abc"}
    all_there, looked = threading.Barrier(3), list[str]()

    def look(address: str, identity: object, name: str, seconds: float) -> tls_probe.Finding:
        looked.append(name)
        all_there.wait(30)
        return tls_probe.FINE

    monkeypatch.setattr("coordinator.fleet.grpc_calls.probe", look)
    with Agents(nobody) as agents:
        told = status_response.ask(agents, 15)
        running = agent_pb2.StatusReply(plans=[agent_pb2.PlanStatus(hash=b"\0")])
        told["a"] = replace(told["a"], plans=status_response.of(running, agent_pb2.HealthReply()).plans)
        assert status_response.known_plans(Path("none.json"), told, agents) == {}, "nobody is asked again"
    assert {node.document()["state"] for node in told.values()} == {"unknown"} and len(looked) == 3
