"""`coordinator top`: nodes and outputs, live."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.commands.status import DEFAULT_PLAN, PlanOption
from coordinator.cli.commands.up import DEFAULT_ADDRESSES, AddressesOption

if TYPE_CHECKING:
    from coordinator.monitoring.monitor import Monitor

EPILOG = """Examples:

  coordinator top

  coordinator top --addresses run/addresses.json --plan next.json --interval 0.5

  coordinator top --once > now.txt

Keys: s sorts by the next column, r turns the order around, Enter opens a node or an output, Escape goes back, ? says
what the columns mean, q leaves.

The share of missed results is an indication, of what was offered: from what came late to all that may be missing
because it was refused, policed, shed or lost. The verdict is the report's."""

LEAST_S, MOST_S = 0.2, 3600.0


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def top(
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        plan: PlanOption = DEFAULT_PLAN,
        interval: Annotated[float, typer.Option(min=LEAST_S, max=MOST_S, help="Seconds between two looks.")] = 2.0,
        once: Annotated[
            bool, typer.Option("--once", help="One frame as text; so too where there is no terminal to draw on.")
        ] = False,
    ) -> None:
        """Watch nodes and outputs live: use, queues, what is shed and lost; results, misses, latencies and slack."""
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its library writes to the terminal that is drawn on
        from coordinator.monitoring.monitor import Monitor

        with Monitor(addresses, plan) as watcher:
            code = _once(watcher, interval) if once or not _drawable() else _live(watcher, interval)
        if code:
            raise typer.Exit(code)


def _drawable() -> bool:
    """Whether keys come from a terminal, and figures go to one."""
    ends = (sys.stdin, sys.stdout, sys.stderr)
    return all(end is not None and end.isatty() for end in ends) and os.environ.get("TERM", "dumb") != "dumb"


def _once(watcher: Monitor, interval: float) -> int:
    from coordinator.monitoring import text

    watcher.look(interval)
    time.sleep(interval)
    frame = watcher.look(interval)
    typer.echo(text.headline(frame, interval))
    typer.echo()
    for line in text.lines(frame):
        typer.echo(line)
    return 0 if all(node.well for node in frame.nodes) else 1


def _live(watcher: Monitor, interval: float) -> int:
    from coordinator.monitoring.live_app import Top

    app = Top(watcher, interval)
    app.run()
    return app.return_code or 0
