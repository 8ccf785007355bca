"""The tuple that decided a lap: its lineage, what it was about, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass

from sim_vehicles.encounter.judgement import Deciding
from sim_vehicles.story.timeline.lineage_trace import MissingRecordError
from sim_vehicles.story.timeline.run_trace import Lineage, PlanView


@dataclass(frozen=True)
class DecidingTuple:
    """Fields that are not known are None. source: its number or its name; output: the one whose result is meant.

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
    def of(cls, deciding: Deciding) -> DecidingTuple:
        """Of a verdict."""
        return cls(
            source=deciding.source,
            epoch=deciding.epoch,
            seq=deciding.seq,
            ordinal=deciding.ordinal,
            station=deciding.station,
            object=deciding.object,
            measured_s=deciding.measured_s,
            delivered_s=deciding.delivered_s,
            latency_ns=deciding.latency_ns,
        )

    @property
    def text(self) -> str:
        """Lineage and ordinal, as people read them."""
        return f"{self.source}/{self.epoch}/{self.seq}.{self.ordinal}"

    @property
    def latency_bounds_ns(self) -> tuple[int, int]:
        """The bounds of its latency. Raises ValueError where it has none."""
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
