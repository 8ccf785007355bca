"""Input of the playable scene on the page: motion, messages and events of all runs as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, hypot, sin
from typing import Any

from sim_vehicles.closed_loop.recorded import SampledTrack, track
from sim_vehicles.encounter.driven_path import DrivenPath
from sim_vehicles.encounter.swept_area import entry_m
from sim_vehicles.story.page.plots import EVENT_LOOKS
from sim_vehicles.story.page.run_story import Story
from sim_vehicles.world.geometry import Point, box
from sim_vehicles.world.motion import State

MOST_SAMPLES = 16_000  # of all vehicles: a long recording of many is thinned out
MOST_MESSAGES = 6_000  # of all runs: of those about others than the crossing vehicle so many as have room


def playback(stories: Sequence[Story], names: Sequence[str]) -> dict[str, Any]:
    """What the playable scene needs: what is common to all runs, and the ego's part of each."""
    first = stories[0]
    at_s = sorted(event.at_s for story in stories for event in story.events)
    start_s, end_s = first.scene.start_s, first.scene.end_s
    samples = sum(len(each.x_m) for each in first.scene.vehicles.values()) + len(stories) * len(
        first.scene.vehicles[first.ego].x_m
    )
    every = max(1, -(-samples // MOST_SAMPLES))
    centre = _centre(first)
    return {
        "scene": _scene(first, every),
        "begin_s": max(start_s, at_s[0] - 0.5) if at_s else start_s,
        "finish_s": min(end_s, at_s[-1] + 1.0) if at_s else end_s,
        "centre": centre,
        "junction": _junction(first, centre),
        "limit": limit_pose(first),
        "runs": [_run(story, name, every, MOST_MESSAGES // len(stories))
                 for story, name in zip(stories, names, strict=True)],
    }  # fmt: skip


def _run(story: Story, name: str, every: int, most_messages: int) -> dict[str, Any]:
    scene, found, brake = story.scene, story.verdict.found, story.verdict.found.brake
    left = None if story.stopping is None else story.stopping.left
    return {
        "name": name,
        "ego": _vehicle(scene.vehicles[story.ego], every),
        "left": None if left is None else {
            "from_s": left.from_s, "step_s": left.step_s, "metres": [round(each, 2) for each in left.metres],
        },
        "messages": _messages(story, most_messages),
        "perceives": [
            {"who": each.who, "from_s": float(each.from_s), "until_s": float(each.until_s)} for each in scene.perceives
        ],
        "events": [
            {"at_s": event.at_s, "kind": event.kind, "look": EVENT_LOOKS[event.kind].name, "text": event.text}
            for event in story.events
        ],
        "warnings": [{"at_s": each.at_s, "about": each.about} for each in story.warnings],
        "knew_s": None if found.knew is None else float(found.knew.at_s),
        "begins_s": None if brake is None else _number(brake.begins_s),
        "stopped_s": None if brake is None else _number(brake.stopped_s),
        "impact_s": _number(found.impact_s),
        "impact_kmh": None if found.impact_kmh is None else round(found.impact_kmh, 1),
        "contact": contact_point(story),
    }  # fmt: skip


def _messages(story: Story, most: int) -> list[tuple[float, str, int]]:
    """When each came, by which station, and 1 where it is about the crossing vehicle."""
    about = [each for each in story.scene.messages if each.object == story.other]
    others = [each for each in story.scene.messages if each.object != story.other]
    every = max(1, -(-len(others) // max(1, most - len(about))))
    return [(round(float(each.at_s), 3), each.station, 1) for each in about[:most]] + [
        (round(float(each.at_s), 3), each.station, 0) for each in others[::every]
    ]


def limit_pose(story: Story) -> list[float] | None:
    """Where the front of the ego is at the last moment to command its brake, as x, y and heading."""
    latest_s = None if story.stopping is None else story.stopping.latest_s
    recorded = story.scene.ego_recorded
    if latest_s is None or recorded is None:
        return None
    ego = track(story.ego, recorded, story.scene.step_s)
    here = ego.at(latest_s)
    if here is None:
        return None
    ahead = ego.length_m / 2
    return [
        round(here.x_m + ahead * cos(here.heading_rad), 2), round(here.y_m + ahead * sin(here.heading_rad), 2),
        round(here.heading_rad, 4),
    ]  # fmt: skip


def _scene(story: Story, every: int) -> dict[str, Any]:
    """What all runs have in common."""
    scene, recorded = story.scene, story.scene.ego_recorded
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
        "vehicles": {name: _vehicle(each, every) for name, each in scene.vehicles.items() if name != story.ego},
        "ego_recorded": None if recorded is None else _vehicle(recorded, every),
    }  # fmt: skip


def _vehicle(given: SampledTrack, every: int) -> dict[str, Any]:
    columns = {
        "x_m": (given.x_m, 2), "y_m": (given.y_m, 2), "heading_rad": (given.heading_rad, 3),
        "speed_mps": (given.speed_mps, 2),
    }  # fmt: skip
    return {
        **{
            name: [round(float(value), digits) for value in column[::every]]
            for name, (column, digits) in columns.items()
        },
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


def contact_point(story: Story) -> list[float] | None:
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
