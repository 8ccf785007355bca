"""Recorded city traffic around a scene: stations that are not in it, but heard by its ego.

The middle of the recording lies at the scene's origin. Which stretch of it is heard, and turned by which quarter, is
drawn by the seed. Its vehicles are on the air alone: the ego meets none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import pi
from random import Random

from sim_vehicles.errors import bad_input
from sim_vehicles.inputs.stimuli import Arrival
from sim_vehicles.readers.scenarios import load_scenario
from sim_vehicles.v2v.all_stations import broadcast
from sim_vehicles.v2v.broadcasts import Broadcasts
from sim_vehicles.v2v.channel import Channel
from sim_vehicles.v2v.radio import judged
from sim_vehicles.v2v.received import Surroundings
from sim_vehicles.world.motion import Track
from sim_vehicles.world.placement import Placement
from sim_vehicles.world.scene import Scenario

FIRST_NUMBER = 1000  # on the wire; those of the scene are below
SETTLED_NS = 3_000_000_000  # from the recording's start: rules look back 1 s, congestion control settles within 2 s


class CityAround:
    """What the ego of a scene hears of a recording that is placed there, and of what its stations broadcast."""

    def __init__(self, city: Scenario, sent: Broadcasts, seed: int, channel: Channel, placement: Placement) -> None:
        self._scene = city.scene
        self._surroundings = Surroundings(sent, city, seed, channel, placement, FIRST_NUMBER)

    def heard(self, ego: Track, begin_ns: int, until_ns: int) -> Iterator[Arrival]:
        """What was sent from begin on, up to before until."""
        for at_ns, sent in self._surroundings.received(ego, begin_ns, until_ns):
            here = ego.at(sent.sent_ns / 1e9)
            if here is not None:
                judged(sent.value, self._scene, here)
            yield Arrival(at_ns, at_ns - sent.measured_ns, sent.sent_ns, sent.value)


def drawn_city(recording: str, seed: int, channel: Channel, begin_ns: int, until_ns: int) -> CityAround:
    """A stretch of a recording (name or path) for a span of the scene's time. Computes all that its stations broadcast
    in that span. BadInputError where it is shorter."""
    city = load_scenario(recording)
    first_ns, last_ns = (round(at_s * 1e9) for at_s in (city.motion.start_s, city.motion.end_s))
    spare_ns = last_ns - first_ns - SETTLED_NS - (until_ns - begin_ns)
    if spare_ns < 0:
        raise bad_input(
            "out_of_range",
            f"--around: {recording} has {(last_ns - first_ns - SETTLED_NS) / 1e9:g} s, less than the replay",
            "play a shorter stretch: --start, --until",
            subject="--around",
        )
    draw = Random(f"{seed}:around")  # noqa: S311 (a stretch, not secrets)
    from_ns = first_ns + SETTLED_NS + draw.randint(0, spare_ns)
    sent = broadcast(city, seed, from_ns, from_ns + until_ns - begin_ns)
    placement = Placement(turn_rad=draw.randrange(4) * pi / 2, later_ns=begin_ns - from_ns)
    return CityAround(city, sent, seed, channel, placement)


__all__ = ["CityAround", "drawn_city"]
