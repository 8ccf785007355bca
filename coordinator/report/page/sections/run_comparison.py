"""A beside B: what each run missed and how long it took, with intervals: chance is not taken for a difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from coordinator.report import missed_share
from coordinator.report.page.elements import RUNS, PageRun, behind, dot, folded, row, section, table
from coordinator.report.page.run_labels import brief, milliseconds
from coordinator.report.page.sections.latency_intervals import quantile_interval, share_interval
from coordinator.report.report_document import Output
from coordinator.units import counted

Text = Callable[[float], str]
AT_ONCE = 6  # outputs
QUANTILES = (("median", 0.5), ("p95", 0.95), ("p99", 0.99))
NOTE = (
    "Solid: what was counted; of what was missed, from what is certain to what is possible. Pale: where 95 of 100 such "
    "runs would be, were results independent of one another. They are not where they wait in one queue, so it is the "
    "least by which runs must differ."
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of one run: as counted, lo to hi, and where it may be by chance."""

    page_run: PageRun
    lo: float
    hi: float
    least: float
    most: float


def comparison_section(runs: Sequence[PageRun]) -> str:
    """Nothing where there is one run."""
    if len(runs) < 2:
        return ""
    names = list(dict.fromkeys(name for page_run in runs for name in page_run.report.outputs))
    parts = [_output(runs, name) for name in names]
    rest = "".join(parts[AT_ONCE:])
    more = folded(counted(len(parts) - AT_ONCE, "more output"), rest) if rest else ""
    return section("Side by side", "".join(parts[:AT_ONCE]) + more, NOTE)


def _output(runs: Sequence[PageRun], name: str) -> str:
    found = [(page_run, page_run.report.outputs[name]) for page_run in runs if name in page_run.report.outputs]
    missed = [_missed(page_run, output) for page_run, output in found if output.missed_of_offered is not None]
    parts = [f"<h3>{escape(name)}</h3>", f"<p>{escape(_sentence(missed, len(found)))}</p>"]
    rows = []
    items = [_bars("missed", missed, _percent)] if missed else []
    for label, share in QUANTILES:
        took = [one for page_run, output in found if (one := _quantile(page_run, output, label, share)) is not None]
        if took:
            items.append(_bars(label, took, brief))
            rows += [_row(label, one, _with_unit) for one in took]
    rows = [*(_row("missed", one, _percent) for one in missed), *rows]
    head = ["figure", "run", "counted", "by chance from", "to"]
    parts.append(f'<ul class="hops">{"".join(items)}</ul>{behind(table(head, rows))}')
    return "".join(parts)


def _missed(page_run: PageRun, output: Output) -> Measured:
    share = output.missed_of_offered
    assert share is not None, "a run without one is left out"
    least, most = share_interval(share, output.met + output.missed + sum(output.between.values()))
    return Measured(page_run, share[0], share[1], least, most)


def _quantile(page_run: PageRun, output: Output, label: str, share: float) -> Measured | None:
    took = output.latency_ns
    ns = {"median": took.p50, "p95": took.p95, "p99": took.p99}[label]
    if ns is None:
        return None
    by_chance = quantile_interval(output.quantiles_ns, output.delivered, share) or (ns, ns)
    return Measured(page_run, ns, ns, min(ns, by_chance[0]), max(ns, by_chance[1]))


def _sentence(missed: Sequence[Measured], runs: int) -> str:
    if len(missed) < 2:
        return "Only one of them offered anything." if missed else "None of them offered anything."
    best, *others = sorted(missed, key=lambda one: (one.hi, one.lo))
    worst = others[-1]
    shares = f"{missed_share.text((best.lo, best.hi))} against {missed_share.text((worst.lo, worst.hi))}"
    if (best.lo, best.hi) == (worst.lo, worst.hi):
        return f"All missed the same: {missed_share.text((best.lo, best.hi))}."
    if best.hi >= worst.lo:
        return f"Cannot be told apart: {shares}."
    most = "the least" if runs > 2 else "less"
    if best.most < worst.least:
        return f"{best.page_run.name} missed {most}, {shares}; chance alone does not explain it."
    return f"{best.page_run.name} missed {most}, {shares}, which may be chance."


def _bars(label: str, measured: Sequence[Measured], text: Text) -> str:
    most = max(one.most for one in measured) or 1.0
    items = []
    for one in measured:
        range_ = f'<i class="range" style="left:{100 * one.least / most:.2f}%;width:{100 * (one.most - one.least) / most:.2f}%"></i>'  # noqa: E501
        sure = f'<i class="sure" style="left:{min(99.4, 100 * one.lo / most):.2f}%;width:{100 * (one.hi - one.lo) / most:.2f}%"></i>'  # noqa: E501
        value = text(one.lo) if one.lo == one.hi else f"{text(one.lo)} to {text(one.hi)}"
        what = f"<span>{dot(one.page_run.number)}{escape(one.page_run.name)}: {label}</span><span>{value}</span>"
        items.append(
            f'<div class="what">{what}</div><div class="track c{one.page_run.number % RUNS}">{range_}{sure}</div>'
        )
    return f"<li>{''.join(items)}</li>"


def _row(label: str, one: Measured, text: Text) -> str:
    counted = text(one.lo) if one.lo == one.hi else f"{text(one.lo)} to {text(one.hi)}"
    return row(
        [label, f"{dot(one.page_run.number)}{escape(one.page_run.name)}", counted, text(one.least), text(one.most)]
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _with_unit(ns: float) -> str:
    return f"{milliseconds(int(ns))} ms"


__all__ = ["comparison_section"]
