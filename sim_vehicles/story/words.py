"""Numbers and outcomes for people: one place that rounds, and the sentence at the top of the page."""

from __future__ import annotations

from typing import Any

from sim_vehicles.story.facts import Story

DASH = "–"


def metres(value: float | None, digits: int = 1) -> str:
    """A length; a dash where it is not known."""
    return DASH if value is None else f"{float(value):.{digits}f} m"


def seconds(value: float | None, digits: int = 2) -> str:
    """An instant or a duration; a dash where it is not known."""
    return DASH if value is None else f"{float(value):.{digits}f} s"


def kmh(value: float | None, digits: int = 0) -> str:
    """A speed; a dash where it is not known."""
    return DASH if value is None else f"{float(value):.{digits}f} km/h"


def milliseconds(ns: int | None) -> str:
    """A duration in ms, to the microsecond; a dash where it is not known."""
    return DASH if ns is None else f"{ns / 1e6:,.3f}".rstrip("0").rstrip(".") + " ms"


def outcome(story: Story) -> str:
    """What happened, in one sentence."""
    verdict, ego, other = story.verdict, story.ego, story.other or "another vehicle"
    if story.crashed:
        return f"{ego} hits {other} at {kmh(verdict.get('impact_kmh'))}"
    gap = verdict.get("gap_m")
    short = None if story.end_s is None else story.left_m(story.end_s)
    if short is not None and short >= 0:
        return f"{ego} stops {metres(short)} short of {other}’s way"
    if story.end_s is not None:
        return f"{ego} stops without touching {other}" + ("" if gap is None else f"; least gap {metres(gap)}")
    if not story.other:
        return f"{ego} touches nobody" + ("" if gap is None else f"; least gap {metres(gap)}")
    return f"{ego} and {other} pass without contact" + ("" if gap is None else f"; least gap {metres(gap)}")


def how(story: Story) -> str:
    """Allocator and policies of the plan; those that a simulation replaced them by."""
    nodes = story.plan.get("nodes") or {}
    policies = sorted({str((node.get("policy") or {}).get("name", "?")) for node in nodes.values()})
    scenario: Any = story.run_document.get("scenario") or {}
    shown = str(scenario["policy"]) if scenario.get("policy") else ", ".join(policies)
    allocator = story.plan.get("allocator")
    return "no plan beside replay.json" if allocator is None else f"{allocator} placement, {shown or '?'}"


def phase(story: Story) -> str:
    """Which burst phase this is, and by how much all bursts are later than in phase 0."""
    number, count = story.verdict.get("burst_phase"), story.verdict.get("burst_phases")
    if number is None:
        return ""
    late = story.verdict.get("burst_phase_ns")
    shift = "" if late is None else f", bursts {milliseconds(int(late))} later than in phase 0/{int(count or 1)}"
    return f"burst phase {int(number)}/{int(count or 1)}{shift}"
