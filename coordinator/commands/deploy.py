"""`coordinator deploy`: a plan onto its agents, on all of them or on none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from coordinator.commands.lines import Lines
from coordinator.commands.up import DEFAULT_ADDRESSES, AddressesOption

EPILOG = """Examples:

  coordinator deploy plan.json

  coordinator deploy plan.json --addresses run/addresses.json --json

  coordinator deploy plan.json --without b         (b has failed: what was planned for that, on the others)"""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def deploy(
        plan: Annotated[Path, typer.Argument(help="plan.json")],
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        without: Annotated[
            str | None, typer.Option(metavar="NODE", help="Its fail-over plan, to the other nodes.")
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
    ) -> None:
        """Prepare a plan on all its nodes, then commit it. The same plan again changes nothing."""
        from coordinator import addresses as address_file
        from coordinator import deploy as deployment
        from coordinator import plan_file
        from coordinator.agents import Agents

        made = plan_file.load(plan)
        if without is not None:
            made, beside = plan_file.after(made, without, plan)
            typer.echo(f"what remains without {without} is in {beside}, for collect and report", err=True)
        with Agents(address_file.load(addresses).of_plan(made)) as agents:
            done = deployment.deploy(made, agents, Lines())
        if as_json:
            values = {"plan_hash": done.plan_hash, "epoch": done.epoch, "nodes": done.nodes, "changed": done.changed}
            typer.echo(json.dumps(values))
        elif done.changed:
            typer.echo(f"plan {done.plan_hash[:8]} is deployed on {', '.join(done.nodes)}")
        else:
            typer.echo(f"plan {done.plan_hash[:8]} was deployed already; nothing has changed")
