"""report.html: one self-contained page for one run, or for several side by side. Everything from a file is escaped."""

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape

from coordinator.report import cost_overrun, missed_share
from coordinator.report.facts import began_anew
from coordinator.report.facts.reader import Run
from coordinator.report.page import bound_violation, offered_tables, overload_tables, plots
from coordinator.report.page.overload_tables import percent
from coordinator.report.page.page_style import CSS, SCRIPT
from coordinator.report.page.timeline import timeline
from coordinator.report.report_document import Output, Query, Report, by_end
from coordinator.report.summary import lost
from coordinator.report.summary.assembly import cause_text
from coordinator.units import counted

COLUMNS = ("met", "late", "shed", "lost", "undecidable")
LATENCIES = ("p50", "p95", "p99", "max")


def milliseconds(ns: int | None) -> str:
    """A duration for people, in ms; a dash where it is not known."""
    return "–" if ns is None else f"{ns / 1e6:,.3f}".rstrip("0").rstrip(".")


def _tenths(ns: int | None) -> str:
    """A measured latency in ms; report.json has more digits."""
    return "–" if ns is None else f"{ns / 1e6:,.1f}"


def latencies(found: Output) -> dict[str, int | None]:
    """By the names of LATENCIES."""
    return {
        "p50": found.latency_ns.p50,
        "p95": found.latency_ns.p95,
        "p99": found.latency_ns.p99,
        "max": found.latency_ns.max,
    }


def labels(runs: Sequence[Run]) -> list[str]:
    """A short name per run: its allocator and policies where these tell the runs apart, else its directory."""
    shown = [f"{run.plan.made.allocator} + {policies(run)}" for run in runs]
    names = [run.name for run in runs] if len(set(shown)) < len(runs) else shown
    return [f"{name} ({n})" if names.count(name) > 1 else name for n, name in enumerate(names, start=1)]


def policies(run: Run) -> str:
    """The policies of the nodes: those a simulation replaced them by, else the plan's."""
    if run.simulated_policy is not None:
        return run.simulated_policy
    made = run.plan.made
    return ", ".join(sorted({local.policy.name or "?" for local in made.nodes.values()}))


def operators_of(run: Run) -> list[str]:
    """The placed operators, in the query's order."""
    operators = run.plan.made.graph.operators
    return sorted(run.plan.made.placement, key=lambda name: (operators[name].id if name in operators else 0, name))


def page(entries: Sequence[tuple[Run, Report]]) -> str:
    """The whole HTML document."""
    from plotly.offline import get_plotlyjs

    named = [
        (name, run, verdict) for name, (run, verdict) in zip(labels([r for r, _ in entries]), entries, strict=True)
    ]
    drawn: dict[str, plots.Figure] = {}
    body = "".join(
        (_head(named), _outputs(named), _overload(named), _anew(named), _longer(named), _ledger(named),
         _latencies(named, drawn), _latency_breakdowns(named, drawn), _timelines(named, drawn), _placement(named))
    )  # fmt: skip
    title = escape(", ".join(run.name for _, run, _ in named))
    data = json.dumps(drawn, allow_nan=False).replace("<", "\\u003c")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{CSS}</style></head><body><main>{body}</main>"
        f"<script>{get_plotlyjs()}</script><script>const FIGURES = {data};{SCRIPT}</script></body></html>"
    )


Named = Sequence[tuple[str, Run, Report]]


def _dot(number: int) -> str:
    return f'<span class="dot" style="background:{plots.RUN_COLOURS[number % len(plots.RUN_COLOURS)]}"></span>'


def _table(head: Sequence[str], rows: Sequence[str]) -> str:
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _row(cells: Sequence[str], group: bool = False) -> str:
    return f"<tr{' class=group' if group else ''}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _head(named: Named) -> str:
    queries = sorted({run.plan.query for _, run, _ in named})
    parts = [f"<h1>{escape(', '.join(queries))}: which deadlines were met</h1>"]
    for number, (name, run, verdict) in enumerate(named):
        time = "virtual time" if run.virtual else "real time"
        after = f" after {', '.join(each[:8] for each in run.earlier)}" if run.earlier else ""
        about = f"{run.name}, plan {run.plan.hash[:8]}{after}, {time}"
        text = f"{_dot(number)}<b>{escape(name)}</b> <span class=soft>{escape(about)}</span>"
        scene = verdict.verdict
        if isinstance(scene, Mapping) and "outcome" in scene:
            kind = "good" if scene["outcome"] == "AVOIDED" else "bad"
            text += f' <b class="{kind}">{escape(str(scene["outcome"]))}</b>'
        parts.append(f"<p>{text}</p>")
        if lines := verdict.lacking:
            parts.append(f"<p class=bad>Not all that ran is here:</p>{_list(lines)}")
        books = verdict.conservation
        if not books.balanced:
            listed = [f"{e.node}/{e.boot}: {counted(e.times, 'time')}: {e.what}" for e in books.contradictions]
            about = f"The trace contradicts itself, {counted(books.problem_count, 'time')}"
            parts.append(f"<p class=bad>{about}; results that it concerns count as undecidable.</p>{_list(listed)}")
    return "".join(parts)


def _outputs(named: Named) -> str:
    rows: list[str] = []
    for output in _names(named):
        for number, (name, _, verdict) in enumerate(named):
            found = verdict.outputs.get(output)
            if found is None:
                continue
            cells = [escape(output) if len(named) == 1 else f"{escape(output)} {_dot(number)}{escape(name)}"]
            cells += [milliseconds(found.deadline_ns), _bound(found)]
            cells += [f"{n:,}" for n in by_end(found).values()]
            cells += [_missed(found), percent(found.miss_ratio_paper)]
            cells += [_tenths(ns) for ns in latencies(found).values()]
            rows.append(_row(cells, group=number == 0 and bool(rows)))
    head = ["output", "deadline", "bound", *COLUMNS, "missed", "of delivered", *LATENCIES]
    sums = [
        f"{_dot(number)}{escape(query)} {_missed(found)}"
        for number, (_, _, verdict) in enumerate(named)
        if len(verdict.queries) > 1
        for query, found in verdict.queries.items()
    ]
    by_query = f"<p>Missed by query: {'; '.join(sums)}.</p>" if sums else ""
    note = f"Times in ms. Latencies are upper bounds, over delivered results. {offered_tables.NOTE}"
    open_ = _said(named, "warn", lambda verdict: list(offered_tables.sentences(verdict)))
    more = f"{by_query}{open_}{_offered(named)}{_said(named, 'warn', bound_violation.sentences)}"
    return f"<section><h2>Outputs</h2>{_table(head, rows)}{more}<p class=soft>{note}</p></section>"


def _missed(found: Output | Query) -> str:
    """Of what was offered, coloured by the upper end."""
    share = found.missed_of_offered
    kind = "" if share is None else "bad" if missed_share.is_missed(share) else "good"
    return f'<b class="{kind}">{missed_share.text(share)}</b>'


def _offered(named: Named) -> str:
    """Refused and policed tuples by source; nothing where there are none."""
    rows = list(offered_tables.offered_rows([(name, verdict) for name, _, verdict in named]))
    shown = [_run_row(named, row, at=1) for row in rows]
    return f"<h3>Offered</h3>{_table(offered_tables.OFFERED, shown)}" if rows else ""


def _bound(found: Output) -> str:
    shown = milliseconds(found.bound_ns)
    return f'<b class="bad">{shown}</b>' if found.above_bound else shown


def _said(named: Named, kind: str, of: Callable[[Report], Sequence[str]]) -> str:
    """Sentences on each run, with its name where there are several; nothing where there is nothing to say."""
    parts = []
    for number, (name, _, verdict) in enumerate(named):
        if lines := of(verdict):
            parts.append(f"<p>{_dot(number)}{escape(name)}:</p>" if len(named) > 1 else "")
            parts.append(f'<div class="{kind}">{_list(lines)}</div>')
    return "".join(parts)


def _anew(named: Named) -> str:
    """Operators whose state went with their runtime."""
    found = _said(named, "warn", lambda verdict: list(began_anew.sentences(verdict.began_anew or ())))
    return f"<section><h2>Began anew</h2>{found}</section>" if found else ""


def _longer(named: Named) -> str:
    """Units that ran longer than planned."""
    found = _said(named, "warn", lambda verdict: cost_overrun.sentences(verdict.cost_overruns or ()))
    return f"<section><h2>Longer than planned</h2>{found}</section>" if found else ""


def _names(named: Named) -> list[str]:
    return list(dict.fromkeys(output for _, _, verdict in named for output in verdict.outputs))


def _overload(named: Named) -> str:
    """Windows, and what was shed by policy; nothing where there is neither."""
    reports = [(name, verdict) for name, _, verdict in named]
    windows, shed = list(overload_tables.window_rows(reports)), list(overload_tables.shed_rows(reports))
    parts = []
    if windows:
        rows = [_run_row(named, row, at=2) for row in windows]
        parts.append(f"<h3>Windows</h3>{_table(overload_tables.WINDOWS, rows)}")
        for number, (name, _, verdict) in enumerate(named):
            if lines := overload_tables.window_sentences(verdict):
                parts.append(f"<p>{_dot(number)}{escape(name)}:</p>" if len(named) > 1 else "")
                parts.append(f'<div class="warn">{_list(lines)}</div>')
        parts.append(f"<p class=soft>{escape(overload_tables.WINDOWS_NOTE)}</p>")
    if shed:
        parts.append(f"<h3>Shed</h3>{_table(overload_tables.SHED, [_run_row(named, row, at=1) for row in shed])}")
    return f"<section><h2>Overload</h2>{''.join(parts)}</section>" if parts else ""


def _run_row(named: Named, row: Sequence[str], at: int) -> str:
    """A row that begins with its run's name, which goes behind its cell number `at` where there are several runs."""
    run, *cells = map(escape, row)
    cells[-1] = f"<span class=wrap>{cells[-1]}</span>"
    if len(named) > 1:
        number = next(number for number, (name, _, _) in enumerate(named) if escape(name) == run)
        cells[at - 1] += f" {_dot(number)}{run}"
    return _row(cells)


def _ledger(named: Named) -> str:
    parts = []
    for number, (name, _, verdict) in enumerate(named):
        books, whole = verdict.conservation, verdict.completeness
        balanced = '<b class="good">balanced</b>' if books.balanced else '<b class="bad">not balanced</b>'
        ends = ", ".join(f"{n:,} {escape(key)}" for key, n in books.by_outcome.items() if n)
        causes = ", ".join(f"{n:,} {escape(cause_text(key))}" for key, n in books.by_cause.items())
        windows = f" ({books.windows:,} of them windows)" if books.windows else ""
        tuples = f"{books.admitted:,} tuples admitted{windows}, {books.accounted:,} accounted for"
        text = f"<p>{_dot(number)}{escape(name)}: {tuples}: {balanced}.</p>"
        text += f"<p class=soft>Ends: {ends or 'none'}{f'. Of these: {causes}' if causes else ''}.</p>"
        if lines := lost.sentences(verdict.lost_in_units):
            text += f"<p class=warn>Lost in units:</p>{_list(lines)}"
        if not whole.complete:
            why = [f"{i.node}/{i.boot}: {'; '.join(i.why)}" for i in whole.incarnations if i.why]
            why += [f"{node}: no trace" for node in whole.nodes_without_trace] + list(whole.damage)
            text += f"<p class=warn>The trace is incomplete:</p>{_list(why)}"
        if books.problems:
            text += f"<p class=bad>{books.problem_count:,} contradictions, the first:</p>{_list(books.problems)}"
        parts.append(text)
    return f"<section><h2>Conservation</h2>{''.join(parts)}</section>"


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _plot(drawn: dict[str, plots.Figure], figure: plots.Figure) -> str:
    name = f"plot{len(drawn)}"
    drawn[name] = figure
    keys = "".join(
        f'<li><span class="key" style="background:{look}"></span>{text}' for text, look in plots.legend(figure)
    )
    place = f'<div class="plot" id="{name}" style="min-height:{figure["layout"]["height"]}px"></div>'
    return f'{place}<ul class="legend">{keys}</ul>'


def _latencies(named: Named, drawn: dict[str, plots.Figure]) -> str:
    parts = []
    for output in _names(named):
        figure = plots.ecdf(output, [(name, verdict) for name, _, verdict in named])
        parts.append(
            f"<h3>{escape(output)}</h3>" + (_plot(drawn, figure) if figure else "<p>Nothing was delivered.</p>")
        )
    return f"<section><h2>Latency against the deadline</h2>{''.join(parts)}</section>"


def _latency_breakdowns(named: Named, drawn: dict[str, plots.Figure]) -> str:
    parts = []
    for output in _names(named):
        figure = plots.latency_breakdown(output, [(name, verdict.latency_breakdowns) for name, _, verdict in named])
        if figure:
            parts.append(f"<h3>{escape(output)}</h3>{_plot(drawn, figure)}")
    note = (
        "Of delivered results. <i>Rest</i> is what no hop explains: links between clocks that cannot be compared, "
        "waiting for a join's last partner, hand-over. Branches of a join overlap in time."
    )
    return f"<section><h2>Where the time went</h2>{''.join(parts)}<p class=soft>{note}</p></section>"


def _timelines(named: Named, drawn: dict[str, plots.Figure]) -> str:
    parts = []
    for number, (name, run, verdict) in enumerate(named):
        shown = timeline(run, verdict.outputs)
        title = f"<h3>{_dot(number)}{escape(name)}</h3>"
        if shown is None or not shown.bars:
            parts.append(f"{title}<p>Nothing was delivered.</p>")
            continue
        more = f" {shown.left_out:,} more stretches are left out." if shown.left_out else ""
        parts.append(
            f"{title}<p class=soft>Around the {escape(shown.about)}.{more}</p>{_plot(drawn, plots.gantt(shown))}"
        )
    return f"<section><h2>What the nodes did</h2>{''.join(parts)}</section>"


def _placement(named: Named) -> str:
    operators = list(dict.fromkeys(op for _, run, _ in named for op in operators_of(run)))
    rows = []
    for operator in operators:
        cells = [escape(operator)]
        for _, run, _ in named:
            made = run.plan.made
            cells += [escape(made.placement.get(operator, "–")), milliseconds(made.sub_deadlines_ns.get(operator))]
        rows.append(_row(cells))
    head = ["operator", *(title for name, _, _ in named for title in (f"{name}: node", "sub-deadline [ms]"))]
    return f"<section><h2>Placement</h2>{_table(head, rows)}</section>"
