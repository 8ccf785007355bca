"""The sensors: the three machines of the line with sources that agents run, fusions, large payloads and a large side
input. Its plans are made by `make_sensors_plans`.

    a: image, b: scan -> both -> look -> fused     a: left, c: right -> beats (timers) -> beats
    t -> b: near, beside it the latest image       s -> a .. b: far
    both, look, beats    first: b, c, b    second: c, a, c
"""

from pathlib import Path
from typing import Any, NamedTuple

from node_agent.core.lineage import Lineage
from tests.simulation.agents.agents_line import MS, PLANS, SECOND, AgentsLine, Shape
from tests.simulation.agents.coordinator_process import CoordinatorProcess

SENSORS_PLANS = ("sensors_first", "sensors_second")
NAMES = dict(zip(PLANS, SENSORS_PLANS, strict=True))
LOOK_NS = 10 * MS


class Sensed(NamedTuple):
    """A result as it really came. of: its output."""

    of: str
    node: str
    lineage: Lineage
    value: dict[str, Any]
    at_ns: int  # true


class SensorsLine(AgentsLine):
    """given: all results; left_bytes: what large payloads took at the end on each node whose runtime knew."""

    shape = Shape(SENSORS_PLANS, {}, {})

    def __init__(self, seed: int, run: Path, ring_records: int = 4096) -> None:
        self.given: list[Sensed] = []
        self.left_bytes: dict[str, int] = {}
        super().__init__(seed, run, ring_records)
        if self.random.random() < 0.5:  # else it is left to the faults
            self.time.at(self.random.randrange(4, 12) * SECOND, lambda: self.deploy("second"))

    def deploy(self, name: str, tries: int = 1) -> CoordinatorProcess:
        """The sensors' plan of that name."""
        return super().deploy(NAMES.get(name, name), tries)

    def stop_and_deploy(self, name: str) -> CoordinatorProcess:
        """The sensors' plan of that name."""
        return super().stop_and_deploy(NAMES.get(name, name))

    def finish(self) -> CoordinatorProcess:
        """All has drained when what ran is collected: memory has been given back."""
        self.time.after(LOOK_NS, self._look)
        return super().finish()

    def _look(self) -> None:
        if self.collected is None:
            self.time.after(LOOK_NS, self._look)
            return
        for name, machine in self.machines.items():
            runtime = machine.agent.runtime if machine.agent is not None else None
            if runtime is not None and runtime.runtime is not None and runtime.process.alive:
                self.left_bytes[name] = runtime.runtime.shared.large.bytes

    def on_result(self, node: str, epoch: int, at_ns: int, lineage: Lineage, payload: Any) -> None:
        """A result was delivered."""
        self.given.append(Sensed(payload["of"], node, lineage, payload, at_ns))


__all__ = ["SENSORS_PLANS", "Sensed", "SensorsLine"]
