"""Dense city traffic: a grid of streets with signals, houses between them, and vehicles that wander about it.

Metres, seconds; x east, y north, the origin at the middle junction; drives on the right. No vehicle leaves the grid, so
its number stays what it is. At each junction a vehicle goes straight on, or turns, by chance; it seldom takes a street
on the rim, which would else fill up, as nothing leads on from there.
"""

from __future__ import annotations

from itertools import pairwise
from random import Random

from sim_vehicles.world.geometry import Point

BLOCKS = 6  # each way
BLOCK_M = 100.0
HALF_M = BLOCKS * BLOCK_M / 2
LANE_M = 3.2
SETBACK_M = 5.0  # from a street's axis to the houses: a lane, and 1.8 m for those who walk
SPEED_MPS = 50 / 3.6
SIDEWAYS_MPS2 = 2.5  # in a turn; with SUMO's own 5.5 a vehicle turns by 50 degrees from one record to the next
SIGNALS_S = 60  # a junction's signals come round
LENGTH_M, WIDTH_M = 4.5, 1.8  # of a vehicle
NEAR_M = 250.0  # the vehicles within this distance of the middle are the ones that a recording has so many of
STRAIGHT_ON = 2  # is so often chosen as a turn
INWARDS = 2  # a street inside is so often chosen as one on the rim

Node = tuple[int, int]


def name(node: Node) -> str:
    """SUMO's name of a junction: a letter for the column, a digit for the row."""
    column, row = node
    return f"{chr(ord('A') + column)}{row}"


def place(node: Node) -> Point:
    """Where a junction is."""
    column, row = node
    return column * BLOCK_M - HALF_M, row * BLOCK_M - HALF_M


def wander(draw: Random, streets: int) -> str:
    """The streets that one vehicle takes, as SUMO writes a route."""
    every = range(BLOCKS + 1)
    before, here = draw.choice([(a, b) for a in ((x, y) for x in every for y in every) for b in _beside(a)])
    nodes = [before, here]
    while len(nodes) <= streets:
        ways = [node for node in _beside(here) if node != before]
        before, here = here, draw.choices(ways, [_weight(before, here, node) for node in ways])[0]
        nodes.append(here)
    return " ".join(f"{name(a)}{name(b)}" for a, b in pairwise(nodes))


def houses() -> dict[str, list[Point]]:
    """A block of houses per field of the grid, as polygons that nobody sees through."""
    found = {}
    for column in range(BLOCKS):
        for row in range(BLOCKS):
            (x0, y0), (x1, y1) = place((column, row)), place((column + 1, row + 1))
            left, low, right, high = x0 + SETBACK_M, y0 + SETBACK_M, x1 - SETBACK_M, y1 - SETBACK_M
            found[f"block {name((column, row))}"] = [(left, low), (right, low), (right, high), (left, high)]
    return found


def roads() -> dict[str, list[Point]]:
    """Axes, from one rim to the other."""
    across = {f"row {i}": [place((0, i)), place((BLOCKS, i))] for i in range(BLOCKS + 1)}
    return {**across, **{f"column {i}": [place((i, 0)), place((i, BLOCKS))] for i in range(BLOCKS + 1)}}


def _beside(node: Node) -> list[Node]:
    column, row = node
    around = ((column - 1, row), (column, row - 1), (column, row + 1), (column + 1, row))
    return [(x, y) for x, y in around if 0 <= x <= BLOCKS and 0 <= y <= BLOCKS]


def _weight(before: Node, here: Node, after: Node) -> int:
    straight = (after[0] - here[0], after[1] - here[1]) == (here[0] - before[0], here[1] - before[1])
    rim = any(one in (0, BLOCKS) for one in after)
    return (STRAIGHT_ON if straight else 1) * (1 if rim else INWARDS)
