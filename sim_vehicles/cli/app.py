"""The commands of `sim-vehicles`."""

from __future__ import annotations

from typing import Annotated

import typer

from protos.installed import release
from sim_vehicles.cli import judge, page, record, record_streets, replay, road_map, simulate, traffic

HELP = """The blind crossing: records it, replays it into live agents or in virtual time, and judges who stops in time.

Exit codes: 0 done; 2 bad input; 3 infeasible, or a verdict failed; 4 out of time; 1 anything else.
"""


def _version(wanted: bool) -> None:
    """Says the release and ends."""
    if wanted:
        typer.echo(release.said("sim-vehicles"))
        raise typer.Exit


def every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The release, and nothing else.")
    ] = False,
) -> None:
    """What holds for every command."""


def build() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        name="sim-vehicles", help=HELP, no_args_is_help=True, pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    app.callback(help=HELP)(every_command)
    for command in (record, record_streets, replay, judge, page, simulate, traffic, road_map):
        command.register(app)
    return app


app = build()
