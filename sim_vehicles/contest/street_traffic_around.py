"""The stations around an encounter: those of a recording of city streets, whose centre is where the ways cross."""

from __future__ import annotations

from collections.abc import Iterator
from math import pi
from random import Random

from sim_vehicles.contest.drawn_encounter import Encounter
from sim_vehicles.inputs.stimuli import Arrival
from sim_vehicles.v2v.broadcasts import Broadcasts
from sim_vehicles.v2v.channel import Channel
from sim_vehicles.v2v.radio import judged
from sim_vehicles.v2v.received import Surroundings
from sim_vehicles.world.motion import Track
from sim_vehicles.world.placement import Placement
from sim_vehicles.world.scene import Scenario

FIRST_NUMBER = 1000  # on the wire; those of the encounter are below


class StreetsAround:
    """What an encounter's ego hears of a recording, of which a stretch and a direction are drawn."""

    def __init__(
        self, encounter: Encounter, streets: Scenario, broadcasts: Broadcasts, channel: Channel, until_ns: int
    ) -> None:
        """until_ns: when the encounter ends. ValueError where it is longer than the recording."""
        begin_ns, end_ns = broadcasts.span_ns.tolist()
        if until_ns > end_ns - begin_ns:
            raise ValueError(f"{streets.scene.name} has broadcasts for {(end_ns - begin_ns) / 1e9:g} s only")
        draw = Random(f"{encounter.seed}:streets")  # noqa: S311 (a stretch, not secrets)
        later_ns = -draw.randint(begin_ns, end_ns - until_ns)
        placement = Placement(turn_rad=draw.randrange(4) * pi / 2, later_ns=later_ns)
        self._scene = streets.scene
        self._surroundings = Surroundings(broadcasts, streets, encounter.seed, channel, placement, FIRST_NUMBER)

    def heard(self, ego: Track, begin_ns: int, until_ns: int) -> Iterator[Arrival]:
        """What was sent from begin on, up to before until."""
        for at_ns, sent in self._surroundings.received(ego, begin_ns, until_ns):
            here = ego.at(sent.sent_ns / 1e9)
            if here is not None:
                judged(sent.value, self._scene, here)
            yield Arrival(at_ns, at_ns - sent.measured_ns, sent.sent_ns, sent.value)


__all__ = ["StreetsAround"]
