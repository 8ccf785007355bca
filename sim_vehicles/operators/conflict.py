"""O14 to O18: where the ego's path crosses that of another vehicle, when each is there, and what braking it takes.

Path and time are kept apart: O14 says along which way each vehicle goes, O15 where the two ways cross, O16 when
each is there. A vehicle that brakes keeps its path and comes later, or never.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import hypot, inf, isinf, pi, radians, sin, sqrt
from typing import NamedTuple

import numpy as np

from node_agent.sdk import operator
from protos.vehicle_pb2 import Encounter, Motion, Passage, Path, Way, Zone
from sim_vehicles.operators.models.corridor import Array, Crossing, corridor, crossing
from sim_vehicles.world.crossing_angle import LEAST_DEG
from sim_vehicles.world.motion import wrap

MOST_STEPS = 200
JUNCTION_SHARE = 0.9  # of the ways that a turn on a tight radius takes, those on which it goes on
SINCE_S, SINCE_M = 1.2, 2.0  # a vehicle has gone that far on its way since it was measured, at most
LEAST_SHARE = 1e-6  # less is what adding up leaves of 1
ENCOUNTER = "vehicle.Encounter"


@operator("vehicle.predict", version="1", inputs={"encounter": ENCOUNTER}, output=ENCOUNTER)
class Predict:
    """O14: both vehicles' centres and headings for `horizon_s`, one per `step_s`, the first one now -> ego_paths,
    object_paths (m, rad).

    One path along each way that is known (O9), keeping the present distance from the lane's middle. And one as no lane
    leads, with constant turn rate (CTRV, Schubert et al. 2008) that fades: yaw rate x exp(-t / fade_s), since a turn
    ends. So a vehicle in a turn goes on by fade_s x yaw rate at most (0.4 rad/s: 23 degrees) instead of round the whole
    circle, into traffic that it will never meet. The turn is a matter of geometry: its curvature is that of the present
    speed. A yaw rate that no turn in traffic has counts as 0, for it is noise: on a radius below `least_radius_m` (a
    car's turning circle), or with over `most_lateral_mps2` across (3 m/s2 is about the side friction that slow turns
    are designed for, AASHTO 2018).

    The steps are those of the present speed, growing with a positive acceleration: v t + max(a, 0) t^2 / 2. Braking
    does not shorten a path: how far a braking vehicle comes is O16's, and a corridor that shrank with every touch of
    the brake would let conflicts come and go.
    """

    def __init__(
        self,
        horizon_s: float = 4.0,
        step_s: float = 0.1,
        fade_s: float = 1.0,
        least_radius_m: float = 5.0,
        most_lateral_mps2: float = 3.0,
    ) -> None:
        if not 0.0 < step_s <= horizon_s or horizon_s > MOST_STEPS * step_s:
            raise ValueError(f"horizon_s {horizon_s:g} must be 1 to {MOST_STEPS} steps of step_s {step_s:g}")
        if min(fade_s, least_radius_m, most_lateral_mps2) <= 0.0:
            raise ValueError("fade_s, least_radius_m and most_lateral_mps2 must be above 0")
        self._t_s = step_s * np.arange(round(horizon_s / step_s) + 1)
        self._step_s, self._fade_s = step_s, fade_s
        self._least_radius_m, self._most_lateral_mps2 = least_radius_m, most_lateral_mps2

    def __call__(self, encounter: Encounter) -> Encounter:
        """The encounter with both paths."""
        out = Encounter()
        out.CopyFrom(encounter)
        out.ego_paths.extend(self._paths(encounter.ego_now, encounter.ego_ways))
        out.object_paths.extend(self._paths(encounter.object, encounter.ways))
        return out

    def _paths(self, motion: Motion, ways: Sequence[Way]) -> list[Path]:
        speed = max(motion.speed_mps, 0.0)
        gone = self._t_s * (speed + max(motion.acceleration_mps2, 0.0) / 2 * self._t_s)
        left = 1.0 - sum(way.share for way in ways)
        if left < LEAST_SHARE:
            return [self._path(_along(way, motion, gone), way.share) for way in ways]
        free = self._path(self._free(motion, speed, gone), left, free=True)
        return [*(self._path(_along(way, motion, gone), way.share) for way in ways), free]

    def _path(self, places: tuple[Array, Array, Array], share: float, free: bool = False) -> Path:
        x, y, heading = (each.tolist() for each in places)
        return Path(x_m=x, y_m=y, heading_rad=heading, step_s=self._step_s, share=share, free=free)

    def _free(self, motion: Motion, speed: float, way: Array) -> tuple[Array, Array, Array]:
        """CTRV with a fading turn rate; chords of the arc that each step turns by, so exact where nothing fades."""
        yaw_rate = motion.yaw_rate_rps
        if abs(yaw_rate) * self._least_radius_m > speed or abs(yaw_rate) * speed > self._most_lateral_mps2:
            yaw_rate = 0.0
        if yaw_rate == 0.0:
            turn = np.zeros_like(way)
        else:
            turn = yaw_rate * self._fade_s * -np.expm1(way / (-speed * self._fade_s))
        heading = motion.heading_rad + turn
        half = (turn[1:] - turn[:-1]) / 2
        chord = (way[1:] - way[:-1]) * np.sinc(half / np.pi)
        middle = heading[:-1] + half
        return motion.x_m + _summed(chord * np.cos(middle)), motion.y_m + _summed(chord * np.sin(middle)), heading


def _along(way: Way, motion: Motion, gone: Array) -> tuple[Array, Array, Array]:
    """Points along a way, straight on past both its ends, as far to the side of it as the vehicle is now."""
    n = len(way.x_m)
    x, y = _array(way.x_m, n), _array(way.y_m, n)
    dx, dy = x[1:] - x[:-1], y[1:] - y[:-1]
    long = np.hypot(dx, dy)
    ux, uy = dx / long, dy / long
    s = _summed(long)[:-1]  # where each piece begins
    # Beside its begin or a little on, never where a loop comes past again.
    near = int(np.searchsorted(s, SINCE_S * motion.speed_mps + SINCE_M))
    on = (motion.x_m - x[:near]) * ux[:near] + (motion.y_m - y[:near]) * uy[:near]
    on[1:] = np.maximum(on[1:], 0.0)
    on[: n - 2] = np.minimum(on[: n - 2], long[: min(near, n - 2)])
    k = int(np.argmin(np.hypot(x[:near] + on * ux[:near] - motion.x_m, y[:near] + on * uy[:near] - motion.y_m)))
    at = s[k] + on[k] + gone
    piece = np.maximum(np.searchsorted(s, at, side="right") - 1, 0)
    ux, uy, rest = ux[piece], uy[piece], at - s[piece]
    px, py = x[piece] + rest * ux, y[piece] + rest * uy
    left = (motion.y_m - py[0]) * ux[0] - (motion.x_m - px[0]) * uy[0]
    return px - left * uy, py + left * ux, np.arctan2(uy, ux)


@operator("vehicle.zone", version="1", inputs={"encounter": ENCOUNTER}, output=ENCOUNTER)
class Overlap:
    """O15: the conflict zone -> zone: ways [m] until each one's front enters and its rear has left the other one's
    corridor; absent where the corridors do not cross, or not within the predicted paths.

    A corridor is what the box sweeps along its path, from its rear now; past the path's end it goes straight on far
    enough to tell when a vehicle would have left. For two straight paths that cross at an angle w the ways follow from
    the parallelogram of the corridors: way to the crossing of the two middle lines -/+ (other's width / sin w +
    own width / |tan w|) / 2 -/+ half the own length.

    How long a turn goes on is not known where no lane says it. Two ways to go are weighed: the turns of both fade, or
    both go on as they began, up to a right angle. `share` [0 to 1] is the weight of those under which the corridors
    cross. A turn on a radius below `junction_m` is that of a junction, and goes on with weight 0.9. A wider one is as
    likely a bend of the road, of which either may be the end: 0.5. Two vehicles that meet in a bend, each on its side,
    would else cross: paths that leave the bend too soon do so on a tangent through the other's lane. The zone is that
    of the turns that fade, if these cross, else of those that go on.

    Only crossing counts: where the paths differ by less than `least_angle_deg`, or are opposite within as much, there
    is no zone (`world.crossing_angle`, as in the truth of recordings). So queues, parallel and merged traffic and
    oncoming vehicles have none. A vehicle that stands has the ground under its box for a corridor.
    """

    def __init__(self, least_angle_deg: float = LEAST_DEG, junction_m: float = 15.0) -> None:
        if not 1.0 <= least_angle_deg <= 90.0:
            raise ValueError(f"least_angle_deg is {least_angle_deg:g}; it must be 1 to 90")
        if not junction_m >= 0.0:
            raise ValueError(f"junction_m is {junction_m:g}; it must not be below 0")
        self._least_sine = sin(radians(least_angle_deg))
        self._junction_m = junction_m

    def __call__(self, encounter: Encounter) -> Encounter:
        """The encounter with its zone, if there is one."""
        out = Encounter()
        out.CopyFrom(encounter)
        ego = encounter.ego
        beyond_m = (ego.width_m + encounter.width_m) / self._least_sine
        margins_m = 2 * beyond_m + (ego.length_m + encounter.length_m + ego.width_m + encounter.width_m) / 2
        likeliest, most, share = None, 0.0, 0.0
        for one, other in product(_ways(encounter.ego_paths), _ways(encounter.object_paths)):
            if one.out_of_reach(other, margins_m):
                continue
            found, crossing_share = self._weighed(encounter, one, other, beyond_m)
            weight = crossing_share * one.share * other.share
            share += weight
            if found is not None and weight > most:
                likeliest, most = found, weight
        if likeliest is not None:
            out.zone.CopyFrom(
                Zone(
                    ego_in_m=likeliest.one_in_m,
                    ego_out_m=likeliest.one_out_m,
                    object_in_m=likeliest.other_in_m,
                    object_out_m=likeliest.other_out_m,
                    share=min(share, 1.0),
                )
            )
        return out

    def _weighed(
        self, encounter: Encounter, ego_way: _Way, object_way: _Way, beyond_m: float
    ) -> tuple[Crossing | None, float]:
        """Where the corridors cross, and the weight of the ways to go under which they do."""
        ego = encounter.ego
        one = corridor(ego_way.x_m, ego_way.y_m, ego_way.heading_rad, ego.length_m, ego.width_m, beyond_m)
        other = corridor(
            object_way.x_m, object_way.y_m, object_way.heading_rad, encounter.length_m, encounter.width_m, beyond_m
        )
        found = crossing(one, other, ego.length_m, encounter.length_m, self._least_sine)
        ego_path = ego_way.turning_on()
        object_path = object_way.turning_on()
        if ego_path is None and object_path is None:
            return found, 0.0 if found is None else 1.0
        tight = (ego_path is not None and self._is_tight(encounter.ego_now)) or (
            object_path is not None and self._is_tight(encounter.object)
        )
        if found is None and not tight:
            return None, 0.0
        if ego_path is not None:
            one = corridor(*ego_path, ego.length_m, ego.width_m, beyond_m)
        if object_path is not None:
            other = corridor(*object_path, encounter.length_m, encounter.width_m, beyond_m)
        turned = crossing(one, other, ego.length_m, encounter.length_m, self._least_sine)
        goes_on = JUNCTION_SHARE if tight else 0.5
        share = (0.0 if turned is None else goes_on) + (0.0 if found is None else 1.0 - goes_on)
        return found or turned, share

    def _is_tight(self, motion: Motion) -> bool:
        return motion.speed_mps < self._junction_m * abs(motion.yaw_rate_rps)


@operator("vehicle.arrival", version="1", inputs={"encounter": ENCOUNTER}, output=ENCOUNTER)
class Arrival:
    """O16: when each vehicle enters and leaves the zone -> passage [s], from uniformly accelerated motion.

    t = (-v + sqrt(v^2 + 2 a s)) / a; written 2 s / (v + sqrt(v^2 + 2 a s)), which is s / v for a = 0. Infinity where it
    never comes there (v^2 + 2 a s < 0: it stops before; or it stands). 0 for s <= 0: it is there. Absent without zone.
    """

    def __call__(self, encounter: Encounter) -> Encounter:
        """The encounter with its passage, if it has a zone."""
        out = Encounter()
        out.CopyFrom(encounter)
        if encounter.HasField("zone"):
            zone, ego, other = encounter.zone, encounter.ego_now, encounter.object
            out.passage.CopyFrom(
                Passage(
                    ego_in_s=arrival_s(zone.ego_in_m, ego.speed_mps, ego.acceleration_mps2),
                    ego_out_s=arrival_s(zone.ego_out_m, ego.speed_mps, ego.acceleration_mps2),
                    object_in_s=arrival_s(zone.object_in_m, other.speed_mps, other.acceleration_mps2),
                    object_out_s=arrival_s(zone.object_out_m, other.speed_mps, other.acceleration_mps2),
                )
            )
        return out


@operator("vehicle.encroachment", version="1", inputs={"encounter": ENCOUNTER}, output=ENCOUNTER)
class Encroachment:
    """O17: post-encroachment time PET = max(t_in) - min(t_out) [s] -> pet_s, and time to collision -> ttc_s.

    PET > 0: so long after one has left does the other one enter; PET <= 0: both are in the zone at once, which
    begins at TTC = max(t_in). PET is infinite without a zone or where one of them never enters it, minus infinity where
    both stop in it; TTC is infinite for PET > 0. (Allen, Shin, Cooper 1978; Hayward 1972; here both are predicted.)
    """

    def __call__(self, encounter: Encounter) -> Encounter:
        """The encounter with PET and TTC."""
        out = Encounter()
        out.CopyFrom(encounter)
        out.pet_s, out.ttc_s = inf, inf
        if encounter.HasField("passage"):
            when = encounter.passage
            both_in_s = max(when.ego_in_s, when.object_in_s)
            if not isinf(both_in_s):
                out.pet_s = both_in_s - min(when.ego_out_s, when.object_out_s)
                out.ttc_s = both_in_s if out.pet_s <= 0.0 else inf
        return out


@operator("vehicle.deceleration", version="1", inputs={"encounter": ENCOUNTER}, output=ENCOUNTER)
class Deceleration:
    """O18: the deceleration with which the ego would just stop before the zone -> drac_mps2 [m/s2].

    DRAC = v^2 / (2 (s_in - v t_act)), after `t_act_s` at its present speed (Cooper and Ferguson 1976; over 3.35 m/s2 a
    conflict counts as serious, Archer 2005). Infinity for 0 < s_in <= v t_act: no braking keeps it out, though it still
    makes the blow weaker. 0 where it is in the zone already (there, braking is the wrong thing to do), where it stands,
    where there is no zone, or PET > 0 (nobody has to brake).
    """

    def __init__(self, t_act_s: float = 0.2) -> None:
        if t_act_s < 0.0:
            raise ValueError(f"t_act_s is {t_act_s:g}; it must not be below 0")
        self._t_act_s = t_act_s

    def __call__(self, encounter: Encounter) -> Encounter:
        """The encounter with its DRAC."""
        out = Encounter()
        out.CopyFrom(encounter)
        out.drac_mps2 = 0.0
        if encounter.HasField("zone") and encounter.pet_s <= 0.0:
            out.drac_mps2 = stopping_mps2(encounter.ego_now.speed_mps, encounter.zone.ego_in_m, self._t_act_s)
        return out


def arrival_s(way_m: float, speed_mps: float, acceleration_mps2: float) -> float:
    """Seconds until a vehicle has gone `way_m`: 0 where that is not above 0, infinity where it never does (see O16)."""
    if way_m <= 0.0:
        return 0.0
    speed = max(speed_mps, 0.0)
    square = speed * speed + 2.0 * acceleration_mps2 * way_m
    if square < 0.0:
        return inf
    divisor = speed + sqrt(square)
    return 2.0 * way_m / divisor if divisor > 0.0 else inf


def stopping_mps2(speed_mps: float, way_m: float, t_act_s: float) -> float:
    """Deceleration that stops within `way_m`, begun after `t_act_s`; infinity where that is too late, 0 for a vehicle
    that stands or has no way left (see O18)."""
    if speed_mps <= 0.0 or way_m <= 0.0:
        return 0.0
    left_m = way_m - speed_mps * t_act_s
    return speed_mps * speed_mps / (2.0 * left_m) if left_m > 0.0 else inf


class _Way(NamedTuple):
    """A predicted path of n points: where its centres are, and how long its steps are, shape (n - 1,)."""

    x_m: Array
    y_m: Array
    heading_rad: float
    steps_m: Array
    path: Path

    @property
    def share(self) -> float:
        return self.path.share

    def out_of_reach(self, other: _Way, margins_m: float) -> bool:
        """Whether the two never come as near as that, in whichever directions their steps go."""
        apart_m = hypot(self.x_m[0] - other.x_m[0], self.y_m[0] - other.y_m[0])
        return apart_m > float(self.steps_m.sum()) + float(other.steps_m.sum()) + margins_m

    def turning_on(self) -> tuple[Array, Array, float] | None:
        """x, y, heading now of a path of the same steps that keeps its present curvature, up to a right angle in all;
        None for a path that begins straight, or does not begin. The present curvature is continued from those of two
        steps."""
        if len(self.x_m) < 3 or not self.path.free:
            return None
        heading, steps = self.heading_rad, self.steps_m
        first, second = (wrap(self.path.heading_rad[k + 1] - self.path.heading_rad[k]) for k in (0, 1))
        if first == 0.0 or min(steps[0], steps[1]) <= 0.0:
            return None
        bend = 1.5 * first / steps[0] - 0.5 * second / steps[1]
        way = _summed(steps)
        middle = heading + np.minimum(np.maximum(bend * (way[:-1] + way[1:]) / 2, -pi / 2), pi / 2)
        x, y = self.x_m[0] + _summed(steps * np.cos(middle)), self.y_m[0] + _summed(steps * np.sin(middle))
        return x, y, heading


def _ways(paths: Sequence[Path]) -> list[_Way]:
    """Those that have points."""
    return [_way(path) for path in paths if len(path.x_m)]


def _way(path: Path) -> _Way:
    n = len(path.x_m)
    x, y = _array(path.x_m, n), _array(path.y_m, n)
    return _Way(x, y, path.heading_rad[0], np.hypot(x[1:] - x[:-1], y[1:] - y[:-1]), path)


def _summed(steps: Array) -> Array:
    """0, and the sum up to each step."""
    out = np.zeros(len(steps) + 1)
    steps.cumsum(out=out[1:])
    return out


def _array(values: Iterable[float], n: int) -> Array:
    return np.fromiter(values, np.float64, n)
