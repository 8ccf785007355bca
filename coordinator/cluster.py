"""cluster.yaml as the planner uses it: nodes, links, and what the nodes have installed."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path

from coordinator import operators, yaml_file
from coordinator.cluster_file import NOT_YET, POLICIES, ClusterFile, NodeFile
from coordinator.errors import Problem
from coordinator.yaml_file import nearest

INSECURE = "insecure-loopback"


@dataclass(frozen=True)
class Node:
    """A node; `index` is its number in the plan; `memory_bytes` 0: the agent's default; `cpu` -1: not pinned."""

    name: str
    index: int
    address: str
    speed: Fraction
    cores: int
    memory_bytes: int
    cap: Fraction
    policy: str
    emulate_cost_ns: int
    cpu: int


@dataclass(frozen=True)
class Link:
    """Between two nodes, both ways; `bandwidth_bps` 0: unlimited."""

    between: tuple[str, str]
    latency_ns: int
    bandwidth_bps: int


@dataclass(frozen=True)
class Cluster:
    """Nodes in the file's order, links, the installed operators; `sha256` of the file's bytes."""

    nodes: Mapping[str, Node]
    links: tuple[Link, ...]
    catalog: operators.Catalog
    security: str
    sha256: str
    file: yaml_file.Source

    def link(self, one: str, other: str) -> Link | None:
        """The link between two nodes, if there is one."""
        return next((link for link in self.links if set(link.between) == {one, other}), None)


def load(path: Path) -> Cluster:
    """Reads and checks cluster.yaml and the operators.json that it names. Raises BadInputError with every problem."""
    file = yaml_file.load(path)
    shape = yaml_file.validate(file, ClusterFile, NOT_YET)
    nodes = {name: _node(name, index, given, file) for index, (name, given) in enumerate(shape.nodes.items())}
    if len(nodes) > 1000:
        file.wrong(("nodes",), f"names {len(nodes)} nodes; at most 1000 are planned for")
    _addresses(nodes, file, str(shape.security))
    links = _links(shape, nodes, file)
    file.check()
    catalog = operators.Catalog()
    if shape.operators is not None:
        at = Problem(str(path), file.line("operators"), "")
        catalog = operators.load(path.parent / shape.operators, at)
    else:
        catalog = operators.Catalog(complete=True)
    return Cluster(nodes, links, catalog, INSECURE, hashlib.sha256(file.raw).hexdigest(), file)


def _node(name: str, index: int, given: NodeFile, file: yaml_file.Source) -> Node:
    if given.policy not in POLICIES:
        file.wrong(
            ("nodes", name, "policy"),
            f"nodes.{name}.policy '{given.policy}' is unknown{nearest(given.policy, POLICIES)}",
        )
    return Node(
        name,
        index,
        given.address,
        Fraction(str(given.speed)),
        given.cores,
        given.memory or 0,
        Fraction(str(given.cap)),
        given.policy,
        given.emulate.cost_per_tuple if given.emulate else 0,
        -1 if given.cpu is None else given.cpu,
    )


def _addresses(nodes: Mapping[str, Node], file: yaml_file.Source, security: str) -> None:
    """HOST:PORT, each its own; without encryption only on loopback."""
    if security != INSECURE:
        known = "mutual TLS is not available yet" if security.lower() in ("tls", "mtls", "mutual-tls") else "is unknown"
        file.wrong(
            ("security",), f"security '{security}': {known}; write 'security: {INSECURE}' and loopback addresses"
        )
    taken: dict[str, str] = {}
    for name, node in nodes.items():
        keys = ("nodes", name, "address")
        host, _, port = node.address.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            file.wrong(keys, f"nodes.{name}.address '{node.address}' is not HOST:PORT; write it like '127.0.0.1:7700'")
            continue
        if int(port) and node.address in taken:
            file.wrong(
                keys, f"nodes.{name}.address is also that of node '{taken[node.address]}'; give each its own port"
            )
        taken[node.address] = name
        if security == INSECURE and not _loopback(host):
            file.wrong(
                keys, f"nodes.{name}.address '{host}' is off loopback, where insecure is refused; use 127.0.0.1 or ::1"
            )


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _links(shape: ClusterFile, nodes: Mapping[str, Node], file: yaml_file.Source) -> tuple[Link, ...]:
    if shape.links is None:
        return tuple(Link(pair, 0, 0) for pair in combinations(nodes, 2))
    links: dict[frozenset[str], Link] = {}
    for position, given in enumerate(shape.links):
        keys = ("links", position, "between")
        unknown = [name for name in given.between if name not in nodes]
        for name in unknown:
            file.wrong(keys, f"links.{position} names node '{name}', which is unknown{nearest(name, nodes)}")
        pair = frozenset(given.between)
        if len(pair) == 1:
            file.wrong(keys, f"links.{position} links '{given.between[0]}' to itself; remove it")
        if pair in links:
            file.wrong(keys, f"links.{position} links the same nodes a second time; remove one")
        links[pair] = Link(given.between, given.latency, given.bandwidth or 0)
    return tuple(links.values())
