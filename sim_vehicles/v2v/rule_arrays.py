"""The generation rules of `etsi`, for many stations in one call: they decide the same, message by message.

One thing comes on top: congestion control may ask for more time between two messages of a kind.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim_vehicles.v2v.etsi import BY_TIME, HEADING_RAD, LONGEST_NS, POSITION_M, SHORTEST_NS, SPEED_MPS
from sim_vehicles.world.motion_grid import Numbers, States, wrapped

NEVER_NS = -(2**62)

Flags = NDArray[np.bool_]


class Perceived(NamedTuple):
    """What stations perceive, a row per object, the rows of one station side by side. `by`: the station's place among
    those that check now."""

    by: Numbers
    whom: Numbers
    states: States


class CamRules:
    """The CAMs of n stations."""

    def __init__(self, n: int) -> None:
        self._sent_ns = np.full(n, NEVER_NS)
        self._sent = _nothing(n)
        self._interval_ns = np.full(n, LONGEST_NS)
        self._by_time = np.zeros(n, dtype=np.int64)

    def due(self, station: Numbers, at_ns: Numbers, states: States, least_ns: Numbers) -> Flags:
        """Which of the stations, each at its instant, generate a CAM; those then count as sent. least_ns: since the
        last one. A station that is not there (NaN) sends nothing."""
        since_ns = at_ns - self._sent_ns[station]
        first = self._sent_ns[station] == NEVER_NS
        moved = changed(self._sent.at(station), states)
        timed = ~moved & (since_ns >= self._interval_ns[station])
        ready = since_ns >= np.maximum(least_ns, SHORTEST_NS)
        due: Flags = ~np.isnan(states.x_m) & (first | (ready & (moved | timed)))
        self._count(station, due & ~first & moved, due & ~first & timed, since_ns)
        self._sent_ns[station[due]] = at_ns[due]
        _put(self._sent, station[due], states.at(due))
        return due

    def _count(self, station: Numbers, by_change: Flags, by_time: Flags, since_ns: Numbers) -> None:
        """An interval that a change made holds for `BY_TIME` messages more."""
        self._interval_ns[station[by_change]] = np.minimum(since_ns[by_change], LONGEST_NS)
        self._by_time[station[by_change]] = 0
        self._by_time[station[by_time]] += 1
        over = station[by_time & (self._by_time[station] >= BY_TIME)]
        self._interval_ns[over], self._by_time[over] = LONGEST_NS, 0


class CpmRules:
    """The CPMs of n stations about one another."""

    def __init__(self, n: int) -> None:
        self._last_ns = np.full(n, NEVER_NS)
        self._sent_ns = np.full((n, n), NEVER_NS)
        self._sent = _nothing((n, n))

    def due(self, station: Numbers, at_ns: Numbers, least_ns: Numbers, seen: Perceived) -> tuple[Flags, Flags]:
        """Which of the stations, each at its instant, generate a CPM, and which of the objects are in one; those then
        count as sent. least_ns: since the last one."""
        since_ns = at_ns - self._last_ns[station]
        ready = since_ns >= np.maximum(least_ns, SHORTEST_NS)
        pair = (station[seen.by], seen.whom)
        new = at_ns[seen.by] - self._sent_ns[pair] >= LONGEST_NS
        included: Flags = ready[seen.by] & (new | changed(self._sent.at(pair), seen.states))
        objects = np.bincount(seen.by[included], minlength=len(station))
        due: Flags = ready & ((objects > 0) | (since_ns >= LONGEST_NS))
        self._last_ns[station[due]] = at_ns[due]
        pair = (pair[0][included], pair[1][included])
        self._sent_ns[pair] = at_ns[seen.by[included]]
        _put(self._sent, pair, seen.states.at(included))
        return due, included


def changed(before: States, now: States) -> Flags:
    """As `etsi.changed`."""
    far: Flags = np.hypot(now.x_m - before.x_m, now.y_m - before.y_m) > POSITION_M
    far |= np.abs(now.speed_mps - before.speed_mps) > SPEED_MPS
    far |= np.abs(wrapped(now.heading_rad - before.heading_rad)) > HEADING_RAD
    return far


def _nothing(shape: int | tuple[int, int]) -> States:
    return States(*(np.full(shape, np.nan) for _ in States._fields))


def _put(into: States, index: Numbers | tuple[Numbers, Numbers], states: States) -> None:
    for values, new in zip(into, states, strict=True):
        values[index] = new
