"""report.html: one self-contained page for one run, or for several side by side.

Everything from a file is escaped. Its policy of contents lets nothing be loaded, and no script run but the page's own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from coordinator.report.facts.reader import Run
from coordinator.report.page.elements import PageRun, anchor
from coordinator.report.page.run_labels import labels
from coordinator.report.page.sections.account_section import accounts
from coordinator.report.page.sections.head_section import head
from coordinator.report.page.sections.incident_section import incidents_section
from coordinator.report.page.sections.miss_section import misses_section
from coordinator.report.page.sections.node_section import nodes_section
from coordinator.report.page.sections.output_section import outputs_section
from coordinator.report.page.sections.run_comparison import comparison_section
from coordinator.report.report_document import Report
from coordinator.report.series.run_series import RunSeries, run_series

TITLES = (
    "Side by side", "Incidents", "Missed results", "Latency", "Nodes", "Outputs in numbers", "Overload", "Conservation",
    "Placement",
)  # fmt: skip


def page(entries: Sequence[tuple[Run, Report]]) -> str:
    """The whole HTML document."""
    return page_of([(run, report, run_series(run, len(entries))) for run, report in entries])


def page_of(entries: Sequence[tuple[Run, Report, RunSeries]]) -> str:
    """The same, of runs whose records were gone through."""
    names = labels([run for run, _, _ in entries])
    runs = [PageRun(n, name, *entry) for n, (name, entry) in enumerate(zip(names, entries, strict=True))]
    sections = "".join(
        (comparison_section(runs), incidents_section(runs), misses_section(runs), outputs_section(runs),
         nodes_section(runs), accounts(runs))
    )  # fmt: skip
    title = escape(", ".join(run.name for run, _, _ in entries))
    script = asset("page.js")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{title}</title><style>{asset('page.css')}</style></head>"
        f"<body><main>{head(runs)}{_contents(sections)}{sections}"
        "<noscript>The plots need JavaScript; sentences and most tables do not.</noscript></main>"
        f"<script>{script}</script></body></html>"
    )


def asset(name: str) -> str:
    """A file beside this one."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"


def _contents(sections: str) -> str:
    there = [title for title in TITLES if f'<section id="{anchor(title)}">' in sections]
    return "<nav>" + "".join(f'<a href="#{anchor(title)}">{title}</a>' for title in there) + "</nav>"


__all__ = ["page", "page_of"]
