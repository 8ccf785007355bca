"""One lap: the scenario played once, at one phase of the bursts against the geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim_vehicles.closed_loop.closed_loop import ClosedLoop, Verdict
from sim_vehicles.inputs.feed import Feed


@dataclass(frozen=True)
class Lap:
    """phase: number of `phases`, from 0; phase_ns: how much later all bursts leave for it. inputs_hash: of what is sent
    without any braking. refused: tuples that were too old on arrival, in virtual time."""

    phase: int
    phases: int
    phase_ns: int
    inputs_hash: str
    verdict: Verdict
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
        found = lap.verdict.found
        gap_m = found.gap_m
        return lap.verdict.crashed, found.impact_kmh or 0.0, -(float("inf") if gap_m is None else gap_m)

    return max(laps, key=badness)
