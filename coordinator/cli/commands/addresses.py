"""`coordinator addresses`: where the agents of a cluster are, by asking them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator.cli.lines import LineProgress

if TYPE_CHECKING:
    from coordinator.fleet.discovery import Found
    from coordinator.spec.cluster import Machines

EPILOG = """Examples:

  coordinator addresses cluster.yaml

  coordinator addresses cluster.yaml --wait 60    (for those that start)"""


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def addresses(
        cluster: Annotated[Path, typer.Argument(help="cluster.yaml")],
        output: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path("addresses.json"),
        wait: Annotated[float, typer.Option(min=0, max=86400, help="Seconds to wait for agents that start.")] = 0.0,
        as_json: Annotated[
            bool, typer.Option("--json", help="JSON: the file as addresses, and agents with what each answered.")
        ] = False,
    ) -> None:
        """Ask the agents of a cluster, which run on their own machines, where their data sockets are, and write
        addresses.json. Host names become IP addresses. Exit code 1, and nothing is written, unless all answer."""
        from coordinator.fleet import discovery
        from coordinator.fleet.addresses import Addresses
        from coordinator.fleet.local.restart import refuse_running
        from coordinator.spec import cluster as cluster_file

        machines = cluster_file.machines(cluster)
        machines.file.check()
        refuse_running(output)
        progress = LineProgress()
        found = discovery.find(machines, wait, progress)
        places = {place.name: place for agent in found for place in agent.places}
        Addresses(output, places, " ".join(["coordinator", *sys.argv[1:]])).write()
        if as_json:
            typer.echo(json.dumps({"addresses": str(output), "agents": [_values(agent) for agent in found]}))
        else:
            for line in _table(found):
                typer.echo(line)
            typer.echo(f"addresses written to {output}")
        for line in _warnings(found, machines):
            progress(line)


def _values(agent: Found) -> dict[str, Any]:
    return {
        "node": agent.name,
        "control": agent.control,
        "data": {place.name: place.data for place in agent.places},
        "version": agent.version,
        "cores": agent.cores,
        "memory_bytes": agent.memory_bytes,
        "rt": agent.rt,
    }


def _table(found: Sequence[Found]) -> list[str]:
    rows = [("node", "control", "data", "version", "runtimes", "cores", "memory", "rt")]
    for agent in found:
        data = ", ".join(place.data.rpartition(":")[2] for place in agent.places)
        memory = f"{agent.memory_bytes / (1 << 30):.1f} GiB"
        counts = str(len(agent.places)), str(agent.cores)
        rows.append((agent.name, agent.control, data, agent.version, *counts, memory, "yes" if agent.rt else "no"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _warnings(found: Sequence[Found], machines: Machines) -> list[str]:
    """What is right enough to be written, and will be missed later."""
    from coordinator.fleet.discovery import own_version

    own, lines = own_version(), []
    for agent in found:
        if own and agent.version != own:
            lines.append(f"node {agent.name}: runs version {agent.version or '?'}, here is {own}; install the same")
        if (cores := machines.nodes[agent.name].cores) > len(agent.places):
            mend = f"start it with --cores {cores}"
            lines.append(
                f"node {agent.name}: runs {len(agent.places)} of the {cores} cores in the cluster file; {mend}"
            )
        if not agent.rt:
            lines.append(
                f"node {agent.name}: no real-time priority, so latencies will be worse; see node-agent grant-rt"
            )
    return lines
