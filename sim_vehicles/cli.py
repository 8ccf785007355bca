"""The commands of `sim-vehicles`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import typer

HELP = """The blind crossing: records it, replays it into live agents, runs plans in virtual time.

Exit codes: 0 done; 2 bad input; 3 infeasible, or a verdict failed; 4 out of time; 1 anything else.
"""


def build() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(name="sim-vehicles", help=HELP, no_args_is_help=True, add_completion=False)
    app.callback()(lambda: None)  # commands keep their names even if there is only one
    for name in ("record", "replay", "simulate"):
        if find_spec(f"sim_vehicles.commands.{name}") is not None:
            import_module(f"sim_vehicles.commands.{name}").register(app)
    return app


app = build()
