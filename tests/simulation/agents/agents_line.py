"""A line of three machines with whole agents, two clients, and coordinators that come and go.

first    s -> a: x -> b: y -> c: z -> out        b: y -> mid           t -> b: w -> c: v -> side
second   s -> a: x -> c: y -> c: z -> out        c: y -> (b) mid       t -> b: w -> b: v -> (c) side
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from greenlet import GreenletExit

from coordinator.errors import CoordinatorError
from coordinator.fleet.agents import Agents
from coordinator.fleet.collection import collect
from coordinator.fleet.deployment import deploy
from coordinator.plan import plan_file
from node_agent.control.deploy_protocol import BEING_STOPPED
from node_agent.core.lineage import Lineage
from node_agent.core.plan import Identity
from node_agent.host.files import plan_files
from node_agent.operators.registry import Registry
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.simulated_clock import SimulatedClock
from node_agent.virtual.simulated.simulated_disk import SimulatedDisk
from node_agent.virtual.simulated.simulated_machine import STATE, SimulatedMachine
from node_agent.virtual.simulated.simulated_network import SimulatedHost, Wires
from node_agent.virtual.simulated.simulated_source import SimulatedSource
from node_agent.virtual.simulated.virtual_time import VirtualTime
from protos.plan_document import Plan
from tests.simulation.agents.changing import changing_operators
from tests.simulation.agents.coordinator_process import Asked, CoordinatorProcess, Ledger
from tests.simulation.agents.desk import Desk
from tests.simulation.agents.sensors import sensors_operators
from tests.simulation.agents.street import street_operators

MS, SECOND = 1_000_000, 1_000_000_000
NODES = {"a": "127.0.0.1", "b": "127.0.0.2", "c": "127.0.0.3"}
COORDINATOR = "127.0.0.9"
DRIFT_PPM = 50
DEADLINES = {"out": 300 * MS, "mid": 200 * MS, "side": 250 * MS}
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


class Shape(NamedTuple):
    """What runs on a line. plans: names of stored plans; paths: by plan and output, its source, then node and unit."""

    plans: tuple[str, ...]
    paths: Mapping[str, Mapping[str, tuple[int, tuple[tuple[str, int], ...]]]]
    deadlines_ns: Mapping[str, int]
    plan: Callable[[str], Plan] = plan


class _StillRegistry(Registry):
    """Whose files do not change, so that nobody has to look at them."""

    def loaded(self) -> list[tuple[Identity, dict[Path, str]]]:
        """As it was the first time."""
        return _loaded()


@cache
def _registry() -> Registry:
    return _StillRegistry(
        [Path(str(each.__file__)) for each in (street_operators, changing_operators, sensors_operators)]
    )


@cache
def _loaded() -> list[tuple[Identity, dict[Path, str]]]:
    return Registry.loaded(_registry())


class AgentsLine:
    """The world of one seed. seen: all results; slept: true spans of suspensions, by node; run: where traces are
    collected; kinds: of the faults that it has."""

    shape = Shape(PLANS, PATHS, DEADLINES)

    def __init__(self, seed: int, run: Path, ring_records: int = 4096) -> None:
        self.random, self.run = Random(seed), run
        self.time, self.draws = VirtualTime(), Draws(seed)
        self.wires = Wires(self.time, self.draws)
        self.seen: list[Seen] = []
        self.slept: dict[str, list[tuple[int, int]]] = {name: [] for name in NODES}
        self.problems: list[str] = []
        self.kinds: frozenset[str] = frozenset()
        self.happened: Counter[str] = Counter()  # what coordinators tell of recoveries
        self.hung: list[tuple[str, str]] = []  # node and boot of runtimes whose operator was killed, as was said
        self.deployments: list[Deployment] = []
        self.coordinators: list[CoordinatorProcess] = []
        self.ledger = Ledger(NODES)
        self.ledger.on_answer.append(self._note_answer)
        self._answers: list[tuple[str, Asked, dict[str, int]]] = []  # and states of plans on the disk then
        self._overtaken: list[str] = []  # commits in place of later ones
        self.disturbed: dict[str, int] = dict.fromkeys(NODES, 0)  # how often something has happened to it
        self._put_back_ns: dict[str, int] = dict.fromkeys(NODES, 0)  # when its disk was last put back
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
        self.results = Desk(run)
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

    @staticmethod
    def ways() -> Iterator[tuple[str, str]]:
        """Between hosts that have something to say to each other."""
        a, b, c = NODES.values()
        pairs = [(a, b), (b, c), (a, c), ("client-s", a), ("client-t", b)]
        pairs += [(COORDINATOR, each) for each in (a, b, c)]
        for from_, to in pairs:
            yield from_, to
            yield to, from_

    @staticmethod
    def output_of(seen: Seen) -> str:
        """Which output gave that result."""
        if seen.output_node == "b":
            return "mid"
        return "out" if seen.lineage[0] == FED["s"][0] else "side"

    # -- coordinators

    def coordinate(self, body: Callable[[Agents, CoordinatorProcess], None]) -> CoordinatorProcess:
        """A coordinator that does this."""
        clock = self.new_clock("coordinator")
        made = CoordinatorProcess(self.time, self._coordinator_host, clock, self.machines, body, self.ledger)
        self.coordinators.append(made)
        return made

    def deploy(self, name: str, tries: int = 1) -> CoordinatorProcess:
        """A coordinator that deploys this plan, and again where that fails."""

        return self.coordinate(lambda agents, process: self._deploy(name, agents, process, tries))

    def _deploy(self, name: str, agents: Agents, process: CoordinatorProcess, tries: int) -> None:
        for _ in range(tries):
            attempt = Deployment(name, self.time.now_ns)
            self.deployments.append(attempt)
            try:
                deploy.deploy(self.shape.plan(name), agents)
                attempt.result = "committed"
                return
            except CoordinatorError as error:
                attempt.result, attempt.why = "failed", str(error)
                process.sleep(SECOND)
                if BEING_STOPPED in attempt.why:  # it runs on where a stop did not come through
                    with suppress(CoordinatorError):
                        deploy.stop(None, agents, 20)

    def mend(self, damaged: bool) -> None:
        """Everything has healed: deploy again where a deployment has not told that it is done, where several may have
        crossed, or where one may follow, once what runs has been stopped. damaged: a disk has lost what was committed.
        """
        unsure = any(each.result != "committed" for each in self.deployments) or len(self.deployments) > 2
        if damaged or unsure or self.more_to_come:
            for process in self.coordinators:
                process.kill()
            self.deploy(self.deployments[-1].plan, tries=5)

    @property
    def more_to_come(self) -> bool:
        """Whether a coordinator that changes what runs is at it, or waits until it tries again."""
        return any(each.process.alive and not each.collects for each in self.coordinators)

    def finish(self) -> CoordinatorProcess:
        """A coordinator that stops what runs and collects what ran."""

        def body(agents: Agents, process: CoordinatorProcess) -> None:
            for left in deploy.stop(None, agents, 20):
                self.problems.append(f"not drained: {left}")
            last = self.shape.plan(self.deployments[-1].plan)
            if (self.run / "plan.json").exists():
                last = plan_file.read(self.run / "plan.json")  # a collection has begun: this one goes on with it
            else:
                plan_file.write(last, self.run / "plan.json")
            self.collected = collect.collect(self.run, last, agents, over=True)

        return self.coordinate(body)

    def stop_and_deploy(self, name: str) -> CoordinatorProcess:
        """A coordinator that stops what runs, and deploys this plan then."""

        def body(agents: Agents, process: CoordinatorProcess) -> None:
            try:
                left = deploy.stop(None, agents, 20)
            except CoordinatorError:
                left = ["a node that could not be asked"]
            if not left:
                self._expect_nothing_held()
            self._deploy(name, agents, process, 3)

        return self.coordinate(body)

    def collect_now(self, done: Callable[[], None]) -> CoordinatorProcess:
        """A coordinator that collects what has been written so far, while the plan runs."""

        def body(agents: Agents, process: CoordinatorProcess) -> None:
            last = self.shape.plan(self.deployments[-1].plan)
            if not (self.run / "plan.json").exists():
                plan_file.write(last, self.run / "plan.json")
            collected = collect.collect(self.run, plan_file.read(self.run / "plan.json"), agents, over=False)
            if not collected.problems:
                done()

        def killable(agents: Agents, process: CoordinatorProcess) -> None:
            try:
                body(agents, process)
            except GreenletExit:
                if self.results.after_kill():
                    self.happened["collection killed at a step"] += 1
                    self.time.after(0, process.network.end)
                raise

        if any(each.collects and each.process.alive for each in self.coordinators):
            return self.coordinators[-1]  # one at a time into one directory
        process = self.coordinate(killable)
        process.collects = True
        return process

    def _expect_nothing_held(self) -> None:
        """Everything has drained, as the nodes say: no link holds a tuple."""
        for machine in self.machines.values():
            runtime = machine.agent.runtime if machine.agent is not None else None
            if runtime is None or runtime.runtime is None or not runtime.process.alive:
                continue
            for name, link in runtime.runtime.outbox.links.items():
                if len(link.sender):
                    text = f"{machine.name}: all plans have drained, and the link to {name} holds {len(link.sender)}"
                    self.problems.append(text)

    def expect_durable(self, name: str) -> None:
        """What a runtime has committed for a while is committed on the disk, unless something happened to the node."""
        machine, before = self.machines[name], self.disturbed[name]
        runtime = machine.agent.runtime if machine.agent is not None else None
        committed = runtime.runtime.plans.committed if runtime is not None and runtime.runtime is not None else None
        if committed is None:
            return

        errors = _errors(machine)

        def look() -> None:
            if self.disturbed[name] != before or _errors(machine) != errors:
                return  # what the disk refuses is written when it does not
            try:
                plans = plan_files.read_state(STATE / "plans", machine.disk).plans
            except ValueError:
                return
            stored = {(each.hash, each.epoch): each.state for each in plans}  # it may be stopped and prepared anew
            if stored.get((committed.hash, committed.plan.epoch)) == plan_files.PREPARED:
                self.problems.append(f"{name}: plan {committed.hash[:8]} admits, and is only prepared on the disk")

        self.time.after(SECOND, look)

    def expect_fences(self) -> None:
        """A node accepts no plan of an epoch that is older than one it had accepted before, nor one of an aborted one,
        and has on its disk what it has accepted."""
        self._expect_answers()
        for name, asked in self.ledger.asked.items():
            prepared = [each for each in asked if each.method == "Prepare" and each.accepted]
            for one in prepared:
                for other in asked:
                    before = other.accepted and other.ended_ns <= one.began_ns
                    newer = other.method == "Prepare" and other.epoch > one.epoch
                    aborted = other.method == "Abort" and other.epoch >= one.epoch
                    if before and (newer or aborted) and not self._committed(asked, one):
                        self.problems.append(f"{name}: has prepared epoch {one.epoch} after {other}")

    def _note_answer(self, name: str, one: Asked) -> None:
        if one.accepted:
            with suppress(ValueError):  # a disk that fails may have left no state, and this is not judged then
                stored = plan_files.read_state(STATE / "plans", self.machines[name].disk).plans
                states = {each.hash: each.state for each in stored}
                if self.ledger.alone(name, one):
                    self._answers.append((name, one, states))
                if one.method == "Commit" and states.get(one.hash) == plan_files.COMMITTED:
                    self._overtaken += [f"{name}: {one} has ended {each}" for each in self._standing(name, one)]

    def _standing(self, name: str, one: Asked) -> Iterator[Asked]:
        """That node has committed these in a later epoch, of another plan, and was not asked to stop them. Such a one
        admits, whichever came first, since no plan is prepared while it drains."""
        asked = self.ledger.asked[name]
        if any(each.hash == one.hash and each.epoch > one.epoch for each in asked):
            return
        stopped = {each.hash for each in asked if each.method == "Stop"}
        for each in asked:
            later = each.epoch > one.epoch and each.hash != one.hash
            if each.method == "Commit" and each.accepted and later and each.hash not in stopped:
                yield each

    def _expect_answers(self) -> None:
        """What a node has accepted is on its disk when it answers: an aborted plan is not prepared any more. A plan
        does not admit in place of one that was committed in a later epoch."""
        self.problems += self._overtaken
        for name, one, states in self._answers:
            state = states.get(one.hash, 0)
            prepared = state == plan_files.PREPARED
            if (one.method in {"Commit", "Abort"} and prepared) or (one.method == "Prepare" and not state):
                self.problems.append(f"{name}: {one} was accepted, and the plan's state on the disk is {state}")

    def _committed(self, asked: list[Asked], one: Asked) -> bool:
        """Whether that plan may have been committed then: its address book alone was new."""
        commits = [other for other in asked if other.method == "Commit" and other.began_ns < one.began_ns]
        own = [each for each in commits if each.hash == one.hash]
        others = [each for each in commits if each.hash != one.hash and each.accepted]
        later = [each for each in others if each.ended_ns <= one.began_ns]  # else it may have come before them
        return any(
            not any(each.answered and other.began_ns > each.ended_ns and other.epoch > each.epoch for other in later)
            for each in own
        )

    # -- what holds at every boot

    def touch(self, name: str) -> None:
        """Something has happened to that machine. It is counted: several things may happen at one instant."""
        self.disturbed[name] += 1

    def put_back(self, name: str, copy: SimulatedDisk) -> None:
        """That machine, which is off, has an earlier copy of its disk: what it accepted since then is gone."""
        self.machines[name].disk.restore(copy)
        self._put_back_ns[name] = self.time.now_ns

    def expect_accepted(self, name: str, damaged: bool) -> None:
        """A machine has lost its power: what it answered last is on its disk, unless somebody has put back another
        one since it was asked. damaged: a disk has lost more."""
        asked = self.ledger.asked[name]
        if damaged or not asked or not asked[-1].accepted:
            return
        last = asked[-1]
        if last.began_ns <= self._put_back_ns[name]:
            return
        if not self.ledger.alone(name, last):
            return  # nobody knows which of them came last
        try:
            state = plan_files.read_state(STATE / "plans", self.machines[name].disk)
        except ValueError:
            return  # the disk fails
        found = next((each.state for each in state.plans if each.hash == last.hash), 0)
        least = {"Prepare": plan_files.PREPARED, "Commit": plan_files.COMMITTED}.get(last.method, 0)
        if found < least or (not least and state.epoch < last.epoch):
            self.problems.append(f"{name}: {last} was answered and has not survived: {state}")

    def expect_plan_soon(self, name: str) -> None:
        """A machine has booted: what was committed runs in a while, with the coordinator away."""
        machine, booted_ns = self.machines[name], self.time.now_ns
        self.touch(name)
        before = self.disturbed[name]
        try:
            stored = plan_files.read_state(STATE / "plans", machine.disk).plans
        except ValueError:
            return
        committed = [each.hash for each in stored if each.state == plan_files.COMMITTED]
        if not committed or any(plan_files.damage(STATE / "plans", each, 0, machine.disk) for each in stored):
            return

        errors = _errors(machine)

        def look() -> None:
            if self.disturbed[name] != before or not machine.host.on or _errors(machine) != errors:
                return  # an agent that its disk does not let start is started again later, by its service manager
            if any(each.method == "Stop" and each.began_ns >= booted_ns for each in self.ledger.asked[name]):
                return  # somebody has ended it meanwhile
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
