"""A scenario: recorded motion and the scene it happened in (who is who, buildings, roads, how far sensors reach).

A scene is a JSON file beside its recording, with the same name. A recording without one can be used as well: then the
ego is named by the caller, the stations are the vehicles that come nearest to it, and nothing stands in the way.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import hypot, isfinite
from pathlib import Path
from typing import Any

from sim_vehicles.errors import BadInputError
from sim_vehicles.geometry import Point
from sim_vehicles.motion import MAX_TIME_S, Motion, read_motion

RECORDINGS = Path(__file__).parent / "recordings"


@dataclass(frozen=True)
class Scene:
    """Ids of vehicles; polygons in metres; the plane's origin in degrees; the sensors' reach in metres."""

    name: str
    ego: str
    stations: tuple[str, ...]
    crossing: str | None = None
    occluders: tuple[tuple[Point, ...], ...] = ()
    range_m: float = 150.0
    latitude_deg: float = 35.0
    longitude_deg: float = 137.0
    start_s: float | None = None
    raw: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Scenario:
    motion: Motion
    scene: Scene


def built_in() -> list[str]:
    """Names of the recordings that come with the package."""
    return sorted(path.name.removesuffix(".csv.gz") for path in RECORDINGS.glob("*.csv.gz"))


def load_scenario(what: str, ego: str | None = None, skip_bad_rows: bool = False) -> Scenario:
    """`what` is a built-in name or the path of a recording. BadInputError says what is missing and the mend."""
    path = _find(what)
    motion = read_motion(path, skip_bad_rows)
    name = path.name.removesuffix(".gz").removesuffix(".csv").removesuffix(".xml")
    beside = path.with_name(f"{name}.json")
    scene = read_scene(beside) if beside.is_file() else _plain_scene(motion, name, ego)
    if ego is not None and ego != scene.ego:
        others = tuple(station for station in scene.stations if station != ego)
        scene = Scene(**{**vars(scene), "ego": ego, "stations": others})
    for role, vehicle in (("ego", scene.ego), *(("station", name) for name in scene.stations)):
        if vehicle not in motion.tracks:
            raise BadInputError(f"{path}: the {role} {vehicle!r} is not in the recording; it has {_some(motion)}")
    return Scenario(motion, scene)


def read_scene(path: Path) -> Scene:
    """Reads a scene file; BadInputError with its line where it is no JSON, with the key where something is missing."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as bad:
        raise BadInputError(f"{path}:{bad.lineno}: is not JSON: {bad.msg}") from None
    except (OSError, UnicodeDecodeError) as bad:
        raise BadInputError(f"{path}: cannot be read: {bad}") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("ego"), str):
        raise BadInputError(f'{path}: the scene has no ego; add "ego": ID of the vehicle that is to be warned')
    try:
        return _scene(raw, path.stem)
    except (KeyError, TypeError, ValueError, AttributeError) as bad:
        raise BadInputError(f"{path}: the scene is not complete: {type(bad).__name__} {bad}; mend it") from None


def _scene(raw: dict[str, Any], name: str) -> Scene:
    origin, crossing, start_s = raw.get("origin", {}), raw.get("crossing"), raw.get("start_s")
    if not isinstance(raw["stations"], list):
        raise ValueError("stations must be a list of ids")
    if crossing is not None and not isinstance(crossing, str):
        raise ValueError("crossing must be the id of a vehicle")
    for road in raw.get("roads") or []:
        _line(road["line"], "a road's line", 2)
    return Scene(
        name=str(raw.get("scene", name)),
        ego=raw["ego"],
        stations=tuple(str(station) for station in raw["stations"]),
        crossing=crossing,
        occluders=tuple(_line(one["polygon"], "an occluder's polygon", 3) for one in raw.get("occluders", [])),
        range_m=_within("range_m", raw.get("sensing", {}).get("range_m", Scene.range_m), 0, 1e5),
        latitude_deg=_within("latitude_deg", origin.get("latitude_deg", Scene.latitude_deg), -89, 89),
        longitude_deg=_within("longitude_deg", origin.get("longitude_deg", Scene.longitude_deg), -180, 180),
        start_s=None if start_s is None else _within("start_s", start_s, -MAX_TIME_S, MAX_TIME_S),
        raw=raw,
    )


def _line(points: Any, what: str, least: int) -> tuple[Point, ...]:
    line = tuple((float(x), float(y)) for x, y in points)
    if len(line) < least or not all(isfinite(x) and isfinite(y) for x, y in line):
        raise ValueError(f"{what} must have at least {least} points [x, y] in metres")
    return line


def _within(name: str, value: Any, least: float, most: float) -> float:
    if not least <= float(value) <= most:  # NaN too
        raise ValueError(f"{name} is {value}; it must be from {least:g} to {most:g}")
    return float(value)


def _find(what: str) -> Path:
    if what in built_in():
        return RECORDINGS / f"{what}.csv.gz"
    path = Path(what)
    if path.is_file():
        return path
    if path.suffix or path.parent != Path("."):
        raise BadInputError(f"{what}: there is no such file")
    near = get_close_matches(what, built_in(), n=1, cutoff=0.4)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise BadInputError(
        f"{what}: no such scenario{meant} (built in: {', '.join(built_in())}; or give the path of a recording)"
    )


def _plain_scene(motion: Motion, name: str, ego: str | None) -> Scene:
    if ego is None:
        raise BadInputError(
            f"{motion.source}: no scene file {name}.json beside it, so name the ego: --ego ID, of {_some(motion)}"
        )
    if ego not in motion.tracks:
        raise BadInputError(f"{motion.source}: the ego {ego!r} is not in the recording; it has {_some(motion)}")
    return Scene(name, ego, _nearest(motion, ego), start_s=motion.tracks[ego].states[0].t_s)


def _nearest(motion: Motion, ego: str, n: int = 3) -> tuple[str, ...]:
    """The n vehicles that come nearest to the ego (ties by id): they are taken for the ones with a radio."""
    least: dict[str, float] = {}
    for state in motion.tracks[ego].states:
        for name, track in motion.tracks.items():
            other = track.at(state.t_s) if name != ego else None
            if other is not None:
                away_m = hypot(other.x_m - state.x_m, other.y_m - state.y_m)
                least[name] = min(away_m, least.get(name, away_m))
    return tuple(sorted(sorted(least), key=lambda name: least[name])[:n])


def _some(motion: Motion, n: int = 8) -> str:
    names = sorted(motion.tracks)
    return ", ".join(names[:n]) + (f" and {len(names) - n} more" if len(names) > n else "")
