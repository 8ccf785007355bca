"""The ground from above: metres of the scene as pixels of a panel, roads and buildings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sim_vehicles.closed_loop.recorded import DrivenScene
from sim_vehicles.world.geometry import Point, inside

LANE_M = 3.5  # where a road says nothing of its width


@dataclass(frozen=True)
class View:
    """A part of the plane in a panel: north is up, `x_m, y_m` is at the left and at the top."""

    x_m: float
    y_m: float
    scale: float
    width: float
    height: float

    @staticmethod
    def around(points: Sequence[Point], width: float, height: float) -> View:
        """All of these in a panel of so many pixels, in the middle of it."""
        xs, ys = [x for x, _ in points], [y for _, y in points]
        scale = min(width / (max(xs) - min(xs)), height / (max(ys) - min(ys)))
        middle_x, middle_y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
        return View(middle_x - width / scale / 2, middle_y + height / scale / 2, scale, width, height)

    def at(self, point: Point) -> Point:
        """In pixels."""
        return (point[0] - self.x_m) * self.scale, (self.y_m - point[1]) * self.scale

    def path(self, points: Iterable[Point]) -> str:
        """A line through these, as the SVG's `d`."""
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in map(self.at, points))

    def shows(self, point: Point, margin: float) -> bool:
        """Whether it is inside, or at most `margin` pixels outside."""
        x, y = self.at(point)
        return -margin <= x <= self.width + margin and -margin <= y <= self.height + margin


def drawn(scene: DrivenScene, view: View) -> str:
    """Roads with their middle lines, and buildings."""
    roads = [(view.path((float(x), float(y)) for x, y in road["line"]), _width_m(road)) for road in scene.roads]
    widest_m = max((width_m for _, width_m in roads), default=0.0)
    edges = "".join(_line("edge", path, (width_m + 0.8) * view.scale) for path, width_m in roads)
    lanes = "".join(_line("road", path, width_m * view.scale) for path, width_m in roads)
    apart = (widest_m / 2 + 1) * view.scale
    middles = "".join(
        f'<path class="lane" d="{path}" stroke-dasharray="0 {apart:.0f}{" 9 9" * 40}"/>' for path, _ in roads
    )
    houses = "".join(f'<path class="house" d="{view.path(each.polygon)}Z"/>' for each in scene.occluders)
    return f"{edges}{lanes}{middles}{houses}{_named(scene, view)}"


def _named(scene: DrivenScene, view: View) -> str:
    """The corner at the right and at the bottom has the word, where there is a house."""
    corner = view.x_m + (view.width - 30) / view.scale, view.y_m - (view.height - 18) / view.scale
    if not any(inside(corner, each.polygon) for each in scene.occluders):
        return ""
    return f'<text class="s r" x="{view.width - 12:g}" y="{view.height - 12:g}">a house</text>'


def _width_m(road: dict[str, object]) -> float:
    lanes, width_m = road.get("lanes_each_way", 1), road.get("lane_width_m", LANE_M)
    return 2 * float(str(lanes)) * float(str(width_m))


def _line(look: str, path: str, width: float) -> str:
    return f'<path class="{look}" d="{path}" stroke-width="{width:.1f}"/>'
