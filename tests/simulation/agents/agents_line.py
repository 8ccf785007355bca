"""A line of three machines with whole agents, two clients, and coordinators that come and go.

first    s -> a: x -> b: y -> c: z -> out        b: y -> mid           t -> b: w -> c: v -> side
second   s -> a: x -> c: y -> c: z -> out        c: y -> (b) mid       t -> b: w -> b: v -> (c) side
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from coordinator.errors import CoordinatorError
from coordinator.fleet.agents import Agents
from coordinator.fleet.collection import collect
from coordinator.fleet.deployment import deploy
from coordinator.plan import plan_file
from node_agent.core.lineage import Lineage
from node_agent.core.plan import Identity
from node_agent.host.files import plan_files
from node_agent.operators.registry import Registry
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.simulated_clock import SimulatedClock
from node_agent.virtual.simulated.simulated_machine import STATE, SimulatedMachine
from node_agent.virtual.simulated.simulated_network import SimulatedHost, Wires
from node_agent.virtual.simulated.simulated_source import SimulatedSource
from node_agent.virtual.simulated.virtual_time import VirtualTime
from protos.plan_document import Plan
from tests.simulation.agents.coordinator_process import Asked, CoordinatorProcess
from tests.simulation.agents.street import street_operators

MS, SECOND = 1_000_000, 1_000_000_000
NODES = {"a": "127.0.0.1", "b": "127.0.0.2", "c": "127.0.0.3"}
COORDINATOR = "127.0.0.9"
DRIFT_PPM = 50
DEADLINES = {"out": 300 * MS, "mid": 200 * MS, "side": 250 * MS}
OUTPUT_IDS = {1: "out", 2: "mid", 3: "side"}
FED = {"s": (1, "a"), "t": (2, "b")}
DELIVERED = 0  # in a path: no unit runs there, the result is handed out
PLANS = ("first", "second")
PATHS: dict[str, dict[str, tuple[int, tuple[tuple[str, int], ...]]]] = {  # output: source, then node and unit
    "first": {
        "out": (1, (("a", 1), ("b", 2), ("c", 4))), "mid": (1, (("a", 1), ("b", 2))), "side": (2, (("b", 3), ("c", 5))),
    },
    "second": {
        "out": (1, (("a", 1), ("c", 3), ("c", 4))), "mid": (1, (("a", 1), ("c", 3), ("b", DELIVERED))),
        "side": (2, (("b", 2), ("c", DELIVERED))),
    },
}  # fmt: skip
BOOT_NS = 2 * SECOND  # after which the committed plan runs


class Seen(NamedTuple):
    """A result as it really came. number: of the tuple, in what its client sent."""

    output_node: str
    lineage: Lineage
    number: int
    at_ns: int  # true


@dataclass
class Deployment:
    """What a coordinator tried. result: committed, failed, or empty as long as it is at it, or was killed."""

    plan: str
    began_ns: int
    result: str = ""
    why: str = ""


@cache
def plan(name: str) -> Plan:
    """A stored document."""
    return plan_file.read(Path(__file__).parent / "plans" / f"{name}.json")


class _StillRegistry(Registry):
    """Whose files do not change, so that nobody has to look at them."""

    def loaded(self) -> list[tuple[Identity, dict[Path, str]]]:
        """As it was the first time."""
        return _loaded()


@cache
def _registry() -> Registry:
    return _StillRegistry([Path(str(street_operators.__file__))])


@cache
def _loaded() -> list[tuple[Identity, dict[Path, str]]]:
    return Registry.loaded(_registry())


class AgentsLine:
    """The world of one seed. seen: all results; slept: true spans of suspensions, by node; run: where traces are
    collected."""

    def __init__(self, seed: int, run: Path, ring_records: int = 4096) -> None:
        self.random, self.run = Random(seed), run
        self.time, self.draws = VirtualTime(), Draws(seed)
        self.wires = Wires(self.time, self.draws)
        self.seen: list[Seen] = []
        self.slept: dict[str, list[tuple[int, int]]] = {name: [] for name in NODES}
        self.problems: list[str] = []
        self.deployments: list[Deployment] = []
        self.coordinators: list[CoordinatorProcess] = []
        self.asked: dict[str, list[Asked]] = {name: [] for name in NODES}
        self.disturbed: dict[str, int] = dict.fromkeys(NODES, 0)  # the last instant at which something happened to it
        self._clocks = 0
        self._coordinator_host = SimulatedHost(self.wires, COORDINATOR)
        self.machines = {
            name: SimulatedMachine(
                self.time, name, SimulatedHost(self.wires, address), self.new_clock(name), self.draws, _registry,
                self.on_result, ring_records,
            )
            for name, address in NODES.items()
        }  # fmt: skip
        for machine in self.machines.values():
            machine.start()
        self.sources: dict[str, SimulatedSource] = {}
        self.planned: dict[str, list[int]] = {}  # true instants, by source
        self.collected: collect.Collected | None = None

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
        tuples = [(at_ns, json.dumps({"n": number}).encode()) for number, at_ns in enumerate(instants)]
        self.planned[name] = instants
        self.sources[name] = SimulatedSource(
            self.time, host, self.new_clock(host.name), name, self.machines[node].data,
            self.random.getrandbits(63) | 1, stream, tuples,
        )  # fmt: skip

    def ways(self) -> Iterator[tuple[str, str]]:
        """Between hosts that have something to say to each other."""
        a, b, c = NODES.values()
        pairs = [(a, b), (b, c), (a, c), ("client-s", a), ("client-t", b)]
        pairs += [(COORDINATOR, each) for each in (a, b, c)]
        for from_, to in pairs:
            yield from_, to
            yield to, from_

    # -- coordinators

    def coordinate(self, body: Callable[[Agents, CoordinatorProcess], None]) -> CoordinatorProcess:
        """A coordinator that does this."""
        clock = self.new_clock("coordinator")
        made = CoordinatorProcess(self.time, self._coordinator_host, clock, self.machines, body, self.asked)
        self.coordinators.append(made)
        return made

    def deploy(self, name: str, tries: int = 1) -> CoordinatorProcess:
        """A coordinator that deploys this plan, and again where that fails."""

        def body(agents: Agents, process: CoordinatorProcess) -> None:
            for _ in range(tries):
                attempt = Deployment(name, self.time.now_ns)
                self.deployments.append(attempt)
                try:
                    deploy.deploy(plan(name), agents)
                    attempt.result = "committed"
                    return
                except CoordinatorError as error:
                    attempt.result, attempt.why = "failed", str(error)
                    process.sleep(SECOND)

        return self.coordinate(body)

    def finish(self) -> CoordinatorProcess:
        """A coordinator that stops what runs and collects what ran."""

        def body(agents: Agents, process: CoordinatorProcess) -> None:
            for left in deploy.stop(None, agents, 20):
                self.problems.append(f"not drained: {left}")
            last = plan(self.deployments[-1].plan)
            plan_file.write(last, self.run / "plan.json")
            self.collected = collect.collect(self.run, last, agents, over=True)

        return self.coordinate(body)

    # -- what holds at every boot

    def touch(self, name: str) -> None:
        """Something has happened to that machine."""
        self.disturbed[name] = self.time.now_ns

    def expect_accepted(self, name: str, damaged: bool) -> None:
        """A machine has lost its power: what it answered last is on its disk. damaged: a disk has lost more."""
        if damaged or not self.asked[name] or not self.asked[name][-1].accepted:
            return
        last = self.asked[name][-1]
        state = plan_files.read_state(STATE / "plans", self.machines[name].disk)
        found = next((each.state for each in state.plans if each.hash == last.hash), 0)
        least = {"Prepare": plan_files.PREPARED, "Commit": plan_files.COMMITTED}.get(last.method, 0)
        if found < least or (not least and state.epoch < last.epoch):
            self.problems.append(f"{name}: {last} was answered and has not survived: {state}")

    def expect_plan_soon(self, name: str) -> None:
        """A machine has booted: what was committed runs in a while, with the coordinator away."""
        machine, booted_ns = self.machines[name], self.time.now_ns
        self.disturbed[name] = booted_ns
        try:
            stored = plan_files.read_state(STATE / "plans", machine.disk).plans
        except ValueError:
            return
        committed = [each.hash for each in stored if each.state == plan_files.COMMITTED]
        if not committed or any(plan_files.damage(STATE / "plans", each, 0, machine.disk) for each in stored):
            return

        errors = _errors(machine)

        def look() -> None:
            if self.disturbed[name] != booted_ns or _errors(machine) != errors:
                return  # an agent that its disk does not let start is started again later, by its service manager
            agent = machine.agent
            runtime = agent.runtime.runtime if agent is not None and agent.runtime is not None else None
            runs = runtime is not None and runtime.plans.committed is not None
            if not runs:
                self.problems.append(f"{name}: 2 s after its boot the committed plan {committed[-1][:8]} does not run")

        self.time.after(BOOT_NS, look)

    def on_result(self, node: str, epoch: int, at_ns: int, lineage: Lineage, payload: Any) -> None:
        """A result was delivered."""
        self.seen.append(Seen(node, lineage, payload["n"], at_ns))


def _errors(machine: SimulatedMachine) -> int:
    """Of its disk, so far."""
    return sum(machine.disk.fired[each] for each in ("io_error", "full", "read_only"))
