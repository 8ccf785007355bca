"""Faults of a whole recording: axes that are exchanged or turned, and speeds with the other sign. No row can be left
out to mend one, so it is refused.

The way that a vehicle's places say it goes is held against the one that its headings say, over the stretches in which
it drives. A vehicle that backs up has a negative speed: its heading is against its way.
"""

from __future__ import annotations

from math import degrees, pi
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim_vehicles.errors import bad_input
from sim_vehicles.readers.batches import Floats, wrapped
from sim_vehicles.readers.records import Driving, Indices, Records

MAX_TURN_RAD = pi / 4  # of the way against the heading: bends and noise are below, a wrong axis is above
MIN_SPEED_MPS = 2.0  # noise of places turns what is slower
MAX_SPAN_S = 2.0  # a bend turns what takes longer
NOTED_SHARE, MAX_SHARE = 0.1, 0.5  # of the vehicles that move
CLEAR_SHARE = 0.8  # of the rows of the wrong vehicles, that a cause explains to be named
LIKE_SHARE = 0.95  # of what the best cause explains: a likelier one that explains so much is named instead

Bools = NDArray[np.bool_]


class Cause(NamedTuple):
    """Something wrong with which vehicles go along sign * heading + turn."""

    sign: int
    turn_rad: float
    text: str
    remedy: str


CAUSES = (  # the likely ones first: where all roads lie along an axis several fit
    Cause(
        -1,
        pi / 2,
        "x and y look swapped",
        "exchange the two columns (or make the headings pi/2 - heading, if these count clockwise from north)",
    ),
    Cause(-1, 0.0, "y looks mirrored, as in pictures", "change its sign (or that of the headings)"),
    Cause(-1, pi, "x looks mirrored", "change its sign (or make the headings pi - heading)"),
    Cause(1, pi / 2, "the headings look turned, as if they counted from north", "add pi/2 to them (0 is east)"),
    Cause(1, -pi / 2, "the headings look turned, as if they counted from south", "subtract pi/2 from them (0 is east)"),
)
REVERSED = Cause(1, pi, "the headings look turned by half a turn", "add pi to them (they say where the front points)")
NEGATED = Cause(1, pi, "the speeds look negated", "change their sign (below 0 is a vehicle that backs up)")
UNCLEAR = Cause(
    1, 0.0, "the headings do not go with the places", "record where the fronts point (0 east, counter-clockwise)"
)


class _Ways(NamedTuple):
    """Of each stretch its vehicle, how many rows it stands for, where the vehicle goes by its places (that is against
    its heading if its speed is below 0) and by its heading, and whether the two differ."""

    vehicle: Indices
    rows: Indices
    way_rad: Floats
    heading_rad: Floats
    differs: Bools
    backwards: Bools


def check(path: Path, records: Records, driving: Driving) -> str | None:
    """Holds the headings against the motion.

    BadInputError where they disagree for more than `MAX_SHARE` of the vehicles and one cause explains it: it names the
    line of the first such vehicle, the cause, how many rows show it, and the mend. From `NOTED_SHARE` on, and where no
    cause is clear, that is the note that is returned.
    """
    ways = _ways(records, driving)
    n = len(records.ids)
    rows, differing = (np.bincount(ways.vehicle, counts, n) for counts in (ways.rows, ways.rows * ways.differs))
    wrong = differing > rows / 2
    share = wrong.sum() / max(1, np.count_nonzero(rows))
    if share < NOTED_SHARE:
        return None
    cause = _cause(ways, wrong[ways.vehicle])
    first = int(np.argmax(wrong))
    shows = int(np.flatnonzero((ways.vehicle == first) & ways.differs)[0])
    angles = [degrees(float(each[shows])) for each in (ways.way_rad, ways.heading_rad)]
    text = (
        f"{cause.text}: {differing.sum():.0f} of the {rows.sum():.0f} rows of moving vehicles go another way than "
        f"their heading (vehicle {records.ids[first]}: to {angles[0]:.0f}, heading {angles[1]:.0f} degrees)"
    )
    if share <= MAX_SHARE or cause is UNCLEAR:
        return f"{path}:{records.line[first]}: {text}; {cause.remedy}"
    raise bad_input(
        "wrong_direction",
        text,
        f"{cause.remedy}; leaving out rows cannot mend it",
        subject=records.ids[first],
        file=path,
        line=records.line[first],
    )


def _ways(records: Records, driving: Driving) -> _Ways:
    """Of the stretches that are fast and short enough to have a direction."""
    span_s = records.t_s[driving.end] - records.t_s[driving.begin]
    at = (driving.way_m >= MIN_SPEED_MPS * span_s) & (span_s <= MAX_SPAN_S)
    begin, end = driving.begin[at], driving.end[at]
    backwards = driving.signed_m[at] < 0
    course_rad = np.arctan2(records.y_m[end] - records.y_m[begin], records.x_m[end] - records.x_m[begin])
    way_rad, heading_rad = wrapped(course_rad + pi * backwards), records.heading_rad[(begin + end) // 2]
    differs = np.abs(wrapped(way_rad - heading_rad)) > MAX_TURN_RAD
    return _Ways(driving.vehicle[at], end - begin, way_rad, heading_rad, differs, backwards)


def _cause(ways: _Ways, wrong: Bools) -> Cause:
    """The likeliest cause of what the vehicles at `wrong` do; `UNCLEAR` where none explains it."""
    of_all = ways.rows[wrong].sum()
    backwards = ways.rows[wrong & ways.backwards].sum() > of_all / 2
    causes = (NEGATED, *CAUSES) if backwards else (*CAUSES, REVERSED)
    explained = [
        ways.rows[wrong & (np.abs(wrapped(ways.way_rad - expected)) <= MAX_TURN_RAD)].sum()
        for expected in (one.sign * ways.heading_rad + one.turn_rad for one in causes)
    ]
    best = max(explained)
    if best < CLEAR_SHARE * of_all:
        return UNCLEAR
    return next(cause for cause, rows in zip(causes, explained, strict=True) if rows >= LIKE_SHARE * best)
