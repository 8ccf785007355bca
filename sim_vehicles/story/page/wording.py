"""Numbers and outcomes for people: one place that rounds, and the sentence at the top of the page."""

from __future__ import annotations

from collections.abc import Sequence

from sim_vehicles.closed_loop.closed_loop import Verdict
from sim_vehicles.encounter.outcome import NOTHING, is_near, length
from sim_vehicles.story.page.run_story import KMH, Story

DASH = "–"
ABBREVIATIONS = ("edf", "fifo", "qed", "pqed", "sqpr")


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


def whole_milliseconds(ns: int) -> str:
    """A duration in ms without decimals."""
    return f"{ns / 1e6:.0f} ms"


def kind(story: Story, lap: Verdict) -> str:
    """Colour of a lap: bad, warn (a near miss) or good; neutral where it is not valid or there is nothing to judge."""
    if not lap.valid or not story.other:
        return "neutral"
    return "bad" if lap.crashed else "warn" if is_near(lap.found) else "good"


def word(story: Story, lap: Verdict) -> str:
    """A lap's outcome in a word or two."""
    if not story.other:
        return "contact" if lap.crashed else "no contact"
    return "crash" if lap.crashed else "near miss" if is_near(lap.found) else "avoided"


def outcome(story: Story) -> str:
    """What happened, in one sentence."""
    found, ego, other = story.verdict.found, story.ego, story.other
    if not other:
        return NOTHING[0].upper() + NOTHING[1:]
    if story.crashed:
        return f"{ego} hits {other} at {kmh(found.impact_kmh)}"
    gap = "" if found.gap_m is None else f"; least gap {length(found.gap_m)}"
    if story.end_s is None:
        return f"{ego} and {other} pass without contact{gap}"
    return f"{ego} stops {_where(story, story.end_s, gap)}"


def _where(story: Story, stopped_s: float, gap: str) -> str:
    found, other = story.verdict.found, story.other
    stood = found.stood
    left_m = story.left_m(stopped_s) if stood is None else stood.left_m
    if left_m is not None and left_m >= 0:
        return f"{length(left_m)} short of {other}’s way" + (gap if is_near(found) else "")
    if (
        stood is not None and stood.in_way
    ):  # the two never touch, so what crosses the place where it stands has done so before
        return f"in {other}’s way, after {other} has passed{gap}"
    if left_m is not None and stood is not None:
        return f"beyond {other}’s way{gap}"
    return f"without touching {other}{gap}"


def beside(story: Story) -> str:
    """What must be read with the outcome; empty where there is nothing of the kind."""
    verdict, ego = story.verdict, story.ego
    if not verdict.valid:
        return f"Not valid: {verdict.why_not_valid or 'no reason was written'}"
    found = verdict.found
    if not story.other:
        if story.crashed:
            return f"{ego} touches another vehicle at {kmh(found.impact_kmh)}"
        return f"{ego} touches nobody" + ("" if found.gap_m is None else f"; least gap {length(found.gap_m)}")
    if not is_near(found) or found.gap_m is None:
        return ""
    gap_m, speed = found.gap_m, story.speed_mps
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
    shown = _name(story.simulated_policy or "") or ", ".join(_name(each) for each in policies)
    return f"{_name(story.plan.allocator)} placement, {shown or '?'}"


def _name(word: str) -> str:
    return word.upper() if word in ABBREVIATIONS else word


def names(stories: Sequence[Story]) -> list[str]:
    """What tells the runs of a page apart: the plan of each; its directory too where plans are of one kind."""
    plans = [_plan(story) for story in stories]
    return [
        plan if plans.count(plan) == 1 else f"{plan} ({story.run})" for plan, story in zip(plans, stories, strict=True)
    ]


def is_guaranteed(story: Story) -> bool:
    """Whether the plan has a bound within the deadline for every output."""
    claims = {} if story.plan is None else story.plan.guarantee
    return bool(claims) and all(claim.guaranteed for claim in claims.values())


def _plan(story: Story) -> str:
    return "guaranteed plan" if is_guaranteed(story) else how(story)


def seen(story: Story) -> str:
    """What the scene shows, in one sentence."""
    found, ego, other = story.verdict.found, story.ego, story.other
    if not other:
        return f"{outcome(story)}."
    if found.knew is None:
        begin = f"{ego} is never warned{_in_vain(story)}"
    else:
        begin = f"{ego} is warned at {seconds(found.knew.at_s)}, {metres(found.knew.left_m, 1)} before {other}’s way"
    ended = outcome(story)
    return f"{begin}. {ended}." if ended.startswith(f"{ego} and") else f"{begin}, and {ended.removeprefix(f'{ego} ')}."


def _in_vain(story: Story) -> str:
    """The messages about the crossing vehicle that warned nobody, and what became of them."""
    about = story.verdict.crossing_messages
    if about is None:
        return ""
    fates = [f"{number} {fate}" for fate, number in about.fates.items() if number]
    if about.policed is None:
        fates.append("without a trace nothing more is known")
    became = f" ({', '.join(fates)})" if fates else ""
    return f", though {about.offered} messages about {story.other} were heard{became}"


def worst_laps(stories: Sequence[Story]) -> str:
    """Which laps the scene shows; empty where each run has one only."""
    if all(story.verdict.laps == 1 for story in stories):
        return ""
    phases = [f"{story.verdict.burst_phase}/{story.verdict.burst_phases}" for story in stories]
    if len(stories) == 1:
        return f"Shown is the worst lap, burst phase {phases[0]}."
    return f"Each panel shows the worst lap of its run: burst phase {', '.join(phases[:-1])} and {phases[-1]}."


def phase(story: Story) -> str:
    """Which burst phase this is, and by how much all bursts are later than in phase 0."""
    number, count, late_ns = story.verdict.burst_phase, story.verdict.burst_phases, story.verdict.burst_phase_ns
    return f"burst phase {number}/{count}, bursts {milliseconds(late_ns)} later than in phase 0/{count}"
