"""The stations around an encounter: those of a recording of city streets, whose centre is where the ways cross."""

from __future__ import annotations

from math import pi
from random import Random

from sim_vehicles.contest.drawn_encounter import Encounter
from sim_vehicles.inputs.city_around import CityAround
from sim_vehicles.v2v.broadcasts import Broadcasts
from sim_vehicles.world.placement import Placement
from sim_vehicles.world.scene import Scenario


def streets_around(encounter: Encounter, streets: Scenario, sent: Broadcasts, until_ns: int) -> CityAround:
    """What an encounter's ego hears of a recording, of which a stretch and a direction are drawn. until_ns: when the
    encounter ends. ValueError where it is longer than the recording."""
    begin_ns, end_ns = sent.span_ns.tolist()
    if until_ns > end_ns - begin_ns:
        raise ValueError(f"{streets.scene.name} has broadcasts for {(end_ns - begin_ns) / 1e9:g} s only")
    draw = Random(f"{encounter.seed}:streets")  # noqa: S311 (a stretch, not secrets)
    later_ns = -draw.randint(begin_ns, end_ns - until_ns)
    placement = Placement(turn_rad=draw.randrange(4) * pi / 2, later_ns=later_ns)
    return CityAround(streets, sent, encounter.seed, encounter.channel, placement)


__all__ = ["streets_around"]
