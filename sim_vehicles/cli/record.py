"""`sim-vehicles record`: makes the recordings of the blind crossing with SUMO."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sim_vehicles.cli.exit_code import ended_by

EXAMPLES = """Makes recordings of the blind crossing with SUMO (extra [record]): motion and scene.

The same SUMO and seed give the same bytes.

Examples:

  sim-vehicles record

  sim-vehicles record --speed 50 --seed 1 --out my-recordings
"""


def register(app: typer.Typer) -> None:
    """Adds the command `record`."""
    app.command(help=EXAMPLES)(record)


def record(
    speed: Annotated[
        list[int] | None, typer.Option(help="30, 50 or 70 km/h; may be repeated. Default: all three.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for crossing_SPEED.csv.gz and .json.")] = Path(
        "recordings"
    ),
    seed: Annotated[int, typer.Option(help="SUMO's random seed.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Facts as one JSON object.")] = False,
) -> None:
    """Drives the crossing in SUMO once per speed and writes the recordings."""
    from rich.console import Console

    from sim_vehicles.errors import bad_input
    from sim_vehicles.record.intersection import STRAIGHT_M
    from sim_vehicles.record.write import record as make

    told = Console(stderr=True, highlight=False)
    with ended_by(told):
        found = {}
        for kmh in speed or sorted(STRAIGHT_M):
            if kmh not in STRAIGHT_M:
                raise bad_input(
                    "out_of_range",
                    f"--speed: {kmh} must be one of {', '.join(map(str, sorted(STRAIGHT_M)))}",
                    subject="--speed",
                )
            with told.status(f"recording {kmh} km/h"):
                path, facts = make(kmh, out, seed)
            seen, left = facts["first_perceived_s"], facts["first_perceived_left_m"]
            told.print(f"{path}: {path.stat().st_size / 1000:.1f} kB; A and X collide at {facts['collision_s']} s")
            for who in sorted(seen):
                told.print(f"  {who} perceives X from {seen[who]} s on; A then has {left[who]} m left")
            found[path.name] = facts
    if as_json:
        typer.echo(json.dumps(found, indent=1))
