"""The light verdict of a simulation: per output what met its deadline, without reading the trace back.

It counts results that were delivered. Nothing else is visible here: what was lost or is undecidable only the report
knows. Where nothing is lost the two agree (tested).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from node_agent.virtual.world import Admission, Delivery, Offer, World

PERCENTILES = (("p50", 50), ("p95", 95), ("p99", 99))


def percentile(ordered: list[int], percent: int) -> int | None:
    """Nearest rank: the smallest value that at least `percent` of the values do not exceed; None for no values."""
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None


@dataclass
class OutputSummary:
    """One output: latencies of its results in the order of delivery, from origin to the end of the last operator.

    A result is expected once per lineage and ordinal, as the report counts: of a union that delivers it by several
    ways the least latency counts.
    """

    deadline_ns: int
    latencies_ns: list[int] = field(default_factory=list)
    met: int = 0
    _trial: dict[tuple[str, int, int], int] = field(default_factory=dict, repr=False)

    def add(self, result: tuple[str, int, int], latency_ns: int) -> None:
        """One more delivery in the running trial; result: source, seq, ordinal."""
        known = self._trial.get(result)
        if known is None or latency_ns < known:
            self._trial[result] = latency_ns

    def settle(self) -> None:
        """The trial has ended."""
        found = list(self._trial.values())
        self.latencies_ns += found
        self.met += sum(latency_ns <= self.deadline_ns for latency_ns in found)
        self._trial.clear()

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


@dataclass
class WindowSummary:
    """Windows of one operator that have ended: with a result, begun and without one, never begun. What began before its
    sources were heard of does not count."""

    closed: int = 0
    abandoned: int = 0
    skipped: int = 0

    def add(self, counts: Mapping[str, int]) -> None:
        """Those of one trial, as the engine counts them."""
        self.closed += counts["closed"]
        self.abandoned += counts["abandoned"]
        self.skipped += counts["skipped"]

    @property
    def all(self) -> int:
        """That have ended."""
        return self.closed + self.abandoned + self.skipped

    def document(self) -> dict[str, int]:
        """For machines."""
        return {"given": self.closed, "all": self.all, "abandoned": self.abandoned, "skipped": self.skipped}


class Counted:
    """A world that also counts: everything goes on to the world inside."""

    def __init__(self, world: World, deadlines_ns: dict[str, int]) -> None:
        self._world = world
        self.outputs = {name: OutputSummary(deadline_ns) for name, deadline_ns in deadlines_ns.items()}

    def begin(self, trial: int) -> Sequence[Admission] | None:
        """Handed on."""
        self.settle()
        return self._world.begin(trial)

    def settle(self) -> None:
        """A trial has ended."""
        for output in self.outputs.values():
            output.settle()

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        """Handed on."""
        return self._world.offer(source, seq, at_ns)

    def deliver(self, delivery: Delivery) -> Sequence[Admission] | None:
        """Counted and handed on."""
        result = (delivery.source, delivery.seq, delivery.ordinal)
        self.outputs[delivery.output].add(result, delivery.latency_ns)
        return self._world.deliver(delivery)
