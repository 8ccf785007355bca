"""A replay as an MCAP file, which Foxglove opens: scene, vehicles, V2V tuples, warnings, the ego, the verdict.

Messages are JSON with JSON Schemas (`mcap_schemas`). Log time is the recording's time. The same replay gives the same
bytes. Of a replay of several laps the file holds the one that `scene` shows, the worst. Rejected: protobuf messages
(their descriptors would have to come along), the real time of the run (it differs from run to run, and a virtual one
has none).

| topic     | schema                  | message                                                                      |
|-----------|-------------------------|------------------------------------------------------------------------------|
| /scene    | foxglove.SceneUpdate    | once: roads, what hides, names                                               |
| /vehicles | foxglove.SceneUpdate    | every step: a box and a name per vehicle, a line where one perceives another |
| /tf       | foxglove.FrameTransform | every step: frame `ego` on frame `plane`                                     |
| /ego      | shimekiri.Ego           | every step: place, speed, way left to the strip that the crossing one sweeps |
| /v2v      | shimekiri.V2v           | one per tuple: who says it, about whom, when measured, when admitted         |
| /warnings | shimekiri.Warning       | one per warning of level 1 or 2                                              |
| /verdict  | shimekiri.Verdict       | once, at the end                                                             |
| /log      | foxglove.Log            | the same as sentences                                                        |
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate, pairwise
from math import hypot
from pathlib import Path
from typing import Any, NamedTuple

from sim_vehicles.errors import MissingToolError, bad_input
from sim_vehicles.export.mcap_scene import FRAME, Json, still, time, turned, vector, vehicles
from sim_vehicles.export.mcap_schemas import TOPICS

INFO, WARNING, ERROR = 2, 3, 4  # foxglove.LogLevel
LAP = ("burst_phase", "burst_phase_ns", "outcome", "gap_m", "impact_s")  # a lap is told by these of its verdict


class Message(NamedTuple):
    """One message on a topic, at recording time."""

    at_ns: int
    topic: str
    value: Json


def write_mcap(path: Path, replay: Json, run: Path | None = None) -> None:
    """Writes what replay.json holds (`replay`) to path, whole or not at all.

    `run`: the run's folder, whose plan.json comes along as an attachment, beside replay.json. BadInputError where the
    replay has no scene, or its time begins below 0 s; MissingToolError where the package mcap is not installed.
    """
    try:
        from mcap.writer import Writer
    except ImportError:
        raise MissingToolError(
            "missing_tool",
            "writing MCAP needs the package mcap: pip install 'shimekiri[vehicles]'"
            " (from a file: 'shimekiri-VERSION-py3-none-any.whl[vehicles]')",
            subject="mcap",
        ) from None
    scene = replay.get("scene")
    if not scene:
        raise bad_input(
            "not_judged", f"this replay was not judged, so it has no scene: {replay.get('not_judged')}", file=path
        )
    if scene["start_s"] < 0:
        raise bad_input(
            "begins_below_zero",
            f"the replay begins at {scene['start_s']:g} s; MCAP has no time below 0",
            "--start later",
            file=path,
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as stream:
        writer: Any = Writer(stream)
        writer.start(profile="", library="shimekiri")
        channels = {topic: _channel(writer, topic) for topic in TOPICS}
        for sequence, (at_ns, topic, value) in enumerate(messages(replay)):
            writer.add_message(channels[topic], at_ns, _json(value), at_ns, sequence)
        for name, data in _attached(replay, run):
            writer.add_attachment(0, 0, name, "application/json", data)
        writer.add_metadata("shimekiri", {key: str(replay.get(key)) for key in ("scenario", "inputs_hash", "seed")})
        writer.finish()
    part.replace(path)


def messages(replay: Json) -> list[Message]:
    """All messages in order of time; at one instant in the order of `TOPICS`."""
    scene, verdict = replay["scene"], replay.get("verdict")
    start_ns, end_ns = round(scene["start_s"] * 1e9), round(scene["end_s"] * 1e9)
    warnings = list(_warnings(replay))
    found = [
        Message(start_ns, "/scene", still(scene, start_ns)),
        *_vehicles(scene),
        *_ego(scene, verdict or {}),
        *(_v2v(one) for one in scene["messages"]),
        *warnings,
    ]
    if verdict:
        found.append(Message(end_ns, "/verdict", _said(verdict)))
    found += [_log(*line) for line in _sentences(verdict or {}, warnings, end_ns)]
    order = list(TOPICS)
    return sorted(found, key=lambda one: (one.at_ns, order.index(one.topic)))


def _channel(writer: Any, topic: str) -> int:
    schema = TOPICS[topic]
    number = writer.register_schema(schema["title"], "jsonschema", _json(schema))
    return int(writer.register_channel(topic, "json", number))


def _json(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _attached(replay: Json, run: Path | None) -> Iterator[tuple[str, bytes]]:
    yield "replay.json", _json(replay)
    plan = None if run is None else run / "plan.json"
    if plan is not None and plan.is_file():
        yield "plan.json", plan.read_bytes()


def _instants(scene: Json, one: Json) -> list[int]:
    """When the states of one vehicle of the scene are, ns."""
    return [round((one["from_s"] + i * scene["step_s"]) * 1e9) for i in range(len(one["x_m"]))]


def _vehicles(scene: Json) -> Iterator[Message]:
    places: dict[int, dict[str, tuple[float, float, float]]] = {}
    for name, one in scene["vehicles"].items():
        states = zip(_instants(scene, one), one["x_m"], one["y_m"], one["heading_rad"], strict=True)
        for at_ns, x, y, heading_rad in states:
            places.setdefault(at_ns, {})[name] = (x, y, heading_rad)
    lasts_ns = round(scene["step_s"] * 1.5e9)
    for at_ns, there in places.items():
        yield Message(at_ns, "/vehicles", vehicles(scene, at_ns, there, lasts_ns))


def _ego(scene: Json, verdict: Json) -> Iterator[Message]:
    one = scene["vehicles"].get(scene["ego"])
    if one is None:
        return
    steps_m = [hypot(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(zip(one["x_m"], one["y_m"], strict=True))]
    ways_m = list(accumulate(steps_m, initial=0.0))
    instants = _instants(scene, one)
    anchor_m = _anchor(verdict, instants, ways_m)
    for i, at_ns in enumerate(instants):
        x, y, heading_rad, speed_mps = (one[key][i] for key in ("x_m", "y_m", "heading_rad", "speed_mps"))
        placed = {"translation": vector(x, y), "rotation": turned(heading_rad)}
        frames = {"timestamp": time(at_ns), "parent_frame_id": FRAME, "child_frame_id": "ego"}
        yield Message(at_ns, "/tf", {**frames, **placed})
        value = {"t_s": at_ns / 1e9, "x_m": x, "y_m": y, "heading_rad": heading_rad, "speed_mps": speed_mps}
        value |= {"speed_kmh": round(speed_mps * 3.6, 3), "way_m": round(ways_m[i], 3)}
        if anchor_m is not None:
            value["left_m"] = round(anchor_m - ways_m[i], 3)
        yield Message(at_ns, "/ego", value)


def _anchor(verdict: Json, instants: list[int], ways_m: list[float]) -> float | None:
    """The way along the ego's path to the strip, from where its motion begins: the judge says how much is left at one
    instant; braking does not change the path, so the rest is the way driven."""
    for key in ("first_perceivable", "knew"):
        said = verdict.get(key)
        if not said or said.get("left_m") is None:
            continue
        at_ns = said["at_s"] * 1e9
        for (a_ns, b_ns), (a_m, b_m) in zip(pairwise(instants), pairwise(ways_m), strict=True):
            if a_ns <= at_ns <= b_ns:
                return float(said["left_m"] + a_m + (b_m - a_m) * (at_ns - a_ns) / (b_ns - a_ns))
    return None


def _v2v(one: Json) -> Message:
    age_ms = round((one["at_s"] - one["measured_s"]) * 1e3, 3)
    keys = ("station", "object", "measured_s", "at_s")
    return Message(round(one["at_s"] * 1e9), "/v2v", {**{key: one[key] for key in keys}, "age_ms": age_ms})


def _warnings(replay: Json) -> Iterator[Message]:
    crossing, lap = replay["scene"]["crossing"], _lap(replay)
    for one in replay.get("warnings", ()):
        if lap is not None and one.get("lap", lap) != lap:
            continue
        value = {
            **{
                key: one[key] for key in ("at_s", "about", "station", "level", "seq", "lap") if one.get(key) is not None
            },
            "about_crossing": one["about"] == crossing,
        }
        if one.get("latency_ns"):
            value["latency_from_ms"], value["latency_to_ms"] = (ns / 1e6 for ns in one["latency_ns"])
        yield Message(round(one["at_s"] * 1e9), "/warnings", value)


def _lap(replay: Json) -> int | None:
    """The number of the lap that the scene and the verdict are of."""
    verdict, laps = replay.get("verdict") or {}, replay.get("laps") or []
    alike = (n for n, lap in enumerate(laps) if all(lap.get(key) == verdict.get(key) for key in LAP))
    return next(alike, None)


def _said(value: Any) -> Any:
    """Without what is null, at any depth."""
    if isinstance(value, dict):
        return {key: _said(inner) for key, inner in value.items() if inner is not None}
    return [_said(inner) for inner in value] if isinstance(value, list) else value


def _sentences(verdict: Json, warnings: list[Message], end_ns: int) -> Iterator[tuple[int, int, str, str]]:
    """Time, level, who says it, and the sentence."""
    first, brake = verdict.get("first_perceivable"), verdict.get("brake")
    if first:
        yield round(first["at_s"] * 1e9), INFO, "scene", f"{first['by']} perceives the crossing vehicle{_left(first)}"
    for at_ns, _, one in warnings:
        what = "crossing vehicle" if one["about_crossing"] else "another vehicle"
        yield at_ns, WARNING, "query", f"warning, level {one['level']}: {what} {one['about']}, seen by {one['station']}"
    if brake:
        said = f"brake ({brake['kind']}): {brake['deceleration_mps2']:g} m/s2 after {brake['reaction_s']:g} s"
        yield round(brake["commanded_s"] * 1e9), WARNING, "ego", said
    if verdict.get("outcome") == "CRASH":
        at_ns = end_ns if verdict.get("impact_s") is None else round(verdict["impact_s"] * 1e9)
        speed = "" if verdict.get("impact_kmh") is None else f" at {verdict['impact_kmh']:g} km/h"
        yield at_ns, ERROR, "judge", f"CRASH{speed}"
    elif verdict:
        gap = "" if verdict.get("gap_m") is None else f", least gap {verdict['gap_m']:g} m"
        yield end_ns, INFO, "judge", f"{verdict['outcome']}{gap}"


def _left(moment: Json) -> str:
    return "" if moment.get("left_m") is None else f"; the ego has {moment['left_m']:g} m left"


def _log(at_ns: int, level: int, name: str, message: str) -> Message:
    value = {"timestamp": time(at_ns), "level": level, "message": message, "name": name, "file": "", "line": 0}
    return Message(at_ns, "/log", value)
