"""The blind crossing: roads, buildings, vehicles, for one speed. Metres, seconds; x east, y north; drives on the right.

    A comes from the south, X from the east round a bend; both go straight and neither brakes. A block of houses in the
    south-east hides X from A until both are about 9 m away from the point where their lanes cross. A second block lies
    inside the bend of the east arm, so nobody at all can see X before it leaves the bend. E stands at the stop line of
    the west arm and looks straight into the east arm, D stands behind it, B has turned left ahead of A and leaves to
    the west: these three have a radio. C has crossed southwards, G and F drive ahead of A: seen by others, no radio,
    not in danger, and no nearer to A when A brakes (who follows A closes in on it then: more messages to work on).

The bend decides when X can first be perceived by anyone. The rule, which no result has a say in: A then has at least
D(100 ms) + 1 s to the conflict zone, which is the way that the automatic brake needs to stand with a latency of 100 ms,
and what is driven within a second. The bend is laid as near as that allows, in steps of 0.1 m.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin

from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.encounter.physics import needed_m
from sim_vehicles.world.geometry import Point

LANE_M = 3.2
ARM_M = 400.0
SETBACK_M = 4.0  # from a road's axis to the houses
CONFLICT: Point = (LANE_M / 2, LANE_M / 2)  # where the centre lines of A's and X's lanes cross
CONFLICT_S = 12.0  # when A's centre is there
END_S = 16.0
STEP_S = 0.05
HOUSES_M = 200.0  # how far the houses go on behind the bend
BEND_RAD = pi * 70 / 180
X_BEHIND_M = (
    4.5  # X is this far behind A on its way to the conflict: a late or half-hearted braking does not save A by luck
)
SIGHT_LATENCY_S, SIGHT_SPARE_S = 0.1, 1.0  # the rule of the first sight
STRAIGHT_M = {30: 11.4, 50: 18.1, 70: 26.7}  # of the east arm, before the bend: the least that the rule allows


@dataclass(frozen=True)
class Car:
    """A vehicle type: its size in metres, and whether it takes its way without looking."""

    length_m: float
    width_m: float
    type: str = "car"
    reckless: bool = False


CARS = {
    "A": Car(4.5, 1.8),
    "B": Car(4.3, 1.8),
    "C": Car(4.6, 1.8),
    "D": Car(4.4, 1.8),
    "E": Car(4.5, 1.8),
    "F": Car(4.2, 1.7),
    "G": Car(5.2, 1.9, type="van"),
    "X": Car(4.5, 1.8, reckless=True),
}


@dataclass(frozen=True)
class Intersection:
    """One scene: the speed of all moving vehicles and what follows from it."""

    speed_kmh: int

    @property
    def name(self) -> str:
        """The name of the recording."""
        return f"crossing_{self.speed_kmh}"

    @property
    def speed_mps(self) -> float:
        """The approach speed, m/s."""
        return self.speed_kmh / 3.6

    @property
    def straight_m(self) -> float:
        """The length of the straight approach, metres."""
        return STRAIGHT_M[self.speed_kmh]

    @property
    def radius_m(self) -> float:
        """Of the bend's axis: 3.5 m/s2 of lateral acceleration, an ordinary upper value for a car in a bend."""
        return max(22.0, self.speed_mps**2 / 3.5)

    @property
    def first_sight_m(self) -> float:
        """The least way from A's front to the strip that X sweeps when X is first perceived by anyone."""
        return needed_m(self.speed_mps, SIGHT_LATENCY_S, AUTO) + self.speed_mps * SIGHT_SPARE_S

    def arc(self, offset_m: float) -> list[Point]:
        """The east arm's bend, to the north, from the crossing outwards; offset to the left of that direction."""
        radius = self.radius_m - offset_m
        steps = max(8, round(BEND_RAD * self.radius_m / 2))  # a corner every 2 m
        angles = [BEND_RAD * i / steps for i in range(steps + 1)]
        return [(self.straight_m + radius * sin(a), self.radius_m - radius * cos(a)) for a in angles]

    def east_axis(self) -> list[Point]:
        """The east arm from the crossing's centre outwards."""
        arc = self.arc(0.0)
        x, y = arc[-1]
        rest = ARM_M - self.straight_m - BEND_RAD * self.radius_m
        return [(0.0, 0.0), *arc, (x + rest * cos(BEND_RAD), y + rest * sin(BEND_RAD))]

    def buildings(self) -> dict[str, list[Point]]:
        """Polygons that nobody sees through."""
        s = SETBACK_M
        inner = self.arc(s)
        x, y = inner[-1]
        inner.append((x + HOUSES_M * cos(BEND_RAD), y + HOUSES_M * sin(BEND_RAD)))
        far = max(80.0, self.straight_m + self.radius_m)
        return {
            "south-east block": [(s, -s), (far, -s), (far, -250.0), (s, -250.0)],
            "north-east block": [(s, s), *inner, (s, inner[-1][1])],
        }

    def roads(self) -> dict[str, list[Point]]:
        """Axes, from the crossing outwards."""
        arms = {"south": (0.0, -ARM_M), "north": (0.0, ARM_M), "west": (-ARM_M, 0.0)}
        return {**{name: [(0.0, 0.0), end] for name, end in arms.items()}, "east": self.east_axis()}
