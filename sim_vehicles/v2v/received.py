"""What an ego hears of the broadcasts of a recording that it is placed in, as the query's V2V tuples.

The tuples are those of `stations.tuples` for the same messages; a tuple is made only if its message arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot
from typing import NamedTuple

import numpy as np

from sim_vehicles.v2v.broadcasts import KINDS, Broadcasts
from sim_vehicles.v2v.channel import IDEAL, Channel
from sim_vehicles.v2v.radio import of_itself
from sim_vehicles.v2v.stations import CAM
from sim_vehicles.world.motion import State, Track
from sim_vehicles.world.motion_grid import MotionGrid, Numbers
from sim_vehicles.world.placement import AS_RECORDED, Placement
from sim_vehicles.world.scene import Scenario
from sim_vehicles.world.sense import MS, OBJECT_AGE_MAX_MS, OBJECT_AGE_STEP_NS, Seen, Senses, Sent
from sim_vehicles.world.sight_grid import SightGrid

AT_ONCE = 1000  # messages that are looked at together
AGE_STEPS = OBJECT_AGE_MAX_MS * MS // OBJECT_AGE_STEP_NS


class Received(NamedTuple):
    """A tuple, and when the ego's radio gets it."""

    at_ns: int
    sent: Sent


class _Row(NamedTuple):
    """A tuple that arrives, its instants those of the recording."""

    message: int
    delay_ns: int
    who: int
    whom: int
    here: State
    there: State
    share: float
    age_ms: int


class Surroundings:
    """A recording and its broadcasts, around an ego that is not in it."""

    def __init__(
        self,
        broadcasts: Broadcasts,
        scenario: Scenario,
        seed: int,
        channel: Channel = IDEAL,
        placement: Placement = AS_RECORDED,
        first_number: int = 1,
    ) -> None:
        """placement: of the recording in the ego's scene, whose origin (degrees) is taken to be the recording's.
        first_number: of the recording's vehicles on the wire. ValueError if the broadcasts are of another recording."""
        if sorted(scenario.motion.tracks) != broadcasts.names.tolist():
            raise ValueError(f"these broadcasts are not of {scenario.motion.source}")
        self._broadcasts = broadcasts
        self._channel = channel
        self._placement = placement
        self._grid = MotionGrid(scenario.motion)
        self._sight = SightGrid(self._grid, scenario.scene)
        self._senses = Senses(scenario, seed, first_number=first_number)

    def received(self, ego: Track, begin_ns: int, until_ns: int) -> Iterator[Received]:
        """What an ego that drives so gets of what is sent from begin on, up to before until, in the order of sending.
        Instants are those of the ego's scene. Nothing is received while the ego is not there."""
        later_ns = self._placement.later_ns
        first, last = np.searchsorted(self._broadcasts.at_ns, [begin_ns - later_ns, until_ns - later_ns])
        for start in range(first, last, AT_ONCE):
            messages = np.arange(start, min(start + AT_ONCE, last))
            for row in self._rows(*self._arriving(messages, ego)):
                yield self._tuple(row)

    def _arriving(self, messages: Numbers, ego: Track) -> tuple[Numbers, Numbers]:
        """Those of the messages that the ego gets, and how much later than they are sent."""
        sent = self._broadcasts
        states = self._grid.at(sent.station[messages], sent.at_ns[messages])
        found = []
        for message, x_m, y_m in zip(messages.tolist(), states.x_m.tolist(), states.y_m.tolist(), strict=True):
            at_ns = int(sent.at_ns[message]) + self._placement.later_ns
            here = ego.at(at_ns / 1e9)
            if here is None:
                continue
            x, y = self._placement.point((x_m, y_m))
            station, kind = self._grid.names[sent.station[message]], KINDS[sent.kind[message]]
            away_m = hypot(x - here.x_m, y - here.y_m)
            delay_ns = self._channel.delay(self._senses.seed, station, at_ns, kind, away_m)
            if delay_ns is not None:
                found.append((message, delay_ns))
        both = np.array(found, dtype=np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def _rows(self, messages: Numbers, delay_ns: Numbers) -> Iterator[_Row]:
        """A row per object of these messages."""
        sent = self._broadcasts
        counts = sent.counts[messages]
        message = np.repeat(messages, counts)
        within = np.arange(len(message)) - np.repeat(np.cumsum(counts) - counts, counts)
        who, whom = sent.station[message], sent.objects[sent.first[message] + within]
        at_ns = sent.measured_ns[message]
        columns = (message, np.repeat(delay_ns, counts), who, whom)
        return map(
            _Row,
            *(column.tolist() for column in columns),
            self._grid.at(who, at_ns).each(at_ns),
            self._grid.at(whom, at_ns).each(at_ns),
            self._sight.shares(who, whom, at_ns).tolist(),
            self._ages_ms(who, whom, at_ns).tolist(),
        )

    def _ages_ms(self, who: Numbers, whom: Numbers, at_ns: Numbers) -> Numbers:
        """For how long each has perceived the other without a break, in steps of 100 ms."""
        back_ns = at_ns[:, None] - np.arange(1, AGE_STEPS + 1) * OBJECT_AGE_STEP_NS
        before = self._sight.perceived(np.repeat(who, AGE_STEPS), np.repeat(whom, AGE_STEPS), back_ns.ravel())
        unbroken = np.logical_and.accumulate(before.reshape(-1, AGE_STEPS), axis=1)
        steps: Numbers = unbroken.sum(1)
        return steps * (OBJECT_AGE_STEP_NS // MS)

    def _tuple(self, row: _Row) -> Received:
        sent, later_ns = self._broadcasts, self._placement.later_ns
        at_ns = int(sent.at_ns[row.message]) + later_ns
        measured_ns = int(sent.measured_ns[row.message]) + later_ns
        kind, station = KINDS[sent.kind[row.message]], self._grid.names[row.who]
        here = self._placement.state(row.here)
        if kind == CAM:
            value = of_itself(self._senses.cam_of(at_ns, station, here))
        else:
            there = self._placement.state(row.there)
            seen = Seen(station, self._grid.names[row.whom], measured_ns, here, there, row.share, row.age_ms)
            value = self._senses.cpm_of(at_ns, seen)
        return Received(at_ns + row.delay_ns, Sent(at_ns, station, kind, measured_ns, value))
