"""Which agents `coordinator up` starts for a cluster file."""

from __future__ import annotations

from pathlib import Path

from coordinator.errors import BadInputError, Mistake, bad_file
from coordinator.fleet import dns
from coordinator.fleet.addresses import join, split
from coordinator.fleet.identity import identity
from coordinator.fleet.local.local_agents import Wanted
from coordinator.spec import cluster
from coordinator.spec.cluster import Cluster, Node
from coordinator.spec.files.security import COORDINATOR, MUTUAL_TLS


def wanted(path: Path, state: Path, any_port: bool, operators: list[Path]) -> list[Wanted]:
    """An agent per node of the file, with a runtime per core; control at its address, data at the ports after it.

    any_port: any free ports instead. Raises BadInputError.
    """
    for file in operators:
        if not file.is_file():
            raise bad_file(file, "no_file", "is no file", "give a Python file with operators")
    agents, taken, known = list[Wanted](), dict[tuple[str, int], str](), cluster.load(path)
    own = _identities(known)
    for name, places in known.hosts.items():
        node = places[0]
        port = split(node.address)[1]
        host = _host(node, known)
        ports = (0, 0) if any_port or not port else (port, port + 1)
        for each in range(ports[0], ports[0] + len(places) + 1) if ports[0] else ():
            other = taken.setdefault((host, each), name)
            if other != name:
                text = f"nodes {other} and {name} both need port {each} of {host}: control, then data for each core"
                raise bad_file(path, "port_twice", text, "give them addresses further apart")
        directory = (state / name).resolve()
        control, data = join(host, ports[0]), join(host, ports[1])
        agents.append(Wanted(name, control, data, directory, len(places), own.get(name), own.get(COORDINATOR)))
    return agents


def _identities(known: Cluster) -> dict[str, Path]:
    """Folders with the identities of the nodes and the coordinator, each checked; none without mutual TLS."""
    if known.security != MUTUAL_TLS or known.certificates is None:
        return {}
    folders = {name: known.certificates.resolve() / name for name in (*known.hosts, COORDINATOR)}
    for folder in folders.values():
        identity.load(folder)
    return folders


def _host(node: Node, known: Cluster) -> str:
    """The IP address to listen on. Raises BadInputError where this machine has it not."""
    host = split(node.address)[0]
    if host == "localhost":
        return "127.0.0.1"
    if known.security != MUTUAL_TLS:
        return host
    keys = ("nodes", node.name, "address")
    try:
        here = [address for address in dns.resolve(host) if dns.is_here(address)]
    except dns.UnknownHostError as error:
        mistake = Mistake.of("unknown_host", f"nodes.{node.name}: {error}")
        raise BadInputError([known.file.problem(keys, mistake)]) from error
    if not here:
        text = f"nodes.{node.name}.address {host} is not this machine's, and 'coordinator up' starts agents here"
        mend = f"start node-agent on that machine, then run 'coordinator addresses {known.file.path}'"
        raise BadInputError([known.file.problem(keys, Mistake("host_elsewhere", text, mend))])
    return here[0]
