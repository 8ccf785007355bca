"""Summary report of a replay for a terminal: rows of (what, how) and small tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from sim_vehicles.closed_loop.closed_loop import Verdict
from sim_vehicles.closed_loop.crossing_messages import CrossingMessages
from sim_vehicles.encounter.judgement import Deciding, Judgement
from sim_vehicles.encounter.outcome import NOTHING, has_crossing, is_near, length
from sim_vehicles.replay.replay_document import LiveSummary, ReplaySummary, VirtualSummary

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Row = tuple[str, str]
SHED = {
    "arrivals": "tuples policed: beyond what their source declared",
    "selectivity": "results policed: beyond what their operator declared",
    "late": "tuples too late for every output",
    "memory": "tuples for want of memory",
    "rate": "tuples above their source's limit",
}


def outcome(verdict: Verdict) -> str:
    """One line: AVOIDED with the gap, or CRASH with speed and instant; and if it is not valid, why. Where no crossing
    vehicle is named: that there is nothing to judge, and whether the ego touched anybody."""
    found = verdict.found
    if verdict.crashed:
        said = f"CRASH at {found.impact_kmh:.1f} km/h, at {found.impact_s:.2f} s of the recording"
    elif not has_crossing(found):
        said = "no contact" + ("" if found.gap_m is None else f", least gap {length(found.gap_m)}")
    elif found.gap_m is None:
        said = "AVOIDED: the two were never there together"
    else:
        said = f"AVOIDED, least gap {length(found.gap_m)}"
        said += ": a near miss, decided by milliseconds" if is_near(found) else ""
    if not has_crossing(found):
        said = f"{NOTHING} ({said})"
    return said if verdict.valid else f"{said}; not valid: {verdict.why_not_valid}"


def rows(what: ReplaySummary) -> list[Row]:
    """The account of the worst lap of a replay.json; where nothing was judged, why."""
    verdict = what.verdict
    if verdict is None:
        return [("verdict", f"none: {what.not_judged or 'nothing was played'}")]
    worst = f"worst of {verdict.laps} laps: " if verdict.laps > 1 else ""
    found = [("verdict", worst + outcome(verdict)), *_about(verdict, what.rate)]
    if verdict.found.note:
        mend = "" if verdict.found.crossing else '; a scene beside the recording names it: "crossing": ID'
        found.append(("note", verdict.found.note.removeprefix(f"{NOTHING}, and ") + mend))
    if verdict.laps > 1:
        found.append(("crashes" if has_crossing(verdict.found) else "contacts", crashes(verdict, what.laps)))
    return found


def crashes(verdict: Verdict, laps: Sequence[Verdict]) -> str:
    """How many of the laps that count ended in a crash, and how fast."""
    valid = [lap for lap in laps if lap.valid] or laps
    speeds = [lap.found.impact_kmh for lap in valid if lap.found.impact_kmh is not None]
    said = f"{verdict.crashes} of {verdict.laps}"
    if len(speeds) == 1:
        said += f"; impact speed {speeds[0]:.1f} km/h"
    elif speeds:
        said += f"; impact speed min {min(speeds):.1f}, median {median(speeds):.1f}, max {max(speeds):.1f} km/h"
    return said


def messages(what: CrossingMessages, knew: bool) -> str:
    """What became of the messages about the crossing vehicle, until the ego knew of it."""
    until = "until the ego knew" if knew else "in all"
    if what.policed is None:
        return (
            f"{what.offered} messages {until}, {what.refused} refused; the traces say what was policed, shed and lost"
        )
    fates = ", ".join(f"{number} {fate}" for fate, number in what.fates.items() if number is not None)
    return f"{what.offered} messages {until}: {fates}"


def phases(verdict: Verdict, laps: Sequence[Verdict], rate: float | str) -> Table:
    """One row per lap: phase, outcome, when the ego knew."""
    table = _table("lap by lap")
    judged = has_crossing(verdict.found)
    knowing = ("knew at s", "left m", _latency_name(rate), "messages", "left out", "false")
    for name in ("lap", "phase", "outcome", "km/h", "gap m", *(knowing if judged else ("about others",))):
        table.add_column(name, justify="left" if name == "outcome" else "right", no_wrap=True)
    for i, lap in enumerate(laps, 1):
        found = lap.found
        outcome = found.outcome if judged else "contact" if lap.crashed else "no contact"
        outcome = outcome if lap.valid else f"{outcome} (not valid)"
        cells = [str(i), f"{lap.burst_phase}/{lap.burst_phases}", outcome]
        cells += [_number(found.impact_kmh, 1), _number(found.gap_m, 2)]
        table.add_row(*cells, *(_knowing(lap) if judged else [str(found.warnings.others)]))
    return table


def _knowing(lap: Verdict) -> list[str]:
    found, about = lap.found, lap.crossing_messages
    at_s, left_m = (None, None) if found.knew is None else (found.knew.at_s, found.knew.left_m)
    latency_ns = None if found.deciding is None else found.deciding.latency_ns
    counts = ["-", "-"] if about is None else [str(about.offered), str(about.left_out)]
    return [_number(at_s, 3), _number(left_m, 1), _latency(latency_ns), *counts, str(found.warnings.false)]


def split(verdict: Verdict) -> Table | None:
    """Where the deciding tuple's time went, stage by stage. None: not known."""
    stages = verdict.found.deciding.split if verdict.found.deciding is not None else None
    if not stages:
        return None
    table = _table("where the deciding tuple's time went")
    for name in ("stage", "node", "operators", "ms"):
        table.add_column(name, justify="right" if name == "ms" else "left")
    for stage in stages:
        names = stage.operators
        shown = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]} ({len(names)})"
        table.add_row(stage.stage, stage.node or "", shown, f"{stage.ns / 1e6:.3f}")
    table.add_row("in all", "", "", f"{sum(stage.ns for stage in stages) / 1e6:.3f}")
    return table


def tell(told: Console, what: ReplaySummary) -> None:
    """The whole account of a replay.json."""
    if what.verdict is not None and len(what.laps) > 1:
        told.print(phases(what.verdict, what.laps, what.rate))
    said = [*rows(what), *_bench(what)]
    width = max(len(name) for name, _ in said)
    for name, words in said:
        told.print(f"{name:<{width}}  {words}", markup=False, soft_wrap=True)
    times = split(what.verdict) if what.verdict is not None else None
    if times is not None:
        told.print(times)


def sources(told: Console, what: LiveSummary) -> None:
    """Of a live replay: what was sent where, how late, and what was refused why."""
    title = f"replay of {what.head.scenario}: {what.ended}, {what.bursts} of {what.bursts_planned} bursts"
    table = _table(title)
    for name in ("source", "node", "bursts", "sent", "admitted", "refused", "latest burst"):
        table.add_column(name, justify="left" if name in ("source", "node") else "right")
    for name, one in what.sources.items():
        late_ns = one.late_ns.max
        late = "-" if late_ns is None else f"{late_ns / 1e6:.2f} ms"
        counts = (str(n) for n in (one.bursts, one.sent, one.admitted, one.refused))
        table.add_row(name, one.node, *counts, late)
    told.print(table)
    for name, one in what.sources.items():
        for why, count in one.refused_why.items():
            told.print(f"{name}: {count} refused: {why}", markup=False, soft_wrap=True)


def _about(verdict: Verdict, rate: float | str) -> Iterator[Row]:
    found = verdict.found
    first, knew, deciding = found.first_perceivable, found.knew, found.deciding
    crossing = found.crossing or "the crossing vehicle"
    if first is not None:
        yield "perceivable", f"{crossing} first by {first.by} at {first.at_s:.2f} s{_left(first.left_m)}"
    if knew is not None:
        yield "ego knew", f"at {knew.at_s:.3f} s{_left(knew.left_m)}"
    elif first is not None:
        yield "ego knew", "never"
    if deciding is not None:
        yield (
            "told by",
            f"{deciding.station}, who measured {deciding.object} at {deciding.measured_s:.3f} s:"
            f" {_before(deciding, rate)}",
        )
    yield "brake", _brake(found)
    form = found.closed_form
    if form is not None:
        # Not "hits": X may not be there yet, or no longer. The verdict says whether the two touch.
        way = f"{found.crossing or 'the other'}'s way"
        impact = f"enters {way} at {form.impact_kmh:.1f} km/h" if form.impact_kmh else f"stands before {way}"
        yield (
            "closed form",
            f"needs {form.needed_m:.1f} m from that measurement, has {form.left_m:.1f} m: {impact}",
        )
    counts = found.warnings
    missed = "; the collision was MISSED" if counts.missed and verdict.valid else ""
    if verdict.crossing_messages is not None:
        yield f"about {crossing}", messages(verdict.crossing_messages, knew is not None)
    if found.crossing:
        yield "warnings", f"{counts.about_crossing} about {crossing}, {counts.false} false{missed}"
    else:
        yield "warnings", f"{counts.others} about others; whether they were right: `sim-vehicles traffic`"
    yield (
        "burst phase",
        (f"{verdict.burst_phase} of {verdict.burst_phases}: bursts {verdict.burst_phase_ns / 1e6:g} ms later"),
    )


def _bench(what: ReplaySummary) -> Iterator[Row]:
    """What the replay itself was: load, inputs, what the bench noticed."""
    if what.utilisation is not None:
        shares = ", ".join(f"{node} {share:.0%}" for node, share in what.utilisation.items())
        yield "utilisation", f"{shares} at {_rate(what)}"
        over = [node for node, share in what.utilisation.items() if share > 1]
        if over:
            yield (
                "overload",
                f"{', '.join(over)}: more is asked than there is; the queue grows for as long as this goes on",
            )
    if isinstance(what, LiveSummary):
        yield from _heard(what)
    for note in what.head.notes:
        yield "note", note
    if isinstance(what, VirtualSummary):
        if what.refused:
            yield "refused", f"{what.refused} tuples were older on arrival than their source takes, in all laps"
        for policy, number in what.shed.items():
            yield (
                "shed",
                f"{number} {SHED.get(policy, f'by policy {policy}')}, in all laps: none of them could warn anybody",
            )
    skipped = what.head.skipped_rows
    if skipped:
        yield "skipped", f"{len(skipped)} bad rows, the first: {skipped[0]}"
    yield "inputs", f"{what.head.inputs_hash} (seed {what.head.seed})"


def _rate(what: ReplaySummary) -> str:
    return f"rate {what.rate_reached or what.rate:.3g}" if isinstance(what, LiveSummary) else "virtual time"


def _heard(what: LiveSummary) -> Iterator[Row]:
    """What came back from the outputs, and how the live replay went."""
    for name, heard in what.outputs.items():
        said = [f"{heard.results} results"]
        if heard.unreadable:
            said.append(f"{heard.unreadable} unreadable")
        if heard.reconnects:
            said.append(f"connection lost and made again {heard.reconnects} times: results may be missing")
        if heard.failure:
            said.append(f"ended: {heard.failure}")
        yield f"output {name}", ", ".join(said)
    for one in what.recomputed:
        late = one.outdated_bursts
        yield (
            "new motion",
            (
                f"lap {one.lap}: bursts computed anew in {one.seconds * 1e3:.0f} ms"
                + (f"; {late} left with the motion before braking" if late else "")
            ),
        )
    if not what.results_settled:
        yield "late results", "more were still coming when the wait for them ended"
    if what.late_results:
        yield "late results", f"{what.late_results} came after their lap and count for none"


def _brake(found: Judgement) -> str:
    brake = found.brake
    if brake is None:
        return "not commanded"
    stands = "" if brake.stopped_s is None else f", stands at {brake.stopped_s:.2f} s"
    return f"{brake.by}; commanded at {brake.commanded_s:.3f} s at {_number(found.speed_kmh, 1)} km/h{stands}"


def _left(left_m: float | None) -> str:
    if left_m is None:
        return ""
    return f", {left_m:.1f} m left" if left_m >= 0 else f", {-left_m:.1f} m too late"


def _before(deciding: Deciding, rate: float | str) -> str:
    """How long before its delivery the object was measured. At another rate than 1 the latency, which the nodes' clocks
    tell, is no difference of two instants of the recording: both are said."""
    if rate == 1:
        return f"{_latency(deciding.latency_ns)} ms before"
    recorded_ms = (deciding.delivered_s - deciding.measured_s) * 1e3
    return f"{recorded_ms:.1f} ms before in the recording, {_latency(deciding.latency_ns)} ms in wall time"


def _latency_name(rate: float | str) -> str:
    return "latency ms" if rate == 1 else "wall ms"


def _latency(interval_ns: tuple[int, int] | None) -> str:
    if not interval_ns:
        return "-"
    low, high = (f"{each / 1e6:.1f}" for each in interval_ns)
    return low if low == high else f"{low}-{high}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _table(title: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left")
