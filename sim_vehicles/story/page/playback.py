"""Input of the playable scene on the page: motion, messages and events as plain values."""

from __future__ import annotations

from math import cos, hypot, sin
from typing import Any

from sim_vehicles.closed_loop.recorded import SampledTrack
from sim_vehicles.encounter.driven_path import DrivenPath
from sim_vehicles.encounter.swept_area import entry_m
from sim_vehicles.story.page.plots import EVENT_COLOURS
from sim_vehicles.story.page.run_story import Story
from sim_vehicles.story.page.stopping_profile import track
from sim_vehicles.world.geometry import Point, box
from sim_vehicles.world.motion import State

MOST_SAMPLES = 40_000  # of all vehicles: a long recording of many is thinned out


def playback(story: Story) -> dict[str, Any]:
    """What the playable scene needs."""
    found, brake = story.verdict.found, story.verdict.found.brake
    at_s = [event.at_s for event in story.events]
    start_s, end_s = story.scene.start_s, story.scene.end_s
    begin_s = max(start_s, at_s[0] - 0.5) if at_s else start_s
    centre = _centre(story)
    left = None if story.stopping is None else story.stopping.left
    return {
        "scene": _scene(story),
        "begin_s": begin_s,
        "finish_s": min(end_s, at_s[-1] + (0.6 if story.crashed else 1.5)) if at_s else end_s,
        "centre": centre,
        "junction": _junction(story, centre),
        "left": None if left is None else {"from_s": left.from_s, "step_s": left.step_s, "metres": left.metres},
        "events": [
            {"at_s": event.at_s, "text": event.text, "colour": EVENT_COLOURS[event.kind]} for event in story.events
        ],
        "warnings": [{"at_s": each.at_s, "about": each.about} for each in story.warnings],
        "knew_s": None if found.knew is None else float(found.knew.at_s),
        "begins_s": None if brake is None else _number(brake.begins_s),
        "stopped_s": None if brake is None else _number(brake.stopped_s),
        "impact_s": _number(found.impact_s),
        "impact_kmh": _number(found.impact_kmh),
        "contact": _contact(story),
    }


def _scene(story: Story) -> dict[str, Any]:
    """The scene with plain values, thinned out where it is long."""
    scene = story.scene
    samples = sum(len(each.x_m) for each in scene.vehicles.values())
    every = max(1, -(-samples // MOST_SAMPLES))
    recorded = scene.ego_recorded
    return {
        "ego": story.ego,
        "crossing": story.other,
        "stations": list(scene.stations),
        "occluders": [
            {"name": str(each.name), "polygon": _points(each.polygon)}
            for each in scene.occluders
        ],
        "roads": [
            {"line": _points(each["line"]), "lanes_each_way": float(each.get("lanes_each_way", 1)),
             "lane_width_m": float(each.get("lane_width_m", 3.5))}
            for each in scene.roads
        ],
        "start_s": float(scene.start_s),
        "end_s": float(scene.end_s),
        "step_s": scene.step_s * every,
        "vehicles": {name: _vehicle(each, every) for name, each in scene.vehicles.items()},
        "ego_recorded": None if recorded is None else _vehicle(recorded, every),
        "messages": [
            {"at_s": float(each.at_s), "station": each.station, "object": each.object}
            for each in scene.messages
        ],
        "perceives": [
            {"who": each.who, "from_s": float(each.from_s), "until_s": float(each.until_s)}
            for each in scene.perceives
        ],
    }  # fmt: skip


def _vehicle(given: SampledTrack, every: int) -> dict[str, Any]:
    columns = {"x_m": given.x_m, "y_m": given.y_m, "heading_rad": given.heading_rad, "speed_mps": given.speed_mps}
    return {
        **{name: [round(float(value), 3) for value in column[::every]] for name, column in columns.items()},
        "length_m": float(given.length_m),
        "width_m": float(given.width_m),
        "from_s": float(given.from_s),
    }


def _points(given: Any) -> list[list[float]]:
    return [[float(x), float(y)] for x, y in given]


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _centre(story: Story) -> list[float]:
    """Where the ego's path meets the strip; else the middle of its path."""
    scene, step_s = story.scene, story.scene.step_s
    ego = track(story.ego, scene.ego_recorded or scene.vehicles[story.ego], step_s)
    if story.other in scene.vehicles:
        strip_m = entry_m(ego, track(story.other, scene.vehicles[story.other], step_s))
        if strip_m is not None:
            x_m, y_m, _ = DrivenPath(ego).at(strip_m + ego.length_m / 2)
            return [round(x_m, 2), round(y_m, 2)]
    middle = ego.states[len(ego.states) // 2]
    return [round(middle.x_m, 2), round(middle.y_m, 2)]


def _junction(story: Story, centre: list[float]) -> list[float]:
    """Where the roads begin: the middle of the crossing."""
    starts = [each["line"][0] for each in story.scene.roads]
    same = [point for point in starts if starts.count(point) > 1]
    return [float(value) for value in same[0]] if same else centre


def _contact(story: Story) -> list[float] | None:
    """Where the boxes met: the middle of the part of the ego's outline that is nearest to the other's box."""
    impact_s, vehicles, step_s = story.verdict.found.impact_s, story.scene.vehicles, story.scene.step_s
    if impact_s is None or story.ego not in vehicles or story.other not in vehicles:
        return None
    ego, other = (track(name, vehicles[name], step_s) for name in (story.ego, story.other))
    here, there = ego.at(impact_s), other.at(impact_s)
    if here is None or there is None:
        return None
    outline = _outline(box(here.x_m, here.y_m, here.heading_rad, ego.length_m, ego.width_m))
    away = [_away(point, there, other.length_m / 2, other.width_m / 2) for point in outline]
    near = [point for point, far in zip(outline, away, strict=True) if far <= min(away) + 0.05]
    return [round(sum(point[axis] for point in near) / len(near), 2) for axis in (0, 1)]


def _outline(corners: list[Point], steps: int = 20) -> list[Point]:
    sides = zip(corners, [*corners[1:], corners[0]], strict=True)
    return [
        (ax + (bx - ax) * i / steps, ay + (by - ay) * i / steps) for (ax, ay), (bx, by) in sides for i in range(steps)
    ]


def _away(point: Point, state: State, along_m: float, across_m: float) -> float:
    """Distance of a point from a box; 0 inside."""
    dx, dy, c, s = point[0] - state.x_m, point[1] - state.y_m, cos(state.heading_rad), sin(state.heading_rad)
    return hypot(max(0.0, abs(dx * c + dy * s) - along_m), max(0.0, abs(dy * c - dx * s) - across_m))
