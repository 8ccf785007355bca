"""Faults of a whole recording: a column in another unit. No row can be left out to mend one, so it is refused.

What a vehicle's speed says it drives is held against the way that its places say it drives, over windows of about 1 s:
so neither noise of a standing vehicle nor places that come less often than speeds count. The thresholds and their
reasons are in README.md beside this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import hypot, inf, isinf, log, pi
from pathlib import Path
from statistics import median, median_high, median_low
from typing import NamedTuple

from sim_vehicles.errors import bad_input
from sim_vehicles.world.motion import MAX_GAP_S, Motion, Track

MAX_HEADING_RAD = 4 * pi  # two turns
MAX_RATIO = 2.0  # of the way driven to what the speeds say, or the other way round
NOTED_RATIO = 1.5
WINDOW_S = 0.95
MIN_SPEED_MPS = 1.0
MIN_WAY_M = 20.0
UNITS = (  # way driven / way by the speeds, where one of the columns is in another unit
    (1 / 3.6, "the speeds look like km/h; divide them by 3.6"),
    (1 / 2.236936, "the speeds look like mph; divide them by 2.237"),
    (0.3048, "the speeds look like ft/s; multiply them by 0.3048"),
    (1 / 1.943844, "the speeds look like knots; divide them by 1.944"),
    (1e-2, "the speeds look like cm/s; divide them by 100"),
    (1 / 0.3048, "x and y look like feet; multiply them by 0.3048"),
    (3.6, "the speeds look divided by 3.6 once too often; multiply them by 3.6"),
    (1e2, "x and y look like centimetres; divide them by 100"),
    (1e3, "x and y look like millimetres; divide them by 1000"),
    (1e-3, "x and y look like kilometres; multiply them by 1000"),
    (1e-5, "x and y are degrees, not metres: project them; from SUMO, record without --fcd-output.geo"),
)
TIMES = (  # the same, where records lie more than 1 s apart as well; named in place of kilometres, which are rarer
    (1e-3, "the times look like milliseconds; divide them by 1000"),
    (1e-6, "the times look like microseconds; divide them by 1e6"),
    (1e-9, "the times look like nanoseconds; divide them by 1e9"),
)
ANY_UNIT = 1.25  # how near a ratio must be to one of `UNITS` to be called by its name
ANY_SCALE = 5.0  # to one of the coarse ones: a degree's length varies, and speeds may be in km/h besides


class Pace(NamedTuple):
    """One vehicle: the median of way driven / way by its speeds, the median time between its records."""

    id: str
    ratio: float
    step_s: float


def no_heading(name: str, heading_rad: float) -> str | None:
    """Why this cannot be a heading in radians, as a fault of the whole file; None where it can."""
    if abs(heading_rad) <= MAX_HEADING_RAD:
        return None
    return (
        f"{name} is {heading_rad:g}, over two turns (4 pi): that looks like degrees; convert the column to radians "
        "(0 east, counter-clockwise), within -pi to pi (leaving out rows cannot mend it)"
    )


def check(path: Path, motion: Motion, lines: Mapping[str, int]) -> None:
    """Holds the speeds against the motion. `lines`: the first line of each vehicle.

    BadInputError where they disagree by more than `MAX_RATIO` for the median vehicle: it names the line of the first
    such vehicle, the unit that the factor is of, and the mend. From `NOTED_RATIO` on it becomes one of motion.notes.
    """
    paces = [pace for track in motion.tracks.values() if (pace := _pace(track)) is not None]
    if not paces:
        return
    # Of an even number the middle one that is nearer to 1: more than half of the vehicles must be wrong.
    low, high = median_low(pace.ratio for pace in paces), median_high(pace.ratio for pace in paces)
    ratio = low if low > 1 else min(high, 1.0)
    if 1 / NOTED_RATIO <= ratio <= NOTED_RATIO:
        return
    first = next(pace for pace in paces if (pace.ratio >= ratio if ratio > 1 else pace.ratio <= ratio))
    said = (
        f"the vehicles drive {_times(ratio)} what their speeds say "
        f"(median of {len(paces)} that move; {first.id}: {_times(first.ratio)})"
    )
    cause = _cause(ratio, median(pace.step_s for pace in paces))
    if 1 / MAX_RATIO <= ratio <= MAX_RATIO:
        motion.notes.append(f"{path}:{lines[first.id]}: {said}: {cause}")
    else:
        text, _, mend = f"{said}: {cause} (leaving out rows cannot mend it)".partition("; ")
        raise bad_input("wrong_unit", text, mend, subject=first.id, file=path, line=lines[first.id])


def _pace(track: Track) -> Pace | None:
    """None where the vehicle does not move enough to tell."""
    steps = [b.t_s - a.t_s for a, b in pairwise(track.states)]
    if not steps:
        return None
    step_s = median(steps)
    moving = [
        (way_m, said_m)
        for span_s, way_m, said_m in _windows(track, max(MAX_GAP_S, 2 * step_s))
        if max(way_m, said_m) >= MIN_SPEED_MPS * span_s
    ]
    if not moving or max(_extent_m(track), sum(said_m for _, said_m in moving)) < MIN_WAY_M:
        return None
    return Pace(track.id, median(way_m / said_m if said_m else inf for way_m, said_m in moving), step_s)


def _windows(track: Track, longest_s: float) -> Iterator[tuple[float, float, float]]:
    """Seconds, metres driven and metres by the speeds of stretches of `WINDOW_S` or the next longer time, without the
    gaps longer than `longest_s`, in which the vehicle was away."""
    start, said_m = track.states[0], 0.0
    for before, state in pairwise(track.states):
        step_s = state.t_s - before.t_s
        if step_s > longest_s:
            start, said_m = state, 0.0
            continue
        said_m += (abs(before.speed_mps) + abs(state.speed_mps)) / 2 * step_s
        span_s = state.t_s - start.t_s
        if span_s >= WINDOW_S:
            yield span_s, hypot(state.x_m - start.x_m, state.y_m - start.y_m), said_m
            start, said_m = state, 0.0


def _extent_m(track: Track) -> float:
    """The diagonal of the box around all its places."""
    xs, ys = [state.x_m for state in track.states], [state.y_m for state in track.states]
    return hypot(max(xs) - min(xs), max(ys) - min(ys))


def _cause(ratio: float, step_s: float) -> str:
    """The unit whose factor is nearest to this ratio, and the mend."""
    if ratio == 0 or isinf(ratio):
        return f"{'the speeds' if ratio else 'x and y'} hardly change; record both places and speeds"
    known = (*TIMES, *UNITS) if step_s > MAX_GAP_S else UNITS
    factor, cause = min(known, key=lambda one: abs(log(ratio / one[0])))
    near = ANY_UNIT if 0.1 < factor < 10 else ANY_SCALE
    if _near(ratio, factor, near):
        return cause
    return "one of the columns has a wrong unit; they must be seconds, metres and metres per second"


def _near(ratio: float, factor: float, times: float) -> bool:
    return factor / times <= ratio <= factor * times


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times"
