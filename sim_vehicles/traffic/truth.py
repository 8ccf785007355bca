"""Ground truth of recorded vehicles, from their motion alone. Nothing here knows a warning.

Everything follows from what ground two vehicles share: does the one's box as it stood at t overlap the other's box as
it stood at u? (separating axes, instants every `step_s`).

- **Post-encroachment time** (Allen et al. 1978): the least |u - t| of all overlapping pairs: some point of the road
  was left by the one and entered by the other that much later. 0: the boxes overlapped at one instant. Too large by
  less than two steps, never too small.
- **Crossing angle**: asked only of motion that can have been driven (`traffic.drivable_motion`).
- **Needed deceleration** of a vehicle at t: the least constant deceleration on its own recorded path with which it
  does not run into the other one, which moves as recorded, within `ahead_s`; 0 if keeping its speed does. **TTC** at t
  (Hayward 1972): when it runs into it if it keeps its speed. To run into: when the boxes first touch, the other's
  centre is ahead of one's own; being run into from behind is not one's own to avoid by braking. TTC also counts a first
  touch at a crossing angle behind one's centre: whose tail is struck at its present speed is on a collision course,
  though braking is not what avoids it. Both look back on the other's real motion: they are what was needed, not what a
  driver could know. Nothing is assumed about what comes after the recording.

A conflict is one of two things:

- crossing: some ground was shared within `pet_s` at a crossing angle (`world.crossing_angle`: 30 to 150 degrees).
  Either one may be the ego;
- closing: the ego needed `deceleration_mps2` or more (3.35, Archer 2005; Cooper and Ferguson 1976) in every instant
  of at least `sustained_s`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import inf
from typing import Literal

import numpy as np

from sim_vehicles.traffic.drivable_motion import drivable
from sim_vehicles.traffic.neighbours import Neighbourhood
from sim_vehicles.traffic.shared_ground import (
    MOST_ENTRIES,
    Bools,
    Course,
    Floats,
    Indices,
    SharedGround,
    ahead,
    overlaps,
    sampled,
    wrapped,
)
from sim_vehicles.world.crossing_angle import LEAST_RAD, MOST_RAD
from sim_vehicles.world.motion import Motion

Kind = Literal["crossing", "closing"]
Judgement = Literal["true", "false", "undecidable"]

STRONGEST_MPS2 = 12.0  # no road vehicle brakes harder: where more is needed, this is given
FINENESS_MPS2 = 0.05  # of needed decelerations
TRIED_MPS2 = np.arange(FINENESS_MPS2, STRONGEST_MPS2 + FINENESS_MPS2 / 2, FINENESS_MPS2)
PARTS_MPS2 = np.split(TRIED_MPS2, [20, 67])  # up to 1 and 3.35: the weak ones mostly do
KEEPING_SPEED = np.array([0.0])
TOGETHER = 200  # instants of an ego that are looked at at once
COURSES_AT_HAND = 256
NEAR_STANDSTILL_MPS = 1.0  # below walking pace the noise of recorded boxes is larger than the gap of a queue


@dataclass(frozen=True)
class Limits:
    """What counts as a conflict, and for how long after a warning one is looked for. `ahead_s`: how far ahead an ego is
    asked what it would run into; with 3.35 m/s2, 67 m/s come to a stop in that time."""

    pet_s: float = 1.5
    deceleration_mps2: float = 3.35
    sustained_s: float = 0.5
    horizon_s: float = 8.0
    ahead_s: float = 20.0
    step_s: float = 0.05


@dataclass(frozen=True)
class Encounter:
    """Two vehicles over the same ground.

    `pet_s`: the least over all of it. `across_s`: the least over what they passed at a crossing angle and within
    `Limits.pet_s`, infinity if there is none. `at_s`: the second enters what gave `across_s` (without: `pet_s`);
    `first`, `second` are meant there. `angle_rad`: the largest, 0 to pi, over all ground that gave `across_s` (without:
    that is shared within `Limits.pet_s`, or where the PET is least), each between one's heading and the other's path
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
    ttc_at_s: float = inf  # when it is that; infinity where the ego runs into nothing


def conflicts(motion: Motion, limits: Limits | None = None, egos: Iterable[str] | None = None) -> list[Conflict]:
    """Every conflict of the egos (None: of all), each once per ego, in order of time. Others are looked at only where
    they come over the ego's path."""
    limits = limits or Limits()
    chosen = set(motion.tracks if egos is None else egos)
    neighbourhood = Neighbourhood(motion)
    pairs = {
        (min(ego, other), max(ego, other))
        for ego in chosen
        for other in neighbourhood.on_path(ego, limits.pet_s, limits.ahead_s)
    }
    courses = lru_cache(COURSES_AT_HAND)(lambda name: sampled(motion.tracks[name], limits.step_s))
    found = [
        conflict
        for first, second in sorted(pairs)
        for one, other in product(courses(first), courses(second))
        for conflict in _of_pair(one, other, limits)
        if conflict.ego in chosen
    ]
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


def encounter(one: Course, other: Course, shared: SharedGround, limits: Limits) -> Encounter | None:
    """The encounter of a pair, from what ground they share. None where they share none."""
    i, j = shared
    if not len(i):
        return None
    apart = np.abs(one.first + i - other.first - j)
    later = np.maximum(one.first + i, other.first + j)
    least = int(np.lexsort((later, apart))[0])
    soon = apart * limits.step_s <= limits.pet_s + 1e-9
    asked = soon.copy()
    asked[least] = True
    angle = np.zeros(len(i))
    driven = drivable(one, limits.step_s), drivable(other, limits.step_s)
    off_other, off_one = (_off_path(one, other, i[asked], *driven), _off_path(other, one, j[asked], *driven[::-1]))
    angle[asked] = np.maximum(off_other, off_one)
    across = soon & (angle > LEAST_RAD) & (angle < MOST_RAD)
    met = int(np.lexsort((later, np.where(across, apart, np.iinfo(np.int64).max)))[0]) if across.any() else least
    first, second = (one.id, other.id) if one.first + i[met] <= other.first + j[met] else (other.id, one.id)
    among = across if across.any() else soon
    steepest = float(angle[among].max()) if among.any() else float(angle[least])
    times = (float(apart[least]), float(apart[met]), float(later[met]))
    pet_s, across_s, at_s = (steps * limits.step_s for steps in times)
    return Encounter(first, second, pet_s, across_s if across.any() else inf, at_s, steepest)


def _off_path(one: Course, other: Course, at: Indices, one_driven: Bools, other_driven: Bools) -> Floats:
    """At these instants of the one: the angle (0 to pi) between its heading and the other's path where that is nearest.
    0 where either cannot have been driven as recorded.

    Beside the path, not at the overlapping instant: who follows round a bend is on the leader's path with his whole
    length, though the two headings differ at any one time.
    """
    asked, place = np.unique(at, return_inverse=True)
    parts = np.array_split(asked, 1 + len(asked) * len(other) // MOST_ENTRIES)
    nearest = [
        np.argmin(
            (one.x_m[part, None] - other.x_m[None, :]) ** 2 + (one.y_m[part, None] - other.y_m[None, :]) ** 2, axis=1
        )
        for part in parts
    ]
    beside = np.concatenate(nearest)
    turn = np.abs(wrapped(one.heading_rad[asked] - other.heading_rad[beside]))
    return np.where(one_driven[asked] & other_driven[beside], turn, 0.0)[place]


def needed(ego: Course, other: Course, shared: SharedGround, limits: Limits) -> tuple[Floats, Floats]:
    """(needed deceleration in m/s2, TTC in s or infinity) at each of the ego's instants."""
    deceleration, ttc = np.zeros(len(ego)), np.full(len(ego), inf)
    front = ahead(ego, other, shared)
    any_side = front | _at_crossing_angle(ego, other, shared)
    driven = np.flatnonzero(ego.speed_mps >= NEAR_STANDSTILL_MPS)
    for ks in (
        np.split(driven, np.flatnonzero(np.diff(driven // TOGETHER)) + 1) if len(shared.one) and len(driven) else []
    ):
        table = _Table(ego, other, shared, (front, any_side), ks, limits)
        if not table.touches:
            continue
        for k in ks.tolist():
            ttc[k] = table.first_hit(k, KEEPING_SPEED, table.any_side)[0]
            if ttc[k] < inf and table.first_hit(k, KEEPING_SPEED, table.front)[0] < inf:
                deceleration[k] = _least_safe(table, k)
    return deceleration, ttc


def _at_crossing_angle(ego: Course, other: Course, shared: SharedGround) -> Bools:
    """Of each pair of instants: do the two headings cross?"""
    turn = np.abs(wrapped(ego.heading_rad[shared.one] - other.heading_rad[shared.other]))
    return np.asarray((turn > LEAST_RAD) & (turn < MOST_RAD))


def _least_safe(table: _Table, k: int) -> float:
    """The weakest of `TRIED_MPS2` with which the ego runs into nothing."""
    for tried in PARTS_MPS2:
        safe = table.first_hit(k, tried, table.front) == inf
        if safe.any():
            return float(tried[int(np.argmax(safe))])
    return STRONGEST_MPS2


class _Table:
    """Which of the ego's places the other touches when, as far as it matters to the ego at some of its instants: from
    the first of these on its path, and until `ahead_s` after the last one."""

    def __init__(
        self,
        ego: Course,
        other: Course,
        shared: SharedGround,
        counted: tuple[Bools, Bools],
        ks: Indices,
        limits: Limits,
    ) -> None:
        self._ego = ego
        self._other = other
        self._step_s = limits.step_s
        self._ahead = round(limits.ahead_s / limits.step_s)
        self._row, apart = int(ks[0]), ego.first - other.first
        self._column = max(self._row + apart, 0)
        columns = min(int(ks[-1]) + apart + self._ahead + 1, len(other)) - self._column
        i, j = shared.one - self._row, shared.other - self._column
        at = (i >= 0) & (j >= 0) & (j < columns)
        i, j = i[at], j[at]
        self.touches = len(i) > 0
        if self.touches:
            self._table, self.front, self.any_side = np.zeros(
                (3, int(i.max()) + 2, columns), dtype=np.bool_
            )  # nothing in the last row
            self._table[i, j] = True
            self.front[i, j], self.any_side[i, j] = (each[at] for each in counted)

    def first_hit(self, k: int, braking: Floats, counted: Bools) -> Floats:
        """For each constant deceleration from the ego's k-th instant: seconds until it runs into the other, infinity
        where the first touch is none that is `counted` (`front`, `any_side`)."""
        ego, other = self._ego, self._other
        now = ego.first + k - other.first
        columns = np.arange(max(now, 0), min(now + self._ahead + 1, len(other)))
        if not len(columns):
            return np.full(len(braking), inf)
        tau_s = (columns - now)[None, :] * self._step_s
        stops_s = np.divide(ego.speed_mps[k], braking, out=np.full(len(braking), inf), where=braking > 0)
        rolls_s = np.minimum(tau_s, stops_s[:, None])
        place_m = ego.way_m[k] + ego.speed_mps[k] * rolls_s - braking[:, None] * rolls_s * rolls_s / 2
        rows = np.clip(np.searchsorted(ego.way_m, place_m, side="right") - 1, k, len(ego) - 1) - self._row
        rows, columns = np.minimum(rows, len(self._table) - 1), columns - self._column
        touch = self._table[rows, columns[None, :]] & (place_m <= ego.way_m[-1])
        contact = np.argmax(touch, axis=1)
        each = np.arange(len(braking))
        hit = touch[each, contact] & counted[rows[each, contact], columns[contact]]
        return np.where(hit, tau_s[0, contact], inf)


def _of_pair(one: Course, other: Course, limits: Limits) -> Iterator[Conflict]:
    shared = overlaps(one, other)
    met = encounter(one, other, shared, limits)
    if met is None:
        return
    for ego, against, of_ego in ((one, other, shared), (other, one, shared.swapped())):
        deceleration, ttc = needed(ego, against, of_ego, limits)
        if met.across_s < inf:
            most, least = float(deceleration.max()), float(ttc.min())
            at = (met.at_s, met.at_s, met.pet_s, met.angle_rad, most, least, _when(ego, ttc, 0, limits))
            yield Conflict(ego.id, against.id, "crossing", *at)
        for begin, end in _stretches(deceleration >= limits.deceleration_mps2, limits):
            begin_s, end_s = (ego.first + begin) * limits.step_s, (ego.first + end - 1) * limits.step_s
            most, least = float(deceleration[begin:end].max()), float(ttc[begin:end].min())
            at = (begin_s, end_s, met.pet_s, met.angle_rad, most, least, _when(ego, ttc[begin:end], begin, limits))
            yield Conflict(ego.id, against.id, "closing", *at)


def _when(ego: Course, ttc: Floats, begin: int, limits: Limits) -> float:
    """When the TTC is least; `ttc` from the ego's instant `begin` on."""
    least = int(np.argmin(ttc))
    return (ego.first + begin + least) * limits.step_s if ttc[least] < inf else inf


def _stretches(over: Bools, limits: Limits) -> Iterator[tuple[int, int]]:
    """[begin, end) of runs that last at least `sustained_s`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], over, [False]]).astype(np.int8)))
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        if (end - begin - 1) * limits.step_s >= limits.sustained_s - 1e-9:
            yield int(begin), int(end)
