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

from sim_vehicles.closed_loop.closed_loop import Verdict
from sim_vehicles.closed_loop.recorded import DrivenScene, SampledTrack
from sim_vehicles.encounter.judgement import CRASH, Judgement
from sim_vehicles.errors import MissingToolError, bad_input
from sim_vehicles.export.mcap_scene import FRAME, Json, still, time, turned, vector, vehicles
from sim_vehicles.export.mcap_schemas import TOPICS
from sim_vehicles.inputs.stimuli import HeardMessage
from sim_vehicles.replay.replay_document import ReplaySummary

INFO, WARNING, ERROR = 2, 3, 4  # foxglove.LogLevel


class Message(NamedTuple):
    """One message on a topic, at recording time."""

    at_ns: int
    topic: str
    value: Json


def write_mcap(path: Path, replay: ReplaySummary, run: Path | None = None) -> None:
    """Writes a replay to path, whole or not at all.

    `run`: the run's folder, whose plan.json comes along as an attachment, beside replay.json. BadInputError where its
    time begins below 0 s; MissingToolError where the package mcap is not installed.
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
    if replay.scene.start_s < 0:
        raise bad_input(
            "begins_below_zero",
            f"the replay begins at {replay.scene.start_s:g} s; MCAP has no time below 0",
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
        head = replay.head
        about = {"scenario": head.scenario, "inputs_hash": head.inputs_hash, "seed": str(head.seed)}
        writer.add_metadata("shimekiri", about)
        writer.finish()
    part.replace(path)


def messages(replay: ReplaySummary) -> list[Message]:
    """All messages in order of time; at one instant in the order of `TOPICS`."""
    scene, verdict = replay.scene, replay.verdict
    start_ns, end_ns = round(scene.start_s * 1e9), round(scene.end_s * 1e9)
    warnings = list(_warnings(replay))
    found = [
        Message(start_ns, "/scene", still(scene, start_ns)),
        *_vehicles(scene),
        *_ego(scene, None if verdict is None else verdict.found),
        *(_v2v(one) for one in scene.messages),
        *warnings,
    ]
    if verdict is not None:
        found.append(Message(end_ns, "/verdict", _said(verdict.document())))
    found += [_log(*line) for line in _sentences(verdict, warnings, end_ns)]
    order = list(TOPICS)
    return sorted(found, key=lambda one: (one.at_ns, order.index(one.topic)))


def _channel(writer: Any, topic: str) -> int:
    schema = TOPICS[topic]
    number = writer.register_schema(schema["title"], "jsonschema", _json(schema))
    return int(writer.register_channel(topic, "json", number))


def _json(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _attached(replay: ReplaySummary, run: Path | None) -> Iterator[tuple[str, bytes]]:
    yield "replay.json", _json(replay.document())
    plan = None if run is None else run / "plan.json"
    if plan is not None and plan.is_file():
        yield "plan.json", plan.read_bytes()


def _instants(scene: DrivenScene, one: SampledTrack) -> list[int]:
    """When the states of one vehicle of the scene are, ns."""
    return [round((one.from_s + i * scene.step_s) * 1e9) for i in range(len(one.x_m))]


def _vehicles(scene: DrivenScene) -> Iterator[Message]:
    places: dict[int, dict[str, tuple[float, float, float]]] = {}
    for name, one in scene.vehicles.items():
        states = zip(_instants(scene, one), one.x_m, one.y_m, one.heading_rad, strict=True)
        for at_ns, x, y, heading_rad in states:
            places.setdefault(at_ns, {})[name] = (x, y, heading_rad)
    lasts_ns = round(scene.step_s * 1.5e9)
    for at_ns, there in places.items():
        yield Message(at_ns, "/vehicles", vehicles(scene, at_ns, there, lasts_ns))


def _ego(scene: DrivenScene, found: Judgement | None) -> Iterator[Message]:
    one = scene.vehicles.get(scene.ego)
    if one is None:
        return
    steps_m = [hypot(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(zip(one.x_m, one.y_m, strict=True))]
    ways_m = list(accumulate(steps_m, initial=0.0))
    instants = _instants(scene, one)
    anchor_m = _anchor(found, instants, ways_m)
    for i, at_ns in enumerate(instants):
        x, y, heading_rad, speed_mps = one.x_m[i], one.y_m[i], one.heading_rad[i], one.speed_mps[i]
        placed = {"translation": vector(x, y), "rotation": turned(heading_rad)}
        frames = {"timestamp": time(at_ns), "parent_frame_id": FRAME, "child_frame_id": "ego"}
        yield Message(at_ns, "/tf", {**frames, **placed})
        value = {"t_s": at_ns / 1e9, "x_m": x, "y_m": y, "heading_rad": heading_rad, "speed_mps": speed_mps}
        value |= {"speed_kmh": round(speed_mps * 3.6, 3), "way_m": round(ways_m[i], 3)}
        if anchor_m is not None:
            value["left_m"] = round(anchor_m - ways_m[i], 3)
        yield Message(at_ns, "/ego", value)


def _anchor(found: Judgement | None, instants: list[int], ways_m: list[float]) -> float | None:
    """The way along the ego's path to the strip, from where its motion begins: the judge says how much is left at one
    instant; braking does not change the path, so the rest is the way driven."""
    for said in () if found is None else (found.first_perceivable, found.knew):
        if said is None or said.left_m is None:
            continue
        at_ns = said.at_s * 1e9
        for (a_ns, b_ns), (a_m, b_m) in zip(pairwise(instants), pairwise(ways_m), strict=True):
            if a_ns <= at_ns <= b_ns:
                return float(said.left_m + a_m + (b_m - a_m) * (at_ns - a_ns) / (b_ns - a_ns))
    return None


def _v2v(one: HeardMessage) -> Message:
    value = {"station": one.station, "object": one.object, "measured_s": one.measured_s, "at_s": one.at_s}
    age_ms = round((one.at_s - one.measured_s) * 1e3, 3)
    return Message(round(one.at_s * 1e9), "/v2v", {**value, "age_ms": age_ms})


def _warnings(replay: ReplaySummary) -> Iterator[Message]:
    crossing, lap = replay.scene.crossing, _lap(replay)
    for one in replay.warnings:
        if lap is not None and one.lap != lap:
            continue
        low_ns, high_ns = one.latency_ns
        value = {
            "at_s": one.at_s,
            "about": one.about,
            "station": one.station,
            "level": one.level,
            "seq": one.seq,
            "lap": one.lap,
            "about_crossing": one.about == crossing,
            "latency_from_ms": low_ns / 1e6,
            "latency_to_ms": high_ns / 1e6,
        }
        yield Message(round(one.at_s * 1e9), "/warnings", value)


def _lap(replay: ReplaySummary) -> int | None:
    """The number of the lap that the scene and the verdict are of."""
    verdict = replay.verdict
    alike = (n for n, lap in enumerate(replay.laps) if verdict is not None and lap.is_same(verdict))
    return next(alike, None)


def _said(value: Any) -> Any:
    """Without what is null, at any depth."""
    if isinstance(value, dict):
        return {key: _said(inner) for key, inner in value.items() if inner is not None}
    return [_said(inner) for inner in value] if isinstance(value, list) else value


def _sentences(verdict: Verdict | None, warnings: list[Message], end_ns: int) -> Iterator[tuple[int, int, str, str]]:
    """Time, level, who says it, and the sentence."""
    found = None if verdict is None else verdict.found
    if found is not None and (first := found.first_perceivable) is not None:
        left = "" if first.left_m is None else f"; the ego has {first.left_m:g} m left"
        yield round(first.at_s * 1e9), INFO, "scene", f"{first.by} perceives the crossing vehicle{left}"
    for at_ns, _, one in warnings:
        what = "crossing vehicle" if one["about_crossing"] else "another vehicle"
        yield at_ns, WARNING, "query", f"warning, level {one['level']}: {what} {one['about']}, seen by {one['station']}"
    if found is None:
        return
    if (brake := found.brake) is not None:
        yield round(brake.commanded_s * 1e9), WARNING, "ego", f"brake {brake.by}"
    if found.outcome == CRASH:
        at_ns = end_ns if found.impact_s is None else round(found.impact_s * 1e9)
        speed = "" if found.impact_kmh is None else f" at {found.impact_kmh:g} km/h"
        yield at_ns, ERROR, "judge", f"CRASH{speed}"
    else:
        gap = "" if found.gap_m is None else f", least gap {found.gap_m:g} m"
        yield end_ns, INFO, "judge", f"{found.outcome}{gap}"


def _log(at_ns: int, level: int, name: str, message: str) -> Message:
    value = {"timestamp": time(at_ns), "level": level, "message": message, "name": name, "file": "", "line": 0}
    return Message(at_ns, "/log", value)
