"""The page's tables: every stage of the deciding tuple, every lap. Texts from files are escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sim_vehicles.closed_loop.closed_loop import Verdict
from sim_vehicles.closed_loop.crossing_messages import CrossingMessages
from sim_vehicles.encounter.outcome import is_near, length
from sim_vehicles.story.page.bars import STAGE_COLOURS
from sim_vehicles.story.page.run_story import Story
from sim_vehicles.story.page.wording import DASH, kind, milliseconds, ms, word


def table(head: Sequence[str], rows: Sequence[str]) -> str:
    """A table that scrolls by itself where it is too wide, and says so."""
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(head[-1])}"><table><thead><tr>'
        f"{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def folded(summary: str, body: str) -> str:
    """summary: plain text, a click on it opens the body."""
    return f"<details><summary>{escape(summary)}</summary>{body}</details>"


def row(cells: Sequence[str], kind: str = "") -> str:
    """One row of cells that are HTML already."""
    return f"<tr{f' class={kind}' if kind else ''}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def split(story: Story) -> str:
    """The stages as a table, to be checked line by line."""
    if not story.traced.stages:
        return f"<p>{escape(story.traced.without_split)}</p>"
    whole = sum(each.ns for each in story.traced.stages)
    rows, until = [], 0
    for each in story.traced.stages:
        until += each.ns
        where = f"{each.from_node} → {each.node}" if each.from_node else each.node or DASH
        mark = " *" if each.shared_out else ""
        colour = STAGE_COLOURS.get(each.stage, "#c9ced6")
        rows.append(row([
            f'<span class="dot" style="background:{colour}"></span>{escape(each.stage)}', escape(where),
            escape(_operators(each.operators)) + mark, ms(each.ns), ms(until),
            f"{100 * each.ns / whole:.1f} %" if whole else DASH,
        ]))  # fmt: skip
    rows.append(row(["all", "", "", ms(whole), "", "100 %"], "total"))
    notes = [
        "Sensing: from the measurement until the message is sent. Queue: from the release of a unit’s instance to its "
        "start. Handover: between two of these, in a runtime. Link: from SENT to RECEIVED. Actuation: from the "
        "delivery until the brake bites, a driver’s reaction included.",
    ]
    if any(each.shared_out for each in story.traced.stages):
        notes.append(
            "* The trace holds when a unit ran; its time is shared out among its operators in proportion to the plan’s "
            "costs."
        )
    if not story.real_time:
        notes.append(f"The nodes’ own time: the replay ran at rate {story.replay.rate}.")
    if story.traced.uncertain_ns:
        notes.append(
            f"The nodes’ clocks are known to ± {milliseconds(story.traced.uncertain_ns)}; the links carry that."
        )
    text = "".join(f"<p class=soft>{escape(note)}</p>" for note in notes)
    head_cells = ["stage", "node", "operators", "ms", "sum [ms]", "share"]
    inner = table(head_cells, rows)
    return inner + text


def _operators(names: Sequence[str]) -> str:
    return DASH if not names else names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)})"


LATENCY = "latency"
COLUMNS = (
    "phase", "outcome", "impact [km/h]", "least gap [m]", "warned [s]", "left then [m]", LATENCY, "messages",
    "left out", "warnings", "false",
)  # fmt: skip


def laps(story: Story) -> str:
    """All laps of a run: a strip and a table; nothing where there is one only."""
    if len(story.laps) == 1:
        return ""
    crashes = sum(lap.crashed for lap in story.laps)
    fastest = max([lap.found.impact_kmh or 0.0 for lap in story.laps] + [1.0])
    widest = max([lap.found.gap_m or 0.0 for lap in story.laps] + [1.0])
    cells = "".join(_cell(story, number, lap, fastest, widest) for number, lap in enumerate(story.laps))
    rows = [_lap(story, number, lap) for number, lap in enumerate(story.laps)]
    latency = "latency [ms]" if story.real_time else "latency, wall time [ms]"
    columns = [latency if name == LATENCY else name for name in COLUMNS]
    return (
        f"<p class=soft>{escape(_counted(story, crashes))}</p>"
        f'<div class="strip">{cells}</div>{folded("every lap", table(columns, rows))}'
    )


def _counted(story: Story, crashes: int) -> str:
    counts = [lap.found.warnings for lap in story.laps]
    if not story.other:
        warned = sum(each.others for each in counts)
        return f"{crashes} of {len(story.laps)} laps with a contact. {warned} warnings, neither right nor false."
    false, missed = sum(each.false for each in counts), sum(each.missed for each in counts)
    near = sum(is_near(lap.found) for lap in story.laps)
    just = f", {near} only just avoid it" if near else ""
    invalid = sum(not lap.valid for lap in story.laps)
    grey = f" Grey: {invalid} not valid." if invalid else ""
    return (
        f"{crashes} of {len(story.laps)} laps crash{just}. {false} false warnings; {missed} laps without the warning "
        f"that was due. Each phase with its impact speed, or its least gap.{grey}"
    )


def _cell(story: Story, number: int, lap: Verdict, fastest: float, widest: float) -> str:
    crashed, found = lap.crashed, lap.found
    value = (found.impact_kmh if crashed else found.gap_m) or 0.0
    share = value / (fastest if crashed else widest)
    text, unit = (f"{value:.0f}", "km/h") if crashed else length(value).rsplit(" ", 1)
    looks = f"lap {kind(story, lap)}"
    looks += " shown" if number == story.number else ""
    looks += "" if lap.valid else " invalid"
    return (
        f'<div class="{looks}"><div class="rod"><span style="height:{100 * share:.0f}%"></span></div>'
        f"<b>{escape(text.replace('under ', '<'))}</b><small>{unit}</small><i>{lap.burst_phase}</i></div>"
    )


def _messages(about: CrossingMessages | None) -> list[str]:
    """About the crossing vehicle, until the ego knew."""
    return [DASH] * 2 if about is None else [str(about.offered), str(about.left_out)]


def _lap(story: Story, number: int, lap: Verdict) -> str:
    found, counts = lap.found, lap.found.warnings
    deciding, knew = found.deciding, found.knew
    invalid = "" if lap.valid else f' <span class="soft">not valid: {escape(lap.why_not_valid or DASH)}</span>'

    def number_of(value: float | None, digits: int) -> str:
        return DASH if value is None else f"{value:.{digits}f}"

    return row([
        str(lap.burst_phase), f'<b class="{kind(story, lap)}">{word(story, lap)}</b>{invalid}',
        number_of(found.impact_kmh, 1), number_of(found.gap_m, 2), DASH if knew is None else number_of(knew.at_s, 2),
        DASH if knew is None else number_of(knew.left_m, 2), DASH if deciding is None else ms(deciding.latency_ns[1]),
        *_messages(lap.crossing_messages), str(counts.about_crossing),
        str(counts.false if story.other else counts.others),
    ], "shown" if number == story.number else "")  # fmt: skip
