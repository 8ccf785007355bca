"""Record of the closed loop in replay.json: verdicts, warnings, and the scene as it was driven, for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import floor
from typing import Any

from sim_vehicles.closed_loop.closed_loop import ClosedLoop
from sim_vehicles.closed_loop.lap import Lap, worst
from sim_vehicles.encounter.visibility import Eye
from sim_vehicles.inputs.stimuli import heard
from sim_vehicles.world.motion import Track

STEP_S = 0.05  # between the samples of a vehicle's motion


def record(laps: Sequence[Lap]) -> dict[str, Any]:
    """`verdict` of the worst lap with `crashes` and `laps` counted over all, `laps`, `warnings`, and the `scene` of the
    worst lap. Raises ValueError where there is no lap."""
    if not laps:
        raise ValueError("no lap was played, so there is nothing to record")
    chosen = worst(laps)
    crashes = sum(lap.verdict.crashed for lap in laps)
    return {
        "verdict": replace(chosen.verdict, crashes=crashes, laps=len(laps)).document(),
        "laps": [lap.verdict.document() for lap in laps],
        "warnings": warnings(laps),
        "scene": scene(chosen.loop),
    }


def warnings(laps: Sequence[Lap]) -> list[dict[str, Any]]:
    """Every warning of level 1 or more, by lap (counted from 0) and in the order of delivery."""
    found = []
    for number, lap in enumerate(laps):
        names = {number: name for name, number in lap.loop.inputs.numbers.items()}
        for one in lap.loop.log:
            if one.on:
                found.append({
                    "lap": number,
                    "at_s": one.at_ns / 1e9,
                    "about": names.get(one.warning.object_id, str(one.warning.object_id)),
                    "station": names.get(one.warning.station, str(one.warning.station)),
                    "level": one.warning.level,
                    "latency_ns": list(one.latency_ns),
                    "seq": one.lineage[2],
                })  # fmt: skip
    return found


def scene(loop: ClosedLoop) -> dict[str, Any]:
    """Who is who, buildings and roads, every vehicle's motion (the ego's as it drove, and as recorded), the V2V tuples
    that it was sent, and who perceived the crossing vehicle when."""
    what, motion, driven = loop.scenario.scene, loop.scenario.motion, loop.driven
    tracks = {**motion.tracks, what.ego: loop.ego}
    names = [f"building {i + 1}" for i in range(len(what.occluders))]
    for i, one in enumerate(what.raw.get("occluders", [])[: len(names)]):
        names[i] = one.get("name", names[i]) if isinstance(one, dict) else names[i]
    sampled = {name: _sampled(track, driven.from_s, driven.until_s) for name, track in sorted(tracks.items())}
    return {
        "name": what.name,
        "ego": what.ego,
        "crossing": loop.judge.crossing,
        "stations": list(what.stations),
        "range_m": what.range_m,
        "occluders": [
            {"name": name, "polygon": [list(point) for point in polygon]}
            for name, polygon in zip(names, what.occluders, strict=True)
        ],
        "roads": what.raw.get("roads") or [],
        "start_s": driven.from_s,
        "end_s": driven.until_s,
        "step_s": STEP_S,
        "vehicles": {name: one for name, one in sampled.items() if one is not None},
        "ego_recorded": _sampled(motion.tracks[what.ego], driven.from_s, driven.until_s),
        "messages": heard(loop.bursts, loop.inputs.numbers),
        "perceives": _perceives(loop),
    }


def _sampled(track: Track, from_s: float, until_s: float) -> dict[str, Any] | None:
    """Its states every step while it is there, from `from_s` on; None where it is not there in this time. A stretch
    that the recording does not have (over 1 s) ends it: nothing is made up."""
    count = floor((until_s - from_s) / STEP_S + 1e-6)
    states = [track.at(round(from_s + i * STEP_S, 6)) for i in range(count + 1)]
    first = next((i for i, state in enumerate(states) if state is not None), None)
    if first is None:
        return None
    found = []
    for state in states[first:]:
        if state is None:
            break
        found.append(state)
    return {
        "type": track.type,
        "length_m": track.length_m,
        "width_m": track.width_m,
        "from_s": round(from_s + first * STEP_S, 6),
        "x_m": [round(state.x_m, 3) for state in found],
        "y_m": [round(state.y_m, 3) for state in found],
        "heading_rad": [round(state.heading_rad, 4) for state in found],
        "speed_mps": [round(state.speed_mps, 3) for state in found],
    }


def _perceives(loop: ClosedLoop) -> list[dict[str, Any]]:
    whom, driven, what = loop.judge.crossing, loop.driven, loop.scenario.scene
    if whom is None:
        return []
    found = []
    for who in (what.ego, *what.stations):
        if who == whom:
            continue
        eye = Eye(loop.scenario, who, whom, loop.ego if who == what.ego else None)
        for from_s, until_s in eye.spans(driven.from_s, driven.until_s):
            found.append({"who": who, "whom": whom, "from_s": round(from_s, 3), "until_s": round(until_s, 3)})
    return found
