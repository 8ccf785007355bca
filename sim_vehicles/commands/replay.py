"""`sim-vehicles replay`: recorded motion as tuples into live agents, in real time."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim_vehicles.commands.ending import ended_by

if TYPE_CHECKING:
    from rich.console import Console

    from sim_vehicles.live import Live
    from sim_vehicles.replay import Prepared

EXAMPLES = """Replays recorded motion into live agents: sensor, V2V and centre tuples in bursts, in real time.

SCENARIO is a built-in recording (crossing_30, crossing_50, crossing_70) or the path of a CSV file. Every source of
the plan gets what its type says; burst sizes and periods are the plan's.

Examples:

  sim-vehicles replay crossing_50 --to run/addresses.json --duration 10s

  sim-vehicles replay crossing_50 --to addresses.json --plan plan.json --rate 4 --v2v 15 --out run

  sim-vehicles replay traffic.csv --ego 2166 --to run/addresses.json --start 3s
"""


def register(app: typer.Typer) -> None:
    app.command(help=EXAMPLES)(replay)


def replay(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="Built-in recording, or path of a CSV file.")],
    to: Annotated[Path, typer.Option(help="addresses.json of the running agents.")],
    plan: Annotated[
        Path | None, typer.Option(help="The deployed plan. Default: plan.json beside the addresses.")
    ] = None,
    duration: Annotated[str, typer.Option(help="How much of the recording, as in 10s.")] = "10s",
    start: Annotated[
        str | None, typer.Option(help="Where in the recording, as in 4s. Default: where its scene says.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Times real time: shortens the gaps, never an operator's cost.")] = 1.0,
    v2v: Annotated[int | None, typer.Option(help="V2V tuples per burst. Default: the plan's.")] = None,
    age: Annotated[str, typer.Option(help="How old the oldest V2V measurement of a burst is.")] = "100ms",
    seed: Annotated[int, typer.Option(help="Of sensor noise and hazards.")] = 1,
    ego: Annotated[str | None, typer.Option(help="Vehicle that is warned. Default: the scene's.")] = None,
    skip_bad_rows: Annotated[
        bool, typer.Option(help="Leave impossible rows of a CSV out instead of refusing it.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Run folder; replay.json is written there.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Summary as one JSON object on standard output.")] = False,
) -> None:
    from rich.console import Console

    from sim_vehicles.durations import duration_ns
    from sim_vehicles.replay import Options, prepare

    told = Console(stderr=True, highlight=False)
    with ended_by(told):
        options = Options(
            scenario=scenario,
            addresses=to,
            plan=plan,
            duration_ns=duration_ns(duration, "--duration"),
            start_ns=None if start is None else duration_ns(start, "--start"),
            rate=rate,
            v2v=v2v,
            age_ns=duration_ns(age, "--age"),
            seed=seed,
            ego=ego,
            skip_bad_rows=skip_bad_rows,
        )
        with told.status("computing what is sensed"):
            prepared = prepare(options)
        _run(prepared, told, out, as_json)


def _run(prepared: Prepared, told: Console, out: Path | None, as_json: bool) -> None:
    from sim_vehicles.errors import FeedError
    from sim_vehicles.live import source
    from sim_vehicles.replay import start, summary, write_summary

    live = start(prepared, source)
    failure: FeedError | None = None
    with _progress(told, live, len(prepared.bursts)), _stopped_by_signals(live):
        try:
            live.run(prepared.bursts)
        except FeedError as gone:
            failure = gone
    what = summary(prepared, live, failure)
    if out is not None:
        write_summary(out, what)
    _tell(told, what)
    if as_json:
        typer.echo(json.dumps(what, indent=1, ensure_ascii=False))
    if failure is not None:
        raise failure


@contextmanager
def _progress(told: Console, live: Live, bursts: int) -> Iterator[None]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=told, transient=True) as progress:
        task = progress.add_task("bursts", total=bursts)
        live.on_burst = lambda burst: progress.advance(task)
        yield


@contextmanager
def _stopped_by_signals(live: Live) -> Iterator[None]:
    """SIGINT and SIGTERM end the replay after the tuples that are just leaving; the summary is still written."""
    stopping: list[int] = []

    def stop(which: int, frame: object) -> None:
        # Once: a second signal may come while the first one's handler is inside `set`, whose lock is not reentrant.
        if not stopping:
            stopping.append(which)
            live.stop.set()

    before = {which: signal.signal(which, stop) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)


def _tell(told: Console, what: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(
        title=f"replay of {what['scenario']}: {what['ended']}, {what['bursts']} of {what['bursts_planned']} bursts"
    )
    for name in ("source", "node", "bursts", "sent", "admitted", "refused", "latest burst"):
        table.add_column(name, justify="left" if name in ("source", "node") else "right")
    for name, one in what["sources"].items():
        late_ns = one["late_ns"]["max"]
        late = "-" if late_ns is None else f"{late_ns / 1e6:.2f} ms"
        table.add_row(name, one["node"], *(str(one[key]) for key in ("bursts", "sent", "admitted", "refused")), late)
    told.print(table)
    for name, one in what["sources"].items():
        for why, count in one["refused_why"].items():
            told.print(f"{name}: {count} refused: {why}", markup=False)
    offered = ", ".join(f"{node} {share:.0%}" for node, share in what["utilisation"].items())
    told.print(f"utilisation offered at rate {what['rate']:g}: {offered}")
    if what["rate"] != 1:
        told.print("deadlines met or missed at a rate other than 1 say nothing about real time")
    if what["skipped_rows"]:
        told.print(f"{len(what['skipped_rows'])} bad rows left out, the first: {what['skipped_rows'][0]}", markup=False)
    told.print(f"inputs {what['inputs_hash']} (seed {what['seed']})")
