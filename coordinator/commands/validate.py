"""`coordinator validate`: check the files a user writes, or print the JSON Schema of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

EPILOG = """Examples:

  coordinator validate query.yaml cluster.yaml

  coordinator validate query.yaml              (nodes and installed operators are not checked)

  coordinator validate --schema query > query.schema.json"""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def validate(
        query: Annotated[Path | None, typer.Argument(help="query.yaml")] = None,
        cluster: Annotated[Path | None, typer.Argument(help="cluster.yaml")] = None,
        schema: Annotated[
            Literal["query", "cluster"] | None, typer.Option(help="Print the JSON Schema of this file and stop.")
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
    ) -> None:
        """Check a query, and against a cluster if one is given; every problem is told with its file and line."""
        from coordinator import planner
        from coordinator.schema import schema_text
        from coordinator.units_of_measure import counted

        if schema is not None:
            typer.echo(schema_text(schema), nl=False)
            return
        if query is None:
            raise typer.BadParameter("give a query.yaml, or --schema", param_hint="QUERY")
        checked, known, types = planner.load(query, cluster)
        if as_json:
            typer.echo(json.dumps({"query": checked.name, "valid": True, "streams": types}))
            return
        parts = (("source", checked.sources), ("operator", checked.operators), ("output", checked.outputs))
        counts = ", ".join(counted(len(found), what) for what, found in parts)
        against = "; nodes and installed operators not checked"
        if known:
            cores = f" with {counted(len(known.nodes), 'core')}" if len(known.nodes) > len(known.hosts) else ""
            against = f", on {counted(len(known.hosts), 'node')}{cores}"
        typer.echo(f"{query}: {counts}{against}: valid")
