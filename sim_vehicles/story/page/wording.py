"""Numbers and outcomes for people: one place that rounds, and the sentence at the top of the page."""

from __future__ import annotations

from typing import Any

from sim_vehicles.encounter.outcome import NOTHING, is_near, length
from sim_vehicles.story.page.run_story import KMH, Story, Verdict

DASH = "–"


def metres(value: float | None, digits: int = 2) -> str:
    """A length; a dash where it is not known."""
    return DASH if value is None else f"{float(value):.{digits}f} m"


def seconds(value: float | None, digits: int = 2) -> str:
    """An instant or a duration; a dash where it is not known."""
    return DASH if value is None else f"{float(value):.{digits}f} s"


def kmh(value: float | None, digits: int = 0) -> str:
    """A speed; a dash where it is not known."""
    return DASH if value is None else f"{float(value):.{digits}f} km/h"


def ms(ns: int) -> str:
    """A duration in ms as a number with one decimal."""
    return "<0.1" if 0 < ns < 50_000 else f"{ns / 1e6:,.1f}"


def milliseconds(ns: int | None) -> str:
    """A duration in ms; a dash where it is not known."""
    return DASH if ns is None else ms(ns).removesuffix(".0") + " ms"


def kind(story: Story, lap: Verdict) -> str:
    """Colour of a lap: bad, warn (a near miss) or good; neutral where it is not valid or there is nothing to judge."""
    if not lap.get("valid") or not story.other:
        return "neutral"
    return "bad" if lap["outcome"] == "CRASH" else "warn" if is_near(lap) else "good"


def word(story: Story, lap: Verdict) -> str:
    """A lap's outcome in a word or two."""
    crashed = lap["outcome"] == "CRASH"
    if not story.other:
        return "contact" if crashed else "no contact"
    return "crash" if crashed else "near miss" if is_near(lap) else "avoided"


def outcome(story: Story) -> str:
    """What happened, in one sentence."""
    verdict, ego, other = story.verdict, story.ego, story.other
    if not other:
        return NOTHING[0].upper() + NOTHING[1:]
    if story.crashed:
        return f"{ego} hits {other} at {kmh(verdict.get('impact_kmh'))}"
    gap = "" if verdict.get("gap_m") is None else f"; least gap {length(float(verdict['gap_m']))}"
    if story.end_s is None:
        return f"{ego} and {other} pass without contact{gap}"
    return f"{ego} stops {_where(story, story.end_s, gap)}"


def _where(story: Story, stopped_s: float, gap: str) -> str:
    verdict, other = story.verdict, story.other
    stood = verdict.get("stood") or {}
    left_m = stood.get("left_m", story.left_m(stopped_s))
    if left_m is not None and left_m >= 0:
        return f"{length(float(left_m))} short of {other}’s way" + (gap if is_near(verdict) else "")
    if stood.get("in_way"):  # the two never touch, so what crosses the place where it stands has done so before
        return f"in {other}’s way, after {other} has passed{gap}"
    if left_m is not None and "in_way" in stood:
        return f"beyond {other}’s way{gap}"
    return f"without touching {other}{gap}"


def beside(story: Story) -> str:
    """What must be read with the outcome; empty where there is nothing of the kind."""
    verdict, ego = story.verdict, story.ego
    if not verdict.get("valid"):
        return f"Not valid: {verdict.get('why_not_valid') or 'no reason was written'}"
    if not story.other:
        if story.crashed:
            return f"{ego} touches another vehicle at {kmh(verdict.get('impact_kmh'))}"
        gap_m = verdict.get("gap_m")
        return f"{ego} touches nobody" + ("" if gap_m is None else f"; least gap {length(float(gap_m))}")
    if not is_near(verdict):
        return ""
    gap_m, speed = float(verdict["gap_m"]), story.speed_mps
    drives = ""
    if speed:
        late_ms = 1e3 * gap_m / speed
        drives = f": at {kmh(speed * KMH)} {ego} drives that far in {'under 1' if late_ms < 1 else f'{late_ms:.0f}'} ms"
    return f"A near miss, the boxes {length(gap_m)} apart{drives}. A phase like this is decided by milliseconds."


def how(story: Story) -> str:
    """Allocator and policies of the plan; those that a simulation replaced them by."""
    if story.plan is None:
        return "no plan beside replay.json"
    policies = sorted({local.policy.name or "?" for local in story.plan.nodes.values()})
    scenario: Any = story.run_document.get("scenario") or {}
    shown = str(scenario["policy"]) if scenario.get("policy") else ", ".join(policies)
    return f"{story.plan.allocator} placement, {shown or '?'}"


def phase(story: Story) -> str:
    """Which burst phase this is, and by how much all bursts are later than in phase 0."""
    number, count = story.verdict.get("burst_phase"), story.verdict.get("burst_phases")
    if number is None:
        return ""
    late = story.verdict.get("burst_phase_ns")
    shift = "" if late is None else f", bursts {milliseconds(int(late))} later than in phase 0/{int(count or 1)}"
    return f"burst phase {int(number)}/{int(count or 1)}{shift}"
