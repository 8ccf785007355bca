"""The CAMs of recorded vehicles by ETSI's rules (EN 302 637-2), of those that an ego may hear and no others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from heapq import merge
from math import hypot
from random import Random
from typing import NamedTuple

from protos.vehicle_pb2 import Cpm
from sim_vehicles.traffic.neighbours import Neighbourhood
from sim_vehicles.v2v.etsi import CHECK_NS, CamRule
from sim_vehicles.v2v.path_history import PathHistory
from sim_vehicles.v2v.radio import of_itself
from sim_vehicles.world.geometry import Point
from sim_vehicles.world.motion import Motion, State, Track
from sim_vehicles.world.scene import Scenario, Scene
from sim_vehicles.world.sense import MS, Place, Senses

STATIONS_AT_HAND = 256  # for the next ego


class Heard(NamedTuple):
    """A message of a station at the instant at which it is sent."""

    at_ns: int
    station: str
    value: Cpm


class Transmissions:
    """What the vehicles of a recording send of themselves over all of it; the same for every ego that hears it."""

    def __init__(self, motion: Motion, neighbourhood: Neighbourhood, seed: int) -> None:
        self._motion = motion
        self._neighbourhood = neighbourhood
        senses = Senses(Scenario(motion, Scene("traffic", next(iter(motion.tracks)), ())), seed)
        self._station = lru_cache(STATIONS_AT_HAND)(lambda name: _Station(senses, motion.tracks[name]))

    def heard_by(self, ego: str, range_m: float) -> Iterator[Heard]:
        """The messages of others that are sent within range_m of the ego, by instant and station."""
        track = self._motion.tracks[ego]
        begin_ns, end_ns = (round(state.t_s * 1e9) for state in (track.states[0], track.states[-1]))
        stations = {name: self._station(name) for name in self._neighbourhood.within(ego, range_m)}
        for at_ns, name in merge(*(one.sent(begin_ns, end_ns) for one in stations.values())):
            here, (x_m, y_m) = track.at(at_ns / 1e9), stations[name].places[at_ns]
            if here is not None and hypot(x_m - here.x_m, y_m - here.y_m) <= range_m:
                yield Heard(at_ns, name, stations[name].value(at_ns))


class _Station:
    """The messages of one vehicle. `places`: by instant where it sends one."""

    def __init__(self, senses: Senses, track: Track) -> None:
        self._senses = senses
        self._name = track.id
        self.places: dict[int, Point] = {}
        self._came: dict[int, tuple[Place, ...]] = {}
        self._values: dict[int, Cpm] = {}
        history = PathHistory()
        for at_ns, state in _due(track, senses.seed):
            self.places[at_ns] = (state.x_m, state.y_m)
            history.add(senses.own_place(at_ns, track.id, state))
            if history.due(at_ns):
                self._came[at_ns] = history.points()

    def sent(self, begin_ns: int, end_ns: int) -> Iterator[tuple[int, str]]:
        return ((at_ns, self._name) for at_ns in self.places if begin_ns <= at_ns <= end_ns)

    def value(self, at_ns: int) -> Cpm:
        value = self._values.get(at_ns)
        if value is None:
            value = self._values[at_ns] = of_itself(self._senses.cam(at_ns, self._name, self._came.get(at_ns, ())))
        return value


def _due(track: Track, seed: int) -> Iterator[tuple[int, State]]:
    """When the vehicle sends, and its state then. It asks its rule every 100 ms, at a phase of its own."""
    rule = CamRule()
    phase_ns = Random(f"{seed}:{track.id}:radio").randrange(CHECK_NS // MS) * MS  # noqa: S311 (a phase, not secrets)
    first_ns, last_ns = (round(state.t_s * 1e9) for state in (track.states[0], track.states[-1]))
    for at_ns in range(first_ns + phase_ns, last_ns + 1, CHECK_NS):
        state = track.at(at_ns / 1e9)
        if state is not None and rule.due(at_ns, state):
            yield at_ns, state
