"""Each output: latency over time and its distribution against the deadline, and the budget of every hop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from coordinator.report.page.elements import RUNS, PageRun, behind, dot, folded, named, plot, row, section, table
from coordinator.report.page.run_labels import brief, milliseconds
from coordinator.report.page.sections.data_ages import ages
from coordinator.report.page.sections.hop_budgets import HopBudget, hop_budgets
from coordinator.report.page.verdict_sentences import BADGES, ORDER, state
from coordinator.report.report_document import Output
from coordinator.report.series.latency_series import UNBOUNDED_NS, LatencyBin
from protos.json_shape import Json

MS = 1e6
OPENED = 3  # outputs; of more of them only those that missed most are open
NOTE = (
    "Latencies are upper bounds, from a tuple's origin to its result, of delivered results. Over time: the median, the "
    "99th percentile (to 2 %) and the longest of each stretch."
)
HOPS_NOTE = (
    "Budgets: <span class='swatch c0'></span>mean<span class='swatch half c0'></span>mean of the slowest 1 %"
    "<span class='swatch line bad' style='background:currentColor'></span>predicted at most: its part of the bound"
    "<span class='swatch line warn' style='background:currentColor'></span>sub-deadline. <i>Rest</i> is what no hop "
    "explains: links between clocks that cannot be compared, waiting for a join's last partner, hand-over. Branches of "
    "a join overlap in time, and the bound counts the longest of them."
)


def outputs_section(runs: Sequence[PageRun]) -> str:
    """One fold per output, those that missed most first."""
    names = list(dict.fromkeys(name for page_run in runs for name in page_run.report.outputs))
    folds = []
    for n, name in enumerate(sorted(names, key=lambda name: _worst(runs, name))):
        opened = len(names) <= OPENED or not n
        folds.append(f'<div id="output-{names.index(name)}">')
        folds.append(f"{folded(_summary(runs, name), _output(runs, name), opened=opened, css='card')}</div>")
    return section("Latency", "".join(folds), f"{NOTE} {HOPS_NOTE}")


def _found(runs: Sequence[PageRun], name: str) -> list[tuple[PageRun, Output]]:
    return [(page_run, page_run.report.outputs[name]) for page_run in runs if name in page_run.report.outputs]


def _worst(runs: Sequence[PageRun], name: str) -> tuple[int, float]:
    found = [output for _, output in _found(runs, name)]
    shares = (one.missed_of_offered or (0.0, 0.0) for one in found)
    return min(ORDER.index(state(one)) for one in found), -max(upper for _, upper in shares)


def _summary(runs: Sequence[PageRun], name: str) -> str:
    found = _found(runs, name)
    css, word = BADGES[min((state(one) for _, one in found), key=ORDER.index)]
    deadlines = " / ".join(dict.fromkeys(f"{milliseconds(one.deadline_ns)} ms" for _, one in found))
    return f'{escape(name)} <span class="soft">deadline {deadlines}</span> <span class="badge {css}">{word}</span>'


def _output(runs: Sequence[PageRun], name: str) -> str:
    found = _found(runs, name)
    if not any(output.delivered for _, output in found):
        return "<p>Nothing was delivered.</p>" + _budget(runs, name) + ages(runs, name)
    plots = f"<div>{_over_time(found, name)}</div><div>{_distribution(found, name)}</div>"
    return f'{_figures(found, runs)}<div class="pair">{plots}</div>{_budget(runs, name)}{ages(runs, name)}'


def _figures(found: Sequence[tuple[PageRun, Output]], runs: Sequence[PageRun]) -> str:
    """In words: quantiles, and the plan's bound."""
    lines = []
    for page_run, output in found:
        took = output.latency_ns
        if took.max is None and took.p50 is None:
            continue
        told = ", ".join(
            f"{label} {brief(ns)}"
            for label, ns in (("median", took.p50), ("p99", took.p99), ("longest", took.max))
            if ns is not None
        )
        bound = f"; the plan's bound is {brief(output.bound_ns)}" if output.bound_ns is not None else "; no bound"
        lines.append(f"<p>{named(page_run, runs)} {told}{bound}.</p>")
    return "".join(lines)


def _limits(found: Sequence[tuple[PageRun, Output]], axis: str, bounds: bool = True) -> list[Json]:
    """Deadlines, and the bounds where they do not make the rest small."""
    marks: list[Json] = []
    deadlines = dict.fromkeys(output.deadline_ns for _, output in found)
    for n, ns in enumerate(deadlines):
        text = f"deadline {milliseconds(ns)} ms"
        marks.append({"axis": axis, "at": ns / MS, "css": "deadline", "text": text, "row": n})
    known = dict.fromkeys(output.bound_ns for _, output in found if output.bound_ns is not None)
    for n, ns in enumerate(known):
        if bounds and ns <= 4 * max(deadlines):
            marks.append({"axis": axis, "at": ns / MS, "css": "bound", "text": f"bound {milliseconds(ns)} ms",
                          "row": n + len(deadlines)})  # fmt: skip
    return marks


def _over_time(found: Sequence[tuple[PageRun, Output]], name: str) -> str:
    series: list[Json] = []
    several = len(found) > 1
    for page_run, _ in found:
        bins = page_run.series.latencies.get(name, [])
        if not bins:
            continue
        prefix, css = (f"{page_run.name}: " if several else ""), f"c{page_run.number % RUNS}"
        lines = with_gaps(bins)
        at = [_seconds(one.from_ns) for one in lines]
        half, high = ([_ms(one.p50_ns) for one in lines], [_ms(one.p99_ns) for one in lines])
        of = len(series)
        series.append({"kind": "line", "name": f"{prefix}median", "css": css, "x": at, "y": half, "thin": several})
        series.append({"kind": "line", "name": f"{prefix}p99", "css": css, "same": of, "y": high, "thin": not several})
        if not several:
            series.append({"kind": "band", "name": "", "css": css, "same": of, "of": [of, of + 1]})
        if not several:
            deadline_ns = found[0][1].deadline_ns
            series += _longest(bins, "longest", "urest", (0, deadline_ns))
            series += _longest(bins, "longest, beyond the deadline", "bad", (deadline_ns, UNBOUNDED_NS))
    data: Json = {
        "x": "time in the run [s]", "y": "latency [ms]", "series": series, "marks": _shown_marks(found, series),
        "to": max(page_run.series.length_ns for page_run, _ in found) / 1e9,
    }  # fmt: skip
    return f"<h3>Over time</h3>{plot('lines', data, f'Latency of {name} over time')}"


def _longest(bins: Sequence[LatencyBin], name: str, css: str, between_ns: tuple[int, int]) -> list[Json]:
    mine = [one for one in bins if between_ns[0] < one.most_ns <= between_ns[1]]
    at, most = [_seconds(one.from_ns) for one in mine], [_ms(one.most_ns) for one in mine]
    return [{"kind": "pin", "name": name, "css": css, "x": at, "y": most}] if mine else []


def with_gaps(bins: Sequence[LatencyBin]) -> list[_Stop]:
    """Stretches without a result that are long beside the others are a gap, and no line goes over them."""
    steps = sorted(after.from_ns - before.from_ns for before, after in pairwise(bins))
    most = 4 * steps[len(steps) // 2] if steps else 0
    found: list[_Stop] = []
    for one in bins:
        if found and one.from_ns - found[-1].from_ns > most:
            found.append(_Stop(found[-1].from_ns + 1, None, None))
        found.append(_Stop(one.from_ns, one.p50_ns, one.p99_ns))
    return found


@dataclass(frozen=True, slots=True)
class _Stop:
    from_ns: int
    p50_ns: int | None
    p99_ns: int | None


def _seconds(ns: int) -> float:
    return round(ns / 1e9, 4)


def _ms(ns: int | None) -> float | None:
    return None if ns is None else round(ns / MS, 4)


def _near(found: Sequence[tuple[PageRun, Output]], axis: str, most: float) -> list[Json]:
    return [mark for mark in _limits(found, axis) if isinstance(mark, dict) and mark["at"] <= most]


def _shown_marks(found: Sequence[tuple[PageRun, Output]], series: Sequence[Json]) -> list[Json]:
    """A deadline far above all results would press them flat: it is said instead."""
    most = max((y for one in series if isinstance(one, dict) for y in one.get("y", ()) if y is not None), default=0.0)
    return _near(found, "y", 6 * most)


def _distribution(found: Sequence[tuple[PageRun, Output]], name: str) -> str:
    series: list[Json] = []
    for page_run, output in found:
        known = [ns for ns in output.quantiles_ns if ns is not None]
        if known:
            steps = len(output.quantiles_ns)
            series.append({
                "kind": "line", "css": f"c{page_run.number % RUNS}",
                "name": page_run.name if len(found) > 1 else "share of results",
                "x": [round(ns / MS, 4) for ns in known],
                "y": [round(100 * (k + 1) / steps, 2) for k in range(len(known))],
            })  # fmt: skip
    if not series:
        return ""
    most_ns = max((ns for _, output in found for ns in output.quantiles_ns if ns is not None), default=0)
    data: Json = {
        "x": "latency [ms]", "y": "share within it [%]", "series": series, "most": 102,
        "marks": _near(found, "x", 5 * most_ns / MS),
    }  # fmt: skip
    return f"<h3>Distribution</h3>{plot('lines', data, f'Share of the results of {name} within a latency')}"


def _budget(runs: Sequence[PageRun], name: str) -> str:
    budgets = [
        (page_run, hop_budgets(page_run.run, name, page_run.report.latency_breakdowns.get(name))) for page_run in runs
    ]
    budgets = [(page_run, list(filter(_values, hops))) for page_run, hops in budgets if any(map(_values, hops))]
    if not budgets:
        return ""
    order = list(dict.fromkeys(hop.hop for _, hops in budgets for hop in hops))
    most = max(max(_values(hop), default=0) for _, hops in budgets for hop in hops) or 1
    items, rows = [], []
    for name_ in order:
        tracks = ""
        for page_run, hops in budgets:
            hop = next((one for one in hops if one.hop == name_), None)
            if hop is not None:
                tracks += _track(page_run, hop, most, several=len(budgets) > 1)
                rows.append(_hop_row(page_run, hop, runs))
        items.append(f"<li>{tracks}</li>")
    head = ["hop", "predicted [ms]", "sub-deadline [ms]", "mean [ms]", "of it queued", "slowest 1 % [ms]"]
    return f'<h3>Budget of each hop</h3><ul class="hops">{"".join(items)}</ul>{behind(table(head, rows))}'


def _values(hop: HopBudget) -> list[int]:
    return [ns for ns in (hop.predicted_ns, hop.mean_ns, hop.tail_ns) if ns]


def _track(page_run: PageRun, hop: HopBudget, most: int, several: bool) -> str:
    at = [
        f'<i class="{css}" style="{side}:{min(100, 100 * ns / most):.2f}%"></i>'
        for css, side, ns in (
            ("tail", "width", hop.tail_ns),
            ("mean", "width", hop.mean_ns),
            ("sub", "left", hop.sub_deadline_ns if (hop.sub_deadline_ns or most + 1) <= most else None),
            ("most", "left", hop.predicted_ns),
        )
        if ns is not None
    ]
    measured = "not measured" if hop.mean_ns is None else f"{brief(hop.mean_ns)}, slowest {brief(hop.tail_ns or 0)}"
    predicted = "" if hop.predicted_ns is None else f" of at most {brief(hop.predicted_ns)}"
    css = ' class="bad"' if hop.is_above else ""
    label = f"{dot(page_run.number)}{escape(hop.hop)}" if several else escape(hop.hop)
    what = f'<div class="what"><span>{label}</span><span{css}>{measured}{predicted}</span></div>'
    return f'{what}<div class="track c{page_run.number % RUNS}">{"".join(at)}</div>'


def _hop_row(page_run: PageRun, hop: HopBudget, runs: Sequence[PageRun]) -> str:
    run = f" {named(page_run, runs)}" if len(runs) > 1 else ""
    queued = "–" if not hop.mean_ns else f"{100 * hop.queued_ns / hop.mean_ns:.0f} %"
    cells = [milliseconds(ns) for ns in (hop.predicted_ns, hop.sub_deadline_ns, hop.mean_ns)]
    return row([f"{escape(hop.hop)}{run}", *cells, queued, milliseconds(hop.tail_ns)])


__all__ = ["outputs_section"]
