"""Outcome of a verdict as people are shown it: a crash, a near miss, or nothing that can be judged."""

from __future__ import annotations

from sim_vehicles.encounter.judgement import AVOIDED, Judgement

NEAR_M = 0.5  # a smaller gap is a near miss: at 50 km/h the ego drives it in 36 ms
NOTHING = "no crossing vehicle named: nothing to judge"


def has_crossing(found: Judgement) -> bool:
    """Whether the scene names a crossing vehicle, so that there is something to judge."""
    return bool(found.crossing)


def is_near(found: Judgement) -> bool:
    """Whether the two did not touch, and only just."""
    return found.outcome == AVOIDED and found.gap_m is not None and found.gap_m < NEAR_M


def length(metres: float) -> str:
    """Metres with two decimals; in cm where it is less than NEAR_M."""
    if metres >= NEAR_M:
        return f"{metres:.2f} m"
    return "under 1 cm" if metres < 0.01 else f"{metres * 100:.0f} cm"
