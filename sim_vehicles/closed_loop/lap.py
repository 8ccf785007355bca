"""One lap: the scenario played once, at one phase of the bursts against the geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sim_vehicles.closed_loop.closed_loop import ClosedLoop
from sim_vehicles.inputs.feed import Feed


@dataclass(frozen=True)
class Lap:
    """phase: number of `phases`, from 0; phase_ns: how much later all bursts leave for it. inputs_hash: of what is sent
    without any braking. verdict: as in replay.json. refused: tuples that were too old on arrival, in virtual time."""

    phase: int
    phases: int
    phase_ns: int
    inputs_hash: str
    verdict: dict[str, Any]
    loop: ClosedLoop
    refused: int = 0


def phase_ns(feeds: Sequence[Feed], phase: int, phases: int) -> int:
    """How much later all bursts leave at phase `phase` of `phases`: that share of the period of the V2V source (without
    one, of the longest period)."""
    v2v = [feed.period_ns for feed in feeds if feed.type == "vehicle.Cpm"]
    period_ns = max(v2v or [feed.period_ns for feed in feeds], default=0)
    return phase * period_ns // phases


def worst(laps: Sequence[Lap]) -> Lap:
    """The crash at the highest speed; without a crash the one with the least gap. The first of equals."""

    def badness(lap: Lap) -> tuple[bool, float, float]:
        gap_m = lap.verdict["gap_m"]
        crashed = lap.verdict["outcome"] == "CRASH"
        return crashed, lap.verdict["impact_kmh"] or 0.0, -(float("inf") if gap_m is None else gap_m)

    return max(laps, key=badness)
