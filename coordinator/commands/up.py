"""`coordinator up` and `coordinator down`: local agents, one process each."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.commands import lines

if TYPE_CHECKING:
    from coordinator.addresses import Addresses
    from coordinator.local_agents import LocalAgent

UP = """Examples:

  coordinator up cluster.yaml

  coordinator up cluster.yaml --any-port --detach --addresses run/addresses.json --state run/state

  coordinator up cluster.yaml --operators my_operators.py"""

DOWN = """Examples:

  coordinator down

  coordinator down --addresses run/addresses.json"""

AddressesOption = Annotated[Path, typer.Option("--addresses", help="Where the agents are: addresses.json.")]
DEFAULT_ADDRESSES = Path("addresses.json")


def register(app: typer.Typer) -> None:
    """Adds both commands."""

    @app.command(epilog=UP)
    def up(
        cluster: Annotated[Path, typer.Argument(help="cluster.yaml")],
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        state: Annotated[
            Path | None, typer.Option(help="Where the agents keep plans and traces. Default: state beside addresses.")
        ] = None,
        operators: Annotated[
            list[Path] | None, typer.Option(help="FILE.py with operators, for every agent; may be repeated.")
        ] = None,
        any_port: Annotated[bool, typer.Option("--any-port", help="Not the ports of the cluster file: any.")] = False,
        detach: Annotated[bool, typer.Option("--detach", help="Return when they are ready; end: down.")] = False,
        as_json: Annotated[bool, typer.Option("--json", help="addresses.json on stdout.")] = False,
        log_json: Annotated[
            bool, typer.Option("--log-json", help="Logs, here and of the agents, as a JSON object per line.")
        ] = False,
    ) -> None:
        """Start an agent for every node of the cluster, and stop them all on Ctrl-C. Control is at the node's address,
        data at the next port; each further core runs a runtime of its own, with its data at the port after that."""
        from coordinator import interrupts, local_agents
        from coordinator.addresses import Addresses
        from coordinator.local_cluster import wanted

        if log_json:
            lines.use_json()
        files = operators or []
        nodes = wanted(cluster, state or addresses.parent / "state", any_port, files)
        refuse_running(addresses)
        stopping: list[int] = []
        for each in interrupts.ending():
            signal.signal(each, lambda number, _: _interrupt(stopping, number))
        agents = local_agents.start(nodes, files, log_json=lines.using_json())
        try:
            found = {place.name: place for agent in agents for place in agent.places}
            file = Addresses(addresses, found, " ".join(["coordinator", *sys.argv[1:]]))
            file.write()
            _show(file, as_json)
            if not detach:
                _wait(agents)
        except KeyboardInterrupt:
            if detach:  # interrupted before the agents were handed over
                detach = False
                raise
        except BaseException:
            detach = False
            raise
        finally:
            if not detach:
                stopping.append(0)
                local_agents.stop(agents)
                lines.tell("the agents are stopped", "stopped")

    @app.command(epilog=DOWN)
    def down(
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        as_json: Annotated[bool, typer.Option("--json", help="What happened, as JSON.")] = False,
    ) -> None:
        """Stop the local agents of addresses.json. Stopping them twice does nothing."""
        from coordinator import addresses as address_file
        from coordinator import local_agents

        found = address_file.load(addresses)
        outcome = local_agents.stop_by_pid(list(found.nodes.values()))
        if as_json:
            typer.echo(json.dumps(outcome))
        else:
            for name, what in sorted(outcome.items()):
                typer.echo(f"node {name}: {what}")


def _interrupt(stopping: list[int], number: int) -> None:
    """Once: a second Ctrl-C must not leave half of the agents running."""
    if not stopping:
        stopping.append(number)
        raise KeyboardInterrupt


def refuse_running(path: Path) -> None:
    """Agents that this file speaks of would be forgotten if it were overwritten. Raises LocalAgentError."""
    from coordinator import addresses as address_file
    from coordinator import local_agents
    from coordinator.errors import BadInputError

    if not path.exists():
        return
    try:
        nodes = address_file.load(path).nodes.values()
    except BadInputError:
        return
    found = [address_file.host_of(agent.name) for agent in nodes if not isinstance(local_agents.find(agent), str)]
    running = list(dict.fromkeys(found))
    if running:
        raise local_agents.LocalAgentError(
            f"{path}: the agents of {', '.join(running)} are running already; stop them with 'coordinator down"
            f" --addresses {path}', or give another --addresses"
        )


def _wait(agents: list[LocalAgent]) -> None:
    from coordinator.local_agents import LocalAgentError

    lines.tell("Ctrl-C stops them")
    while True:
        for agent in agents:
            if agent.process.poll() is not None:
                raise LocalAgentError(f"node {agent.wanted.name}: the agent has ended: {agent.last_words()}")
        time.sleep(0.1)


def _show(file: Addresses, as_json: bool) -> None:
    if as_json:
        typer.echo(file.path.read_text().strip())
        return
    for name, agent in file.nodes.items():
        typer.echo(f"node {name}: control {agent.control}, data {agent.data}, pid {agent.pid}")
    if slow := [name for name, agent in file.nodes.items() if not agent.rt]:
        why = "no real-time class, so latencies will be worse; 'node-agent grant-rt' says how to allow it"
        lines.tell(f"{', '.join(slow)}: {why}")
    here, places = len(os.sched_getaffinity(0)), Counter(agent.control for agent in file.nodes.values())
    if 1 < max(places.values()) >= here:
        told = f"{max(places.values())} runtimes of one agent on {here} cores leave none for control"
        lines.tell(told, "no_core_left")
    typer.echo(f"addresses written to {file.path}")
