"""Which agents `coordinator up` starts for a cluster file."""

from __future__ import annotations

from pathlib import Path

from coordinator import cluster
from coordinator.addresses import join, split
from coordinator.errors import BadInputError, Problem
from coordinator.local_agents import Wanted


def wanted(path: Path, state: Path, any_port: bool, operators: list[Path]) -> list[Wanted]:
    """An agent per node, whatever its cores, whose address is on loopback; control at its address, data at the port
    after it.

    any_port: any free ports instead. Raises BadInputError.
    """
    for file in operators:
        if not file.is_file():
            raise BadInputError([Problem(str(file), 0, "is no file; give a Python file with operators")])
    agents = []
    for node, *_ in cluster.load(path).hosts.values():
        host, port = split(node.address)
        host = "127.0.0.1" if host == "localhost" else host
        ports = (0, 0) if any_port or not port else (port, port + 1)
        directory = (state / node.name).resolve()
        agents.append(Wanted(node.name, join(host, ports[0]), join(host, ports[1]), directory))
    return agents
