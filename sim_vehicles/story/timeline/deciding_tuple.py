"""The tuple that decided a lap, as replay.json has it: its lineage, what it was about, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim_vehicles.story.timeline.lineage_trace import MissingRecordError
from sim_vehicles.story.timeline.run_trace import Lineage, PlanView


@dataclass(frozen=True)
class DecidingTuple:
    """Fields that the file lacks are None. source: its number or its name; output: the one whose result is meant.

    Instants are in seconds of the recording. latency_ns: the interval in which the latency lies.
    """

    source: int | str | None
    epoch: int | None
    seq: int | None
    ordinal: int | None = None
    output: str | None = None
    station: str | None = None
    object: str | None = None
    measured_s: float | None = None
    sent_s: float | None = None
    at_s: float | None = None
    delivered_s: float | None = None
    latency_ns: tuple[int, int] | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> DecidingTuple:
        """From a verdict of replay.json. Raises TypeError or ValueError where the latency is no interval."""
        latency_ns = document.get("latency_ns")
        if latency_ns is not None:
            low_ns, high_ns = latency_ns
            latency_ns = (int(low_ns), int(high_ns))
        return cls(
            source=document.get("source"),
            epoch=document.get("epoch"),
            seq=document.get("seq"),
            ordinal=document.get("ordinal"),
            output=document.get("output"),
            station=document.get("station"),
            object=document.get("object"),
            measured_s=document.get("measured_s"),
            sent_s=document.get("sent_s"),
            at_s=document.get("at_s"),
            delivered_s=document.get("delivered_s"),
            latency_ns=latency_ns,
        )

    @property
    def key(self) -> tuple[int | str | None, int | None, int | None, int | None]:
        """Source, epoch, seq and ordinal."""
        return self.source, self.epoch, self.seq, self.ordinal

    @property
    def text(self) -> str:
        """Lineage and ordinal, as people read them."""
        return f"{self.source}/{self.epoch}/{self.seq}.{self.ordinal}"

    @property
    def latency_bounds_ns(self) -> tuple[int, int]:
        """The bounds of its latency. Raises ValueError where the file has no latency."""
        if self.latency_ns is None:
            raise ValueError("the deciding tuple has no latency_ns")
        return self.latency_ns

    def lineage(self, plan: PlanView) -> Lineage:
        """Source, epoch and seq as numbers. Raises MissingRecordError where one of them is not known."""
        source = self.source
        if isinstance(source, str):
            source = next((number for number, (name, _, _) in plan.sources.items() if name == source), None)
        try:
            return int(source), int(self.epoch), int(self.seq)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise MissingRecordError(
                "no_lineage", f"no lineage: source {self.source!r}, epoch and seq are needed"
            ) from None
