"""The light verdict of a simulation: per output what met its deadline, without reading the trace back.

It counts results that were delivered. Nothing else is visible here: what was lost or is undecidable only the report
knows. Where nothing is lost the two agree (tested).
"""

from dataclasses import dataclass, field
from typing import Any

from sim_vehicles.virtual.world import Delivery, Offer, World

PERCENTILES = (("p50", 50), ("p95", 95), ("p99", 99))


def percentile(ordered: list[int], percent: int) -> int | None:
    """Nearest rank: the smallest value that at least `percent` of the values do not exceed; None for no values."""
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None


@dataclass
class OutputSummary:
    """One output: latencies in the order of delivery, from origin to the end of the last operator."""

    deadline_ns: int
    latencies_ns: list[int] = field(default_factory=list)
    met: int = 0

    def add(self, latency_ns: int) -> None:
        """One more result."""
        self.latencies_ns.append(latency_ns)
        self.met += latency_ns <= self.deadline_ns

    @property
    def late(self) -> int:
        """Delivered after the deadline."""
        return len(self.latencies_ns) - self.met

    @property
    def miss_ratio(self) -> float | None:
        """late / delivered; None where nothing was delivered."""
        return self.late / len(self.latencies_ns) if self.latencies_ns else None

    def document(self) -> dict[str, Any]:
        """As report.json has it, as far as it is known here."""
        ordered = sorted(self.latencies_ns)
        latency = {name: percentile(ordered, percent) for name, percent in PERCENTILES}
        return {
            "deadline_ns": self.deadline_ns,
            "met": self.met,
            "late": self.late,
            "miss_ratio": self.miss_ratio,
            "latency_ns": {**latency, "max": ordered[-1] if ordered else None},
        }


class Counted:
    """A world that also counts: everything goes on to the world inside."""

    def __init__(self, world: World, deadlines_ns: dict[str, int]) -> None:
        self._world = world
        self.outputs = {name: OutputSummary(deadline_ns) for name, deadline_ns in deadlines_ns.items()}

    def begin(self, trial: int) -> None:
        """Handed on."""
        self._world.begin(trial)

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        """Handed on."""
        return self._world.offer(source, seq, at_ns)

    def deliver(self, delivery: Delivery) -> None:
        """Counted and handed on."""
        self.outputs[delivery.output].add(delivery.latency_ns)
        self._world.deliver(delivery)
