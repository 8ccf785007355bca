"""The lanes of two vehicles, drawn from where they drove, and where these cross."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infra.second_witness.pair_file import Driven

Floats = NDArray[np.float64]

SPACING_M = 1.0  # of a lane's vertices
BESIDE_M = 6.0  # a lane is asked for its angle to the other one where that is as near
LEAST_VERTICES = 2


@dataclass(frozen=True)
class Lane:
    """A centre line with its direction, as wide as its vehicle. points: (n, 2) m; heading_rad: (n,)."""

    points: Floats
    heading_rad: Floats
    width_m: float

    def __len__(self) -> int:
        return len(self.points)

    def between(self, begin: int, end: int) -> Lane:
        """Its vertices [begin, end)."""
        return Lane(self.points[begin:end], self.heading_rad[begin:end], self.width_m)

    def longer(self, by_m: float) -> Lane:
        """With as much straight road at either end."""
        first, last = self.heading_rad[0], self.heading_rad[-1]
        before, after = (by_m * np.array([np.cos(angle), np.sin(angle)]) for angle in (first, last))
        points = np.vstack([self.points[0] - before, self.points, self.points[-1] + after])
        return Lane(points, np.concatenate([[first], self.heading_rad, [last]]), self.width_m)


def lane_of(driven: Driven) -> Lane:
    """From the vehicle's rear at its first instant to its front at its last one."""
    points = np.column_stack([driven.x_m, driven.y_m])
    chosen = [0]
    for k in range(1, len(points)):
        if np.hypot(*(points[k] - points[chosen[-1]])) >= SPACING_M:
            chosen.append(k)
    heading = np.asarray(driven.heading_rad)[chosen]
    return Lane(points[chosen], heading, driven.width_m).longer(driven.length_m / 2 + SPACING_M / 2)


def crossing_part(lane: Lane, other: Lane, least_rad: float, most_rad: float) -> Lane | None:
    """From the first to the last vertex that has the other lane beside it at such an angle; None without two."""
    apart = np.hypot(*(lane.points[:, None, :] - other.points[None, :, :]).transpose(2, 0, 1))
    nearest = np.argmin(apart, axis=1)
    turn = lane.heading_rad - other.heading_rad[nearest]
    angle = np.abs((turn + np.pi) % (2 * np.pi) - np.pi)
    beside = apart[np.arange(len(lane)), nearest] <= BESIDE_M
    across = np.flatnonzero(beside & (angle > least_rad) & (angle < most_rad))
    if not len(across) or across[-1] - across[0] + 1 < LEAST_VERTICES:
        return None
    return lane.between(int(across[0]), int(across[-1]) + 1)
