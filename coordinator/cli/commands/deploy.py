"""`coordinator deploy`: a plan onto its agents, on all of them or on none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli import completion
from coordinator.cli.commands.up import DEFAULT_ADDRESSES, AddressesOption
from coordinator.cli.lines import LineProgress, say, tell

EPILOG = """Examples:

  coordinator deploy plan.json

  coordinator deploy plan.json --addresses run/addresses.json --json

  coordinator deploy plan.json --replace           (queries that run there and are not in it end)

  coordinator deploy plan.json --without b         (b has failed: what was planned for that, on the others)"""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def deploy(
        plan: Annotated[Path, typer.Argument(help="plan.json")],
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        without: Annotated[
            str | None,
            typer.Option(
                metavar="NODE", help="Its fail-over plan, to the other nodes.", autocompletion=completion.nodes
            ),
        ] = None,
        replace: Annotated[
            bool, typer.Option("--replace", help="Also where queries run there that the plan lacks: they end.")
        ] = False,
        as_json: Annotated[
            bool, typer.Option("--json", help="JSON: plan_hash, epoch, nodes, changed, edited.")
        ] = False,
    ) -> None:
        """Prepare a plan on all its nodes, then commit it: what ran there drains. The same plan again changes nothing.

        A plan that lacks a query which runs there is refused: 'coordinator add' adds to what runs.
        """
        from coordinator.change.deploy_file import deploy_file
        from coordinator.monitoring.wording import EDITED

        done = deploy_file(plan, addresses, without, replace, tell, LineProgress())
        if as_json:
            values = {"plan_hash": done.plan_hash, "epoch": done.epoch, "nodes": done.nodes, "changed": done.changed}
            typer.echo(json.dumps({**values, "edited": done.edited}))
        elif done.changed:
            say(f"plan {done.plan_hash[:8]} is deployed on {', '.join(done.nodes)}")
        elif done.edited:
            say(f"plan {done.plan_hash[:8]} was deployed already, and the code that it was planned with runs")
        else:
            say(f"plan {done.plan_hash[:8]} was deployed already; nothing has changed")
        for node, runs in done.edited.items():
            tell(f"node {node}: {', '.join(runs)}: {EDITED}")
