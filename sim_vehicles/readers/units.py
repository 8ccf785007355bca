"""Faults of a whole recording: a column in another unit. No row can be left out to mend one, so it is refused.

What a vehicle's speed says it drives is held against the way that its places say it drives, over stretches of about
1 s: so neither noise of a standing vehicle nor places that come less often than speeds count. The thresholds and their
reasons are in docs/explanation/readers.md.
"""

from __future__ import annotations

from math import inf, isinf, log, pi
from pathlib import Path
from statistics import median, median_high, median_low
from typing import NamedTuple

import numpy as np

from sim_vehicles.errors import bad_input
from sim_vehicles.readers.records import Driving, Records, medians
from sim_vehicles.world.motion import MAX_GAP_S

MAX_HEADING_RAD = 4 * pi  # two turns
MAX_RATIO = 2.0  # of the way driven to what the speeds say, or the other way round
NOTED_RATIO = 1.5
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
    """One vehicle by its index: the median of way driven / way by its speeds, the median time between its records."""

    vehicle: int
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


def check(path: Path, records: Records, driving: Driving) -> str | None:
    """Holds the speeds against the motion.

    BadInputError where they disagree by more than `MAX_RATIO` for the median vehicle: it names the line of the first
    such vehicle, the unit that the factor is of, and the mend. From `NOTED_RATIO` on that is the note that is returned.
    """
    paces = _paces(records, driving)
    if not paces:
        return None
    # Of an even number the middle one that is nearer to 1: more than half of the vehicles must be wrong.
    low, high = median_low(pace.ratio for pace in paces), median_high(pace.ratio for pace in paces)
    ratio = low if low > 1 else min(high, 1.0)
    if 1 / NOTED_RATIO <= ratio <= NOTED_RATIO:
        return None
    first = next(pace for pace in paces if (pace.ratio >= ratio if ratio > 1 else pace.ratio <= ratio))
    name, line = records.ids[first.vehicle], records.line[first.vehicle]
    said = (
        f"the vehicles drive {_times(ratio)} what their speeds say "
        f"(median of {len(paces)} that move; {name}: {_times(first.ratio)})"
    )
    cause = _cause(ratio, median(pace.step_s for pace in paces))
    if 1 / MAX_RATIO <= ratio <= MAX_RATIO:
        return f"{path}:{line}: {said}: {cause}"
    text, _, mend = f"{said}: {cause} (leaving out rows cannot mend it)".partition("; ")
    raise bad_input("wrong_unit", text, mend, subject=name, file=path, line=line)


def _paces(records: Records, driving: Driving) -> list[Pace]:
    """Of the vehicles that move enough to tell."""
    way_m, said_m = driving.way_m, driving.said_m
    ratio = np.divide(way_m, said_m, out=np.full(len(way_m), inf), where=said_m > 0)
    of_each = medians(ratio, driving.vehicle, len(records.ids))
    return [Pace(k, float(of_each[k]), float(driving.step_s[k])) for k in driving.movers.tolist()]


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
