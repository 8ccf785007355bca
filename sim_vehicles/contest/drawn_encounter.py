"""An encounter's circumstances, drawn from ranges that were fixed before anything was run.

Two vehicles approach a crossing at angles, speeds and from behind houses as they come. None of the ranges depends on
a plan, a deadline or a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import radians
from random import Random

from sim_vehicles.v2v.channel import Channel

KMH = 3.6  # km/h in one m/s
ANGLES_DEG = (60.0, 120.0)  # between the ego's course and that of the crossing vehicle
SPEEDS_KMH = (30.0, 70.0)
SETBACKS_M = (4.0, 10.0)  # from the axis of either road to the houses
FIRST_SIGHTS_S = (1.5, 4.0)  # time to collision as the witness first perceives the crossing vehicle
OFFSETS_S = (-0.1, 0.1)  # how much later than the ego's centre the other one's is where their ways cross
LOSSES = (0.0, 0.3)  # of messages, at any distance
HALF_M = 150.0  # and half of them are lost from there, between houses
DELAYS_MS = (1.0, 30.0)  # of the radio, with a jitter of half of that
STATIONS = (50, 100, 150, 200)  # in range


@dataclass(frozen=True)
class Encounter:
    """One encounter. angle_rad: by how much the crossing vehicle's heading is turned to the left of the ego's;
    first_sight_s: before the two centres would meet. stations: those that speak within 250 m, on average; seed: of
    noise, channel, and the stretch of their recording that is heard."""

    number: int
    seed: int
    angle_rad: float
    ego_mps: float
    crossing_mps: float
    setback_m: float
    first_sight_s: float
    offset_s: float
    loss: float
    delay_ns: int
    stations: int

    @property
    def channel(self) -> Channel:
        """What the ego's radio gets of what is sent."""
        return Channel(self.loss, self.delay_ns, self.delay_ns // 2, HALF_M)


def drawn(seed: int, number: int) -> Encounter:
    """The circumstances of encounter `number`, from 0, of a seed: always the same ones."""
    draw = Random(f"{seed}:encounter:{number}")  # noqa: S311 (circumstances, not secrets)
    return Encounter(
        number,
        draw.getrandbits(31),
        angle_rad=radians(draw.uniform(*ANGLES_DEG)),
        ego_mps=draw.uniform(*SPEEDS_KMH) / KMH,
        crossing_mps=draw.uniform(*SPEEDS_KMH) / KMH,
        setback_m=draw.uniform(*SETBACKS_M),
        first_sight_s=draw.uniform(*FIRST_SIGHTS_S),
        offset_s=draw.uniform(*OFFSETS_S),
        loss=draw.uniform(*LOSSES),
        delay_ns=round(draw.uniform(*DELAYS_MS) * 1e6),
        stations=draw.choice(STATIONS),
    )


__all__ = ["KMH", "STATIONS", "Encounter", "drawn"]
