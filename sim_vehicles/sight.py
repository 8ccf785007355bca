"""Who perceives whom: reach and line of sight, from geometry alone."""

from __future__ import annotations

from math import hypot

from sim_vehicles.geometry import box, seen_share
from sim_vehicles.motion import Motion, State
from sim_vehicles.scene import Scene

PERCEIVED_SHARE = 0.4  # two of the five sample points: one visible corner is not yet a vehicle


def visible(motion: Motion, scene: Scene, who: str, whom: str, states: dict[str, State]) -> float:
    """Share of `whom`'s sample points (0 to 1) that `who`'s sensor can see at the instant of `states`.

    The sensor sits over the middle of the roof and looks all round; other vehicles hide nothing from there, buildings
    do. 0 if `whom` is out of reach, or either is not there.
    """
    if who not in states or whom not in states:
        return 0.0
    eye, target = states[who], states[whom]
    if hypot(target.x_m - eye.x_m, target.y_m - eye.y_m) > scene.range_m:
        return 0.0
    track = motion.tracks[whom]
    corners = box(target.x_m, target.y_m, target.heading_rad, track.length_m, track.width_m)
    return seen_share((eye.x_m, eye.y_m), corners, scene.occluders)


def perceived(share: float) -> bool:
    """Whether a visible share is enough to be perceived as a vehicle."""
    return share >= PERCEIVED_SHARE - 1e-9
