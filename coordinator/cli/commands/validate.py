"""`coordinator validate`: check the files a user writes, or print the JSON Schema of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from coordinator.cli import query_files
from coordinator.cli.lines import say

if TYPE_CHECKING:
    from coordinator.spec.query import Query

EPILOG = """Examples:

  coordinator validate query.yaml cluster.yaml

  coordinator validate query.yaml other.yaml cluster.yaml          (and what they share)

  coordinator validate query.yaml              (nodes and installed operators are not checked)

  coordinator validate --schema query > query.schema.json"""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def validate(
        files: Annotated[
            list[Path] | None,
            typer.Argument(metavar="QUERY [...] [CLUSTER]", help="query.yaml; or one or several, then cluster.yaml."),
        ] = None,
        schema: Annotated[
            Literal["query", "cluster", "costs"] | None,
            typer.Option(help="Print the JSON Schema of this file and stop."),
        ] = None,
        no_sharing: Annotated[bool, typer.Option("--no-sharing", help=query_files.SHARING)] = False,
        costs: query_files.CostsOption = None,
        as_json: Annotated[
            bool, typer.Option("--json", help="JSON: query, valid, the type of each stream, windows.")
        ] = False,
    ) -> None:
        """Check a query, and against a cluster if one is given, or several that are to run together; every problem is
        told with its file and line."""
        from coordinator.explain import cost_lines, window_lines
        from coordinator.spec.catalog import Catalog
        from coordinator.units import counted

        if schema is not None:
            from coordinator.spec.files.schema import schema_text

            typer.echo(schema_text(schema), nl=False)
            return
        if not files:
            raise typer.BadParameter("give a query.yaml, or --schema", param_hint="QUERY")
        queries, cluster = query_files.split(files) if len(files) > 1 else (files, None)
        measured = query_files.costs(costs, query_files.WORST, query_files.MARGIN)
        checked, known, types = query_files.load(queries, cluster, not no_sharing, measured)
        if as_json:
            windows = window_lines.values(checked, known.catalog if known else Catalog())
            found = {"query": checked.name, "valid": True, "streams": types, "windows": windows}
            typer.echo(json.dumps(found | _several(checked)))
            return
        named = [operator for operator in checked.operators if operator.window is None]
        parts = (("source", checked.sources), ("operator", named), ("output", checked.outputs))
        counts = ", ".join(counted(len(found), what) for what, found in parts)
        against = "; nodes and installed operators not checked"
        if known:
            cores = f" with {counted(len(known.nodes), 'core')}" if len(known.nodes) > len(known.hosts) else ""
            against = f", on {counted(len(known.hosts), 'node')}{cores}"
        say(f"{', '.join(map(str, queries))}: {counts}{against}: valid")
        for line in cost_lines.of_query(checked):
            say(line)
        for line in window_lines.of_query(checked, known.catalog if known else Catalog()):
            say(line)
        if known and len(queries) > 1:
            from coordinator.explain import sharing_lines

            for line in sharing_lines.planned_sentences(checked, known):
                say(line)


def _several(query: Query) -> dict[str, Any]:
    """For --json: what belongs to which query, and what is shared."""
    from coordinator.spec.sharing import compose
    from protos import json_shape

    return {"queries": json_shape.write(query.parts), "shared": compose.of(query).shared} if query.members else {}
