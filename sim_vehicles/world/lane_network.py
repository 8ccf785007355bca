"""Lanes of a road map and which follow which, in metres of the plane. Drives in the direction of its points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from sim_vehicles.world.geometry import Point


@dataclass(frozen=True)
class Lane:
    """A piece of a lane: its middle line in the driving direction, at least two points, no two equal in a row.

    following: the pieces into which a vehicle drives from its end, by name; several at a junction. width_m: mean width,
    None where the map does not say it. ValueError for another line.
    """

    name: str
    line: tuple[Point, ...]
    following: tuple[str, ...] = ()
    width_m: float | None = None

    def __post_init__(self) -> None:
        if not self.name.isprintable():
            raise ValueError(f"a lane is named {self.name!r}; use letters that can be printed")
        if len(self.line) < 2:
            raise ValueError(f"lane {self.name!r} needs two points, not {len(self.line)}")
        if any(one == other for one, other in pairwise(self.line)):
            raise ValueError(f"lane {self.name!r} has two equal points in a row")


class LaneNetwork:
    """The lanes of one map, by name. ValueError for two of one name and for a following lane that is not there."""

    def __init__(self, lanes: Iterable[Lane]) -> None:
        by_name: dict[str, Lane] = {}
        for lane in lanes:
            if lane.name in by_name:
                raise ValueError(f"two lanes are named {lane.name!r}")
            by_name[lane.name] = lane
        for lane in by_name.values():
            for name in lane.following:
                if name not in by_name:
                    raise ValueError(f"lane {lane.name!r} leads into {name!r}, which is not there")
        self.lanes: Mapping[str, Lane] = by_name
