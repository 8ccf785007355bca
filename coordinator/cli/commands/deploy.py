"""`coordinator deploy`: a plan onto its agents, on all of them or on none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli import changing, completion
from coordinator.cli.commands.up import DEFAULT_ADDRESSES, AddressesOption
from coordinator.cli.lines import LineProgress, tell

if TYPE_CHECKING:
    from coordinator.fleet.addresses import Addresses
    from protos.plan_document import Plan

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
        as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
    ) -> None:
        """Prepare a plan on all its nodes, then commit it: what ran there drains. The same plan again changes nothing.

        A plan that lacks a query which runs there is refused: 'coordinator add' adds to what runs.
        """
        from coordinator.fleet import addresses as address_file
        from coordinator.fleet.agents import Agents
        from coordinator.fleet.deployment import deploy as deployment
        from coordinator.fleet.deployment import deployed_plans
        from coordinator.monitoring.explained import EDITED
        from coordinator.plan import plan_file

        changing.settle(plan, addresses)
        made = plan_file.read(plan)
        if without is not None:
            made, beside = plan_file.after(made, without, plan)
            tell(f"what remains without {without} is in {beside}, for collect and report")
        file, replacing = address_file.load(addresses), replace or without is not None
        given_up: set[bytes] = set()
        with Agents(file.of_plan(made)) as agents:

            def check(statuses: deployed_plans.Statuses) -> None:
                if not replacing:
                    deployed_plans.refuse_ending(made, plan, statuses)
                given_up.update(one.hash for one in map(deployed_plans.committed, statuses.values()) if one is not None)

            done = deployment.deploy(made, agents, LineProgress(), check)
        _end_elsewhere(made, given_up - {bytes.fromhex(made.hash)}, file, without)
        if as_json:
            values = {"plan_hash": done.plan_hash, "epoch": done.epoch, "nodes": done.nodes, "changed": done.changed}
            typer.echo(json.dumps({**values, "edited": done.edited}))
        elif done.changed:
            typer.echo(f"plan {done.plan_hash[:8]} is deployed on {', '.join(done.nodes)}")
        elif done.edited:
            typer.echo(f"plan {done.plan_hash[:8]} was deployed already, and the code that it was planned with runs")
        else:
            typer.echo(f"plan {done.plan_hash[:8]} was deployed already; nothing has changed")
        for node, runs in done.edited.items():
            tell(f"node {node}: {', '.join(runs)}: {EDITED}")


def _end_elsewhere(made: Plan, hashes: set[bytes], file: Addresses, without: str | None) -> None:
    """Nodes that the plan does not have, and the one before had, admit nothing more under that one."""
    from coordinator.fleet.addresses import host_of
    from coordinator.fleet.agents import Agents
    from coordinator.fleet.deployment import deploy as deployment

    hosts = {host_of(name) for name in made.nodes} | ({without} if without else set())
    others = {name: agent for name, agent in file.nodes.items() if host_of(name) not in hosts}
    if hashes and others:
        with Agents(others) as agents:
            deployment.end(hashes, agents)
