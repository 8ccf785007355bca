"""`coordinator stop`: end a plan: admit no more, drain, forget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.commands.up import DEFAULT_ADDRESSES, AddressesOption
from coordinator.cli.lines import LineProgress, say

EPILOG = """Examples:

  coordinator stop plan.json

  coordinator stop --all --addresses run/addresses.json --timeout 10"""

DRAIN_S = 30.0


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def stop(
        plan: Annotated[Path | None, typer.Argument(help="plan.json")] = None,
        all_: Annotated[bool, typer.Option("--all", help="Every plan on these agents.")] = False,
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait until it has drained.")] = DRAIN_S,
        as_json: Annotated[
            bool, typer.Option("--json", help="JSON: drained, what is left, and stopped with the nodes of each plan.")
        ] = False,
    ) -> None:
        """Admit no more tuples under a plan and wait until all its nodes have drained. Exit code 4: not in time."""
        from coordinator.errors import Mistake, OutOfTimeError
        from coordinator.fleet import addresses as address_file
        from coordinator.fleet.agents import Agents
        from coordinator.fleet.deployment import deploy
        from coordinator.plan import plan_file

        if (plan is None) == (not all_):
            raise typer.BadParameter("give a plan.json or --all")
        file = address_file.load(addresses)
        made = plan_file.read(plan) if plan else None
        hashes = {bytes.fromhex(made.hash)} if made else None
        with Agents(file.of_plan(made) if made else file.nodes) as agents:
            had = deploy.holders(hashes, agents)
            left = deploy.stop(hashes, agents, timeout, LineProgress())
        if as_json:
            typer.echo(json.dumps({"drained": not left, "left": left, "stopped": had}))
        elif not left:
            for name, nodes in had.items():
                say(f"plan {name} stopped and drained on {', '.join(nodes)}")
        if left:
            raise OutOfTimeError(
                Mistake("not_drained", f"not drained within {timeout:g} s", "it goes on draining"), details=left
            )
