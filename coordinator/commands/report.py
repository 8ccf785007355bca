"""`coordinator report`: from the raw traces of runs to miss ratios, ledgers and a page."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator.commands.lines import Lines
from coordinator.errors import CoordinatorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.report.reader import Run

EPILOG = """Examples:

  coordinator report runs/20260101T120000Z-0a1b2c3d

  coordinator report runs/edf runs/fifo -o runs/

  coordinator report runs/edf --engine python --json

Exit code 3 means that a ledger does not balance. A miss ratio never decides the exit code."""


class Engine(StrEnum):
    """What computes the verdict; both give the same."""

    spark = "spark"
    python = "python"


class UnbalancedError(CoordinatorError):
    """Records contradict each other: the verdict of that run cannot be trusted."""

    exit_code = 3


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def report(
        runs: Annotated[list[Path], typer.Argument(help="Run directories; several are shown side by side.")],
        engine: Annotated[Engine, typer.Option(help="python needs no Java; the verdict is the same.")] = Engine.spark,
        master: Annotated[str | None, typer.Option(help="Spark's master; by default two threads here.")] = None,
        output: Annotated[
            Path | None,
            typer.Option("--output", "-o", help="Where the page goes; else beside the run, or beside the first one."),
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="The reports as JSON.")] = False,
    ) -> None:
        """Say which deadlines were met, recompute both ledgers, and show which hop spent the time.

        Writes report.json and report.html into each run directory, and comparison.html for several.
        """
        from coordinator.report.command import judge, write
        from coordinator.report.reader import read_run

        progress = Lines()
        progress(f"reading {len(runs)} run{'s' if len(runs) > 1 else ''}")
        read = [read_run(path) for path in dict.fromkeys(runs)]
        reports = judge(read, engine.value, master, progress)
        page = write(read, reports, output, progress)
        if as_json:
            typer.echo(json.dumps({"reports": reports, "page": str(page)}, allow_nan=False))
        else:
            _show(read, reports)
            typer.echo(f"page: {page}")
        refuse_unbalanced(reports)


def refuse_unbalanced(reports: Sequence[dict[str, Any]]) -> None:
    """Raises UnbalancedError."""
    wrong = []
    for each in reports:
        books = each["conservation"]
        if not books["balanced"]:
            wrong.append(f"{each['run']}: the ledger does not balance, {books['problem_count']} contradictions:")
            wrong += [f"  {problem}" for problem in books["problems"]]
    if wrong:
        raise UnbalancedError("\n".join(wrong))


def _show(runs: Sequence[Run], reports: Sequence[dict[str, Any]]) -> None:
    from rich.console import Console

    from coordinator.report.terminal import WIDE, incomplete, tables

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDE)
    for table in tables(runs, reports, console.width):
        console.print(table)
    for line in incomplete(reports):
        console.print(line, markup=False, soft_wrap=True)
