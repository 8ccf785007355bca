"""The age of the data behind an output's results, and its reaction to sources: beside limit and bound, and by hop."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from coordinator.report import missed_share
from coordinator.report.page.age_tables import NOTE, parts
from coordinator.report.page.elements import RUNS, PageRun, dot, named, row, table
from coordinator.report.page.run_labels import brief, milliseconds, tenths
from coordinator.report.report_document import DataAge, Reaction

HEAD = ("what", "limit [ms]", "bound [ms]", "median [ms]", "p99 [ms]", "longest [ms]", "above", "unanswered")


def ages(runs: Sequence[PageRun], name: str) -> str:
    """Nothing where the output asks for neither."""
    found = [(each, each.report.freshness[name]) for each in runs if name in each.report.freshness]
    if not found:
        return ""
    rows = [
        row([f"{escape(what)} {named(page_run, runs)}", *_cells(each)])
        for page_run, freshness in found
        for what, each in parts(freshness)
    ]
    hops = "".join(_hops(page_run, one.age, len(runs) > 1) for page_run, one in found if one.age is not None)
    return f'<h3>Age of the data</h3><p class="soft">{escape(NOTE)}</p>{table(HEAD, rows)}{hops}'


def _cells(found: DataAge | Reaction) -> list[str]:
    spread = found.age_ns if isinstance(found, DataAge) else found.reaction_ns
    css = ' class="bad"' if missed_share.is_missed(found.share) else ""
    return [
        milliseconds(found.limit_ns), milliseconds(found.bound_ns), *map(tenths, (spread.p50, spread.p99, spread.max)),
        f"<span{css}>{missed_share.text(found.share)}</span>",
        "" if isinstance(found, DataAge) else str(found.unanswered),
    ]  # fmt: skip


def _hops(page_run: PageRun, age: DataAge, several: bool) -> str:
    """A bar for each: where the oldest data were."""
    most = max((hop.mean_ns for hop in age.hops), default=0)
    if not most:
        return ""
    items = []
    for hop in age.hops:
        label = f"{dot(page_run.number)}{escape(hop.place)}" if several else escape(hop.place)
        what = f'<div class="what"><span>{label}</span><span>{brief(hop.mean_ns)}</span></div>'
        bar = f'<i class="mean" style="width:{100 * hop.mean_ns / most:.2f}%"></i>'
        items.append(f'<li>{what}<div class="track c{page_run.number % RUNS}">{bar}</div></li>')
    oldest = "the oldest result" if age.blamed == 1 else f"the {age.blamed} oldest results, on average"
    return f'<p class="soft">Where the oldest datum was, of {oldest}:</p><ul class="hops">{"".join(items)}</ul>'


__all__ = ["ages"]
