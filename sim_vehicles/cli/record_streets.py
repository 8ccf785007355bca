"""`sim-vehicles record-streets`: makes the recordings of dense city traffic with SUMO."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sim_vehicles.cli.exit_code import ended_by

EXAMPLES = """Makes recordings of dense city traffic with SUMO (extra [record]): motion and scene.

A grid of streets with signals, 90 s after a warm-up. The same SUMO and seed give the same bytes.

Examples:

  sim-vehicles record-streets

  sim-vehicles record-streets --stations 100 --seed 1 --out my-recordings
"""
STATIONS = (50, 100, 150, 200)


def register(app: typer.Typer) -> None:
    """Adds the command `record-streets`."""
    app.command("record-streets", help=EXAMPLES)(record_streets)


def record_streets(
    stations: Annotated[
        list[int] | None,
        typer.Option(
            help="Vehicles within 250 m of the middle, in the mean; may be repeated. Default: 50, 100, 150 and 200.",
            min=10,
            max=250,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for streets_STATIONS.csv.gz and .json.")] = Path(
        "recordings"
    ),
    seed: Annotated[int, typer.Option(help="Of routes, of SUMO and of its network.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Facts as one JSON object.")] = False,
) -> None:
    """Drives the streets in SUMO once per number of stations and writes the recordings."""
    from rich.console import Console

    from sim_vehicles.record.street_recording import record_streets as make

    console = Console(stderr=True, highlight=False)
    with ended_by(console):
        found = {}
        for near in stations or STATIONS:
            with console.status(f"recording {near} stations"):
                path, facts = make(near, out, seed)
            console.print(
                f"{path}: {path.stat().st_size / 1000:.1f} kB; {facts['vehicles']} vehicles, "
                f"{facts['near']:g} of them within {facts['near_m']:g} m of the middle; "
                f"{facts['speed_mps']:g} m/s in the mean, {facts['standing']:.0%} stand"
            )
            found[path.name] = facts
    if as_json:
        typer.echo(json.dumps(found, indent=1))
