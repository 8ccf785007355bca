"""The accounts in full: outputs in numbers, what was offered, overload, the ledger, and where operators were placed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from coordinator.report import cost_overrun, missed_share
from coordinator.report.page import bound_violation, offered_tables, overload_tables
from coordinator.report.page.elements import PageRun, bullets, dot, row, run_row, said, section, table
from coordinator.report.page.overload_tables import percent
from coordinator.report.page.run_labels import COLUMNS, LATENCIES, latencies, milliseconds, operators_of, tenths
from coordinator.report.report_document import Output, by_end
from coordinator.report.summary import lost
from coordinator.report.summary.assembly import cause_text

LEDGER_COLOURS = {"balanced": "good", "not balanced": "bad", "nothing admitted": "warn"}


def accounts(runs: Sequence[PageRun]) -> str:
    """All of them, one section each."""
    return "".join((_outputs(runs), _overload(runs), _longer(runs), _ledger(runs), _placement(runs)))


def _outputs(runs: Sequence[PageRun]) -> str:
    rows: list[str] = []
    for output in dict.fromkeys(name for page_run in runs for name in page_run.report.outputs):
        for page_run in runs:
            found = page_run.report.outputs.get(output)
            if found is None:
                continue
            alone = len(runs) == 1
            cells = [escape(output) if alone else f"{escape(output)} {dot(page_run.number)}{escape(page_run.name)}"]
            cells += [milliseconds(found.deadline_ns), _bound(found)]
            cells += [f"{n:,}" for n in by_end(found).values()]
            cells += [_missed(found), percent(found.miss_ratio_paper)]
            cells += [tenths(ns) for ns in latencies(found).values()]
            rows.append(row(cells, group=page_run.number == 0 and bool(rows)))
    head = ["output", "deadline", "bound", *COLUMNS, "missed", "of delivered", *LATENCIES]
    note = f"Times in ms. Latencies are upper bounds, over delivered results. {offered_tables.NOTE}"
    open_ = said(runs, "warn", lambda report: list(offered_tables.sentences(report)))
    more = f"{open_}{_offered(runs)}{said(runs, 'warn', bound_violation.sentences)}"
    return section("Outputs in numbers", f"{table(head, rows)}{more}<p class=soft>{note}</p>")


def _missed(found: Output) -> str:
    """Of what was offered, coloured by the upper end."""
    share = found.missed_of_offered
    kind = "" if share is None else "bad" if missed_share.is_missed(share) else "good"
    return f'<b class="{kind}">{missed_share.text(share)}</b>'


def _bound(found: Output) -> str:
    bound = milliseconds(found.bound_ns)
    return f'<b class="bad">{bound}</b>' if found.above_bound else bound


def _offered(runs: Sequence[PageRun]) -> str:
    """Refused and policed tuples by source; nothing where there are none."""
    rows = list(offered_tables.offered_rows([(page_run.name, page_run.report) for page_run in runs]))
    cells = [run_row(runs, each, at=1) for each in rows]
    return f"<h3>Offered</h3>{table(offered_tables.OFFERED, cells)}" if rows else ""


def _overload(runs: Sequence[PageRun]) -> str:
    """Windows, and what was shed by policy; nothing where there is neither."""
    reports = [(page_run.name, page_run.report) for page_run in runs]
    windows, shed = list(overload_tables.window_rows(reports)), list(overload_tables.shed_rows(reports))
    parts = []
    if windows:
        rows = [run_row(runs, each, at=2) for each in windows]
        parts.append(f"<h3>Windows</h3>{table(overload_tables.WINDOWS, rows)}")
        parts.append(said(runs, "warn", overload_tables.window_sentences))
        parts.append(f"<p class=soft>{escape(overload_tables.WINDOWS_NOTE)}</p>")
    if shed:
        parts.append(f"<h3>Shed</h3>{table(overload_tables.SHED, [run_row(runs, each, at=1) for each in shed])}")
    return section("Overload", "".join(parts))


def _longer(runs: Sequence[PageRun]) -> str:
    """Units that ran longer than planned."""
    return section(
        "Longer than planned", said(runs, "warn", lambda report: cost_overrun.sentences(report.cost_overruns or ()))
    )


def _ledger(runs: Sequence[PageRun]) -> str:
    return section("Conservation", "".join(map(_balance_sheet, runs)))


def _balance_sheet(page_run: PageRun) -> str:
    books, whole = page_run.report.conservation, page_run.report.completeness
    balanced = f'<b class="{LEDGER_COLOURS[books.word]}">{books.word}</b>'
    ends = ", ".join(f"{n:,} {escape(key)}" for key, n in books.by_outcome.items() if n)
    causes = ", ".join(f"{n:,} {escape(cause_text(key))}" for key, n in books.by_cause.items())
    windows = f" ({books.windows:,} of them windows)" if books.windows else ""
    tuples = f"{books.admitted:,} tuples admitted{windows}, {books.accounted:,} accounted for"
    text = f"<p>{dot(page_run.number)}{escape(page_run.name)}: {tuples}: {balanced}.</p>"
    text += f"<p class=soft>Ends: {ends or 'none'}{f'. Of these: {causes}' if causes else ''}.</p>"
    if lines := lost.sentences(page_run.report.lost_in_units):
        text += f"<p class=warn>Lost in units:</p>{bullets(lines)}"
    if not whole.complete:
        why = [f"{i.node}/{i.boot}: {'; '.join(i.why)}" for i in whole.incarnations if i.why]
        why += [f"{node}: no trace" for node in whole.nodes_without_trace] + list(whole.damage)
        text += f"<p class=warn>The trace is incomplete:</p>{bullets(why)}"
    if books.problems:
        text += f"<p class=bad>{books.problem_count:,} contradictions, the first:</p>{bullets(books.problems)}"
    return text


def _placement(runs: Sequence[PageRun]) -> str:
    rows = []
    for operator in dict.fromkeys(op for page_run in runs for op in operators_of(page_run.run)):
        cells = [escape(operator)]
        for page_run in runs:
            made = page_run.run.plan.made
            cells += [escape(made.placement.get(operator, "–")), milliseconds(made.sub_deadlines_ns.get(operator))]
        rows.append(row(cells))
    names = [f"{page_run.name}: node" if len(runs) > 1 else "node" for page_run in runs]
    head = ["operator", *(title for name in names for title in (name, "sub-deadline [ms]"))]
    return section("Placement", table(head, rows))


__all__ = ["accounts"]
