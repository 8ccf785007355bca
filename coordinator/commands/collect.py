"""`coordinator collect`: the traces of a plan's nodes into a run directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from coordinator.commands.lines import Lines
from coordinator.commands.stop import DRAIN_S
from coordinator.commands.up import DEFAULT_ADDRESSES, AddressesOption

EPILOG = """Examples:

  coordinator collect --plan plan.json -o runs/

  coordinator collect --plan plan.json --addresses run/addresses.json --no-drain --json

  coordinator collect --plan plan.json --resume runs/20260101T120000Z-0a1b2c3d"""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def collect(
        plan: Annotated[Path, typer.Option(help="The plan that ran: plan.json.")],
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        output: Annotated[Path, typer.Option("--output", "-o", help="Where the run's directory is made.")] = Path(
            "runs"
        ),
        resume: Annotated[Path | None, typer.Option(help="Go on with this run directory instead.")] = None,
        drain: Annotated[
            bool, typer.Option("--drain/--no-drain", help="First stop the plan and wait until it has drained.")
        ] = True,
        timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait until it has drained.")] = DRAIN_S,
        as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
    ) -> None:
        """Stop a plan, wait until it has drained, and pull every node's trace. Prints the run's directory.

        What cannot be reached is named and the rest collected: exit code 1. Not drained in time: exit code 4.
        """
        from coordinator import addresses as address_file
        from coordinator import collect as collection
        from coordinator import deploy, plan_file
        from coordinator.agents import Agents, AgentsError
        from coordinator.errors import CoordinatorError, OutOfTimeError

        progress, made = Lines(), plan_file.load(plan)
        file = address_file.load(addresses)
        left: list[str] = []
        with Agents(file.of_plan(made)) as agents:
            if drain:
                try:
                    left = deploy.stop({bytes.fromhex(made["hash"])}, agents, timeout, progress)
                except AgentsError as error:
                    progress(f"not drained: {error}")
            run = resume or collection.new_run(output, made, plan, addresses)
            try:
                done = collection.collect(run, made, agents, progress, over=drain and not left)
            except KeyboardInterrupt:
                typer.echo(f"interrupted; the same command with --resume {run} goes on", err=True)
                raise
        if as_json:
            values = {"run": str(done.run), "records": done.records, "traces": done.traces, "problems": done.problems}
            typer.echo(json.dumps(values | {"drained": drain and not left}))
        else:
            typer.echo(str(done.run))
        if done.problems:
            raise CoordinatorError("\n".join(done.problems))
        if left:
            raise OutOfTimeError("\n".join([f"not drained within {timeout:g} s", *left]))
