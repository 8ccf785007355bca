"""Which agents `coordinator up` starts for a cluster file."""

from __future__ import annotations

from pathlib import Path

from coordinator import cluster
from coordinator.addresses import join, split
from coordinator.errors import BadInputError, Problem
from coordinator.local_agents import Wanted


def wanted(path: Path, state: Path, any_port: bool, operators: list[Path]) -> list[Wanted]:
    """An agent per node of the file, with a runtime per core; control at its address, data at the ports after it.

    any_port: any free ports instead. Raises BadInputError.
    """
    for file in operators:
        if not file.is_file():
            raise BadInputError([Problem(str(file), 0, "is no file; give a Python file with operators")])
    agents, taken = list[Wanted](), dict[tuple[str, int], str]()
    for name, places in cluster.load(path).hosts.items():
        node = places[0]
        host, port = split(node.address)
        host = "127.0.0.1" if host == "localhost" else host
        ports = (0, 0) if any_port or not port else (port, port + 1)
        for each in range(ports[0], ports[0] + len(places) + 1) if ports[0] else ():
            other = taken.setdefault((host, each), name)
            if other != name:
                text = f"nodes {other} and {name} both need port {each} of {host}: control, then data for each core"
                raise BadInputError([Problem(str(path), 0, f"{text}; give them addresses further apart")])
        directory = (state / name).resolve()
        agents.append(Wanted(name, join(host, ports[0]), join(host, ports[1]), directory, len(places)))
    return agents
