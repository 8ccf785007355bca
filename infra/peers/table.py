"""The tables of a record: on a terminal, and on the page about the peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from infra.peers.peer_results import Measured, Row, StreamResult
from infra.peers.workload import CHAIN, LOADS, STAGES, URGENT, classes

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "peers.md"
BEGIN, END = "<!-- made by `make peers` -->\n", "<!-- end -->"
HEAD = (
    "", "version", "48 %: missed %", "urgent p99 ms", "120 %: missed %", "urgent p99 ms", "CPU us", "p50 ms", "MB",
)  # fmt: skip
NOTHING = "–"
CONDITIONS = (
    "{seconds:g} s a run, seed {seed}, Python {python}. The machine's load average was {load_average_before:g} before "
    "and {load_average_after:g} after all runs."
)


def show(rows: Sequence[Row], console: Console) -> None:
    """Every figure of every run, and what the page has."""
    every = Table(title="classes and chain", box=None)
    for heading in ("", "workload", "class"):
        every.add_column(heading)
    for heading in ("offered", "missed", "p50 ms", "p99 ms", "worst ms", "CPU s", "MB", "feeder late ms"):
        every.add_column(heading, justify="right")
    for row in rows:
        for name, run in row.runs.items():
            for stream, each in run.streams.items():
                last = f"{run.cpu_s:.2f}", f"{run.memory_mb:.0f}", f"{run.lag_ms:.1f}"
                every.add_row(row.name, name, stream, *_figures(each), *last)
    console.print(every)
    short = Table(title="missed: urgent / middle / bulk; CPU: of a tuple and operator of the chain", box=None)
    for heading in HEAD:
        short.add_column(heading, justify="left" if heading in HEAD[:2] else "right")
    for row in rows:
        short.add_row(*cells(row))
    console.print(short)


def _figures(each: StreamResult) -> list[str]:
    return [str(each.offered), f"{each.missed_share:.1%}", *map(_ms, (each.p50_ms, each.p99_ms, each.worst_ms))]


def cells(row: Row) -> list[str]:
    """Of one contestant, under HEAD."""
    if not row.runs:
        return [row.name, row.version, row.reason, *[""] * (len(HEAD) - 3)]
    light, heavy = (_classes(row.runs.get(classes(load, 1, 0).name)) for load in LOADS)
    return [row.name, row.version, *light, *heavy, *_chain(row.runs.get(CHAIN))]


def _classes(run: Measured | None) -> list[str]:
    if run is None:
        return [NOTHING] * 2
    missed = " / ".join(f"{100 * each.missed_share:.1f}" for each in run.streams.values())
    return [missed, _ms(run.streams[URGENT].p99_ms)]


def _chain(run: Measured | None) -> list[str]:
    if run is None:
        return [NOTHING] * 3
    (stream,) = run.streams.values()
    cpu_us = run.cpu_s * 1e6 / (run.offered * STAGES)
    return [f"{cpu_us:.0f}", _ms(stream.p50_ms), f"{run.memory_mb:.0f}"]


def _ms(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def markdown(rows: Sequence[Row], conditions: Mapping[str, Any]) -> str:
    """The table of the page, and how it was measured."""
    lines = [HEAD, ["---"] * 2 + ["---:"] * (len(HEAD) - 2), *map(cells, rows)]
    table = "".join(f"| {' | '.join(each)} |\n" for each in lines)
    failed = "".join(f"\n{row.name}: {row.reason}.\n" for row in rows if row.runs and row.reason)
    return f"{table}\n{CONDITIONS.format_map(conditions)}\n{failed}"


def publish(rows: Sequence[Row], conditions: Mapping[str, Any], page: Path = PAGE) -> Path:
    """These rows in the place of those before."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for the table")
    page.write_text(f"{before}{begin}\n{markdown(rows, conditions)}\n{end}{after}")
    return page
