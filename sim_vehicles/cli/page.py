"""`sim-vehicles page`: runs of one encounter side by side on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim_vehicles.cli.exit_code import ended_by

EXAMPLES = """Shows runs of one encounter side by side, on one clock: scene, instants, where the time went.

RUN is a run directory that `judge` or `replay --virtual --out` has completed. All runs are of one scenario and one
stretch of it, with one brake and one seed, and hear the same traffic; plan, policy, burst phase and radio channel may
differ. The page also has the published results of the contest, and needs no network.

Examples:

  sim-vehicles replay crossing_50 --virtual ours.json --phase 2/5 --out runs/ours

  sim-vehicles replay crossing_50 --virtual fifo.json --phase 2/5 --out runs/fifo

  sim-vehicles page runs/ours runs/fifo --out runs

Exit codes: 0 done; 2 bad input; 1 anything else.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(help=EXAMPLES)(page)


def page(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories with replay.json.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where scene.html is written.")],
) -> None:
    """Writes one page about several runs of one encounter."""
    from rich.console import Console

    from sim_vehicles.errors import bad_input
    from sim_vehicles.story.page.scene_html import write

    told = Console(stderr=True, highlight=False)
    with ended_by(told):
        if not out.is_dir():
            raise bad_input("no_directory", f"--out {out}: there is no such directory", subject="--out")
        path = write(runs, out)
        Console(highlight=False).print(f"page: {path}", markup=False, soft_wrap=True)
