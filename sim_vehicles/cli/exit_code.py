"""Exit code of a command of this room, and the sentence that goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

from sim_vehicles.errors import BadInputError, FeedError, MissingToolError

BAD_INPUT = 2
VERDICT_FAILED = 3
ANYTHING_ELSE = 1


@contextmanager
def ended_by(told: Console) -> Iterator[None]:
    """Exit code 2 for bad input, 1 for a missing tool or a source that cannot be fed; each with one clear line."""
    try:
        yield
    except BadInputError as bad:
        told.print(f"[red]{escape(str(bad))}[/red]", soft_wrap=True)
        raise typer.Exit(BAD_INPUT) from None
    except (MissingToolError, FeedError) as bad:
        told.print(f"[red]{escape(str(bad))}[/red]", soft_wrap=True)
        raise typer.Exit(ANYTHING_ELSE) from None
