"""Summary of a replay: replay.json, with the verdict of its worst lap in front."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim_vehicles.closed_loop.closed_loop import ClosedLoop
from sim_vehicles.closed_loop.lap import Lap
from sim_vehicles.closed_loop.replay_record import record, scene
from sim_vehicles.errors import FeedError
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.maps import misfits
from sim_vehicles.replay.live import SourceCounts
from sim_vehicles.replay.live_laps import LiveLap, LiveReplay
from sim_vehicles.replay.preparation import Prepared

COUNTS = ("bursts", "sent", "admitted", "refused", "unanswered")


def live_summary(prepared: Prepared, done: LiveReplay, failure: FeedError | None = None) -> dict[str, Any]:
    """What replay.json holds of a live replay, however it ended. `verdict` is null where nothing could be judged."""
    sources = {feed.name: _source(feed, done.tallies[feed.name]) for feed in prepared.feeds}
    planned = sum(lap.planned for lap in done.laps) or len(prepared.bursts)
    total = {key: sum(source[key] for source in sources.values()) for key in COUNTS}
    ended = "failed" if failure else "done" if total["bursts"] == planned and not done.stop.is_set() else "interrupted"
    rate = done.rate_reached
    return {
        **_head(prepared),
        "virtual": False,
        "rate": "max" if prepared.options.rate == float("inf") else prepared.options.rate,
        "rate_reached": rate,
        **total,
        "bursts_planned": planned,
        "ended": ended,
        "why": str(failure) if failure else None,
        "sources": sources,
        "outputs": {name: vars(heard) for name, heard in done.heard.items()},
        "results_settled": all(lap.settled for lap in done.laps),
        "late_results": done.stale,
        "recomputed": [_recomputed(lap) for lap in done.laps if lap.recomputed_s is not None],
        "utilisation": None if rate is None else prepared.utilisation(rate),
        **_judged(prepared, done.counted),
        "laps_played": len(done.laps),
    }


def virtual_summary(prepared: Prepared, laps: Sequence[Lap], shed: Mapping[str, int]) -> dict[str, Any]:
    """What replay.json holds of a replay in virtual time. shed: tuples of all laps, by policy."""
    return {
        **_head(prepared),
        "virtual": True,
        "rate": 1.0,
        "refused": sum(lap.refused for lap in laps),
        "shed": dict(sorted(shed.items())),
        "ended": "done",
        "why": None,
        "utilisation": prepared.utilisation(1.0),
        **_judged(prepared, laps),
    }


def write_summary(folder: Path, what: dict[str, Any]) -> Path:
    """Writes replay.json into the run's folder, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "replay.json"
    part = folder / ".replay.json.part"
    part.write_text(json.dumps(what, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    part.replace(path)
    return path


def _head(prepared: Prepared) -> dict[str, Any]:
    options, inputs = prepared.options, prepared.inputs.options
    return {
        "shimekiri": 1,
        "scenario": prepared.scenario.scene.name,
        "inputs_hash": prepared.inputs.hash,
        "plan_hash": prepared.plan.hash,
        "seed": options.seed,
        "start_ns": inputs.start_ns,
        "until_ns": inputs.until_ns,
        "duration_ns": inputs.until_ns - inputs.start_ns,
        "phase_ns": inputs.phase_ns,
        "v2v_age_ns": options.age_ns,
        "messages": options.messages,
        "channel": options.channel.text,
        "brake": vars(options.brake),
        "ids": prepared.inputs.numbers,
        "skipped_rows": prepared.scenario.motion.skipped,
        "notes": [
            *prepared.scenario.motion.notes,
            *misfits(prepared.plan, prepared.scenario.scene),
            *prepared.cut_short,
        ],
    }


def _judged(prepared: Prepared, laps: Sequence[Lap]) -> dict[str, Any]:
    """verdict, laps, warnings and scene; without a verdict where nothing could be judged, the scene as recorded."""
    if laps and not prepared.not_judged:
        found = record(laps)
    else:
        recorded = ClosedLoop(prepared.scenario, prepared.inputs, prepared.options.brake)
        found = {"verdict": None, "laps": [], "warnings": [], "scene": scene(recorded)}
    return {**found, "not_judged": prepared.not_judged}


def _recomputed(lap: LiveLap) -> dict[str, Any]:
    return {"lap": lap.number, "seconds": lap.recomputed_s, "outdated_bursts": lap.outdated}


def _source(feed: Feed, tally: SourceCounts) -> dict[str, Any]:
    late_ns = sorted(tally.late_ns)
    return {
        "node": feed.node,
        "type": feed.type,
        "burst": feed.n,
        "period_ns": feed.period_ns,
        "bursts": tally.bursts,
        "sent": tally.sent,
        "admitted": tally.admitted,
        "refused": tally.refused,
        "unanswered": tally.sent - tally.admitted - tally.refused,
        "refused_why": dict(tally.why.most_common(10)),
        "late_ns": {"p50": _rank(late_ns, 0.5), "max": _rank(late_ns, 1.0)},
    }


def _rank(ordered: Sequence[int], share: float) -> int | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None
