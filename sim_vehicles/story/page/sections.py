"""The page's upper sections: outcomes and the scene. Texts from files are escaped, numbers go through a format."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sim_vehicles.encounter.outcome import NOTHING
from sim_vehicles.story.page.plots import EVENT_LOOKS
from sim_vehicles.story.page.run_story import Story
from sim_vehicles.story.page.wording import beside, kind, metres, outcome, phase, seconds, seen, word, worst_laps

SPEEDS = ((0.1, "1/10"), (0.25, "1/4"), (0.5, "1/2"), (1.0, "1"), (2.0, "2"))  # of real time


def head(stories: Sequence[Story], names: Sequence[str]) -> str:
    """The outcome of each run, and what it is the outcome of."""
    first = stories[0]
    above = [first.scene.name, *(names if len(stories) == 1 else [])]
    if len({phase(story) for story in stories}) == 1:
        above.append(phase(first))
    if len(stories) == 1:
        return f'<p class="over">{escape(" · ".join(above))}</p>{_heading(first)}'
    cards = "".join(
        f'<div class="card"><p class="over">{escape(name)}</p><h2 class="{kind(story, story.verdict)}">'
        f"{escape(outcome(story))}</h2>{_notes(story)}</div>"
        for story, name in zip(stories, names, strict=True)
    )
    return (
        f'<p class="over">{escape(" · ".join(above))}</p><h1>The same encounter, run in {len(stories)} ways</h1>'
        f'<div class="cards">{cards}</div>'
    )


def _heading(story: Story) -> str:
    return f'<h1 class="{kind(story, story.verdict)}">{escape(outcome(story))}</h1>{_notes(story)}'


def _notes(story: Story) -> str:
    verdict = story.verdict
    more = f'<p class="beside">{escape(beside(story))}</p>' if beside(story) else ""
    note = (verdict.found.note or "").removeprefix(f"{NOTHING}, and ")
    time = "virtual time" if story.virtual else "real time"
    badges = [
        f'<span class="badge {kind(story, verdict)}"><b>{word(story, verdict).capitalize()}</b></span>',
        f'<span class="badge">valid: {time}</span>' if verdict.valid else '<span class="badge">not valid</span>',
    ]
    if verdict.laps > 1:
        badges += [_crashes(story, verdict.crashes, verdict.laps), '<span class="badge">shown: the worst lap</span>']
    note = f"<p class=soft>{escape(note)}</p>" if note else ""
    return f'{more}<div class="badges">{"".join(badges)}</div>{note}'


def _crashes(story: Story, crashes: int, laps: int) -> str:
    if not story.other:
        return f'<span class="badge">{crashes} of {laps} laps with a contact</span>'
    counted = any(lap.valid for lap in story.laps)
    colour = "neutral" if not counted else "bad" if crashes else "good"
    return f'<span class="badge {colour}">{crashes} of {laps} laps crash</span>'


def scene(stories: Sequence[Story], names: Sequence[str]) -> str:
    """The scene, a panel for each run, and the controls that all panels share."""
    panels = "".join(
        _panel(number, story, name) for number, (story, name) in enumerate(zip(stories, names, strict=True))
    )
    chips = "".join(_chips(story, name if len(stories) > 1 else "") for story, name in zip(stories, names, strict=True))
    speeds = "".join(
        f'<option value="{value}"{" selected" if value == 0.5 else ""}>speed {text}</option>' for value, text in SPEEDS
    )
    start, end = stories[0].scene.start_s, stories[0].scene.end_s
    keys, notes = _legend(stories[0])
    legend = "".join(f'<li><span class="key {look}"></span>{text}</li>' for text, look in keys)
    which = f"<p>{escape(worst_laps(stories))}</p>" if worst_laps(stories) else ""
    return (
        f'<section class="scene"><h2>The encounter from above</h2>{which}<div class="panels">{panels}</div>'
        '<div class="bar"><button type="button" class="play" id="play">play</button>'
        f'<input type="range" id="seek" aria-label="time" min="{start:g}" max="{end:g}" step="any">'
        '<b class="clock"></b>'
        f'<select id="rate" aria-label="speed">{speeds}</select></div>'
        '<div class="track" id="track"><svg id="times" aria-hidden="true"></svg></div>'
        '<p class="soft">Keys: <kbd>space</kbd> plays, <kbd>←</kbd> <kbd>→</kbd> step, ten times as far with '
        "<kbd>shift</kbd>.</p>"
        f'<ul class="legend">{legend}</ul>{chips}<p class="soft">{notes}</p></section>'
    )


def _panel(number: int, story: Story, name: str) -> str:
    return (
        f'<div class="panel"><h3>{escape(name)}</h3>'
        '<p class="readout"><b class="clock"></b> <span class="speed"></span></p><p class="said"></p>'
        f'<div class="stage"><canvas role="img" aria-label="{escape(f"The crossing from above: {name}")}"></canvas>'
        f'<svg class="labels" aria-hidden="true"></svg></div><p class="caption">{escape(seen(story))}</p></div>'
    )


def _chips(story: Story, name: str) -> str:
    buttons = "".join(
        f'<button type="button" data-at="{event.at_s:.6f}"><span class="key {EVENT_LOOKS[event.kind].name}"></span>'
        f"{seconds(event.at_s)} {escape(event.text)}</button>"
        for event in story.events
    )
    return f'<div class="chips">{f"<span class=soft>{escape(name)}:</span>" if name else ""}{buttons}</div>'


def _legend(story: Story) -> tuple[list[tuple[str, str]], str]:
    """What the scene's colours and shapes mean: (text, look) and a sentence for each line."""
    ego, other = escape(story.ego), escape(story.other)
    keys = [(ego, "ego")]
    notes = "A message is drawn for 0.25 s from the instant at which it came in."
    if story.replay.head.around:
        notes += f" Messages of {escape(story.replay.head.around)} come in as well; their stations are not drawn."
    if other:
        keys += [
            (f"{ego}, warned", "warned"), (other, "cross"), (f"message about {other}", "message"),
            ("line of sight", "sight"),
        ]  # fmt: skip
        notes += (
            f" Dashed outline: {ego} as recorded, had it not braked. After a contact the two are shown where they met. "
            f"A dashed line joins {other} with who perceives it: at most {metres(story.scene.range_m, 0)} "
            "away, and two of five points of the box (corners, centre) not behind a building."
        )
    return [*keys, ("other message", "radio"), ("vehicle with a radio", "station"), ("other vehicle", "car")], notes
