"""The street: the three machines of the line with a richer query. Its plans are made by `make_plans`.

    s -> a: kept -> c: counts (windows) -> counted      s -> a: beside .. (b) near
         a: kept -> b: fast (drops what is late)        t -> b: near -> near
    t -> lean, rest -> both (join) -> pair              first: b, c, c    second: a, b, b

t is held to 8 tuples in 500 ms, and has none that is older than 300 ms; its client breaks both now and then.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from node_agent.core.lineage import Lineage
from node_agent.virtual.simulated.simulated_clock import SimulatedClock
from node_agent.virtual.simulated.simulated_disk import Speed
from node_agent.virtual.simulated.simulated_network import SimulatedHost
from node_agent.virtual.simulated.simulated_source import SimulatedSource
from tests.simulation.agents.agents_line import FED, MS, PLANS, SECOND, AgentsLine
from tests.simulation.agents.coordinator_process import CoordinatorProcess

STREET_PLANS = ("street_first", "street_second")
NAMES = dict(zip(PLANS, STREET_PLANS, strict=True))
MOST_AGE_NS = 300 * MS  # of t
NEAR_NS = 4 * MS  # many ages are so near to the most


class Given(NamedTuple):
    """A result as it really came. of: its output; value: as JSON has it."""

    of: str
    node: str
    lineage: Lineage
    value: dict[str, Any]
    at_ns: int  # true


class StreetLine(AgentsLine):
    """given: all results; clocks: by domain, of all boots; begun_ns: of these, when they began; ages:
    of tuples that were old when they were sent, by source."""

    def __init__(self, seed: int, run: Path, ring_records: int = 4096) -> None:
        self.given: list[Given] = []
        self.clocks: dict[str, SimulatedClock] = {}
        self.begun_ns: dict[str, int] = {}
        self.ages: dict[str, dict[int, int]] = {}
        super().__init__(seed, run, ring_records)
        self._slow_disks()
        if self.random.random() < 0.5:  # else it is left to the faults
            self.time.at(self.random.randrange(4, 12) * SECOND, lambda: self.deploy("second"))

    def _slow_disks(self) -> None:
        """In half of the seeds: then other processes go on while one writes."""
        if self.random.random() < 0.5:
            for machine in self.machines.values():
                machine.disk.speed = Speed(0, self.random.randint(1, 20) * MS)
                machine.disk.spend = machine.spend

    def new_clock(self, name: str) -> SimulatedClock:
        """It is remembered."""
        clock = super().new_clock(name)
        self.clocks[clock.domain], self.begun_ns[clock.domain] = clock, self.time.now_ns
        return clock

    def deploy(self, name: str, tries: int = 1) -> CoordinatorProcess:
        """The street's plan of that name."""
        return super().deploy(NAMES.get(name, name), tries)

    def stop_and_deploy(self, name: str) -> CoordinatorProcess:
        """The street's plan of that name."""
        return super().stop_and_deploy(NAMES.get(name, name))

    def feed(self, name: str, instants: list[int]) -> None:
        """Some tuples of t are old, many of them about as old as they may be; now and then more come than is allowed.
        None of the last ten, which are there to see that all is well."""
        stream, node = FED[name]
        last = len(instants) - 10
        ages = self.ages[name] = {}
        if name == "t":
            for number in range(last):
                if self.random.random() < 0.15:
                    ages[number] = self.random.choice(
                        (MOST_AGE_NS + self.random.randint(-NEAR_NS, NEAR_NS), self.random.randrange(2 * MOST_AGE_NS))
                    )
        host = SimulatedHost(self.wires, f"client-{name}")
        tuples = [(at_ns, json.dumps({"n": number}).encode()) for number, at_ns in enumerate(instants)]
        self.planned[name] = instants
        self.sources[name] = SimulatedSource(
            self.time, host, self.new_clock(host.name), name, self.machines[node].data,
            self.random.getrandbits(63) | 1, stream, tuples, ages,
        )  # fmt: skip

    def on_result(self, node: str, epoch: int, at_ns: int, lineage: Lineage, payload: Any) -> None:
        """A result was delivered."""
        of = payload.get("of", "counted")
        self.given.append(Given(of, node, lineage, payload, at_ns))
