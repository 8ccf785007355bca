"""What happened, in figures: a table with a column per run. Texts from files are escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sim_vehicles.story.page.bars import joined
from sim_vehicles.story.page.run_story import Story
from sim_vehicles.story.page.tables import row, table
from sim_vehicles.story.page.wording import (
    DASH,
    how,
    is_guaranteed,
    kind,
    metres,
    milliseconds,
    ms,
    phase,
    seconds,
    word,
)
from sim_vehicles.story.timeline.deciding_tuple import DecidingTuple

BEFORE = ("sensing", "channel", "sending")  # stages before the system has the tuple


def comparison(stories: Sequence[Story], names: Sequence[str]) -> str:
    """The section."""
    first = stories[0]
    ego, other = escape(first.ego), escape(first.other)
    asked = [
        ("outcome", [_outcome(story) for story in stories]),
        (f"{other} can first be seen", [_first_sight(story) for story in stories]),
        (f"messages about {other} until {ego} was warned", [_messages(story) for story in stories]),
        (f"{ego} is warned", [_warned(story) for story in stories]),
        (f"last moment to command {ego}’s brake", [_last_moment(story) for story in stories]),
        ("latency of the warning", [_took(story) for story in stories]),
        ("longest stage of it", [_longest(story) for story in stories]),
        (f"warnings about {other}; false ones", [_warnings(story) for story in stories]),
        ("work asked of each node", [_asked(story) for story in stories]),
        ("plan", [_plan(story) for story in stories]),
        ("when messages are sent", [escape(phase(story)) for story in stories]),
    ]
    if not first.other:
        asked = [
            (what, cells) for what, cells in asked if first.other or what in ("outcome", "work asked of each node")
        ]
    rows = [row([what, *cells]) for what, cells in asked if set(cells) != {DASH}]
    return f'<section class="figures"><h2>What happened, in figures</h2>{table(["", *names], rows)}</section>'


def _outcome(story: Story) -> str:
    found = story.verdict.found
    text = f"<b class={kind(story, story.verdict)}>{word(story, story.verdict)}</b>"
    if story.crashed:
        text += f" at {found.impact_kmh:.1f} km/h" if found.impact_kmh is not None else ""
    elif found.gap_m is not None:
        text += f", least gap {metres(found.gap_m)}"
    return text if story.verdict.valid else f"{text}; not valid: {escape(story.verdict.why_not_valid or DASH)}"


def _first_sight(story: Story) -> str:
    first = story.verdict.found.first_perceivable
    return DASH if first is None else f"{seconds(first.at_s)}, by {escape(first.by)}; {metres(first.left_m)} left"


def _messages(story: Story) -> str:
    about = story.verdict.crossing_messages
    if about is None:
        return DASH
    fates = ", ".join(f"{'?' if number is None else number} {fate}" for fate, number in about.fates.items())
    return f"{about.offered}, of them {fates}"


def _warned(story: Story) -> str:
    first, knew = story.verdict.found.first_perceivable, story.verdict.found.knew
    if knew is None:
        return "never"
    later = "" if first is None else f"; {seconds(knew.at_s - first.at_s)} after the first sight"
    return f"{seconds(knew.at_s)}, {metres(knew.left_m)} left{later}"


def _last_moment(story: Story) -> str:
    latest_s = None if story.stopping is None else story.stopping.latest_s
    if latest_s is None:
        return DASH
    knew = story.verdict.found.knew
    spare_s = None if knew is None else latest_s - knew.at_s
    spare = "" if spare_s is None else f"; {seconds(abs(spare_s))} {'to spare' if spare_s >= 0 else 'too late'}"
    return f"{seconds(latest_s)}{spare}"


def _took(story: Story) -> str:
    if story.deciding is None:
        return DASH
    took = _interval(story.deciding)
    deadline_ns = story.traced.deadline_ns
    limit = f"; deadline {milliseconds(deadline_ns)}" if deadline_ns else ""
    if story.real_time:
        return f"{took}{limit}"
    recorded = milliseconds(round(story.latency_of(story.deciding) * 1e9))
    return f"{recorded} of the recording, {took} in wall time, at rate {story.replay.rate}{limit}"


def _interval(deciding: DecidingTuple) -> str:
    low, high = deciding.latency_bounds_ns
    return milliseconds(high) if ms(low) == ms(high) else f"{ms(low)} to {ms(high)} ms"


def _longest(story: Story) -> str:
    spent = joined(story.traced.stages)
    inside = [each for each in spent if each[0] not in {*BEFORE, "actuation"}] or spent
    if not inside:
        return DASH
    stage, where, ns = max(inside, key=lambda each: each[2])
    return f"{escape(f'{stage} {where}'.strip())}, {milliseconds(ns)}"


def _warnings(story: Story) -> str:
    counts = story.verdict.found.warnings
    missed = "; the one that was due is missing" if counts.missed else ""
    return f"{counts.about_crossing}; {counts.false}{missed}"


def _plan(story: Story) -> str:
    return f"{escape(how(story))}; {'every output guaranteed' if is_guaranteed(story) else 'no guarantee'}"


def _asked(story: Story) -> str:
    asked = story.replay.utilisation or {}
    return ", ".join(f"{escape(node)} {share:.0%} of its time" for node, share in asked.items()) or DASH
