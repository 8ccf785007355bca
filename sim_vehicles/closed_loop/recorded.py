"""The laps of a replay as replay.json has them: verdicts, warnings, and the scene as it was driven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from protos import json_shape
from protos.json_shape import Json, ShapeError
from sim_vehicles.closed_loop.closed_loop import Verdict
from sim_vehicles.encounter.judgement import Stage
from sim_vehicles.inputs.stimuli import HeardMessage

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
    return json_shape.read(Verdict, {"found": found, **played}, path)


def with_split(verdict: Verdict, stages: tuple[Stage, ...] | None, missing: str | None = None) -> Verdict:
    """The verdict with the stages of its deciding tuple, or why there are none."""
    assert verdict.found.deciding is not None
    deciding = replace(verdict.found.deciding, split=stages, split_missing=missing)
    return replace(verdict, found=replace(verdict.found, deciding=deciding))
