"""Calls to agents over gRPC: every call has a deadline, every failure names the node, its address and what to check."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from coordinator.error_codes import Code
from coordinator.errors import Mistake

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # failures are told here, in words; read when grpc is imported

import grpc

from coordinator.errors import CoordinatorError
from coordinator.fleet.addresses import AgentAddress, host_of, split
from coordinator.fleet.identity import identity
from coordinator.fleet.identity.tls_probe import PROBE_S, Finding, probe
from coordinator.spec.files import security
from protos import agent_pb2, agent_pb2_grpc, trace_pb2

OPTIONS = (
    ("grpc.max_send_message_length", 17 << 20),
    ("grpc.max_receive_message_length", 17 << 20),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
SILENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
MOST_PROBES = 16  # at once
METHODS = frozenset({"Describe", "Prepare", "Commit", "Abort", "Stop", "Status", "Profile", "Health"})


class AgentError(CoordinatorError):
    """One agent did not answer, or not as it should."""

    def __init__(self, node: str, code: Code, text: str, mend: str = "") -> None:
        self.mistake = Mistake(code, f"node {node}: {text}", mend, node)
        super().__init__(self.mistake)
        self.node = node


class AgentsError(CoordinatorError):
    """Several agents failed; one line each."""

    def __init__(self, errors: list[AgentError]) -> None:
        super().__init__(*(mistake for error in errors for mistake in error.mistakes))
        self.errors = errors


class Agents:
    """Channels to some agents. Use it in a `with` statement.

    places: what was given, by place. addresses: one per agent, by node; every call is made once per agent.
    """

    def __init__(self, places: Mapping[str, AgentAddress]) -> None:
        self.places = places
        self.addresses: dict[str, AgentAddress] = {}
        for name, agent in places.items():
            self.addresses.setdefault(host_of(name), agent)
        self._channels: dict[str, grpc.Channel] = {}
        self._stubs: dict[str, Any] = {}
        self._identities = {
            folder: identity.load(folder) for folder in {each.tls for each in self.addresses.values()} if folder
        }
        for name, agent in self.addresses.items():
            self._channels[name] = self._channel(name, agent)
            self._stubs[name] = agent_pb2_grpc.AgentStub(self._channels[name])  # type: ignore[no-untyped-call]

    def _channel(self, name: str, agent: AgentAddress) -> grpc.Channel:
        if agent.tls is not None:
            own = self._identities[agent.tls]
            credentials = grpc.ssl_channel_credentials(own.ca, own.key, own.cert)
            expected = ("grpc.ssl_target_name_override", security.name_of_node(name))  # who, wherever it is
            return grpc.secure_channel(agent.control, credentials, options=(*OPTIONS, expected))
        if not security.is_loopback(split(agent.control)[0]):
            mend = "'coordinator addresses' writes addresses.json of agents that speak it"
            raise AgentError(
                name,
                "insecure_off_loopback",
                f"{agent.control} is off loopback, where calls without TLS are refused",
                mend,
            )
        return grpc.insecure_channel(agent.control, options=OPTIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for channel in self._channels.values():
            channel.close()

    def places_of(self, node: str) -> list[str]:
        """The given places of one agent."""
        return [place for place in self.places if host_of(place) == node]

    def try_all(self, method: str, requests: Mapping[str, Any], seconds: float) -> dict[str, Any | AgentError]:
        """Call the method on every node in `requests` at once; each node's reply, or what went wrong."""
        return self.try_several({method: requests}, seconds)[method]

    def try_several(
        self, requests: Mapping[str, Mapping[str, Any]], seconds: float
    ) -> dict[str, dict[str, Any | AgentError]]:
        """Call several methods, each on the nodes of its requests, all at once; by method, as `try_all`. Nodes that do
        not answer are looked at once each, all at once."""
        assert requests.keys() <= METHODS
        calls = {
            (method, name): getattr(self._stubs[name], method).future(request, timeout=seconds)
            for method, asked in requests.items()
            for name, request in asked.items()
        }
        found: dict[tuple[str, str], Any] = {}
        failed: dict[str, dict[str, grpc.RpcError]] = {}
        for (method, name), call in calls.items():
            try:
                found[method, name] = call.result()
            except grpc.RpcError as error:
                failed.setdefault(name, {})[method] = error
        if failed:
            with ThreadPoolExecutor(min(len(failed), MOST_PROBES)) as pool:
                told = pool.map(lambda name: self._failures(name, failed[name], seconds), failed)
                for name, errors in zip(failed, told, strict=True):
                    found |= {(method, name): error for method, error in errors.items()}
        return {method: {name: found[method, name] for name in asked} for method, asked in requests.items()}

    def all(self, method: str, requests: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """As `try_all`. Raises AgentsError where any node failed."""
        replies = self.try_all(method, requests, seconds)
        if errors := [reply for reply in replies.values() if isinstance(reply, AgentError)]:
            raise AgentsError(errors)
        return replies

    def status(self, seconds: float = 5.0) -> dict[str, agent_pb2.StatusReply]:
        """Status of all. Raises AgentsError."""
        return self.all("Status", dict.fromkeys(self.addresses, agent_pb2.StatusRequest()), seconds)

    def plans(
        self, name: str, seconds: float, held: Iterable[str] = (), wanted: Iterable[str] = (), forget: bool = False
    ) -> list[agent_pb2.PlanDocument]:
        """The plans that ran on the node since the last collection, by hash: only those that are `wanted`, none: all,
        without those that are `held`, which it forgets where `forget` says that their runs are held as well. Raises
        AgentError."""
        named = ([bytes.fromhex(hash_) for hash_ in hashes] for hashes in (held, wanted))
        request = agent_pb2.PlansRequest(**dict(zip(("held", "wanted"), named, strict=True)), forget=forget)
        try:
            return list(self._stubs[name].Plans(request, timeout=seconds))
        except grpc.RpcError as error:
            raise self._failure(name, error, seconds) from None

    def trace(self, name: str, held: Mapping[int, int], seconds: float) -> Iterator[trace_pb2.TraceChunk]:
        """What the node has beyond `held` (boot: records). Raises AgentError."""
        positions = [trace_pb2.Position(boot=boot, records=records) for boot, records in held.items()]
        try:
            yield from self._stubs[name].Trace(trace_pb2.TraceRequest(held=positions), timeout=seconds)
        except grpc.RpcError as error:
            raise self._failure(name, error, seconds) from None

    def _failures(self, name: str, errors: Mapping[str, grpc.RpcError], seconds: float) -> dict[str, AgentError]:
        """Of one node, by method; what is wrong with a connection is looked for once."""
        found: Finding | None = None
        told: dict[str, AgentError] = {}
        for method, error in errors.items():
            if found is None and error.code() in SILENT:
                found = self._probe(name, seconds)
            told[method] = self._failure(name, error, seconds, found)
        return told

    def _probe(self, name: str, seconds: float) -> Finding:
        agent = self.addresses[name]
        own = self._identities.get(agent.tls) if agent.tls else None
        return probe(agent.control, own, security.name_of_node(name), min(PROBE_S, seconds / 4))

    def _failure(self, name: str, error: grpc.RpcError, seconds: float, found: Finding | None = None) -> AgentError:
        """found: by a probe, where one was made already."""
        agent = self.addresses[name]
        at, own = agent.control, self._identities.get(agent.tls) if agent.tls else None
        code, details = error.code(), error.details()
        if found is None and code in SILENT:
            found = self._probe(name, seconds)
        if code in SILENT and found:
            return AgentError(name, "unreachable", f"the agent at {at} cannot be reached: {found}")
        if code is grpc.StatusCode.UNAVAILABLE:
            check = "is it running, and is this its control address? 'coordinator up' starts local agents"
            return AgentError(name, "unreachable", f"the agent at {at} cannot be reached", check)
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            text = f"the agent at {at} did not answer within {seconds:g} s: nothing is known of it"
            return AgentError(name, "no_answer", text, "is it frozen, or its machine very busy? see its log")
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return AgentError(
                name, "no_agent", f"what answers at {at} is no agent of this release", "check the address"
            )
        if code in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED) and own is not None:
            text = f"the agent at {at} does not take {own.folder} for the coordinator's certificate ({details})"
            return AgentError(
                name, "caller_not_taken", text, "'tls' in addresses.json has to name the coordinator's folder"
            )
        return AgentError(name, "call_refused", f"the agent at {at} refused the call: {code.name.lower()}: {details}")
