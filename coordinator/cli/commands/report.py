"""`coordinator report`: from the raw traces of runs to miss ratios, ledgers and a page."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli import lines
from coordinator.cli.lines import LineProgress, say
from coordinator.errors import CoordinatorError, Mistake

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.report.facts.reader import Run
    from coordinator.report.report_document import Report

EPILOG = """Examples:

  coordinator report runs/20260101T120000Z-0a1b2c3d

  coordinator report runs/edf runs/fifo -o runs/

  coordinator report runs/edf --engine python --json

  coordinator report runs/edf --master spark://host:7077 --copy-to hdfs://host/shimekiri

  coordinator report runs/edf --perfetto edf.json.gz          to open in ui.perfetto.dev

  coordinator report runs/edf --perfetto part.json --from '10 s' --to '12 s'

Exit code 3 means that no verdict on all that ran can be given: records of a plan or a node are not there, nothing was
admitted, or a ledger does not balance. A miss ratio never decides the exit code, nor do single undecidable results."""


class Engine(StrEnum):
    """What computes the verdict; both give the same."""

    auto = "auto"
    spark = "spark"
    python = "python"


class UnbalancedError(CoordinatorError):
    """Records contradict each other or are not there: there is no verdict on that run that could be trusted."""

    exit_code = 3


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def report(
        runs: Annotated[list[Path], typer.Argument(help="Run directories; several are shown side by side.")],
        engine: Annotated[
            Engine,
            typer.Option(help="auto: plain Python for small runs, Spark for large ones; the verdict is the same."),
        ] = Engine.auto,
        master: Annotated[str | None, typer.Option(help="Spark's master; by default two threads here.")] = None,
        conf: Annotated[
            list[str] | None,
            typer.Option(
                metavar="KEY=VALUE", help="A setting of Spark; may be given several times, and wins over its files."
            ),
        ] = None,
        copy_to: Annotated[
            str | None,
            typer.Option(
                metavar="URL", help="A folder that all machines of Spark's cluster see: the records are copied there."
            ),
        ] = None,
        output: Annotated[
            Path | None,
            typer.Option("--out", "-o", help="Where the page goes; else beside the run, or beside the first one."),
        ] = None,
        verbose: lines.VerboseOption = False,
        as_json: Annotated[
            bool, typer.Option("--json", help="JSON: reports, each as its report.json, and page.")
        ] = False,
        perfetto: Annotated[
            Path | None,
            typer.Option(
                help="Instead of a report: what each core did, as a file for ui.perfetto.dev or chrome://tracing; .gz"
                " packs it."
            ),
        ] = None,
        from_: Annotated[
            str | None, typer.Option("--from", help="With --perfetto: from when on, like '10 s' after the beginning.")
        ] = None,
        to: Annotated[str | None, typer.Option(help="With --perfetto: until when, like '12.5 s'.")] = None,
        first: Annotated[int, typer.Option(min=0, help="With --perfetto: at most so many records. 0: all.")] = 0,
    ) -> None:
        """Say which deadlines were met, recompute both ledgers, and show which hop spent the time.

        Writes report.json, report.html and tables/ (Parquet) into each run directory, and comparison.html for several.
        """
        from coordinator.report.command import publish
        from coordinator.report.facts.reader import read_run
        from coordinator.report.spark.spark_choice import SparkChoice, read_settings

        progress = LineProgress()
        if perfetto is not None:
            _perfetto(runs, perfetto, (from_, to, first), progress, as_json)
            return
        if from_ is not None or to is not None or first:
            raise typer.BadParameter("--from, --to and --first choose a part for --perfetto FILE; give that as well")
        choice = SparkChoice(master, read_settings(conf or ()), copy_to)
        if choice.made and engine is Engine.python:
            raise typer.BadParameter("--master, --conf and --copy-to are Spark's; leave --engine python out")
        progress(f"reading {len(runs)} run{'s' if len(runs) > 1 else ''}")
        read = [read_run(path) for path in dict.fromkeys(runs)]
        published = publish(read, engine.value, choice, progress, output)
        reports, page = published.reports, published.page
        if as_json:
            typer.echo(
                json.dumps({"reports": [each.document() for each in reports], "page": str(page)}, allow_nan=False)
            )
        else:
            _show(read, reports, verbose)
            typer.echo(f"page: {page}")
        refuse_unbalanced(reports, empty=True)


def _perfetto(
    runs: list[Path], path: Path, part: tuple[str | None, str | None, int], progress: LineProgress, as_json: bool
) -> None:
    from coordinator.report.facts.reader import read_run
    from coordinator.report.perfetto import chrome_file

    if len(runs) != 1:
        raise typer.BadParameter("--perfetto takes one run")
    since, until = (_instant(option, text) for option, text in zip(("--from", "--to"), part, strict=False))
    progress("reading 1 run")
    chosen = chrome_file.Part(since or 0, until, part[2])
    counts = chrome_file.write(read_run(runs[0]), path, chosen, progress)
    if as_json:
        typer.echo(json.dumps({"file": str(path), "events": counts}))
    else:
        kinds = ", ".join(f"{n} {chrome_file.WORDS.get(kind, kind)}" for kind, n in sorted(counts.items()))
        typer.echo(f"{path}: {kinds}\nopen it in https://ui.perfetto.dev or chrome://tracing")


def _instant(option: str, text: object) -> int | None:
    from coordinator.units import duration_ns

    try:
        return None if text is None else duration_ns(text)
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {error}") from None


def refuse_unbalanced(reports: Sequence[Report], *, empty: bool = False) -> None:
    """Raises UnbalancedError where a ledger does not balance, or records of what ran are not there; empty: also where
    nothing was admitted."""
    from coordinator.report.facts import lacking

    wrong = [Mistake("records_lacking", text) for text in lacking.sentences(reports)]
    for each in reports:
        books = each.conservation
        if not books.balanced:
            text = f"{each.run}: the ledger does not balance, {books.problem_count} contradictions:"
            listed = "".join(f"\n  {problem}" for problem in books.problems)
            wrong.append(Mistake("unbalanced", f"{text}{listed}", subject=each.run))
        if empty and books.admitted <= books.windows:
            text = f"{each.run}: no tuple was admitted, so there is nothing to judge"
            wrong.append(Mistake("nothing_admitted", text, subject=each.run))
    if wrong:
        raise UnbalancedError(*wrong)


def _show(runs: Sequence[Run], reports: Sequence[Report], verbose: bool) -> None:
    """What is wrong first, then the tables; in brief those of outputs only, and a line for the ledger."""
    from rich.console import Console

    from coordinator.report.facts import lacking
    from coordinator.report.page.terminal import balance, brief, contradictions, incomplete, notes, tables

    console = Console(highlight=False)
    for line in lacking.sentences(reports):
        say(line, color="red")
    for line in (*contradictions(reports), *incomplete(reports), *notes(reports)):
        say(line)
    for table in tables(runs, reports, console.width) if verbose else brief(runs, reports, console.width):
        console.print(table)
    if not verbose:
        for line in balance(reports):
            say(line)
