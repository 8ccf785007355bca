"""The laps of a replay as replay.json has them: verdicts, warnings, and the scene as it was driven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

from protos import json_shape
from protos.json_shape import Json, ShapeError, omitted
from sim_vehicles.closed_loop.closed_loop import Verdict
from sim_vehicles.encounter.judgement import Judgement, Stage
from sim_vehicles.inputs.stimuli import HeardMessage
from sim_vehicles.world.limits import check_jump, check_size, check_state
from sim_vehicles.world.motion import MAX_GAP_S, State, Track

LEAST_STEP_S = 1e-3  # between the samples of a scene
ROUNDING_M = 0.01  # samples are rounded to mm
PLAYED = tuple(each.name for each in fields(Verdict) if each.name != "found")


@dataclass(frozen=True, slots=True)
class RecordedWarning:
    """A warning of level 1 or more. lap: counted from 0."""

    lap: int
    at_s: float
    about: str
    station: str
    level: int
    latency_ns: tuple[int, int]
    seq: int


@dataclass(frozen=True, slots=True)
class Occluder:
    """A building. name: as the scene's file has it."""

    name: Json
    polygon: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class SampledTrack:
    """A vehicle's motion, a sample every step from `from_s` on."""

    type: str
    length_m: float
    width_m: float
    from_s: float
    x_m: tuple[float, ...]
    y_m: tuple[float, ...]
    heading_rad: tuple[float, ...]
    speed_mps: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Road:
    """What is drawn of a road; a scene's file may say more."""

    line: tuple[tuple[float, float], ...]
    lanes_each_way: float = omitted(1.0)
    lane_width_m: float = omitted(3.5)


@dataclass(frozen=True, slots=True)
class Perceived:
    """A time in which one vehicle perceives another."""

    who: str
    whom: str
    from_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class DrivenScene:
    """Who is who, buildings and roads, every vehicle's motion (the ego's as it drove, and as recorded), the V2V tuples
    that it was sent, and who perceived the crossing vehicle when. roads: as the scene's file has them."""

    name: str
    ego: str
    crossing: str | None
    stations: tuple[str, ...]
    range_m: float
    occluders: tuple[Occluder, ...]
    roads: tuple[Json, ...]
    start_s: float
    end_s: float
    step_s: float
    vehicles: Mapping[str, SampledTrack]
    ego_recorded: SampledTrack | None
    messages: tuple[HeardMessage, ...]
    perceives: tuple[Perceived, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """Of a closed loop. verdict: of the worst lap, with crashes and laps counted over all; scene: that lap's."""

    verdict: Verdict | None
    laps: tuple[Verdict, ...]
    warnings: tuple[RecordedWarning, ...]
    scene: DrivenScene


def read_verdict(value: Any, path: str) -> Verdict | None:
    """Of replay.json. Raises ShapeError."""
    return None if value is None else _verdict(value, path)


def read_laps(value: Any, path: str) -> tuple[Verdict, ...]:
    """Of replay.json. Raises ShapeError."""
    if not isinstance(value, list):
        raise ShapeError(path, "is no list")
    return tuple(_verdict(each, f"{path}[{number}]") for number, each in enumerate(value))


def read_scene(value: Any, path: str) -> DrivenScene:
    """Of replay.json. Raises ShapeError, also where a vehicle is what none can be."""
    scene = json_shape.read(DrivenScene, value, path)
    if not LEAST_STEP_S <= scene.step_s <= MAX_GAP_S:
        raise ShapeError(f"{path}.step_s", f"is {scene.step_s:g}, not from {LEAST_STEP_S:g} to {MAX_GAP_S:g} s")
    for place, road in enumerate(scene.roads):
        _check_road(f"{path}.roads[{place}]", road)
    for name, each in scene.vehicles.items():
        _check(f"{path}.vehicles.{name}", name, each, scene.step_s)
    if scene.ego_recorded is not None:
        _check(f"{path}.ego_recorded", scene.ego, scene.ego_recorded, scene.step_s)
    return scene


def _check_road(path: str, road: Json) -> None:
    drawn = [each.name for each in fields(_Road)]
    told = {name: road[name] for name in drawn if name in road} if isinstance(road, dict) else road
    if not json_shape.read(_Road, told, path).line:
        raise ShapeError(f"{path}.line", "is empty")


def _check(path: str, name: str, sampled: SampledTrack, step_s: float) -> None:
    try:
        _check_motion(name, sampled, step_s)
    except ValueError as bad:
        raise ShapeError(path, f"cannot be: {bad}") from None


def _check_motion(name: str, sampled: SampledTrack, step_s: float) -> None:
    """Raises ValueError where no vehicle is so."""
    check_size(sampled.length_m, sampled.width_m)
    states = track(name, sampled, step_s).states
    if not states:
        raise ValueError("it has no samples")
    for state in states:
        check_state(state)
    for a, b in pairwise(states):
        check_jump(name, step_s, b.x_m - a.x_m, b.y_m - a.y_m, ROUNDING_M)


def track(name: str, sampled: SampledTrack, step_s: float) -> Track:
    """A sampled vehicle of a scene as a track. Raises ValueError where its columns differ in length."""
    columns = sampled.x_m, sampled.y_m, sampled.heading_rad, sampled.speed_mps
    if len({len(each) for each in columns}) > 1:
        raise ValueError("x_m, y_m, heading_rad and speed_mps differ in length")
    rows = zip(*columns, strict=True)
    states = [State(round(sampled.from_s + i * step_s, 6), *row) for i, row in enumerate(rows)]
    return Track(name, sampled.type, sampled.length_m, sampled.width_m, states)


def write_verdict(verdict: Verdict | None) -> Json:
    """For replay.json."""
    return None if verdict is None else verdict.document()


def write_laps(laps: tuple[Verdict, ...]) -> Json:
    """For replay.json."""
    return [lap.document() for lap in laps]


def _verdict(value: Any, path: str) -> Verdict:
    if not isinstance(value, dict):
        raise ShapeError(path, "is no object")
    played = {name: each for name, each in value.items() if name in PLAYED}
    found = {name: each for name, each in value.items() if name not in PLAYED}
    return json_shape.read(Verdict, {"found": json_shape.read(Judgement, found, path), **played}, path)


def with_split(verdict: Verdict, stages: tuple[Stage, ...] | None, missing: str | None = None) -> Verdict:
    """The verdict with the stages of its deciding tuple, or why there are none."""
    assert verdict.found.deciding is not None
    deciding = replace(verdict.found.deciding, split=stages, split_missing=missing)
    return replace(verdict, found=replace(verdict.found, deciding=deciding))
