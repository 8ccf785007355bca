"""Records the laps of a closed loop for replay.json: verdicts, warnings, and the scene as it was driven, for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import floor

from sim_vehicles.closed_loop.closed_loop import ClosedLoop
from sim_vehicles.closed_loop.lap import Lap, worst
from sim_vehicles.closed_loop.recorded import (
    DrivenScene,
    Occluder,
    Perceived,
    Record,
    RecordedWarning,
    SampledTrack,
)
from sim_vehicles.encounter.visibility import Eye
from sim_vehicles.inputs.stimuli import heard
from sim_vehicles.world.motion import Track

STEP_S = 0.05  # between the samples of a vehicle's motion


def record(laps: Sequence[Lap]) -> Record:
    """With the scene of the worst lap. Raises ValueError where there is no lap."""
    if not laps:
        raise ValueError("no lap was played, so there is nothing to record")
    chosen = worst(laps)
    crashes = sum(lap.verdict.crashed for lap in laps)
    return Record(
        verdict=replace(chosen.verdict, crashes=crashes, laps=len(laps)),
        laps=tuple(lap.verdict for lap in laps),
        warnings=tuple(_warnings(laps)),
        scene=scene(chosen.loop),
    )


def _warnings(laps: Sequence[Lap]) -> Iterator[RecordedWarning]:
    """By lap and in the order of delivery."""
    for number, lap in enumerate(laps):
        names = {number: name for name, number in lap.loop.inputs.numbers.items()}
        for one in lap.loop.log:
            if one.on:
                yield RecordedWarning(
                    lap=number,
                    at_s=one.at_ns / 1e9,
                    about=names.get(one.warning.object_id, str(one.warning.object_id)),
                    station=names.get(one.warning.station, str(one.warning.station)),
                    level=one.warning.level,
                    latency_ns=one.latency_ns,
                    seq=one.lineage[2],
                )


def scene(loop: ClosedLoop) -> DrivenScene:
    """As it was driven so far."""
    what, motion, driven = loop.scenario.scene, loop.scenario.motion, loop.driven
    tracks = {**motion.tracks, what.ego: loop.ego}
    names = [f"building {i + 1}" for i in range(len(what.occluders))]
    for i, one in enumerate(what.raw.get("occluders", [])[: len(names)]):
        names[i] = one.get("name", names[i]) if isinstance(one, dict) else names[i]
    sampled = {name: _sampled(track, driven.from_s, driven.until_s) for name, track in sorted(tracks.items())}
    return DrivenScene(
        name=what.name,
        ego=what.ego,
        crossing=loop.judge.crossing,
        stations=tuple(what.stations),
        range_m=what.range_m,
        occluders=tuple(
            Occluder(name, tuple((x, y) for x, y in polygon))
            for name, polygon in zip(names, what.occluders, strict=True)
        ),
        roads=tuple(what.raw.get("roads") or ()),
        start_s=driven.from_s,
        end_s=driven.until_s,
        step_s=STEP_S,
        vehicles={name: one for name, one in sampled.items() if one is not None},
        ego_recorded=_sampled(motion.tracks[what.ego], driven.from_s, driven.until_s),
        messages=heard(loop.bursts, loop.inputs.numbers),
        perceives=tuple(_perceives(loop)),
    )


def _sampled(track: Track, from_s: float, until_s: float) -> SampledTrack | None:
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
    return SampledTrack(
        type=track.type,
        length_m=track.length_m,
        width_m=track.width_m,
        from_s=round(from_s + first * STEP_S, 6),
        x_m=tuple(round(state.x_m, 3) for state in found),
        y_m=tuple(round(state.y_m, 3) for state in found),
        heading_rad=tuple(round(state.heading_rad, 4) for state in found),
        speed_mps=tuple(round(state.speed_mps, 3) for state in found),
    )


def _perceives(loop: ClosedLoop) -> Iterator[Perceived]:
    whom, driven, what = loop.judge.crossing, loop.driven, loop.scenario.scene
    if whom is None:
        return
    for who in (what.ego, *what.stations):
        if who == whom:
            continue
        eye = Eye(loop.scenario, who, whom, loop.ego if who == what.ego else None)
        for from_s, until_s in eye.spans(driven.from_s, driven.until_s):
            yield Perceived(who, whom, round(from_s, 3), round(until_s, 3))
