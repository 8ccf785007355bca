"""Calls to agents: every call has a deadline, every failure names the node, its address and what to check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from coordinator.error_codes import Code
from coordinator.errors import CoordinatorError, Mistake
from coordinator.fleet.addresses import AgentAddress, host_of, split
from coordinator.fleet.calls import SILENT, CallError, Calls
from coordinator.fleet.identity import identity
from coordinator.spec.files import security
from protos import agent_pb2, trace_pb2

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

    places: what was given, by place. addresses: one per agent, by node; every call is made once per agent. calls: over
    gRPC, unless others are given.
    """

    def __init__(self, places: Mapping[str, AgentAddress], calls: Calls | None = None) -> None:
        self.places = places
        self.addresses: dict[str, AgentAddress] = {}
        for name, agent in places.items():
            self.addresses.setdefault(host_of(name), agent)
        self._identities = {
            folder: identity.load(folder) for folder in {each.tls for each in self.addresses.values()} if folder
        }
        self._calls = calls or self._over_grpc()
        self.monotonic, self.sleep = self._calls.monotonic, self._calls.sleep

    def _over_grpc(self) -> Calls:
        for name, agent in self.addresses.items():
            if agent.tls is None and not security.is_loopback(split(agent.control)[0]):
                mend = "'coordinator addresses' writes addresses.json of agents that speak it"
                text = f"{agent.control} is off loopback, where calls without TLS are refused"
                raise AgentError(name, "insecure_off_loopback", text, mend)
        from coordinator.fleet.grpc_calls import GrpcCalls

        return GrpcCalls(self.addresses, self._identities)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._calls.close()

    def places_of(self, node: str) -> list[str]:
        """The given places of one agent."""
        return [place for place in self.places if host_of(place) == node]

    def try_all(self, method: str, requests: Mapping[str, Any], seconds: float) -> dict[str, Any | AgentError]:
        """Call the method on every node in `requests` at once; each node's reply, or what went wrong."""
        return self.try_several({method: requests}, seconds)[method]

    def try_several(
        self, requests: Mapping[str, Mapping[str, Any]], seconds: float
    ) -> dict[str, dict[str, Any | AgentError]]:
        """Call several methods, each on the nodes of its requests, all at once; by method, as `try_all`."""
        assert requests.keys() <= METHODS
        replies = self._calls.all(requests, seconds)
        return {
            method: {
                name: self._failed(name, reply, seconds) if isinstance(reply, CallError) else reply
                for name, reply in asked.items()
            }
            for method, asked in replies.items()
        }

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
            return list(self._calls.stream("Plans", name, request, seconds))
        except CallError as error:
            raise self._failed(name, error, seconds) from None

    def trace(self, name: str, held: Mapping[int, int], seconds: float) -> Iterator[trace_pb2.TraceChunk]:
        """What the node has beyond `held` (boot: records). Raises AgentError."""
        positions = [trace_pb2.Position(boot=boot, records=records) for boot, records in held.items()]
        try:
            yield from self._calls.stream("Trace", name, trace_pb2.TraceRequest(held=positions), seconds)
        except CallError as error:
            raise self._failed(name, error, seconds) from None

    def _failed(self, name: str, error: CallError, seconds: float) -> AgentError:
        """Of one call."""
        agent = self.addresses[name]
        at, own = agent.control, self._identities.get(agent.tls) if agent.tls else None
        if error.code in SILENT and error.why:
            return AgentError(name, "unreachable", f"the agent at {at} cannot be reached: {error.why}")
        if error.code == "unavailable":
            check = "is it running, and is this its control address? 'coordinator up' starts local agents"
            return AgentError(name, "unreachable", f"the agent at {at} cannot be reached", check)
        if error.code == "deadline_exceeded":
            text = f"the agent at {at} did not answer within {seconds:g} s: nothing is known of it"
            return AgentError(name, "no_answer", text, "is it frozen, or its machine very busy? see its log")
        if error.code == "unimplemented":
            return AgentError(
                name, "no_agent", f"what answers at {at} is no agent of this release", "check the address"
            )
        if error.code in ("permission_denied", "unauthenticated") and own is not None:
            text = f"the agent at {at} does not take {own.folder} for the coordinator's certificate ({error.details})"
            return AgentError(
                name, "caller_not_taken", text, "'tls' in addresses.json has to name the coordinator's folder"
            )
        text = f"the agent at {at} refused the call: {error.code}: {error.details}"
        return AgentError(name, "call_refused", text)


Reach = Callable[[Mapping[str, AgentAddress]], Agents]  # how a command that talks to several sets of agents opens each
