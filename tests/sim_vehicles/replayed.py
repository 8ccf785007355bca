"""A replay.json of laps that were made by hand: of a replay in virtual time, or of a live one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sim_vehicles.closed_loop.recorded import DrivenScene, Record
from sim_vehicles.encounter.brake import AUTO
from sim_vehicles.encounter.judgement import Judgement, WarningCounts
from sim_vehicles.replay.replay_document import Head, LiveSummary, VirtualSummary

HEAD = Head(
    shimekiri=1, scenario="crossing_50", inputs_hash="ab12", plan_hash="cd34", seed=1, start_ns=0, until_ns=1,
    duration_ns=1, phase_ns=0, v2v_age_ns=0, messages="burst", channel="ideal", brake=AUTO, ids={}, skipped_rows=(),
    notes=(),
)  # fmt: skip
JUDGED = Judgement(
    outcome="AVOIDED", gap_m=None, impact_kmh=None, impact_s=None, speed_kmh=None, crossing="X", note=None,
    first_perceivable=None, knew=None, brake=None, stood=None, warnings=WarningCounts(1, 0, 0, False), closed_form=None,
    deciding=None,
)  # fmt: skip
SCENE = DrivenScene(
    name="empty", ego="A", crossing=None, stations=(), range_m=150.0, occluders=(), roads=(), start_s=0.0, end_s=1.0,
    step_s=0.05, vehicles={}, ego_recorded=None, messages=(), perceives=(),
)  # fmt: skip


def virtual(record: Record, **changes: Any) -> VirtualSummary:
    """With these laps."""
    whole = VirtualSummary(
        head=HEAD, virtual=True, rate=1.0, refused=0, shed={}, ended="done", why=None, utilisation={},
        verdict=record.verdict, laps=record.laps, warnings=record.warnings, scene=record.scene, not_judged=None,
    )  # fmt: skip
    return replace(whole, **changes)


def live(record: Record, **changes: Any) -> LiveSummary:
    """With these laps."""
    whole = LiveSummary(
        head=HEAD, virtual=False, rate=1.0, rate_reached=1.0, bursts=0, sent=0, admitted=0, refused=0, unanswered=0,
        bursts_planned=0, ended="done", why=None, sources={}, outputs={}, results_settled=True, late_results=0,
        recomputed=(), utilisation=None, verdict=record.verdict, laps=record.laps, warnings=record.warnings,
        scene=record.scene, not_judged=None, laps_played=len(record.laps),
    )  # fmt: skip
    return replace(whole, **changes)
