"""What all stations of a recording broadcast, by the rules of `etsi` and under congestion control.

The same messages as `stations.generated`, as long as no channel is busy; in arrays, for hundreds of stations. Time goes
on in ticks of 10 ms: what was sent in a tick makes the channel busy from the next one on. A channel is as busy as the
air time is long of what the stations within carrier-sense range send; what overlaps counts twice, up to the whole time.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim_vehicles.v2v.broadcasts import AWAY, KINDS, Broadcasts
from sim_vehicles.v2v.congestion import CAM_BYTES, MEASURED_NS, T_OFF_NS, air_time_ns, cpm_bytes, next_state
from sim_vehicles.v2v.etsi import CHECK_NS, LONGEST_NS
from sim_vehicles.v2v.rule_arrays import CamRules, CpmRules, Flags, Perceived
from sim_vehicles.v2v.stations import CAM, CPM, phases
from sim_vehicles.world.motion_grid import MotionGrid, Numbers, States
from sim_vehicles.world.scene import Scenario
from sim_vehicles.world.sense import CYCLE_NS
from sim_vehicles.world.sight_grid import SightGrid

TICK_NS = 10_000_000
TICKS = CHECK_NS // TICK_NS  # in a step, which is the time between two checks of a rule
STEPS = 10  # in a window, over which it is found out at once who may see whom
CARRIER_SENSE_M = 300.0  # between houses, where what is farther off is below the -85 dBm that count as busy

Floats = NDArray[np.float64]


def broadcast(
    scenario: Scenario, seed: int, begin_ns: int, until_ns: int, carrier_sense_m: float = CARRIER_SENSE_M
) -> Broadcasts:
    """All messages of all stations of the scene but the ego, from begin on, up to before until.

    The rules start 1 s before begin. ValueError: see `MotionGrid` and `SightGrid`.
    """
    return _Run(scenario, seed, begin_ns, until_ns, carrier_sense_m).broadcasts()


class _Some(NamedTuple):
    """Messages of one kind and tick; `counts`: how many of the objects each has."""

    kind: int
    at_ns: Numbers
    station: Numbers
    measured_ns: Numbers
    counts: Numbers
    objects: Numbers


class _Seen(NamedTuple):
    """What the stations perceive at their checks of one window; rows by step, tick, station, then the nearest first.
    The rows of a tick start at first[step * TICKS + tick]."""

    who: Numbers
    whom: Numbers
    states: States
    first: Numbers


class _Step(NamedTuple):
    """All vehicles at the checks of one step."""

    cam_at_ns: Numbers
    states: States
    cpm_at_ns: Numbers
    there: Flags  # at the CPM's check, and at the measurement before it


class _Air:
    """How busy the channel is around each vehicle, and what congestion control makes of it."""

    def __init__(self, n: int) -> None:
        self.state = np.zeros(n, dtype=np.int64)
        self.busy = np.zeros(n)
        self._ticks = np.zeros((MEASURED_NS // TICK_NS, n))

    @property
    def least_ns(self) -> Numbers:
        """The time that each vehicle has to leave between two messages of a kind."""
        return T_OFF_NS[self.state]

    def measure(self, who: Numbers) -> None:
        """The busy ratio of the last 100 ms."""
        self.busy[who] = np.minimum(1.0, self._ticks[:, who].sum(0) / MEASURED_NS)
        self.state[who] = next_state(self.state[who], self.busy[who])

    def send(self, tick: int, some: list[_Some], heard: Floats) -> None:
        """heard[i, j]: 1 where i hears j."""
        now = self._ticks[tick % len(self._ticks)]
        now[:] = 0
        for one in some:
            size = cpm_bytes(one.counts) if KINDS[one.kind] == CPM else np.full(len(one.at_ns), CAM_BYTES)
            now += heard[:, one.station] @ air_time_ns(size).astype(float)


class _Run:
    def __init__(self, scenario: Scenario, seed: int, begin_ns: int, until_ns: int, carrier_sense_m: float) -> None:
        self._grid = MotionGrid(scenario.motion)
        self._sight = SightGrid(self._grid, scenario.scene)
        self._span_ns = (begin_ns, until_ns)
        self._carrier_sense_m = carrier_sense_m
        names, scene = self._grid.names, scenario.scene
        self._every = np.arange(len(names))
        self._radio = np.isin(names, [name for name in scene.stations if name != scene.ego])
        phase = [phases(seed, name) for name in names]
        self._cam_ns = np.array([one.cam_ns for one in phase])
        self._cpm_ns = np.array([one.cpm_ns for one in phase])
        self._lag_ns = CYCLE_NS + (self._cpm_ns - np.array([one.sensor_ns for one in phase])) % CYCLE_NS
        measures = [Random(f"{seed}:{name}:congestion").randrange(TICKS) for name in names]  # noqa: S311 (a phase)
        self._cams, self._cpms = CamRules(len(names)), CpmRules(len(names))
        self._air = _Air(len(names))
        self._cam_of, self._cpm_of = self._by_tick(self._cam_ns // TICK_NS), self._by_tick(self._cpm_ns // TICK_NS)
        self._measure_of = self._by_tick(np.array(measures))

    def broadcasts(self) -> Broadcasts:
        begin_ns, until_ns = self._span_ns
        some: list[_Some] = []
        states, busy = [], []
        for window_ns in range(begin_ns - LONGEST_NS, until_ns, STEPS * CHECK_NS):
            seen = self._seen(window_ns)
            for step in range(STEPS):
                step_ns = window_ns + step * CHECK_NS
                some += self._sent_in(step_ns, step, seen)
                if begin_ns <= step_ns < until_ns:
                    there = self._radio & ~np.isnan(self._grid.at(self._every, self._all(step_ns)).x_m)
                    states.append(np.where(there, self._air.state, AWAY).astype(np.uint8))
                    busy.append(np.rint(self._air.busy * 100).astype(np.uint8))
        return self._in_order(some, np.array(states), np.array(busy))

    def _sent_in(self, step_ns: int, step: int, seen: _Seen) -> Iterator[_Some]:
        now = self._at(step_ns)
        heard = self._heard(step_ns)
        for tick in range(TICKS):
            self._air.measure(self._measure_of[tick])
            row = step * TICKS + tick
            rows = slice(seen.first[row], seen.first[row + 1])
            some = [self._cam(self._cam_of[tick], now), self._cpm(self._cpm_of[tick], now, seen, rows)]
            self._air.send(tick, some, heard)
            yield from some

    def _cam(self, station: Numbers, now: _Step) -> _Some:
        at_ns = now.cam_at_ns[station]
        due = self._cams.due(station, at_ns, now.states.at(station), self._air.least_ns[station])
        station, at_ns = station[due], at_ns[due]
        return _Some(KINDS.index(CAM), at_ns, station, at_ns, np.ones_like(station), station)

    def _cpm(self, station: Numbers, now: _Step, seen: _Seen, rows: slice) -> _Some:
        station = station[now.there[station]]
        by = np.searchsorted(station, seen.who[rows])
        at_ns = now.cpm_at_ns[station]
        perceived = Perceived(by, seen.whom[rows], seen.states.at(rows))
        due, included = self._cpms.due(station, at_ns, self._air.least_ns[station], perceived)
        counts = np.bincount(by[included], minlength=len(station))[due]
        station, at_ns = station[due], at_ns[due]
        measured_ns = at_ns - self._lag_ns[station]
        return _Some(KINDS.index(CPM), at_ns, station, measured_ns, counts, perceived.whom[included])

    def _seen(self, window_ns: int) -> _Seen:
        pairs = self._sight.meanwhile(window_ns - CHECK_NS, window_ns + STEPS * CHECK_NS)
        radio = self._radio[pairs.who]
        who, whom = np.tile(pairs.who[radio], STEPS), np.tile(pairs.whom[radio], STEPS)
        clear = np.tile(pairs.clear[radio], STEPS)
        step = np.repeat(np.arange(STEPS), np.count_nonzero(radio))
        at_ns = window_ns + step * CHECK_NS + self._cpm_ns[who]
        measured_ns = at_ns - self._lag_ns[who]
        here, there = self._grid.at(who, measured_ns), self._grid.at(whom, measured_ns)
        away_m = np.hypot(there.x_m - here.x_m, there.y_m - here.y_m)
        seen = (away_m <= self._sight.range_m) & ~np.isnan(self._grid.at(who, at_ns).x_m)
        ask = np.flatnonzero(seen & ~clear)
        seen[ask] = self._sight.perceived(who[ask], whom[ask], measured_ns[ask])
        tick = step * TICKS + self._cpm_ns[who] // TICK_NS
        rows = np.flatnonzero(seen)
        rows = rows[np.lexsort((whom[rows], away_m[rows], who[rows], tick[rows]))]
        first = np.searchsorted(tick[rows], np.arange(STEPS * TICKS + 1))
        return _Seen(who[rows], whom[rows], there.at(rows), first)

    def _at(self, step_ns: int) -> _Step:
        cam_at_ns, cpm_at_ns = step_ns + self._cam_ns, step_ns + self._cpm_ns
        there = ~np.isnan(self._grid.at(self._every, cpm_at_ns).x_m)
        there &= ~np.isnan(self._grid.at(self._every, cpm_at_ns - self._lag_ns).x_m)
        return _Step(cam_at_ns, self._grid.at(self._every, cam_at_ns), cpm_at_ns, there)

    def _heard(self, step_ns: int) -> Floats:
        states = self._grid.at(self._every, self._all(step_ns))
        away_m = np.hypot(states.x_m[:, None] - states.x_m, states.y_m[:, None] - states.y_m)
        return (away_m <= self._carrier_sense_m).astype(float)

    def _in_order(self, some: list[_Some], states: NDArray[np.uint8], busy: NDArray[np.uint8]) -> Broadcasts:
        """Messages of the span, by instant, station and kind."""
        at_ns, station, measured_ns, counts, objects = (
            np.concatenate([one[i] for one in some]) for i in range(1, len(_Some._fields))
        )
        kind = np.repeat([one.kind for one in some], [len(one.at_ns) for one in some])
        first = np.concatenate([[0], np.cumsum(counts)])
        order = np.lexsort((kind, station, at_ns))
        order = order[(at_ns[order] >= self._span_ns[0]) & (at_ns[order] < self._span_ns[1])]
        after = np.concatenate([[0], np.cumsum(counts[order])])
        picked = np.arange(after[-1]) + np.repeat(first[order] - after[:-1], counts[order])
        return Broadcasts(
            names=np.array(self._grid.names),
            span_ns=np.array(self._span_ns),
            at_ns=at_ns[order],
            station=station[order],
            kind=kind[order].astype(np.uint8),
            measured_ns=measured_ns[order],
            first=after,
            objects=objects[picked],
            states=states,
            busy_percent=busy,
        )

    def _by_tick(self, tick: Numbers) -> list[Numbers]:
        """The stations with a radio of each tick."""
        return [np.flatnonzero(self._radio & (tick == i)) for i in range(TICKS)]

    def _all(self, at_ns: int) -> Numbers:
        return np.full(len(self._every), at_ns)
