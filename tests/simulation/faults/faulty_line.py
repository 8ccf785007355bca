"""A line of three nodes under faults: two clients feed it, and everything that really happened is written down beside.

s -> a: x -> b: y -> c: z -> out        b: y -> mid        t -> b: w -> c: v -> side
"""

import json
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any, NamedTuple

from node_agent.core import plan as core
from node_agent.core.lineage import Lineage
from node_agent.operators.registry import Registry
from node_agent.virtual.cost_model import NO_JITTER, Costs
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.simulated_clock import SimulatedClock
from node_agent.virtual.simulated.simulated_network import SimulatedHost, Wires
from node_agent.virtual.simulated.simulated_runtime import NodePlan, SimulatedNode
from node_agent.virtual.simulated.simulated_source import SimulatedSource
from node_agent.virtual.simulated.virtual_time import VirtualTime

MS, SECOND = 1_000_000, 1_000_000_000
NODES = ("a", "b", "c")
PORT = 7000
DRIFT_PPM = 50
HASH = "5e" * 32
DEADLINES = {"out": 300 * MS, "mid": 100 * MS, "side": 200 * MS}
S, T, X, Y, W, Z, V = range(1, 8)  # streams
PATHS = {  # of each output: source, then where each of its operators is
    "out": (S, (("a", X), ("b", Y), ("c", Z))),
    "mid": (S, (("a", X), ("b", Y))),
    "side": (T, (("b", W), ("c", V))),
}
FED = {"s": (S, "a"), "t": (T, "b")}


class Seen(NamedTuple):
    """A result as it really came. number: of the tuple, in what its client sent."""

    output_node: str
    lineage: Lineage
    number: int
    at_ns: int  # true


class Load(NamedTuple):
    """What the nodes have to do. work: how much longer an operator takes than its plan says, which says less for it
    then; last_work: the same of those of the last node, besides; memory_bytes: of that node's queues, 0: enough;
    middle_memory_bytes: the same of the one before, which has a source; limit: of what one source admits. pad: bytes
    by which every third tuple is larger."""

    work: int = 1
    last_work: int = 1
    memory_bytes: int = 0
    middle_memory_bytes: int = 0
    limit: core.Limit | None = None
    pad: int = 0


EASY = Load()


def plans(load: Load = EASY) -> dict[str, core.Plan]:
    """The nodes' parts of the plan."""

    def stream(id_: int, *producers: int) -> core.Stream:
        return core.Stream(id_, f"S{id_}", "json", deadline_ns=2 * SECOND, producers=producers)

    def operator(id_: int, input_: int) -> core.Operator:
        return core.Operator(id_, f"O{id_}", "pass", (input_,), id_, cost_ns=2 * MS // load.work)

    def unit(id_: int, deadline_ns: int) -> core.Unit:
        return core.Unit(id_, (id_,), 20 * MS, deadline_ns, (id_,))

    def output(id_: int, name: str, stream_: int) -> core.Output:
        return core.Output(id_, name, stream_, DEADLINES[name])

    def plan(node: str, **parts: Any) -> core.Plan:
        index = NODES.index(node)
        peers = tuple(core.Peer(i, name) for i, name in enumerate(NODES) if name != node)
        return core.Plan("q", node, index, int(HASH[:16], 16), 1, "edf", 1, peers=peers, **parts)

    return {
        "a": plan(
            "a", streams=(stream(S), stream(X)), sources=(core.Source(S, "s", S, limit=load.limit),),
            operators=(operator(X, S),), units=(unit(X, DEADLINES["mid"]),), sends=((X, 1),),
        ),
        "b": plan(
            "b", streams=(stream(X, 0), stream(T), stream(Y), stream(W)), sources=(core.Source(T, "t", T),),
            operators=(operator(Y, X), operator(W, T)), units=(unit(Y, DEADLINES["mid"]), unit(W, DEADLINES["side"])),
            outputs=(output(2, "mid", Y),), sends=((Y, 2), (W, 2)), memory_bytes=load.middle_memory_bytes,
        ),
        "c": plan(
            "c", streams=(stream(Y, 1), stream(W, 1), stream(Z), stream(V)), operators=(operator(Z, Y), operator(V, W)),
            units=(unit(Z, DEADLINES["out"]), unit(V, DEADLINES["side"])),
            outputs=(output(1, "out", Z), output(3, "side", V)), memory_bytes=load.memory_bytes,
        ),
    }  # fmt: skip


@cache
def _registry() -> Registry:
    return Registry()


class FaultyLine:
    """The world of one seed. seen: all results; slept: true spans of suspensions, by node; paused_ns: of its
    runtimes, for how long."""

    def __init__(self, seed: int, ring_records: int = 4096, load: Load = EASY) -> None:
        self.load = load
        self.random = Random(seed)
        self.time = VirtualTime()
        self.draws = Draws(seed)
        self.wires = Wires(self.time, self.draws)
        self.seen: list[Seen] = []
        self.problems: list[str] = []
        self.slept: dict[str, list[tuple[int, int]]] = {name: [] for name in NODES}
        self.paused_ns = dict.fromkeys(NODES, 0)
        self._clocks = 0
        self.nodes: dict[str, SimulatedNode] = {}
        for name in NODES:
            host = SimulatedHost(self.wires, name)
            self.nodes[name] = SimulatedNode(
                self.time, host, self.new_clock(name), self.draws, PORT, _registry, self._on_result, ring_records
            )
        for name, plan in plans(load).items():
            routes = tuple((peer.index, peer.name, f"{peer.name}:{PORT}") for peer in plan.peers)
            costs = Costs(plan, 1.0, NO_JITTER, load.work * (load.last_work if name == "c" else 1.0), seed, 1)
            self.nodes[name].plan = NodePlan(plan, HASH, routes, costs)
            self.nodes[name].start()
        self.sources: dict[str, SimulatedSource] = {}
        self.planned: dict[str, list[int]] = {}  # true instants, by source

    def new_clock(self, name: str) -> SimulatedClock:
        """Of a machine that boots: nothing of it is as it was."""
        self._clocks += 1
        offset_ns = self.random.randrange(1000 * SECOND)
        rate_ppm = self.random.randint(-DRIFT_PPM, DRIFT_PPM)
        return SimulatedClock(self.time, f"{name}-{self._clocks}", DRIFT_PPM, offset_ns, rate_ppm)

    def feed(self, name: str, instants: list[int]) -> None:
        """A client of that source sends at these true instants."""
        stream, node = FED[name]
        host = SimulatedHost(self.wires, f"client-{name}")
        tuples = [(at_ns, self._payload(number)) for number, at_ns in enumerate(instants)]
        self.planned[name] = instants
        self.sources[name] = SimulatedSource(
            self.time, host, self.new_clock(host.name), name, self.nodes[node].address,
            self.random.getrandbits(63) | 1, stream, tuples,
        )  # fmt: skip

    def _payload(self, number: int) -> bytes:
        pad = {"pad": "x" * self.load.pad} if self.load.pad and number % 3 == 0 else {}
        return json.dumps({"n": number} | pad).encode()

    @staticmethod
    def ways() -> Iterator[tuple[str, str]]:
        """Which carry something."""
        pairs = [("a", "b"), ("b", "c"), ("client-s", "a"), ("client-t", "b")]
        for from_, to in pairs:
            yield from_, to
            yield to, from_

    def _on_result(self, node: str, epoch: int, at_ns: int, lineage: Lineage, payload: Any) -> None:
        self.seen.append(Seen(node, lineage, payload["n"], at_ns))
