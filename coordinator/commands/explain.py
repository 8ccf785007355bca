"""`coordinator explain`: how a plan divides each deadline, and why each operator is where it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

EPILOG = """Example:

  coordinator explain plan.json"""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def explain(
        plan: Annotated[Path, typer.Argument(help="plan.json")],
        as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
    ) -> None:
        """Say how each deadline is divided and why each operator is where it is."""
        from coordinator import plan_file
        from coordinator.explanation import explain as explained

        sections = explained(plan_file.load(plan))
        if as_json:
            typer.echo(json.dumps(sections))
            return
        for title, lines in sections.items():
            typer.echo(title)
            for line in lines:
                typer.echo(f"  {line}")
