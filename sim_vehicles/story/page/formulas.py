"""Formulas to check the numbers by: the closed form with its values put in, and what each word on the page means."""

from __future__ import annotations

from html import escape

from sim_vehicles.encounter.brake import Brake
from sim_vehicles.encounter.physics import impact_mps, moved, needed_m
from sim_vehicles.story.page.run_story import KMH, Story
from sim_vehicles.story.page.wording import kmh, seconds


def formulas(story: Story) -> str:
    """The closed form, and the terms."""
    terms = "".join(f"<dt>{term}</dt><dd>{meaning}</dd>" for term, meaning in [*_terms(story), *_about(story)])
    return f"{_closed_form(story)}<dl>{terms}</dl>"


def _closed_form(story: Story) -> str:
    form = story.verdict.found.closed_form
    if form is None or story.speed_mps is None or story.latency_s is None:
        return ""
    v, latency_s, left, brake = story.speed_mps, story.latency_s, form.left_m, story.brake
    needed = needed_m(v, latency_s, brake)
    spare = f"it stands {left - needed:.2f} m before it" if needed <= left else f"{needed - left:.2f} m too few"
    hit = impact_mps(v, left, latency_s, brake) * KMH
    loop = kmh(story.verdict.found.impact_kmh or 0, 1)
    return (
        "<p>The way needed to stand, from the deciding measurement on:</p>"
        f'<p class="formula">D = {_needed(v, latency_s, brake)} = <b>{needed:.2f} m</b> '
        f'<span class="soft">of {left:.2f} m left: {spare}</span></p>'
        "<p>The speed at the edge of the strip:</p>"
        f'<p class="formula">{_impact(v, left, latency_s, brake)} = <b>{hit:.1f} km/h</b> '
        f'<span class="soft">and in the closed loop {loop}</span></p>'
        '<p class="soft">The loop’s speed is that at the contact. It is lower where the other vehicle comes when the '
        "front is already inside the strip, and 0 where it has passed by then or is not there yet.</p>"
    )


def _needed(v: float, latency_s: float, brake: Brake) -> str:
    """D with its values put in: of a vehicle that stands after the build-up, or within it."""
    a, t_b, tau = brake.held_mps2, brake.build_up_s, brake.delay_s
    before = f"{v:.2f} · ({latency_s:.3f} + {tau:.3g})"
    if v < a * t_b / 2:
        return f"v (L + τ) + ⅔ v √(2 v t_b / a) = {before} + ⅔ · {v:.2f} · √(2 · {v:.2f} · {t_b:g} / {a:.3g})"
    return (
        f"v (L + τ) + v t_b / 2 − a t_b² / 24 + v² / (2 a) = {before} + {v:.2f} · {t_b:g} / 2 − "
        f"{a:.3g} · {t_b:g}² / 24 + {v:.2f}² / (2 · {a:.3g})"
    )


def _impact(v: float, left: float, latency_s: float, brake: Brake) -> str:
    """The speed after the way left, where it stands by then, brakes fully, still builds up, or does not brake yet."""
    a, needed = brake.held_mps2, needed_m(v, latency_s, brake)
    braking_m = left - v * (latency_s + brake.delay_s)
    if needed <= left:
        return "0, for it stands by then"
    if braking_m <= 0:
        return "v, for the brake does not bite by then"
    if braking_m < moved(v, brake, brake.build_up_s).way_m:
        return f"v − a u² / (2 t_b), u the first root of v u − a u³ / (6 t_b) = {braking_m:.2f} m"
    return f"√(2 a (D − left)) = √(2 · {a:.3g} · ({needed:.2f} − {left:.2f})) m/s"


def _terms(story: Story) -> list[tuple[str, str]]:
    ego, other = escape(story.ego), escape(story.other or "the other vehicle")
    brake = story.brake
    unused = "" if story.verdict.found.brake else " (the automatic brake; here it was not used)"
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
            f"D without latency, with v as recorded, a = {brake.held_mps2:.3g} m/s² after τ = {brake.delay_s:.3g} s, "
            f"built up in t_b = {brake.build_up_s:g} s{unused}. The last moment is when <i>left</i> falls below it.",
        ),
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
        "messages": head.messages, "around": head.around or "nobody",
        "inputs_hash": head.inputs_hash, "plan_hash": head.plan_hash,
    }  # fmt: skip
    written = [f"{name} {escape(str(value))}" for name, value in known.items()]
    terms.append(("The run", "; ".join([escape(story.run), *written])))
    if story.traced.damage:
        terms.append(("Left out of the trace", "; ".join(escape(each) for each in story.traced.damage)))
    return terms
