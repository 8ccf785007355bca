"""Formulas to check the numbers by: the closed form with its values put in, and what each word on the page means."""

from __future__ import annotations

from html import escape

from sim_vehicles.encounter.physics import impact_mps, needed_m
from sim_vehicles.story.page.plots import TABLE_KMH, TABLE_LATENCY_S
from sim_vehicles.story.page.run_story import KMH, Story
from sim_vehicles.story.page.wording import kmh, seconds


def formulas(story: Story) -> str:
    """The section."""
    terms = "".join(f"<dt>{term}</dt><dd>{meaning}</dd>" for term, meaning in [*_terms(story), *_about(story)])
    return f"<section><h2>How to check the numbers</h2>{_closed_form(story)}<dl>{terms}</dl></section>"


def _closed_form(story: Story) -> str:
    form = story.verdict.found.closed_form
    if form is None or story.speed_mps is None or story.latency_s is None:
        return ""
    v, latency_s, left = story.speed_mps, story.latency_s, form.left_m
    tau, a = story.reaction_s, story.deceleration_mps2
    needed, before = needed_m(v, latency_s, tau, a), v * (latency_s + tau)
    hit = impact_mps(v, left, latency_s, tau, a) * KMH
    square = v * v - 2 * a * (left - before)
    spare = f"it stands {left - needed:.2f} m before it" if needed <= left else f"{needed - left:.2f} m too few"
    root = f"√{square:.1f} m/s" if square > 0 else f"0, the root’s argument being {square:.1f}"
    loop = kmh(story.verdict.found.impact_kmh or 0, 1)
    return (
        "<p>The way needed to stand, from the deciding measurement on:</p>"
        f'<p class="formula">D = v (L + τ) + v² / (2 a) = {v:.2f} · ({latency_s:.3f} + {tau:g}) + '
        f"{v:.2f}² / (2 · {a:g}) = {before:.2f} + {v * v / (2 * a):.2f} = <b>{needed:.2f} m</b> "
        f'<span class="soft">of {left:.2f} m left: {spare}</span></p>'
        "<p>The speed at the edge of the strip:</p>"
        f'<p class="formula">√(v² − 2 a (left − v (L + τ))) = √({v:.2f}² − 2 · {a:g} · ({left:.2f} − {before:.2f})) = '
        f'{root} = <b>{hit:.1f} km/h</b> <span class="soft">and in the closed loop {loop}</span></p>'
        '<p class="soft">The loop’s speed is that at the contact. It is lower where the other vehicle comes when the '
        "front is already inside the strip, and 0 where it has passed by then or is not there yet.</p>"
    )


def _terms(story: Story) -> list[tuple[str, str]]:
    ego, other = escape(story.ego), escape(story.other or "the other vehicle")
    tau, a = story.reaction_s, story.deceleration_mps2
    unused = "" if story.verdict.found.brake else " (the automatic brake; here it was not used)"
    d300 = ", ".join(f"{needed_m(each / KMH, TABLE_LATENCY_S, tau, a):.1f} m" for each in TABLE_KMH)
    return [
        (
            "The outcome",
            f"A crash is an overlap of the boxes of {ego} and {other} at any instant. "
            f"The stopping distance plays no part. "
            f"The impact speed is {ego}’s at the first instant of contact. The least gap is that of the two boxes over "
            "the run.",
        ),
        (
            "Left",
            f"The way from {ego}’s front to the strip that {other}’s box sweeps, along {ego}’s path. Negative: the "
            "front is in the strip.",
        ),
        (
            "Needed, and the last moment",
            f"v τ + v² / (2 a) with v as recorded, τ = {tau:g} s and a = {a:g} m/s²{unused}. The last moment is when "
            "<i>left</i> falls below it.",
        ),
        ("D300", f"D with a latency of 300 ms: {d300} at 30, 50 and 70 km/h with the same brake."),
        (
            "The phase of the bursts",
            "All bursts of a lap come later by the same share of the V2V period, over the same motion. That can weigh "
            "as much as the latency does: a verdict on a plan is the share of crashes over all phases.",
        ),
    ]


def _about(story: Story) -> list[tuple[str, str]]:
    terms = []
    deciding = story.deciding
    if deciding:
        who, whom = escape(str(deciding.station)), escape(str(deciding.object))
        terms.append((
            "The deciding tuple",
            f"{escape(deciding.text)} (source/epoch/seq.ordinal): {who}’s measurement of {whom} at "
            f"{seconds(deciding.measured_s, 3)}, delivered at {seconds(deciding.delivered_s, 3)}. It led to the "
            f"first warning about {whom}; warnings about others do not make {escape(story.ego)} brake.",
        ))  # fmt: skip
    head = story.replay.head
    known = {
        "scenario": head.scenario, "seed": head.seed, "rate": story.replay.rate, "channel": head.channel,
        "messages": head.messages, "inputs_hash": head.inputs_hash, "plan_hash": head.plan_hash,
    }  # fmt: skip
    written = [f"{name} {escape(str(value))}" for name, value in known.items()]
    terms.append(("The run", "; ".join([escape(story.run), *written])))
    if story.traced.damage:
        terms.append(("Left out of the trace", "; ".join(escape(each) for each in story.traced.damage)))
    return terms
