"""Ground truth of recorded vehicles, from their motion alone. Nothing here knows a warning.

Everything follows from one table per pair of vehicles: does the one's box as it stood at t overlap the other's box as
it stood at u? (separating axes, instants every `step_s`).

- **Post-encroachment time** (Allen et al. 1978): the least |u - t| of all overlapping entries: some point of the road
  was left by the one and entered by the other that much later. 0: the boxes overlapped at one instant. Too large by
  less than two steps, never too small.
- **Needed deceleration** of a vehicle at t: the least constant deceleration on its own recorded path with which it
  never runs into the other one, which moves as recorded; 0 if keeping its speed does. **TTC** at t (Hayward 1972):
  when it runs into it if it keeps its speed. To run into: when the boxes first touch, the other's centre is ahead of
  one's own; being run into from behind is not one's own to avoid by braking. Both look back on the other's real motion:
  they are what was needed, not what a driver could know. Nothing is assumed about what comes after the recording.

A conflict is one of two things:

- crossing: some ground was shared within `pet_s` at an angle of more than `angle_rad`; 30 degrees separate it from
  following and merging, as in FHWA's Surrogate Safety Assessment Model (2008). Either one may be the ego;
- closing: the ego needed `deceleration_mps2` or more (3.35, Archer 2005; Cooper and Ferguson 1976) in every instant
  of at least `sustained_s`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import inf, pi, radians
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sim_vehicles.world.motion import Motion, Track

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Kind = Literal["crossing", "closing"]
Judgement = Literal["true", "false", "undecidable"]

STRONGEST_MPS2 = 12.0  # no road vehicle brakes harder: where more is needed, this is given
FINENESS_MPS2 = 0.05  # of needed decelerations
NEAR_STANDSTILL_MPS = 1.0  # below walking pace the noise of recorded boxes is larger than the gap of a queue


@dataclass(frozen=True)
class Limits:
    """What counts as a conflict, and for how long after a warning one is looked for."""

    pet_s: float = 1.5
    angle_rad: float = radians(30)
    deceleration_mps2: float = 3.35
    sustained_s: float = 0.5
    horizon_s: float = 8.0
    step_s: float = 0.05


@dataclass(frozen=True)
class Encounter:
    """Two vehicles over the same ground.

    `pet_s`: the least over all of it. `across_s`: the least over what they passed at an angle of more than
    `Limits.angle_rad` and within `Limits.pet_s`, infinity if there is none. `at_s`: the second enters what gave
    `across_s` (without: `pet_s`); `first`, `second` are meant there. `angle_rad`: the largest, 0 to pi, over all ground
    shared within `Limits.pet_s` (without: where the PET is least), each between one's heading and the other's path
    beside it.
    """

    first: str
    second: str
    pet_s: float
    across_s: float
    at_s: float
    angle_rad: float


@dataclass(frozen=True)
class Conflict:
    """From the ego's side. From `from_s` to `until_s` for closing; both the instant `Encounter.at_s` for crossing."""

    ego: str
    other: str
    kind: Kind
    from_s: float
    until_s: float
    pet_s: float = inf
    angle_rad: float = 0.0
    deceleration_mps2: float = 0.0  # the largest needed
    ttc_s: float = inf  # the least


@dataclass(frozen=True)
class Course:
    """A vehicle's recorded motion: arrays of one length, the k-th entry at (first + k) * step_s."""

    id: str
    first: int
    half_length_m: float
    half_width_m: float
    x_m: Floats
    y_m: Floats
    heading_rad: Floats
    speed_mps: Floats
    way_m: Floats  # along its path since its first instant

    def __len__(self) -> int:
        return len(self.x_m)


def conflicts(motion: Motion, limits: Limits | None = None) -> list[Conflict]:
    """Every conflict of a recording, each once per ego, in order of time."""
    limits = limits or Limits()
    courses = [one for name in sorted(motion.tracks) for one in sampled(motion.tracks[name], limits.step_s)]
    found = [conflict for one, other in combinations(courses, 2) for conflict in _of_pair(one, other, limits)]
    return sorted(found, key=lambda conflict: (conflict.from_s, conflict.ego, conflict.other))


def judged(at_s: float, pair: list[Conflict], known_until_s: float, limits: Limits) -> Judgement:
    """What a warning at `at_s` was; `pair`: the conflicts of its ego with its object.

    true: one of them ends after the warning and begins within the horizon. Else false if both vehicles are recorded to
    the end of the horizon (`known_until_s`: the last instant that has both), else undecidable.
    """
    until_s = at_s + limits.horizon_s
    if any(one.until_s > at_s and one.from_s <= until_s for one in pair):
        return "true"
    return "false" if known_until_s >= until_s else "undecidable"


def sampled(track: Track, step_s: float) -> list[Course]:
    """The track on common instants; one course per stretch without a gap (usually one)."""
    begin_s, end_s = track.states[0].t_s, track.states[-1].t_s
    instants = range(round(begin_s / step_s), round(end_s / step_s) + 1)
    states = [(k, track.at(min(max(k * step_s, begin_s), end_s))) for k in instants]
    stretches: list[list[int]] = []
    there = {k: state for k, state in states if state is not None}
    for k in there:
        if not stretches or stretches[-1][-1] != k - 1:
            stretches.append([])
        stretches[-1].append(k)
    courses = []
    for ks in stretches:
        x = np.array([there[k].x_m for k in ks])
        y = np.array([there[k].y_m for k in ks])
        heading = np.array([there[k].heading_rad for k in ks])
        speed = np.array([abs(there[k].speed_mps) for k in ks])
        way = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
        courses.append(Course(track.id, ks[0], track.length_m / 2, track.width_m / 2, x, y, heading, speed, way))
    return courses


def overlaps(one: Course, other: Course) -> Bools:
    """(n, m): the one at its i-th instant against the other at its j-th: do the boxes share more than a border?"""
    result = np.zeros((len(one), len(other)), dtype=np.bool_)
    reach = np.hypot(one.half_length_m, one.half_width_m) + np.hypot(other.half_length_m, other.half_width_m)
    if any(
        a.max() + reach < b.min() or b.max() + reach < a.min() for a, b in ((one.x_m, other.x_m), (one.y_m, other.y_m))
    ):
        return result
    dx, dy = other.x_m[None, :] - one.x_m[:, None], other.y_m[None, :] - one.y_m[:, None]
    i, j = np.nonzero(dx * dx + dy * dy < reach * reach)
    near_x, near_y = dx[i, j], dy[i, j]
    turn = other.heading_rad[j] - one.heading_rad[i]
    c, s = np.abs(np.cos(turn)), np.abs(np.sin(turn))
    hit = np.ones(len(i), dtype=np.bool_)
    for own, foreign, heading in ((one, other, one.heading_rad[i]), (other, one, other.heading_rad[j])):
        along = np.abs(near_x * np.cos(heading) + near_y * np.sin(heading))
        across = np.abs(near_y * np.cos(heading) - near_x * np.sin(heading))
        hit &= along < own.half_length_m + foreign.half_length_m * c + foreign.half_width_m * s
        hit &= across < own.half_width_m + foreign.half_length_m * s + foreign.half_width_m * c
    result[i[hit], j[hit]] = True
    return result


def ahead(ego: Course, other: Course) -> Bools:
    """(n, m): is the other's centre at its j-th instant ahead of the ego's centre at its i-th, along its heading?"""
    c, s = np.cos(ego.heading_rad)[:, None], np.sin(ego.heading_rad)[:, None]
    along = (other.x_m[None, :] - ego.x_m[:, None]) * c + (other.y_m[None, :] - ego.y_m[:, None]) * s
    return np.asarray(along > 0.0)


def encounter(one: Course, other: Course, table: Bools, limits: Limits) -> Encounter | None:
    """The encounter of a pair, from their `overlaps` table. None where they share no ground."""
    i, j = np.nonzero(table)
    if not len(i):
        return None
    apart = np.abs(one.first + i - other.first - j)
    later = np.maximum(one.first + i, other.first + j)
    angle = np.maximum(_off_path(one, other)[i], _off_path(other, one)[j])
    soon = apart * limits.step_s <= limits.pet_s + 1e-9
    least = int(np.lexsort((later, apart))[0])
    across = soon & (angle > limits.angle_rad)
    met = int(np.lexsort((later, np.where(across, apart, np.iinfo(np.int64).max)))[0]) if across.any() else least
    first, second = (one.id, other.id) if one.first + i[met] <= other.first + j[met] else (other.id, one.id)
    steepest = float(angle[soon].max()) if soon.any() else float(angle[least])
    times = (float(apart[least]), float(apart[met]), float(later[met]))
    pet_s, across_s, at_s = (steps * limits.step_s for steps in times)
    return Encounter(first, second, pet_s, across_s if across.any() else inf, at_s, steepest)


def _off_path(one: Course, other: Course) -> Floats:
    """At each instant of the one: the angle (0 to pi) between its heading and the other's path where that is nearest.

    Beside the path, not at the overlapping instant: who follows round a bend is on the leader's path with his whole
    length, though the two headings differ at any one time.
    """
    away2 = (one.x_m[:, None] - other.x_m[None, :]) ** 2 + (one.y_m[:, None] - other.y_m[None, :]) ** 2
    turn = one.heading_rad - other.heading_rad[np.argmin(away2, axis=1)]
    return np.asarray(np.abs((turn + pi) % (2 * pi) - pi))


def needed(ego: Course, other: Course, table: Bools, step_s: float) -> tuple[Floats, Floats]:
    """(needed deceleration in m/s2, TTC in s or infinity) at each of the ego's instants; `table`: their `overlaps`."""
    deceleration, ttc = np.zeros(len(ego)), np.full(len(ego), inf)
    if not table.any():
        return deceleration, ttc
    front = table & ahead(ego, other)
    for k in np.nonzero(ego.speed_mps >= NEAR_STANDSTILL_MPS)[0]:
        hit = _first_hit(ego, other, table, front, int(k), np.array([0.0]), step_s)[0]
        if hit == inf:
            continue
        ttc[k] = hit
        tried = np.arange(FINENESS_MPS2, STRONGEST_MPS2 + FINENESS_MPS2 / 2, FINENESS_MPS2)
        safe = _first_hit(ego, other, table, front, int(k), tried, step_s) == inf
        deceleration[k] = tried[int(np.argmax(safe))] if safe.any() else STRONGEST_MPS2
    return deceleration, ttc


def _first_hit(
    ego: Course, other: Course, table: Bools, front: Bools, k: int, braking: Floats, step_s: float
) -> Floats:
    """For each constant deceleration from the ego's k-th instant: seconds until it runs into the other, or infinity."""
    begin = max(ego.first + k, other.first) - other.first
    if begin >= len(other):
        return np.full(len(braking), inf)
    columns = np.arange(begin, len(other))
    tau_s = (columns + other.first - ego.first - k)[None, :] * step_s
    stops_s = np.divide(ego.speed_mps[k], braking, out=np.full(len(braking), inf), where=braking > 0)
    rolls_s = np.minimum(tau_s, stops_s[:, None])
    place_m = ego.way_m[k] + ego.speed_mps[k] * rolls_s - braking[:, None] * rolls_s * rolls_s / 2
    rows = np.clip(np.searchsorted(ego.way_m, place_m, side="right") - 1, k, len(ego) - 1)
    touch = table[rows, columns[None, :]] & (place_m <= ego.way_m[-1])
    contact = np.argmax(touch, axis=1)
    each = np.arange(len(braking))
    hit = touch[each, contact] & front[rows[each, contact], columns[contact]]
    return np.where(hit, tau_s[0, contact], inf)


def _of_pair(one: Course, other: Course, limits: Limits) -> Iterator[Conflict]:
    table = overlaps(one, other)
    met = encounter(one, other, table, limits)
    if met is None:
        return
    for ego, against, of_ego in ((one, other, table), (other, one, table.T)):
        deceleration, ttc = needed(ego, against, of_ego, limits.step_s)
        if met.across_s < inf:
            most, least = float(deceleration.max()), float(ttc.min())
            at = (met.at_s, met.at_s, met.pet_s, met.angle_rad, most, least)
            yield Conflict(ego.id, against.id, "crossing", *at)
        for begin, end in _stretches(deceleration >= limits.deceleration_mps2, limits):
            begin_s, end_s = (ego.first + begin) * limits.step_s, (ego.first + end - 1) * limits.step_s
            most, least = float(deceleration[begin:end].max()), float(ttc[begin:end].min())
            yield Conflict(ego.id, against.id, "closing", begin_s, end_s, met.pet_s, met.angle_rad, most, least)


def _stretches(over: Bools, limits: Limits) -> Iterator[tuple[int, int]]:
    """[begin, end) of runs that last at least `sustained_s`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], over, [False]]).astype(np.int8)))
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        if (end - begin - 1) * limits.step_s >= limits.sustained_s - 1e-9:
            yield int(begin), int(end)
