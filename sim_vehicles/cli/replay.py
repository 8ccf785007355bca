"""`sim-vehicles replay`: recorded motion as tuples into live agents or a plan in virtual time, and what came of it."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim_vehicles.cli.exit_code import VERDICT_FAILED, ended_by

if TYPE_CHECKING:
    from rich.console import Console

    from sim_vehicles.replay.live_laps import LiveLap, LiveReplay
    from sim_vehicles.replay.preparation import Options, Prepared
    from sim_vehicles.replay.replay_document import ReplaySummary

EXAMPLES = """Replays recorded motion as sensor, V2V and centre tuples: into live agents (--to), or into a plan in
virtual time (--virtual). A warning about the crossing vehicle makes the ego brake; the judge says what came of it.

SCENARIO is a built-in recording (crossing_30, crossing_50, crossing_70) or the
path of a recording. Every source of the plan gets what its type says; burst
sizes and periods are the plan's.

A query whose operators have a `map` knows the roads of that scene only: for
another speed, name that scene there and plan again.

A verdict is valid in virtual time and at rate 1: a higher rate shortens the
gaps, never an operator's cost. One burst phase is one of many: --virtual with
--phases 20 plays them all.

Examples:

  sim-vehicles replay crossing_50 --virtual plan.json --phases 20 --out runs/crossing

  sim-vehicles replay crossing_50 --virtual plan.json --phase 3/20 --brake driver --json

  sim-vehicles replay crossing_50 --to run/addresses.json --out run

  sim-vehicles replay crossing_50 --to addresses.json --plan plan.json --phase 3/20 --loop 5

  sim-vehicles replay crossing_50 --to run/addresses.json --messages etsi --channel loss=0.1,delay=5ms,jitter=2ms

  sim-vehicles replay crossing_50 --virtual plan.json --messages etsi --around streets_50 --channel half=150m

  sim-vehicles replay traffic.csv --ego 2166 --virtual plan.json --start 3s --until 20s

Exit codes: 0 done; 2 bad input; 3 a valid verdict is a crash; 1 anything else.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(help=EXAMPLES)(replay)


def replay(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="Built-in recording, or path of a recording.")],
    to: Annotated[Path | None, typer.Option(metavar="ADDRESSES", help="addresses.json of the running agents.")] = None,
    virtual: Annotated[
        Path | None, typer.Option(metavar="PLAN", help="plan.json to run in virtual time, without agents.")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="With --to: the deployed plan. Default: plan.json beside the addresses.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="Where in the recording, as in 4s. Default: where its scene says.")
    ] = None,
    duration: Annotated[str | None, typer.Option(help="How much of the recording, as in 10s (the default).")] = None,
    until: Annotated[str | None, typer.Option(help="Up to where in the recording, instead of --duration.")] = None,
    phase: Annotated[
        str | None, typer.Option(metavar="K/N", help="Bursts come K/N of a period later, as 3/20.")
    ] = None,
    phases: Annotated[int, typer.Option(help="With --virtual: all of so many burst phases.")] = 1,
    loop: Annotated[int, typer.Option(help="Laps; each is judged. 0: until Ctrl-C (with --to).")] = 1,
    rate: Annotated[str, typer.Option(help="With --to: times real time, as 1 or 4; max: no gaps.")] = "1",
    brake: Annotated[
        str, typer.Option(help="auto, driver, none, or other values as driver:reaction=1.5s,friction=0.4.")
    ] = "auto",
    messages: Annotated[
        str, typer.Option(help="burst: n V2V tuples per period; etsi: by the CAM and CPM rules.")
    ] = "burst",
    channel: Annotated[str, typer.Option(help="ideal, or some of loss=0.1,delay=5ms,jitter=2ms,half=200m.")] = "ideal",
    around: Annotated[
        str | None, typer.Option(metavar="RECORDING", help="With etsi: its stations, as of streets_50, are heard too.")
    ] = None,
    v2v: Annotated[int | None, typer.Option(help="V2V tuples per burst. Default: the plan's.")] = None,
    age: Annotated[str, typer.Option(help="How old the oldest V2V measurement of a burst is.")] = "100ms",
    seed: Annotated[int, typer.Option(help="Of sensor noise, hazards and channel.")] = 1,
    ego: Annotated[str | None, typer.Option(help="Vehicle that is warned. Default: the scene's.")] = None,
    operators: Annotated[
        list[Path] | None, typer.Option(metavar="FILE.py", help="With --virtual: operators; may be repeated.")
    ] = None,
    skip_bad_rows: Annotated[
        bool, typer.Option(help="Leave impossible rows of a recording out instead of refusing it.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Run directory: replay.json; with --virtual also traces and the page."),
    ] = None,
    mcap: Annotated[Path | None, typer.Option(help="Write scene, tuples and warnings as an MCAP file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="replay.json on standard output.")] = False,
) -> None:
    """Replays a recording into agents, or in virtual time, and judges each lap."""
    from rich.console import Console

    from node_agent.virtual.durations import duration_ns
    from sim_vehicles.encounter.brake_option import parse_brake
    from sim_vehicles.replay.preparation import Options, parse_phase, parse_rate, prepare
    from sim_vehicles.v2v.channel import parse_channel

    def instant(text: str | None, option: str) -> int | None:
        return None if text is None else 0 if text.strip() == "0" else duration_ns(text, option)

    told = Console(stderr=True, highlight=False)
    with ended_by(told):
        options = Options(
            scenario=scenario,
            addresses=to,
            virtual=virtual,
            plan=plan,
            duration_ns=instant(duration, "--duration"),
            until_ns=instant(until, "--until"),
            start_ns=instant(start, "--start"),
            rate=parse_rate(rate),
            laps=loop,
            phase=None if phase is None else parse_phase(phase),
            phases=phases,
            v2v=v2v,
            age_ns=instant(age, "--age") or 0,
            seed=seed,
            ego=ego,
            messages=messages,
            channel=parse_channel(channel),
            around=around,
            brake=parse_brake(brake),
            operators=tuple(operators or ()),
            skip_bad_rows=skip_bad_rows,
        )
        _check_files(options, out, mcap)
        with told.status("computing what is sensed"):
            prepared = prepare(options)
        play = _live if virtual is None else _virtual
        what = play(prepared, told, out, lambda what: _tell(told, what, out, mcap, as_json))
        _end(told, what)


def _check_files(options: Options, out: Path | None, mcap: Path | None) -> None:
    """Before anything runs: what would fail at the end."""
    from importlib.util import find_spec

    from node_agent.virtual.run import check_out
    from sim_vehicles.errors import MissingToolError, bad_input

    if out is not None and options.virtual is not None:
        check_out(out)
    elif out is not None and out.exists() and not out.is_dir():
        raise bad_input("not_a_directory", f"--out {out}: is a file", "name a directory", subject="--out")
    elif out is not None and (out / "replay.json").exists():
        raise bad_input(
            "not_empty",
            f"--out {out}: holds the replay.json of an earlier replay",
            "name another directory",
            subject="--out",
        )
    if mcap is not None and not mcap.parent.is_dir():
        raise bad_input("no_directory", f"--mcap {mcap}: there is no directory {mcap.parent}", subject="--mcap")
    if mcap is not None and mcap.is_dir():
        raise bad_input("not_a_file", f"--mcap {mcap}: is a directory", "name a file", subject="--mcap")
    if mcap is not None and find_spec("mcap") is None:
        raise MissingToolError(
            "missing_tool",
            "--mcap needs mcap, which is not installed: pip install 'shimekiri[vehicles]'"
            " (from a file: 'shimekiri-VERSION-py3-none-any.whl[vehicles]')",
            subject="mcap",
        )


Tell = Callable[["ReplaySummary"], None]


def _live(prepared: Prepared, told: Console, out: Path | None, tell: Tell) -> ReplaySummary:
    from sim_vehicles.cli.summary_report import sources
    from sim_vehicles.errors import FeedError
    from sim_vehicles.replay.live_laps import LiveReplay
    from sim_vehicles.replay.replay_summary import live_summary, write_summary

    done = LiveReplay(prepared)
    failure: FeedError | None = None
    with _progress(told, done), _stopped_by_signals(done):
        try:
            done.run()
        except FeedError as gone:
            failure = gone
    what = live_summary(prepared, done, failure)
    if out is not None:
        write_summary(out, what)
    sources(told, what)
    tell(what)
    if failure is not None:
        raise failure
    return what


def _virtual(prepared: Prepared, told: Console, out: Path | None, tell: Tell) -> ReplaySummary:
    from sim_vehicles.cli.judge import complete
    from sim_vehicles.closed_loop.in_virtual_time import replay_virtual
    from sim_vehicles.operators.installed import operators_of_vehicles
    from sim_vehicles.replay.replay_summary import virtual_summary, write_summary

    options, inputs = prepared.options, prepared.inputs.options
    registry = operators_of_vehicles(options.operators)
    with _bar(told, "laps", options.phases * options.laps) as advance:
        done = replay_virtual(
            prepared.plan, prepared.scenario, prepared.feeds, inputs, options.brake, options.phases, options.laps,
            registry, out, advance, options.phase, prepared.around,
        )  # fmt: skip
    what: ReplaySummary = virtual_summary(prepared, done.laps, done.shed)
    if out is not None:
        write_summary(out, what)
        if what.verdict is not None:
            what = complete(out)
    tell(what)
    return what


def _tell(told: Console, what: ReplaySummary, out: Path | None, mcap: Path | None, as_json: bool) -> None:
    from rich.console import Console

    from sim_vehicles.cli.summary_report import tell

    tell(told if as_json else Console(highlight=False), what)
    if mcap is not None:
        from sim_vehicles.export.mcap_file import write_mcap

        write_mcap(mcap, what, out)
    if as_json:
        typer.echo(json.dumps(what.document(), indent=1, ensure_ascii=False))


def _end(told: Console, what: ReplaySummary) -> None:
    """Exit code 3, and why, where a valid verdict is a crash."""
    verdict = what.verdict
    if verdict is not None and verdict.valid and verdict.crashed:
        from sim_vehicles.cli.summary_report import crashes, outcome

        said = outcome(verdict)
        if verdict.laps != 1:
            said = f"crashes: {crashes(verdict, what.laps)}; the worst: {said}"
        told.print(said, style="red", markup=False, soft_wrap=True)
        raise typer.Exit(VERDICT_FAILED)


@contextmanager
def _progress(told: Console, done: LiveReplay) -> Iterator[None]:
    """A bar per lap, and what a lap came to when it is over."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from sim_vehicles.cli.summary_report import outcome
    from sim_vehicles.replay.live_laps import PAUSE_S

    laps = done.prepared.options.laps
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=told, transient=True) as progress:
        task = progress.add_task("bursts", total=len(done.prepared.bursts))

        def on_lap(lap: LiveLap) -> None:
            if lap.judged is not None and laps != 1:
                told.print(f"lap {lap.number}: {outcome(lap.judged.verdict)}", markup=False, soft_wrap=True)
            progress.reset(task, total=lap.planned, description=f"lap {lap.number}" if laps != 1 else "bursts")

        done.on_lap = on_lap
        done.on_burst = lambda burst: progress.advance(task)
        if laps != 1:
            told.print(f"between laps: {PAUSE_S:g} s after the last result, so that operators forget the lap before")
        yield


@contextmanager
def _bar(told: Console, what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, for more than one; gives what to call after each."""
    if total < 2 or not told.is_terminal:
        yield lambda: None
        return
    from rich.progress import Progress

    with Progress(console=told, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)


@contextmanager
def _stopped_by_signals(done: LiveReplay) -> Iterator[None]:
    """SIGINT and SIGTERM end the replay after the tuples that are just leaving; the summary is still written."""
    stopping: list[int] = []

    def stop(which: int, frame: object) -> None:
        # Once: a second signal may come while the first one's handler is inside `set`, whose lock is not reentrant.
        if not stopping:
            stopping.append(which)
            done.stop.set()

    before = {which: signal.signal(which, stop) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
