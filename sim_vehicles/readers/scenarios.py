"""Scenarios by name or path: a recording with its scene.

A scene is a JSON file beside its recording, with the same name. A recording without one can be used as well: then the
ego is named by the caller, the stations are the vehicles that come nearest to it, and nothing stands in the way.
"""

from __future__ import annotations

from difflib import get_close_matches
from math import hypot
from pathlib import Path

from sim_vehicles.errors import bad_input
from sim_vehicles.readers.formats import read_motion
from sim_vehicles.readers.scene_file import read_scene
from sim_vehicles.recordings import RECORDINGS
from sim_vehicles.world.motion import Motion
from sim_vehicles.world.scene import Scenario, Scene


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
            raise bad_input(
                "unknown_vehicle",
                f"the {role} {vehicle!r} is not in the recording",
                f"it has {_some(motion)}",
                subject=vehicle,
                file=path,
            )
    return Scenario(motion, scene)


def _find(what: str) -> Path:
    if what in built_in():
        return RECORDINGS / f"{what}.csv.gz"
    path = Path(what)
    if path.is_file():
        return path
    if path.suffix or path.parent != Path("."):
        raise bad_input("no_file", "there is no such file", file=what)
    near = get_close_matches(what, built_in(), n=1, cutoff=0.4)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise bad_input(
        "unknown_scenario",
        f"{what}: no such scenario{meant} (built in: {', '.join(built_in())}; or give the path of a recording)",
        subject=what,
    )


def _plain_scene(motion: Motion, name: str, ego: str | None) -> Scene:
    if ego is None:
        raise bad_input(
            "no_scene_file",
            f"no scene file {name}.json beside it, so name the ego: --ego ID, of {_some(motion)}",
            subject="--ego",
            file=motion.source,
        )
    if ego not in motion.tracks:
        raise bad_input(
            "unknown_vehicle",
            f"the ego {ego!r} is not in the recording",
            f"it has {_some(motion)}",
            subject=ego,
            file=motion.source,
        )
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
