"""The report as tables for the terminal."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from coordinator.report import cost_overrun, missed_share
from coordinator.report.facts import began_anew
from coordinator.report.facts.reader import Run
from coordinator.report.page import age_tables, bound_violation, miss_sentences, offered_tables, overload_tables
from coordinator.report.page.overload_tables import percent
from coordinator.report.page.run_labels import COLUMNS, LATENCIES, labels, latencies, milliseconds, operators_of
from coordinator.report.report_document import Conservation, Output, Query, Report, by_end
from coordinator.report.summary import lost
from coordinator.report.summary.assembly import cause_text
from coordinator.units import counted

WIDE = 140  # columns of text; in less, latencies are a table of their own, and counts that are all 0 a line above
ENDLESS = 100_000
ABOUT_LATENCIES = "latencies: upper bounds, ms"
ABOUT_COUNTS = "outputs: ms"
ABOUT_RESULTS = "results"
ABOUT = "outputs: ms; latencies are upper bounds, of delivered results"
SHARES = ("missed", "of delivered")
PROMISED = ("deadline", "bound")
COUNTS = (*PROMISED, *COLUMNS, *SHARES)


def tables(runs: Sequence[Run], reports: Sequence[Report], width: int = WIDE) -> Iterator[Table]:
    """Outputs, placement and conservation, side by side where there are several runs."""
    yield from brief(runs, reports, width)
    names = labels(runs)
    yield from _overload(list(zip(names, reports, strict=True)))
    yield _placement(names, runs)
    yield _conservation(names, reports)


def brief(runs: Sequence[Run], reports: Sequence[Report], width: int = WIDE) -> Iterator[Table]:
    """Outputs, and queries where there are several."""
    names = labels(runs)
    whole = _outputs(names, reports, (*COUNTS, *LATENCIES))
    if width >= WIDE and _fits(whole, width):
        yield whole
    else:
        every = [by_end(found) for one in reports for found in one.outputs.values()]
        none = [name for name in COLUMNS if not any(ends[name] for ends in every)]
        left_out = f"; none {', '.join(none)}" if none else ""
        counts = _outputs(names, reports, [name for name in COUNTS if name not in none], ABOUT_COUNTS + left_out)
        if _fits(counts, width):
            yield counts
        else:
            yield _outputs(names, reports, [*PROMISED, *SHARES], ABOUT_COUNTS)
            yield _outputs(names, reports, [name for name in COLUMNS if name not in none], ABOUT_RESULTS + left_out)
        yield _outputs(names, reports, LATENCIES, ABOUT_LATENCIES)
    if any(len(report.queries) > 1 for report in reports):
        yield _queries(names, reports)


def _table(title: str) -> Table:
    return Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False
    )


def _fits(table: Table, width: int) -> bool:
    """Whether no figure of it is cut short."""
    endless = Console(width=ENDLESS)
    return Measurement.get(endless, endless.options, table).maximum <= width


def _outputs(names: Sequence[str], reports: Sequence[Report], columns: Sequence[str], about: str = ABOUT) -> Table:
    table = _table(about)
    for name in ("output", "run")[: 1 if len(reports) == 1 else 2]:
        table.add_column(name, no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for output in dict.fromkeys(output for report in reports for output in report.outputs):
        for name, report in zip(names, reports, strict=True):
            found = report.outputs.get(output)
            if found is not None:
                head = [escape(output), escape(name)][: 1 if len(reports) == 1 else 2]
                table.add_row(*head, *(_cell(found, column) for column in columns))
        if len(reports) > 1:
            table.add_section()
    return table


def _queries(names: Sequence[str], reports: Sequence[Report]) -> Table:
    """The sums over each query's outputs."""
    columns = (*COLUMNS, "missed")
    table = _table("queries")
    for name in ("query", "run")[: 1 if len(reports) == 1 else 2]:
        table.add_column(name, no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for query in dict.fromkeys(query for report in reports for query in report.queries):
        for name, report in zip(names, reports, strict=True):
            found = report.queries.get(query)
            if found is not None:
                head = [escape(query), escape(name)][: 1 if len(reports) == 1 else 2]
                table.add_row(*head, *(_cell(found, column) for column in columns))
    return table


def _cell(found: Output | Query, column: str) -> str:
    if column == "missed":
        return missed_share.markup(found.missed_of_offered)
    if column in COLUMNS:
        return str(by_end(found)[column])
    assert isinstance(found, Output), "a query has no such column"
    if column in LATENCIES:
        ns = latencies(found)[column]
        return "-" if ns is None else f"{ns / 1e6:.2f}"
    if column == "of delivered":
        return percent(found.miss_ratio_paper)
    return milliseconds(found.deadline_ns if column == "deadline" else found.bound_ns)


def _overload(named: overload_tables.Reports) -> Iterator[Table]:
    """Ages of data, what was offered, windows, and what was shed by policy; no table where there is nothing to say."""
    windows, shed = overload_tables.window_rows(named), overload_tables.shed_rows(named)
    about = "windows: in time of all, and f*, the long run's share"
    offered = offered_tables.offered_rows(named)
    for title, columns, rows in (
        (
            "age of the data behind results, and reaction to sources: ms",
            age_tables.AGES,
            list(age_tables.age_rows(named)),
        ),
        ("offered: tuples", offered_tables.OFFERED, list(offered)),
        (about, overload_tables.WINDOWS, list(windows)),
        ("shed", overload_tables.SHED, list(shed)),
    ):
        if rows:
            table = _table(title)
            for name in ("run", *columns)[len(named) == 1 :]:
                table.add_column(name, overflow="fold")
            for row in rows:
                table.add_row(*map(escape, row[len(named) == 1 :]))
            yield table


def _placement(names: Sequence[str], runs: Sequence[Run]) -> Table:
    table = _table("placement")
    table.add_column("run")
    for node in dict.fromkeys(node for run in runs for node in run.plan.nodes.values()):
        table.add_column(escape(node))
    for name, run in zip(names, runs, strict=True):
        placed = run.plan.made.placement
        here = [[op for op in operators_of(run) if placed[op] == column.header] for column in table.columns[1:]]
        table.add_row(escape(name), *(escape(", ".join(operators)) for operators in here))
    return table


LEDGER_COLOURS = {"balanced": "green", "not balanced": "red", "nothing admitted": "yellow"}


def _conservation(names: Sequence[str], reports: Sequence[Report]) -> Table:
    table = _table("conservation")
    for column in ("run", "admitted", "accounted", "ends", "ledger", "trace"):
        table.add_column(column)
    for name, report in zip(names, reports, strict=True):
        books, whole = report.conservation, report.completeness.complete
        outcomes = {outcome: n for outcome, n in books.by_outcome.items() if n and outcome not in ("shed", "lost")}
        ends = ", ".join(f"{n} {cause_text(outcome)}" for outcome, n in {**outcomes, **books.by_cause}.items())
        table.add_row(
            escape(name), _admitted(books), str(books.accounted), ends,
            f"[{LEDGER_COLOURS[books.word]}]{books.word}[/]",
            "complete" if whole else "[yellow]incomplete[/]",
        )  # fmt: skip
    return table


def _admitted(books: Conservation) -> str:
    return f"{books.admitted} ({books.windows} windows)" if books.windows else str(books.admitted)


def balance(reports: Sequence[Report]) -> Iterator[str]:
    """The ledger of each run in a line."""
    for report in reports:
        books, named = report.conservation, f"{report.run}: " if len(reports) > 1 else ""
        whole = "complete" if report.completeness.complete else "incomplete"
        yield f"{named}ledger {books.word}: {_admitted(books)} admitted, {books.accounted} accounted for; trace {whole}"


def contradictions(reports: Sequence[Report]) -> Iterator[str]:
    """Before all else, of each run whose records contradict each other: how, how often, and the first as an example."""
    for report in reports:
        books = report.conservation
        if not books.balanced:
            yield (
                f"{report.run}: the trace contradicts itself, {counted(books.problem_count, 'time')}: results "
                "that it concerns count as undecidable"
            )
            for each in books.contradictions:
                yield f"  {each.node}/{each.boot}: {counted(each.times, 'time')}: {each.what}"
            yield f"  the first: {books.problems[0]}"


def notes(reports: Sequence[Report]) -> Iterator[str]:
    """Below the tables: why results were missed, what shares of missed results leave open, results beyond their bound,
    who made data old, windows that never came, units that ran longer than planned, where tuples were lost."""
    for report in reports:
        found = [
            *miss_sentences.sentences(report), *began_anew.sentences(report.began_anew or ()),
            *offered_tables.sentences(report),
            *bound_violation.sentences(report), *age_tables.sentences(report),
            *overload_tables.window_sentences(report),
            *cost_overrun.sentences(report.cost_overruns or ()), *lost.sentences(report.lost_in_units),
        ]  # fmt: skip
        yield from (f"{report.run}: {line}" if len(reports) > 1 else line for line in found)


def incomplete(reports: Sequence[Report]) -> Iterator[str]:
    """Why a trace is not complete, one line per reason."""
    for report in reports:
        found = report.completeness
        for each in found.incarnations:
            for why in each.why:
                yield f"{report.run}: the trace of {each.node}/{each.boot} is incomplete: {why}"
        for node in found.nodes_without_trace:
            yield f"{report.run}: there is no trace of node {node}"
        yield from (f"{report.run}: {damage}" for damage in found.damage)
