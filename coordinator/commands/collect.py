"""`coordinator collect`: the traces of a plan's nodes into a run directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator.commands.lines import Lines, tell
from coordinator.commands.stop import DRAIN_S
from coordinator.commands.up import DEFAULT_ADDRESSES, AddressesOption
from protos import agent_pb2

STATUS_S = 5.0

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coordinator.agents import Agents

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
        earlier: Annotated[
            list[Path] | None,
            typer.Option(help="A plan that ran before this one did, to be judged with it; may be repeated."),
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
    ) -> None:
        """Stop a plan, wait until it has drained, and pull every node's trace. Prints the run's directory.

        Plans beside this one that add and remove made it from are part of the run as well. Agents that run another
        plan by now keep their traces for it.
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
        if resume is None:
            collection.check_out(output)
        before = _earlier(plan, made, earlier or [])
        with Agents(file.of_plan(made)) as agents:
            if drain:
                try:
                    left = deploy.stop({bytes.fromhex(made["hash"])}, agents, timeout, progress)
                except AgentsError as error:
                    progress(f"not drained: {error}")
            over = drain and not left and not _others(agents, bytes.fromhex(made["hash"]), progress)
            run = resume or collection.new_run(output, made, plan, addresses)
            try:
                done = collection.collect(run, made, agents, progress, over=over, earlier=before)
            except KeyboardInterrupt:
                tell(f"interrupted; the same command with --resume {run} goes on")
                raise
        if as_json:
            values = {"run": str(done.run), "records": done.records, "traces": done.traces, "problems": done.problems}
            typer.echo(json.dumps(values | {"drained": drain and not left}))
        else:
            typer.echo(str(done.run))
        if not done.ran and not done.problems:
            why = "it has not run there, or another run has its trace, with which nodes free it"
            progress(f"no node has any record of plan {made['hash'][:8]}: {why}")
        if done.problems:
            raise CoordinatorError("\n".join(done.problems))
        if left:
            raise OutOfTimeError("\n".join([f"not drained within {timeout:g} s", *left]))


def _earlier(plan: Path, made: Mapping[str, Any], given: Sequence[Path]) -> dict[str, Path]:
    """Plans that may have run before, by hash: those given, and those beside the plan that it was made from, step by
    step, under whatever name, and what was kept as it was replaced."""
    from coordinator import plan_file
    from coordinator.change import running

    kept = set(plan.parent.glob(f"{plan.stem}-{'[0-9a-f]' * 8}{plan.suffix}"))
    last = made
    while "kept" in last and (file := running.file_of(plan, last["kept"]["of"])) is not None:
        kept.add(file)
        last = plan_file.load(file)
    by_time = sorted(kept, key=lambda path: path.stat().st_mtime)
    found = {plan_file.load(path)["hash"]: path for path in (*by_time, *given)}
    return {each: path for each, path in found.items() if each != made["hash"]}


def _others(agents: Agents, hash_: bytes, progress: Lines) -> bool:
    """Whether any node runs another plan, for which it has to keep its trace."""
    replies = agents.try_all("Status", dict.fromkeys(agents.addresses, agent_pb2.StatusRequest()), STATUS_S)
    running = {
        plan.hash.hex()[:8]
        for status in replies.values()
        if isinstance(status, agent_pb2.StatusReply)
        for plan in status.plans
        if plan.hash != hash_ and plan.state == agent_pb2.COMMITTED
    }
    if running:
        progress(f"plan {', '.join(sorted(running))} runs: the nodes keep their traces for it")
    return bool(running)
