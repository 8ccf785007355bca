"""The page's upper sections: outcome, answers, the scene. Texts from files are escaped, numbers go through a format."""

from __future__ import annotations

from html import escape

from sim_vehicles.closed_loop.crossing_messages import CrossingMessages
from sim_vehicles.encounter.outcome import NOTHING
from sim_vehicles.story.page.bars import joined
from sim_vehicles.story.page.plots import EVENT_COLOURS
from sim_vehicles.story.page.run_story import Story
from sim_vehicles.story.page.wording import (
    DASH,
    beside,
    how,
    kind,
    metres,
    milliseconds,
    ms,
    outcome,
    phase,
    seconds,
    word,
)
from sim_vehicles.story.timeline.deciding_tuple import DecidingTuple

BEFORE = ("sensing", "channel", "sending")  # stages before the system has the tuple
SPEEDS = ((0.1, "1/10"), (0.25, "1/4"), (0.5, "1/2"), (1.0, "1"), (2.0, "2"))


def head(story: Story) -> str:
    """The outcome, and what it is the outcome of."""
    verdict = story.verdict
    colour = kind(story, verdict)
    above = f"{escape(story.scene.name)} · {escape(how(story))}"
    badges = [f'<span class="badge {colour}"><b>{word(story, verdict).capitalize()}</b></span>']
    if verdict.laps > 1:
        badges.append(_crashes(story, verdict.crashes, verdict.laps))
        badges.append('<span class="badge">shown: the worst lap</span>')
    badges.append(f'<span class="badge">{escape(phase(story))}</span>')
    if verdict.valid:
        why = "virtual time" if story.virtual else "real time"
        badges.append(f'<span class="badge{" good" if story.other else ""}">valid: {why}</span>')
    else:
        badges.append('<span class="badge">not valid</span>')
    more = f'<p class="beside">{escape(beside(story))}</p>' if beside(story) else ""
    note = (verdict.found.note or "").removeprefix(f"{NOTHING}, and ")
    note = f"<p class=soft>{escape(note)}</p>" if note else ""
    return (
        f'<p class="over">{above}</p><h1 class="{colour}">{escape(outcome(story))}</h1>{more}'
        f'<div class="badges">{"".join(badges)}</div>{note}'
    )


def _crashes(story: Story, crashes: int, laps: int) -> str:
    if not story.other:
        return f'<span class="badge">{crashes} of {laps} laps with a contact</span>'
    counted = any(lap.valid for lap in story.laps)
    colour = "neutral" if not counted else "bad" if crashes else "good"
    return f'<span class="badge {colour}">{crashes} of {laps} laps crash</span>'


def tiles(story: Story) -> str:
    """What an engineer asks first, with the answers."""
    found, ego, other = story.verdict.found, story.ego, story.other
    first, knew = found.first_perceivable, found.knew
    asked: list[tuple[str, str, str]] = []
    if first:
        more = f"by {first.by}; {metres(first.left_m)} left"
        asked.append((f"When could anyone see {other}?", seconds(first.at_s), more))
    if knew:
        later = f"; {seconds(knew.at_s - first.at_s)} later" if first else ""
        asked.append((f"When was {ego} warned?", seconds(knew.at_s), f"{metres(knew.left_m)} left{later}"))
    elif other:
        asked.append((f"When was {ego} warned?", "never", f"no warning about {other} was delivered"))
    messages = story.verdict.crossing_messages
    if messages is not None:
        asked.append(_messages(messages, other))
    latest_s = None if story.stopping is None else story.stopping.latest_s
    if latest_s is not None:
        spare = "" if not knew else _spare(latest_s - knew.at_s)
        asked.append(("Until when would a warning do?", seconds(latest_s), spare or "to stand before the strip"))
    if story.deciding:
        took, limit = _interval(story.deciding), ""
        if story.traced.deadline_ns:
            limit = f"deadline {milliseconds(story.traced.deadline_ns)}"
        if not story.real_time:
            recorded = milliseconds(round(story.latency_of(story.deciding) * 1e9))
            took, limit = f"{recorded} of the recording", f"{took} in wall time, at rate {story.replay.rate}"
        asked.append(("How long did the warning take?", took, limit))
    if story.traced.stages:
        asked.append(_largest(story))
    counts = found.warnings
    if not other:
        about = str(counts.others)
        asked.append(("Warnings about others?", about, "neither right nor false: nothing to judge them by"))
    else:
        missed = "the one that was due is missing" if counts.missed else "none missed"
        text = f"{counts.about_crossing} + {counts.false} false"
        asked.append((f"Warnings about {other}, and others?", text, missed))
    body = "".join(
        f'<div class="tile"><span class="ask">{escape(ask)}</span><b>{escape(answer)}</b>'
        f"<span>{escape(more)}</span></div>"
        for ask, answer, more in asked
    )
    return f'<div class="tiles">{body}</div>'


def _messages(about: CrossingMessages, other: str) -> tuple[str, str, str]:
    more = f"{about.refused} refused, {_number(about.policed)} policed, {_number(about.shed)} shed"
    return f"How many messages about {other} came until then?", str(about.offered), more


def _number(count: int | None) -> str:
    return DASH if count is None else str(count)


def _spare(seconds_left: float) -> str:
    return f"{seconds(abs(seconds_left))} {'to spare' if seconds_left >= 0 else 'too late'}"


def _interval(deciding: DecidingTuple) -> str:
    low, high = deciding.latency_bounds_ns
    return milliseconds(high) if ms(low) == ms(high) else f"{ms(low)} to {ms(high)} ms"


def _largest(story: Story) -> tuple[str, str, str]:
    spent = joined(story.traced.stages)
    before = sum(ns for stage, _, ns in spent if stage in BEFORE)
    inside = [each for each in spent if each[0] not in {*BEFORE, "actuation"}] or spent
    stage, where, ns = max(inside, key=lambda each: each[2])
    more = f"{milliseconds(ns)} of the {milliseconds(sum(each[2] for each in inside))} since its admission"
    return "Which stage took most?", f"{stage} {where}".strip(), f"{more}; {milliseconds(before)} before it"


def scene(story: Story) -> str:
    """The playable scene with its controls."""
    chips = "".join(
        f'<button type="button" data-at="{event.at_s:.6f}"><span class="dot" '
        f'style="background:var(--{EVENT_COLOURS[event.kind]})"></span>'
        f"{seconds(event.at_s)} {escape(event.text)}</button>"
        for event in story.events
    )
    speeds = "".join(
        f'<option value="{value}"{" selected" if value == 0.5 else ""}>{text} of real time</option>'
        for value, text in SPEEDS
    )
    start, end = story.scene.start_s, story.scene.end_s
    keys, notes = _legend(story)
    legend = "".join(
        f'<li><span class="dot" style="background:var(--{colour})"></span>{text}</li>' for text, colour in keys
    )
    return (
        '<section><h2>What happened</h2><div class="stage">'
        '<canvas id="scene" role="img" aria-label="The crossing from above"></canvas>'
        '<div class="readout" aria-hidden="true"><b id="clock"></b> <span id="speed"></span>'
        '<div class="said" id="said"></div></div></div>'
        f'<div class="track" id="track" role="slider" tabindex="0" aria-label="time" aria-valuemin="{start:g}" '
        f'aria-valuemax="{end:g}"><canvas id="times"></canvas></div>'
        '<div class="bar"><button type="button" class="play" id="play">play</button>'
        f'<select id="rate" aria-label="speed">{speeds}</select>'
        '<span class="soft"><kbd>space</kbd> <kbd>←</kbd> <kbd>→</kbd>, ten times as far with <kbd>shift</kbd></span>'
        f'</div><div class="chips" id="chips">{chips}</div><ul class="legend">{legend}</ul>'
        f'<p class="soft">{notes}</p></section>'
    )


def _legend(story: Story) -> tuple[list[tuple[str, str]], str]:
    """What the scene's colours and lines mean: (text, colour) and a sentence for each line."""
    ego, other = escape(story.ego), escape(story.other)
    keys = [(f"{ego}, as it drove", "ego")]
    notes = "A message is drawn for 0.25 s from the instant it was admitted."
    if other:
        keys += [(other, "cross"), ("line of sight", "sight"), (f"message about {other}", "cross")]
        notes += (
            f" Dashed outline: {ego} as recorded, had it not braked. After a contact both go on as if there had been "
            f"none. A dashed line joins {other} with who perceives it: at most {metres(story.scene.range_m, 0)} "
            "away, and two of five points of the box (corners, centre) not behind a building."
        )
    return [*keys, ("vehicle with a radio", "station"), ("other vehicle", "car"), ("other message", "radio")], notes
