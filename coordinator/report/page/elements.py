"""The page's elements as HTML. Cells and bodies are markup that is escaped already; all other text is escaped here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from coordinator.report.facts.reader import Run
from coordinator.report.report_document import Report
from coordinator.report.series.run_series import RunSeries
from protos.json_shape import Json

RUNS = 6  # that have a colour of their own
TEXT = frozenset((
    "what", "what it cost", "node", "run", "main cause", "reasons", "without a result", "shed of them, by policy",
    "refused", "windows of",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageRun:
    """A run on the page. name: among the others there."""

    number: int
    name: str
    run: Run
    report: Report
    series: RunSeries


def section(title: str, body: str, about: str = "") -> str:
    """A card of the page; nothing where there is no body."""
    if not body:
        return ""
    note = f'<p class="soft">{about}</p>' if about else ""
    return f'<section id="{anchor(title)}"><h2>{escape(title)}</h2>{note}{body}</section>'


def anchor(text: str) -> str:
    """As an id."""
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())


def table(head: Sequence[str], rows: Iterable[str]) -> str:
    """It scrolls by itself where it is wider than the page, by the keyboard too. Columns of TEXT begin at the left."""
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    left = " ".join(f"t{n}" for n, name in enumerate(head, start=1) if name in TEXT)
    body = f'<table class="{left}"><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(head[0])}">{body}</div>'


def row(cells: Sequence[str], group: bool = False) -> str:
    """group: a line above it."""
    return f"<tr{' class=group' if group else ''}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def bullets(lines: Iterable[str]) -> str:
    """A list of sentences."""
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def dot(number: int) -> str:
    """The colour of a run."""
    return f'<span class="dot c{number % RUNS}"></span>'


def named(page_run: PageRun, of: Sequence[PageRun]) -> str:
    """The run's name with its colour; nothing where it is alone."""
    return f"{dot(page_run.number)}{escape(page_run.name)}" if len(of) > 1 else ""


def folded(summary: str, body: str, opened: bool = False, css: str = "") -> str:
    """A summary, markup, that opens the body."""
    look = f' class="{css}"' if css else ""
    return f"<details{look}{' open' if opened else ''}><summary>{summary}</summary>{body}</details>"


def behind(body: str) -> str:
    """The table behind a drawing."""
    return folded("Table", body, css="behind")


def plot(kind: str, data: Json, about: str) -> str:
    """A drawing that the page's script makes when it is scrolled to, and its table when that is opened.

    kind: lines or lanes; data: as `page.js` wants it; about: what it shows, for those who do not see it.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<figure class="plot" data-kind="{kind}" aria-label="{escape(about)}">'
        f'<script type="application/json">{text}</script></figure>'
        '<details class="behind made"><summary>Table</summary></details>'
    )


def said(runs: Sequence[PageRun], css: str, of: Callable[[Report], Sequence[str]]) -> str:
    """Sentences on each run, with its name where there are several; nothing where there is nothing to say."""
    parts = []
    for page_run in runs:
        if lines := of(page_run.report):
            parts.append(f"<p>{named(page_run, runs)}:</p>" if len(runs) > 1 else "")
            parts.append(f'<div class="{css}">{bullets(lines)}</div>')
    return "".join(parts)


def run_row(runs: Sequence[PageRun], cells: Sequence[str], at: int) -> str:
    """A row that begins with its run's name, which goes behind its cell number `at` where there are several runs."""
    run, *rest = map(escape, cells)
    rest[-1] = f'<span class="wrap">{rest[-1]}</span>'
    if len(runs) > 1:
        number = next(page_run.number for page_run in runs if escape(page_run.name) == run)
        rest[at - 1] += f" {dot(number)}{run}"
    return row(rest)


__all__ = [
    "RUNS", "PageRun", "anchor", "behind", "bullets", "dot", "folded", "named", "plot", "row", "run_row", "said",
    "section", "table",
]  # fmt: skip
