"""The part of a map that lies where something happens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from sim_vehicles.world.geometry import Point
from sim_vehicles.world.lane_network import Lane, LaneNetwork


class Extent(NamedTuple):
    """A rectangle along the axes, in metres."""

    least_x_m: float
    least_y_m: float
    most_x_m: float
    most_y_m: float

    @staticmethod
    def of(points: Iterable[Point]) -> Extent:
        """The least one that holds all points, of which there is at least one."""
        xs, ys = zip(*points, strict=True)
        return Extent(min(xs), min(ys), max(xs), max(ys))

    def grown(self, by_m: float) -> Extent:
        """With a margin on every side."""
        return Extent(self.least_x_m - by_m, self.least_y_m - by_m, self.most_x_m + by_m, self.most_y_m + by_m)

    def meets(self, other: Extent) -> bool:
        """Whether the two share a point."""
        return (
            self.least_x_m <= other.most_x_m
            and other.least_x_m <= self.most_x_m
            and self.least_y_m <= other.most_y_m
            and other.least_y_m <= self.most_y_m
        )


def within(network: LaneNetwork, extent: Extent) -> LaneNetwork:
    """The lanes whose own extent meets that one, whole; what led into others ends there."""
    near = [lane for lane in network.lanes.values() if Extent.of(lane.line).meets(extent)]
    names = {lane.name for lane in near}
    return LaneNetwork(_leading(lane, names) for lane in near)


def _leading(lane: Lane, names: set[str]) -> Lane:
    return replace(lane, following=tuple(name for name in lane.following if name in names))
