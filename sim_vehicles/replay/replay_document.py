"""The contents of replay.json: of a live replay, or of one in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from node_agent.virtual.plan_file import read_json
from protos import json_shape
from protos.json_shape import Json, ShapeError, coded, omitted
from sim_vehicles.closed_loop.closed_loop import Verdict
from sim_vehicles.closed_loop.recorded import (
    DrivenScene,
    RecordedWarning,
    read_laps,
    read_scene,
    read_verdict,
    write_laps,
    write_verdict,
)
from sim_vehicles.encounter.brake import Brake
from sim_vehicles.errors import bad_input
from sim_vehicles.replay.listening import Heard

VERSION = 1  # of replay.json


def _read_rate(value: Any, path: str) -> float | str:
    if value == "max" or type(value) in (int, float):
        rate: float | str = value
        return rate
    raise ShapeError(path, "is no rate")


@dataclass(frozen=True, slots=True)
class LateBursts:
    """How late bursts left, ns; None: nothing to be late at."""

    p50: int | None
    max: int | None


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """Of a live replay, what was sent to one source. refused_why: by reason."""

    node: str
    type: str
    burst: int
    period_ns: int
    bursts: int
    sent: int
    admitted: int
    refused: int
    unanswered: int
    refused_why: Mapping[str, int]
    late_ns: LateBursts


@dataclass(frozen=True, slots=True)
class Recomputed:
    """Bursts of one lap that were computed anew, as the ego braked."""

    lap: int
    seconds: float
    outdated_bursts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What was played. Times of the recording, in ns."""

    shimekiri: int
    scenario: str
    inputs_hash: str
    plan_hash: str
    seed: int
    start_ns: int
    until_ns: int
    duration_ns: int
    phase_ns: int
    v2v_age_ns: int
    messages: str
    channel: str
    brake: Brake
    around: str | None = omitted()
    ids: Mapping[str, int]
    skipped_rows: tuple[str, ...]
    notes: tuple[str, ...]


PLAYED = tuple(each.name for each in fields(Head))


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSummary:
    """Of a live replay, however it ended. rate: "max" without gaps; utilisation: by node, None at no known rate."""

    head: Head
    virtual: bool
    rate: float | str = coded(_read_rate, lambda rate: rate)
    rate_reached: float | None
    bursts: int
    sent: int
    admitted: int
    refused: int
    unanswered: int
    bursts_planned: int
    ended: str
    why: str | None
    sources: Mapping[str, SourceSummary]
    outputs: Mapping[str, Heard]
    results_settled: bool
    late_results: int
    recomputed: tuple[Recomputed, ...]
    utilisation: Mapping[str, float] | None
    verdict: Verdict | None = coded(read_verdict, write_verdict)
    laps: tuple[Verdict, ...] = coded(read_laps, write_laps)
    warnings: tuple[RecordedWarning, ...]
    scene: DrivenScene = coded(read_scene, json_shape.write)
    not_judged: str | None
    laps_played: int

    def document(self) -> Json:
        """What replay.json has."""
        return _flat(json_shape.write(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualSummary:
    """Of a replay in virtual time. shed: tuples of all laps, by policy."""

    head: Head
    virtual: bool
    rate: float
    refused: int
    shed: Mapping[str, int]
    ended: str
    why: str | None
    utilisation: Mapping[str, float]
    verdict: Verdict | None = coded(read_verdict, write_verdict)
    laps: tuple[Verdict, ...] = coded(read_laps, write_laps)
    warnings: tuple[RecordedWarning, ...]
    scene: DrivenScene = coded(read_scene, json_shape.write)
    not_judged: str | None

    def document(self) -> Json:
        """What replay.json has."""
        return _flat(json_shape.write(self))


ReplaySummary = LiveSummary | VirtualSummary


def read_replay(path: Path) -> ReplaySummary:
    """Of a replay.json. Raises BadInputError where it is damaged, or of another version."""
    document = read_json(path, "what `sim-vehicles replay --out` wrote, copied into the collected run")
    version = document.get("shimekiri")
    if version != VERSION:
        raise bad_input(
            "other_version", f"is of version {version!r:.40}, this release reads version {VERSION}", "make it again",
            subject="shimekiri", file=path,
        )  # fmt: skip
    try:
        return from_document(document)
    except (ShapeError, RecursionError) as bad:
        raise bad_input("not_complete", f"is damaged: {bad}", "make it again", file=path) from None


def from_document(document: Json) -> ReplaySummary:
    """Of replay.json. Raises ShapeError."""
    played = {name: each for name, each in document.items() if name in PLAYED}
    rest = {name: each for name, each in document.items() if name not in PLAYED}
    whole = {**rest, "head": json_shape.read(Head, played)}
    if document.get("virtual"):
        return json_shape.read(VirtualSummary, whole)
    return json_shape.read(LiveSummary, whole)


def _flat(values: Json) -> Json:
    """With the head's keys in front."""
    return values.pop("head") | values
