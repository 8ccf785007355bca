"""`coordinator up` and `coordinator down`: local agents, one process each."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli import lines

if TYPE_CHECKING:
    from coordinator.fleet.addresses import Addresses
    from coordinator.fleet.local.local_agents import LocalAgent
    from coordinator.fleet.local.restart import Missing

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
        data at the next port; each further core runs a runtime of its own, with its data at the port after that.

        Where some of the agents of addresses.json run and some have ended, only those are started, as they were, and
        Ctrl-C stops only those."""
        from coordinator import signals
        from coordinator.fleet.local import local_agents, restart
        from coordinator.fleet.local.local_cluster import wanted

        if log_json:
            lines.use_json()
        files = operators or []
        nodes = wanted(cluster, state or addresses.parent / "state", any_port, files)
        missing = restart.of(addresses, cluster, nodes, state, files)
        if missing is not None:
            lines.tell(missing.sentence(), "only_missing")
            nodes = missing.wanted
        stopping: list[int] = []
        for each in signals.ending():
            signal.signal(each, lambda number, _: _interrupt(stopping, number))
        agents = local_agents.start(nodes, files, log_json=lines.using_json())
        try:
            file = _written(addresses, agents, missing)
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
                lines.tell("the agents are stopped" if missing is None else f"{_names(agents)} stopped", "stopped")

    @app.command(epilog=DOWN)
    def down(
        addresses: AddressesOption = DEFAULT_ADDRESSES,
        as_json: Annotated[bool, typer.Option("--json", help="JSON: what happened to each node's agent.")] = False,
    ) -> None:
        """Stop the local agents of addresses.json. Stopping them twice does nothing."""
        from coordinator.fleet import addresses as address_file
        from coordinator.fleet.local import local_agents

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


def _written(path: Path, agents: list[LocalAgent], missing: Missing | None) -> Addresses:
    from coordinator.fleet.addresses import Addresses

    found = {place.name: place for agent in agents for place in agent.places}
    if missing is None:
        file = Addresses(path, found, shlex.join(["coordinator", *sys.argv[1:]]))
    else:
        file = missing.whole(found)
        if moved := missing.moved(found):
            mend = "for others to find them: 'coordinator stop --all', then deploy again"
            lines.tell(f"{', '.join(moved)}: other data ports than before; {mend}", "moved")
    file.write()
    return file


def _names(agents: list[LocalAgent]) -> str:
    return ", ".join(agent.wanted.name for agent in agents)


def _wait(agents: list[LocalAgent]) -> None:
    from coordinator.fleet.local import local_agents

    lines.tell(f"Ctrl-C stops {_names(agents)}")
    while True:
        for agent in agents:
            if agent.process.poll() is not None:
                raise local_agents.failed(
                    agent.wanted.name, "agent_ended", f"the agent has ended: {agent.last_words()}"
                )
        time.sleep(0.1)


def _show(file: Addresses, as_json: bool) -> None:
    if as_json:
        typer.echo(file.path.read_text().strip())
        return
    for name, agent in file.nodes.items():
        lines.say(f"node {name}: control {agent.control}, data {agent.data}, pid {agent.pid}")
    if slow := [name for name, agent in file.nodes.items() if not agent.rt]:
        why = "no real-time class, so latencies will be worse; 'node-agent grant-rt' says how to allow it"
        lines.tell(f"{', '.join(slow)}: {why}")
    here, places = len(os.sched_getaffinity(0)), Counter(agent.control for agent in file.nodes.values())
    if 1 < max(places.values()) >= here:
        told = f"{max(places.values())} runtimes of one agent on {here} cores leave none for control"
        lines.tell(told, "no_core_left")
    states = dict.fromkeys(Path(agent.state).parent for agent in file.nodes.values() if agent.state)
    if states:
        lines.say(f"logs, exceptions of operators among them: {', '.join(f'{each}/NODE/agent.log' for each in states)}")
    lines.say(f"addresses written to {file.path}")
