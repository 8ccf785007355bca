"""Sight between vehicles: reach and line of sight, from geometry alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

from sim_vehicles.world.geometry import Polygon, box, seen_share
from sim_vehicles.world.motion import Motion, State, Track
from sim_vehicles.world.scene import Scene

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
    place = (eye.x_m, eye.y_m)
    return seen_share(place, corners, _near([place, *corners], scene.occluders))


def perceived(share: float) -> bool:
    """Whether a visible share is enough to be perceived as a vehicle."""
    return share >= PERCEIVED_SHARE - 1e-9


def _near(points: Polygon, occluders: Sequence[Polygon]) -> list[Polygon]:
    """The occluders that are not wholly to one side of all points: the others block no line between these."""
    left, low, right, high = _bounds(points)
    found = []
    for occluder in occluders:
        other_left, other_low, other_right, other_high = _bounds(occluder)
        if other_left <= right and left <= other_right and other_low <= high and low <= other_high:
            found.append(occluder)
    return found


def _bounds(points: Polygon) -> tuple[float, float, float, float]:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(xs), min(ys), max(xs), max(ys)


class Sight:
    """States and visible shares of one scenario, each computed once.

    `moved` gives the same with another motion of the ego: pairs of others, and instants at which the ego is where it
    was, are taken over; only the rest is computed anew.
    """

    def __init__(self, motion: Motion, scene: Scene, recorded: Sight | None = None) -> None:
        self.motion = motion
        self.scene = scene
        self._recorded = recorded
        self._states: dict[int, dict[str, State]] = {}
        self._shares: dict[tuple[int, str, str], float] = {}

    def moved(self, ego: Track) -> Sight:
        """Sight in the same scene with this motion of the ego (its id must be the ego's)."""
        recorded = self._recorded or self
        return Sight(recorded.motion.with_track(ego), self.scene, recorded)

    def at(self, at_ns: int) -> dict[str, State]:
        """Every vehicle that is there, in order of id."""
        states = self._states.get(at_ns)
        if states is None:
            states = self._states[at_ns] = self._find(at_ns)
        return states

    def share(self, at_ns: int, who: str, whom: str) -> float:
        """Visible share of `whom` for `who`, 0 to 1 (see `visible`)."""
        if self._recorded is not None and self._as_recorded(self._recorded, at_ns, who, whom):
            return self._recorded.share(at_ns, who, whom)
        key = (at_ns, who, whom)
        share = self._shares.get(key)
        if share is None:
            share = self._shares[key] = visible(self.motion, self.scene, who, whom, self.at(at_ns))
        return share

    def perceived(self, at_ns: int, who: str) -> list[str]:
        """Whom `who` perceives, nearest first (ties by id); nobody if it is not there."""
        states = self.at(at_ns)
        eye = states.get(who)
        if eye is None:
            return []
        away = {name: hypot(one.x_m - eye.x_m, one.y_m - eye.y_m) for name, one in states.items() if name != who}
        near = sorted((m, name) for name, m in away.items() if m <= self.scene.range_m)
        return [name for _, name in near if perceived(self.share(at_ns, who, name))]

    def _find(self, at_ns: int) -> dict[str, State]:
        if self._recorded is None:
            return self.motion.at(at_ns / 1e9)
        ego = self.scene.ego
        now = self.motion.tracks[ego].at(at_ns / 1e9)
        states = {name: state for name, state in self._recorded.at(at_ns).items() if name != ego}
        return states if now is None else dict(sorted([*states.items(), (ego, now)]))

    def _as_recorded(self, recorded: Sight, at_ns: int, who: str, whom: str) -> bool:
        ego = self.scene.ego
        return ego not in (who, whom) or self.at(at_ns).get(ego) == recorded.at(at_ns).get(ego)
