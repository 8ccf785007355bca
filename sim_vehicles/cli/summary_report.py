"""Summary report of a replay for a terminal: rows of (what, how) and small tables."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, Any

from sim_vehicles.encounter.outcome import NOTHING, has_crossing, is_near, length, others

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


def outcome(verdict: dict[str, Any]) -> str:
    """One line: AVOIDED with the gap, or CRASH with speed and instant; and if it is not valid, why. Where no crossing
    vehicle is named: that there is nothing to judge, and whether the ego touched anybody."""
    if verdict["outcome"] == "CRASH":
        said = f"CRASH at {verdict['impact_kmh']:.1f} km/h, at {verdict['impact_s']:.2f} s of the recording"
    elif not has_crossing(verdict):
        said = "no contact" + ("" if verdict["gap_m"] is None else f", least gap {length(verdict['gap_m'])}")
    elif verdict["gap_m"] is None:
        said = "AVOIDED: the two were never there together"
    else:
        said = f"AVOIDED, least gap {length(verdict['gap_m'])}"
        said += ": a near miss, decided by milliseconds" if is_near(verdict) else ""
    if not has_crossing(verdict):
        said = f"{NOTHING} ({said})"
    return said if verdict["valid"] else f"{said}; not valid: {verdict['why_not_valid']}"


def rows(what: dict[str, Any]) -> list[Row]:
    """The account of the worst lap of a replay.json; where nothing was judged, why."""
    verdict = what["verdict"]
    if verdict is None:
        return [("verdict", f"none: {what['not_judged'] or 'nothing was played'}")]
    worst = f"worst of {verdict['laps']} laps: " if verdict["laps"] > 1 else ""
    found = [("verdict", worst + outcome(verdict)), *_about(verdict, what.get("rate", 1))]
    if verdict.get("note"):
        mend = "" if verdict.get("crossing") else '; a scene beside the recording names it: "crossing": ID'
        found.append(("note", verdict["note"].removeprefix(f"{NOTHING}, and ") + mend))
    if verdict["laps"] > 1:
        found.append(("crashes" if has_crossing(verdict) else "contacts", crashes(what)))
    return found


def crashes(what: dict[str, Any]) -> str:
    """How many of the laps that count ended in a crash, and how fast."""
    verdict = what["verdict"]
    valid = [lap for lap in what["laps"] if lap["valid"]] or what["laps"]
    speeds = [lap["impact_kmh"] for lap in valid if lap["impact_kmh"] is not None]
    said = f"{verdict['crashes']} of {verdict['laps']}"
    if len(speeds) == 1:
        said += f"; impact speed {speeds[0]:.1f} km/h"
    elif speeds:
        said += f"; impact speed min {min(speeds):.1f}, median {median(speeds):.1f}, max {max(speeds):.1f} km/h"
    return said


def phases(what: dict[str, Any]) -> Table:
    """One row per lap: phase, outcome, when the ego knew."""
    table = _table("lap by lap")
    judged = has_crossing(what["verdict"])
    knowing = ("knew at s", "left m", _latency_name(what.get("rate", 1)), "false")
    for name in ("lap", "phase", "outcome", "km/h", "gap m", *(knowing if judged else ("about others",))):
        table.add_column(name, justify="left" if name == "outcome" else "right", no_wrap=True)
    for i, lap in enumerate(what["laps"], 1):
        outcome = lap["outcome"] if judged else "contact" if lap["outcome"] == "CRASH" else "no contact"
        outcome = outcome if lap["valid"] else f"{outcome} (not valid)"
        cells = [str(i), f"{lap['burst_phase']}/{lap['burst_phases']}", outcome]
        cells += [_number(lap["impact_kmh"], 1), _number(lap["gap_m"], 2)]
        table.add_row(*cells, *(_knowing(lap) if judged else [str(others(lap["warnings"]))]))
    return table


def _knowing(lap: dict[str, Any]) -> list[str]:
    knew, deciding = lap["knew"] or {}, lap["deciding"] or {}
    at_s, left_m = _number(knew.get("at_s"), 3), _number(knew.get("left_m"), 1)
    return [at_s, left_m, _latency(deciding.get("latency_ns")), str(lap["warnings"]["false"])]


def split(verdict: dict[str, Any]) -> Table | None:
    """Where the deciding tuple's time went, stage by stage. None: not known."""
    stages = (verdict["deciding"] or {}).get("split")
    if not stages:
        return None
    table = _table("where the deciding tuple's time went")
    for name in ("stage", "node", "operators", "ms"):
        table.add_column(name, justify="right" if name == "ms" else "left")
    for stage in stages:
        names = stage.get("operators") or []
        shown = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]} ({len(names)})"
        table.add_row(stage["stage"], stage.get("node") or "", shown, f"{stage['ns'] / 1e6:.3f}")
    table.add_row("in all", "", "", f"{sum(stage['ns'] for stage in stages) / 1e6:.3f}")
    return table


def tell(told: Console, what: dict[str, Any]) -> None:
    """The whole account of a replay.json."""
    if what["verdict"] is not None and len(what["laps"]) > 1:
        told.print(phases(what))
    said = [*rows(what), *_bench(what)]
    width = max(len(name) for name, _ in said)
    for name, words in said:
        told.print(f"{name:<{width}}  {words}", markup=False, soft_wrap=True)
    times = split(what["verdict"]) if what["verdict"] else None
    if times is not None:
        told.print(times)


def sources(told: Console, what: dict[str, Any]) -> None:
    """Of a live replay: what was sent where, how late, and what was refused why."""
    title = f"replay of {what['scenario']}: {what['ended']}, {what['bursts']} of {what['bursts_planned']} bursts"
    table = _table(title)
    for name in ("source", "node", "bursts", "sent", "admitted", "refused", "latest burst"):
        table.add_column(name, justify="left" if name in ("source", "node") else "right")
    for name, one in what["sources"].items():
        late_ns = one["late_ns"]["max"]
        late = "-" if late_ns is None else f"{late_ns / 1e6:.2f} ms"
        table.add_row(name, one["node"], *(str(one[key]) for key in ("bursts", "sent", "admitted", "refused")), late)
    told.print(table)
    for name, one in what["sources"].items():
        for why, count in one["refused_why"].items():
            told.print(f"{name}: {count} refused: {why}", markup=False, soft_wrap=True)


def _about(verdict: dict[str, Any], rate: float | str) -> Iterator[Row]:
    first, knew, deciding = verdict["first_perceivable"], verdict["knew"], verdict["deciding"]
    crossing = verdict.get("crossing") or "the crossing vehicle"
    if first:
        yield "perceivable", f"{crossing} first by {first['by']} at {first['at_s']:.2f} s{_left(first)}"
    if knew:
        yield "ego knew", f"at {knew['at_s']:.3f} s{_left(knew)}"
    elif first:
        yield "ego knew", "never"
    if deciding:
        yield (
            "told by",
            f"{deciding['station']}, who measured {deciding['object']} at {deciding['measured_s']:.3f} s:"
            f" {_before(deciding, rate)}",
        )
    yield "brake", _brake(verdict)
    form = verdict["closed_form"]
    if form:
        # Not "hits": X may not be there yet, or no longer. The verdict says whether the two touch.
        way = f"{verdict.get('crossing') or 'the other'}'s way"
        impact = f"enters {way} at {form['impact_kmh']:.1f} km/h" if form["impact_kmh"] else f"stands before {way}"
        yield (
            "closed form",
            f"needs {form['needed_m']:.1f} m from that measurement, has {form['left_m']:.1f} m: {impact}",
        )
    counts = verdict["warnings"]
    missed = "; the collision was MISSED" if counts["missed"] and verdict["valid"] else ""
    if verdict.get("crossing"):
        yield "warnings", f"{counts['about_crossing']} about {crossing}, {counts['false']} false{missed}"
    else:
        yield "warnings", f"{others(counts)} about others; whether they were right: `sim-vehicles traffic`"
    yield (
        "burst phase",
        (f"{verdict['burst_phase']} of {verdict['burst_phases']}: bursts {verdict['burst_phase_ns'] / 1e6:g} ms later"),
    )


def _bench(what: dict[str, Any]) -> Iterator[Row]:
    """What the replay itself was: load, inputs, what the bench noticed."""
    load = what["utilisation"]
    if load is not None:
        shares = ", ".join(f"{node} {share:.0%}" for node, share in load.items())
        reached = what.get("rate_reached") or what["rate"]
        yield "utilisation", f"{shares} at {'virtual time' if what['virtual'] else f'rate {reached:.3g}'}"
        over = [node for node, share in load.items() if share > 1]
        if over:
            yield (
                "overload",
                f"{', '.join(over)}: more is asked than there is; the queue grows for as long as this goes on",
            )
    for name, heard in what.get("outputs", {}).items():
        yield f"output {name}", _heard(heard)
    for one in what.get("recomputed", []):
        late = one["outdated_bursts"]
        yield (
            "new motion",
            (
                f"lap {one['lap']}: bursts computed anew in {one['seconds'] * 1e3:.0f} ms"
                + (f"; {late} left with the motion before braking" if late else "")
            ),
        )
    if not what.get("results_settled", True):
        yield "late results", "more were still coming when the wait for them ended"
    if what.get("late_results"):
        yield "late results", f"{what['late_results']} came after their lap and count for none"
    for note in what.get("notes", ()):
        yield "note", note
    if what["virtual"] and what.get("refused"):
        yield "refused", f"{what['refused']} tuples were older on arrival than their source takes, in all laps"
    for policy, number in what.get("shed", {}).items():
        yield (
            "shed",
            f"{number} {SHED.get(policy, f'by policy {policy}')}, in all laps: none of them could warn anybody",
        )
    skipped = what["skipped_rows"]
    if skipped:
        yield "skipped", f"{len(skipped)} bad rows, the first: {skipped[0]}"
    yield "inputs", f"{what['inputs_hash']} (seed {what['seed']})"


def _heard(heard: dict[str, Any]) -> str:
    said = [f"{heard['results']} results"]
    if heard["unreadable"]:
        said.append(f"{heard['unreadable']} unreadable")
    if heard["reconnects"]:
        said.append(f"connection lost and made again {heard['reconnects']} times: results may be missing")
    if heard["failure"]:
        said.append(f"ended: {heard['failure']}")
    return ", ".join(said)


def _brake(verdict: dict[str, Any]) -> str:
    brake = verdict["brake"]
    if brake is None:
        return "not commanded"
    stands = "" if brake["stopped_s"] is None else f", stands at {brake['stopped_s']:.2f} s"
    return (
        f"{brake['kind']}: {brake['deceleration_mps2']:g} m/s2 after {brake['reaction_s']:g} s, commanded at"
        f" {brake['commanded_s']:.3f} s at {_number(verdict['speed_kmh'], 1)} km/h{stands}"
    )


def _left(at: dict[str, Any]) -> str:
    if at["left_m"] is None:
        return ""
    return f", {at['left_m']:.1f} m left" if at["left_m"] >= 0 else f", {-at['left_m']:.1f} m too late"


def _before(deciding: dict[str, Any], rate: float | str) -> str:
    """How long before its delivery the object was measured. At another rate than 1 the latency, which the nodes' clocks
    tell, is no difference of two instants of the recording: both are said."""
    if rate == 1:
        return f"{_latency(deciding['latency_ns'])} ms before"
    recorded_ms = (deciding["delivered_s"] - deciding["measured_s"]) * 1e3
    return f"{recorded_ms:.1f} ms before in the recording, {_latency(deciding['latency_ns'])} ms in wall time"


def _latency_name(rate: float | str) -> str:
    return "latency ms" if rate == 1 else "wall ms"


def _latency(interval_ns: list[int] | None) -> str:
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
