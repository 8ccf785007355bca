"""A coordinator in virtual time: its own functions, on a machine of the wires, in a process that can be killed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from coordinator.fleet.addresses import AgentAddress
from coordinator.fleet.agents import Agents
from coordinator.fleet.calls import CallError
from node_agent.virtual.simulated.simulated_calls import METHODS, Call, call_all
from node_agent.virtual.simulated.simulated_clock import SimulatedClock
from node_agent.virtual.simulated.simulated_machine import SimulatedMachine
from node_agent.virtual.simulated.simulated_network import SimulatedHost, SimulatedNetwork
from node_agent.virtual.simulated.virtual_time import Process, VirtualTime

CHANGING = {"Prepare", "Commit", "Abort", "Stop"}


@dataclass
class Asked:
    """What a node was asked of a plan. began_ns, ended_ns: true instants; the call may have had an effect between the
    two, and later where it was not answered. accepted: it has answered so."""

    method: str
    hash: str
    epoch: int
    began_ns: int
    ended_ns: int = 0
    answered: bool = False
    accepted: bool = False


class Ledger:
    """What nodes were asked, by node, and who is told: on_ask, before it is on its way; on_answer, when it was
    answered."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self.asked: dict[str, list[Asked]] = {name: [] for name in nodes}
        self.on_ask: list[Callable[[str, Asked], None]] = []
        self.on_answer: list[Callable[[str, Asked], None]] = []

    def ask(self, node: str, one: Asked) -> None:
        """A call begins."""
        self.asked[node].append(one)
        for told in list(self.on_ask):
            told(node, one)

    def alone(self, node: str, one: Asked) -> bool:
        """Whether that node was asked nothing else since it was asked that, nor is asked something."""
        others = (each for each in self.asked[node] if each is not one)
        return all(each.answered and each.ended_ns <= one.began_ns for each in others)


class WireCalls:
    """`coordinator.fleet.calls.Calls` over the wires."""

    def __init__(self, process: "CoordinatorProcess", addresses: Mapping[str, str]) -> None:
        self._process, self._addresses = process, addresses

    def all(self, requests: Mapping[str, Mapping[str, Any]], seconds: float) -> dict[str, dict[str, Any | CallError]]:
        """At once."""
        asked = [(method, name, request) for method, of in requests.items() for name, request in of.items()]
        found: dict[str, dict[str, Any | CallError]] = {method: {} for method in requests}
        remembered = [self._process.asked(name, method, request) for method, name, request in asked]
        for (method, name, _), one, call in zip(asked, remembered, self._call(asked, seconds), strict=True):
            reply = GetMessageClass(METHODS[method].output_type)
            found[method][name] = CallError(*call.failure) if call.failure else reply.FromString(call.replies[0])
            if one is not None and not call.failure:
                one.answered, one.accepted = True, found[method][name].accepted
                one.ended_ns = self._process.time.now_ns
                for told in self._process.ledger.on_answer:
                    told(name, one)
        return found

    def _call(self, asked: Sequence[tuple[str, str, Any]], seconds: float) -> list[Call]:
        """asked: method, node and request."""
        packed = [(self._addresses[name], method, request.SerializeToString()) for method, name, request in asked]
        return call_all(self._process.network, self._process.clock.now_ns, packed, seconds)

    def stream(self, method: str, node: str, request: Any, seconds: float) -> Iterator[Any]:
        """As they came."""
        (call,) = self._call([(method, node, request)], seconds)
        reply = GetMessageClass(METHODS[method].output_type)
        for data in call.replies:
            yield reply.FromString(data)
        if call.failure:
            raise CallError(*call.failure)

    def close(self) -> None:
        """Every call has a connection of its own."""

    def monotonic(self) -> float:
        """The coordinator's clock."""
        return self._process.clock.now_ns() / 1e9

    def sleep(self, seconds: float) -> None:
        """Of the coordinator."""
        self._process.sleep(int(seconds * 1e9))


class CoordinatorProcess:
    """Runs `body` with the agents of these machines. Its end, by itself or not, closes its connections."""

    def __init__(
        self, time: VirtualTime, host: SimulatedHost, clock: SimulatedClock, machines: Mapping[str, SimulatedMachine],
        body: Callable[[Agents, "CoordinatorProcess"], None], ledger: Ledger,
    ) -> None:  # fmt: skip
        self.time, self.clock, self.ledger = time, clock, ledger
        self.collects = False
        self.network = SimulatedNetwork(host, clock.now_ns, self._wait_until)
        agents = self.reach({name: AgentAddress(name, each.control, each.data) for name, each in machines.items()})
        self.process = self.network.process = Process(time, lambda: body(agents, self))

    def reach(self, places: Mapping[str, AgentAddress]) -> Agents:
        """Over the wires."""
        return Agents(places, WireCalls(self, {name: each.control for name, each in places.items()}))

    def asked(self, node: str, method: str, request: Any) -> Asked | None:
        """A call begins; those that change something are remembered."""
        if method not in CHANGING:
            return None
        one = Asked(method, request.hash.hex(), request.epoch, self.time.now_ns)
        self.ledger.ask(node, one)
        return one

    def kill(self) -> bool:
        """Whether it was still at it."""
        alive = self.process.alive
        self.process.kill()
        self.network.end()
        return alive

    def sleep(self, ns: int) -> None:
        """Nothing wakes it."""
        self.process.sleep_until(self.time.now_ns + max(ns, 1))

    def _wait_until(self, shown_ns: int) -> None:
        self.process.sleep_until(max(self.clock.true_ns(shown_ns), self.time.now_ns + 1), wakeable=True)
