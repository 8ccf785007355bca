"""Messages of stations by the rules of `etsi`, from what they sense.

Each station checks its rules every 100 ms and senses every 50 ms, both at a phase of its own (from the seed, whole
milliseconds). A measurement can be sent one sensor period after it was made: what a CPM says is 50 to 100 ms old.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from sim_vehicles.v2v.etsi import CHECK_NS, LONGEST_NS, CamRule, CpmRule
from sim_vehicles.v2v.radio import of_itself
from sim_vehicles.world.sense import CYCLE_NS, MS, Senses, Sent

CAM, CPM = "cam", "cpm"


class Phases(NamedTuple):
    """When in their periods a station checks the rules of CAM and CPM, and senses. ns."""

    cam_ns: int
    cpm_ns: int
    sensor_ns: int


class Generated(NamedTuple):
    """A message at the instant at which a station generates it, with what it is about (a CAM: the station) and when
    that was measured. Objects may be empty in a CPM."""

    at_ns: int
    station: str
    kind: str
    measured_ns: int
    objects: tuple[str, ...]


def phases(seed: int, station: str) -> Phases:
    """The phases of one station: whole milliseconds."""
    draw = Random(f"{seed}:{station}:radio")  # noqa: S311 (a phase, not secrets)
    cam_ns, cpm_ns = (draw.randrange(CHECK_NS // MS) * MS for _ in range(2))
    return Phases(cam_ns, cpm_ns, draw.randrange(CYCLE_NS // MS) * MS)


def generated(senses: Senses, begin_ns: int, until_ns: int) -> list[Generated]:
    """All messages of all stations from begin on, up to before until, by instant, station and kind.

    The rules start 1 s before begin, so that at begin nobody is new to them who was there all that time.
    """
    found: list[Generated] = []
    for station in senses.stations:
        start_ns, phase = begin_ns - LONGEST_NS, phases(senses.seed, station)
        found += _cams(senses, station, range(start_ns + phase.cam_ns, until_ns, CHECK_NS))
        checks = range(start_ns + phase.cpm_ns, until_ns, CHECK_NS)
        found += _cpms(senses, station, checks, start_ns + phase.sensor_ns)
    return sorted(one for one in found if one.at_ns >= begin_ns)


def tuples(senses: Senses, message: Generated) -> Iterator[Sent]:
    """A message as the query's V2V tuples, one per object."""
    at_ns, station, kind, measured_ns, objects = message
    for name in objects:
        value = of_itself(senses.cam(at_ns, station)) if kind == CAM else senses.cpm(at_ns, measured_ns, station, name)
        yield Sent(at_ns, station, kind, measured_ns, value)


def _cams(senses: Senses, station: str, checks: range) -> Iterator[Generated]:
    rule = CamRule()
    for at_ns in checks:
        state = senses.sight.at(at_ns).get(station)
        if state is not None and rule.due(at_ns, state):
            yield Generated(at_ns, station, CAM, at_ns, (station,))


def _cpms(senses: Senses, station: str, checks: range, sensor_ns: int) -> Iterator[Generated]:
    rule = CpmRule()
    for at_ns in checks:
        ready_ns = at_ns - CYCLE_NS
        measured_ns = ready_ns - (ready_ns - sensor_ns) % CYCLE_NS
        states = senses.sight.at(measured_ns)
        if station not in states or station not in senses.sight.at(at_ns):
            continue
        perceived = {name: states[name] for name in senses.sight.perceived(measured_ns, station)}
        objects = rule.due(at_ns, perceived)
        if objects is not None:
            yield Generated(at_ns, station, CPM, measured_ns, tuple(objects))
