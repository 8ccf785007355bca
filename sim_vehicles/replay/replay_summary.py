"""Summary of a replay: replay.json, with the verdict of its worst lap in front."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sim_vehicles.closed_loop.closed_loop import ClosedLoop
from sim_vehicles.closed_loop.lap import Lap
from sim_vehicles.closed_loop.recorded import Record
from sim_vehicles.closed_loop.replay_record import record, scene
from sim_vehicles.errors import FeedError
from sim_vehicles.inputs.feed import Feed
from sim_vehicles.inputs.maps import misfits
from sim_vehicles.replay.live import SourceCounts
from sim_vehicles.replay.live_laps import LiveReplay
from sim_vehicles.replay.preparation import Prepared
from sim_vehicles.replay.replay_document import (
    Head,
    LateBursts,
    LiveSummary,
    Recomputed,
    ReplaySummary,
    SourceSummary,
    VirtualSummary,
)


def live_summary(prepared: Prepared, done: LiveReplay, failure: FeedError | None = None) -> LiveSummary:
    """Of a live replay, however it ended. `verdict` is None where nothing could be judged."""
    sources = {feed.name: _source(feed, done.tallies[feed.name]) for feed in prepared.feeds}
    planned = sum(lap.planned for lap in done.laps) or len(prepared.bursts)
    bursts = sum(source.bursts for source in sources.values())
    ended = "failed" if failure else "done" if bursts == planned and not done.stop.is_set() else "interrupted"
    rate, judged = done.rate_reached, _judged(prepared, done.counted)
    return LiveSummary(
        head=_head(prepared),
        virtual=False,
        rate="max" if prepared.options.rate == float("inf") else prepared.options.rate,
        rate_reached=rate,
        bursts=bursts,
        sent=sum(source.sent for source in sources.values()),
        admitted=sum(source.admitted for source in sources.values()),
        refused=sum(source.refused for source in sources.values()),
        unanswered=sum(source.unanswered for source in sources.values()),
        bursts_planned=planned,
        ended=ended,
        why=str(failure) if failure else None,
        sources=sources,
        outputs={name: replace(heard) for name, heard in done.heard.items()},
        results_settled=all(lap.settled for lap in done.laps),
        late_results=done.stale,
        recomputed=tuple(
            Recomputed(lap.number, lap.recomputed_s, lap.outdated) for lap in done.laps if lap.recomputed_s is not None
        ),
        utilisation=None if rate is None else prepared.utilisation(rate),
        verdict=judged.verdict,
        laps=judged.laps,
        warnings=judged.warnings,
        scene=judged.scene,
        not_judged=prepared.not_judged,
        laps_played=len(done.laps),
    )


def virtual_summary(prepared: Prepared, laps: Sequence[Lap], shed: Mapping[str, int]) -> VirtualSummary:
    """Of a replay in virtual time. shed: tuples of all laps, by policy."""
    judged = _judged(prepared, laps)
    return VirtualSummary(
        head=_head(prepared),
        virtual=True,
        rate=1.0,
        refused=sum(lap.refused for lap in laps),
        shed=dict(sorted(shed.items())),
        ended="done",
        why=None,
        utilisation=prepared.utilisation(1.0),
        verdict=judged.verdict,
        laps=judged.laps,
        warnings=judged.warnings,
        scene=judged.scene,
        not_judged=prepared.not_judged,
    )


def write_summary(folder: Path, summary: ReplaySummary) -> Path:
    """Writes replay.json into the run's folder, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "replay.json"
    part = folder / ".replay.json.part"
    part.write_text(
        json.dumps(summary.document(), indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8"
    )
    part.replace(path)
    return path


def _head(prepared: Prepared) -> Head:
    options, inputs = prepared.options, prepared.inputs.options
    return Head(
        shimekiri=1,
        scenario=prepared.scenario.scene.name,
        inputs_hash=prepared.inputs.hash,
        plan_hash=prepared.plan.hash,
        seed=options.seed,
        start_ns=inputs.start_ns,
        until_ns=inputs.until_ns,
        duration_ns=inputs.until_ns - inputs.start_ns,
        phase_ns=inputs.phase_ns,
        v2v_age_ns=options.age_ns,
        messages=options.messages,
        channel=options.channel.text,
        around=options.around,
        brake=options.brake,
        ids=prepared.inputs.numbers,
        skipped_rows=tuple(prepared.scenario.motion.skipped),
        notes=(
            *prepared.scenario.motion.notes,
            *misfits(prepared.plan, prepared.scenario.scene),
            *prepared.cut_short,
        ),
    )


def _judged(prepared: Prepared, laps: Sequence[Lap]) -> Record:
    """Without a verdict where nothing could be judged, the scene as recorded."""
    if laps and not prepared.not_judged:
        return record(laps)
    return Record(None, (), (), scene(ClosedLoop(prepared.scenario, prepared.inputs, prepared.options.brake)))


def _source(feed: Feed, tally: SourceCounts) -> SourceSummary:
    late_ns = sorted(tally.late_ns)
    return SourceSummary(
        node=feed.node,
        type=feed.type,
        burst=feed.n,
        period_ns=feed.period_ns,
        bursts=tally.bursts,
        sent=tally.sent,
        admitted=tally.admitted,
        refused=tally.refused,
        unanswered=tally.sent - tally.admitted - tally.refused,
        refused_why=dict(tally.why.most_common(10)),
        late_ns=LateBursts(_rank(late_ns, 0.5), _rank(late_ns, 1.0)),
    )


def _rank(ordered: Sequence[int], share: float) -> int | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None
