"""`sim-vehicles traffic`: the warning query on recorded traffic, judged by what really happened."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from protos import json_shape
from sim_vehicles.cli.exit_code import ended_by

if TYPE_CHECKING:
    from sim_vehicles.traffic.measures import ConflictMeasures, FileMeasures, Onset, TotalMeasures
    from sim_vehicles.world.motion import Motion

EXAMPLES = """Run the collision-warning query on recorded traffic, each vehicle in turn as the ego.

Every ego hears the others' CAMs. Printed per recording: warnings and false ones per vehicle-minute, conflicts that
really happened and whether they were warned of, how many messages O3 hands on, and what a tuple costs here.

A warning is true when a conflict of the two begins within 8 s: ground shared within 1.5 s at 30 to 150 degrees, or
braking with 3.35 m/s2 and more that was really needed. It is undecidable when the recording of either vehicle ends
before that; such warnings count as false in "at most". Missed: pairs of a crossing conflict of which neither was
warned in time. Critical: pairs that came within 1.5 s of a collision, of which either was warned 1 s before that; left
out are those that the recording shows for less than 2 s before.

The lanes of a CommonRoad scenario are used, or those of --map, in any format of `sim-vehicles map`. Its places are
those of the recording.

Examples:

  sim-vehicles traffic lankershim.csv

  sim-vehicles traffic morning.csv evening.csv --jobs 2 --json

  sim-vehicles traffic roundabout.csv --map DR_USA_Roundabout_FT.osm

  sim-vehicles traffic lankershim.csv --ego 2166 --ego 2168 --latency 300ms --out traffic.json
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(help=EXAMPLES)(traffic)


def traffic(
    files: Annotated[list[Path], typer.Argument(help="Recordings, plain or gzip.")],
    ego: Annotated[list[str] | None, typer.Option(help="Only this vehicle as the ego; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="Of noise and of when stations send.")] = 1,
    latency: Annotated[str, typer.Option(help="From measurement to warning.")] = "100ms",
    range_m: Annotated[float, typer.Option("--range", help="How far a message is heard, metres.")] = 150.0,
    map_file: Annotated[
        Path | None, typer.Option("--map", metavar="FILE", help="Road map of the recordings; see `sim-vehicles map`.")
    ] = None,
    no_map: Annotated[bool, typer.Option("--no-map", help="Use no lanes, not even those of a scenario.")] = False,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 1,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Leave out rows that cannot be, and say how many.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write that JSON object to a file.")] = None,
) -> None:
    """Measures warnings in recorded traffic, with every vehicle as the ego."""
    from node_agent.virtual.durations import duration_ns
    from sim_vehicles.errors import bad_input
    from sim_vehicles.maps.map_formats import lanelets_of, read_map
    from sim_vehicles.traffic import measures
    from sim_vehicles.traffic.ego_runs import Options, recorded

    told = Console(stderr=True, highlight=False)
    with ended_by(told):
        latency_ns = 0 if latency.strip() == "0" else duration_ns(latency, "--latency")
        options = Options(seed, latency_ns, range_m)
        if map_file is not None and no_map:
            raise bad_input(
                "options_do_not_fit", "--map and --no-map do not go together", "leave one out", subject="--no-map"
            )
        given = None if map_file is None else read_map(map_file)
        measured, lanes = [], {}
        for path in files:
            network = None if no_map else given or lanelets_of(path)
            with _progress(told, path.name) as each:
                read = recorded(path, options.limits, ego or (), skip_bad_rows, network)
                run = read.run(options, jobs, each)
            lanes[str(path)] = 0 if read.network is None else len(read.network.lanes)
            measured.append(measures.measured(run, options.limits))
            for line in _reading_lines(run.motion):
                told.print(line, soft_wrap=True, markup=False)
        total = measures.in_all(measured)
        result = {
            "seed": seed,
            "latency_ns": latency_ns,
            "range_m": range_m,
            "lanes": lanes,
            "files": json_shape.write(measured),
            "all": json_shape.write(total),
        }
        if out is not None:
            try:
                out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            except OSError as bad:
                raise bad_input(
                    "unwritable", f"--out: {out} cannot be written: {bad.strerror or bad}", subject="--out"
                ) from None
    if as_json:
        typer.echo(json.dumps(result))
    else:
        _print(measured, total, latency_ns, seed)


@contextmanager
def _progress(told: Console, name: str) -> Iterator[Callable[[str], None] | None]:
    """A line on a terminal that says which vehicle is done."""
    if not told.is_terminal:
        yield None
        return
    with told.status(name) as status:
        yield lambda ego: status.update(f"{name}: vehicle {ego}")


def _reading_lines(motion: Motion) -> Iterator[str]:
    """What was left out of a recording, and what had to be assumed."""
    if motion.skipped:
        yield f"{len(motion.skipped)} bad rows left out, the first: {motion.skipped[0]}"
    yield from motion.notes


def _print(files: Sequence[FileMeasures], total: TotalMeasures, latency_ns: int, seed: int) -> None:
    from rich import box
    from rich.table import Table

    shown = Console(highlight=False)
    table = Table(
        title=f"vehicle-minutes, warnings; latency {latency_ns / 1e6:g} ms, seed {seed}",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("recording", overflow="fold")
    for heading in (
        "minutes",
        "warned",
        "true",
        "false",
        "undecidable",
        "false/min",
        "at most",
        "missed",
        "critical",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    rows: list[FileMeasures | TotalMeasures] = [*files, total]
    for one in rows:
        counts = [str(n) for n in (one.onsets, one.true, one.false, one.undecidable)]
        rates = [f"{rate:.3f}" for rate in (one.false_per_minute, one.at_most_false_per_minute)]
        table.add_row(one.file, f"{one.vehicle_minutes:.2f}", *counts, *rates, *_conflicts(one))
    shown.print(table)
    for file in files:
        for conflict in file.conflicts:
            shown.print(_conflict_line(file.file, conflict), soft_wrap=True)
        for warning in file.warnings:
            if warning.judgement != "true":
                shown.print(_warning_line(file.file, warning), soft_wrap=True)
    shown.print(_load_line(total), soft_wrap=True)


def _conflicts(one: FileMeasures | TotalMeasures) -> tuple[str, str]:
    """Crossing conflicts that were missed, and the critical ones that were warned of in time."""
    critical = one.critical
    return str(one.missed["crossing"]), f"{critical.in_time} of {critical.in_time + critical.late}"


def _conflict_line(file: str, one: ConflictMeasures) -> str:
    if one.kind == "crossing":
        what = f"crossing, PET {one.pet_s:.2f} s at {one.angle_deg:.0f} degrees"
    else:
        what = f"closing in, {one.needed_mps2:.1f} m/s2 needed"
    before = one.warned_before_s
    said = "not warned in time" if before is None else f"warned {before:.2f} s before"
    return f"{file}: {one.ego} and {one.other} at {one.until_s:.2f} s: {what}: {one.ego} {said}"


def _warning_line(file: str, one: Onset) -> str:
    return f"{file}: {one.judgement}: {one.ego} of {one.other} at {one.at_s:.2f} s ({one.situation})"


def _load_line(one: TotalMeasures) -> str:
    o3, cost = one.o3, one.cost
    if o3.mean is None or cost.per_tuple_us is None:
        return "nothing was heard"
    return (
        f"O3 hands on {o3.relevant} of {o3.heard} messages ({o3.mean:.3f}), at most {o3.most_of_20} of any"
        f" 20 in a row; a message costs {cost.per_tuple_us:.0f} us here, one that goes all the way"
        f" {cost.per_relevant_tuple_us:.0f} us"
    )
