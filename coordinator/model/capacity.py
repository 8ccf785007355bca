"""Capacity of hosts and links: memory, and bits per second. Linear extensions of the model of [P], not printed
there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from coordinator.spec.cluster import Cluster, Node

Conflict = tuple[tuple[int, frozenset[int]], ...]  # items, each with nodes: not all of them there at once


@dataclass(frozen=True)
class Store:
    """The memory of a host: what operators keep on all its nodes (cores) together."""

    host: str
    nodes: frozenset[int]
    memory_bytes: int


@dataclass(frozen=True)
class Pipe:
    """One direction of the link of two hosts, which all their nodes share."""

    start: str
    end: str
    hops: frozenset[tuple[int, int]]
    bits_per_s: int


Room = Node | Store | Pipe  # what a placement may fill


def stores(cluster: Cluster, demands: Iterable[tuple[Sequence[int], int]]) -> tuple[Store, ...]:
    """The hosts whose memory might not do: those that declare less than everything needs that may run there. `demands`:
    nodes and bytes of every item."""
    found = []
    wanted = list(demands)
    for host, places in cluster.hosts.items():
        nodes, room = frozenset(node.index for node in places), places[0].host_memory_bytes
        if room and sum(size for allowed, size in wanted if nodes.intersection(allowed)) > room:
            found.append(Store(host, nodes, room))
    return tuple(found)


def pipes(cluster: Cluster, bits_per_s: Fraction) -> tuple[Pipe, ...]:
    """The links, each way, whose bandwidth might not do. `bits_per_s`: of all streams together; each crosses at most
    once to every node of the host at the other end."""
    hops: dict[tuple[str, str], set[tuple[int, int]]] = {}
    room: dict[tuple[str, str], int] = {}
    for link in cluster.links:
        if link.bandwidth_bps:
            for one, other in (link.between, link.between[::-1]):
                start, end = cluster.nodes[one], cluster.nodes[other]
                hops.setdefault((start.host, end.host), set()).add((start.index, end.index))
                room[start.host, end.host] = link.bandwidth_bps
    return tuple(
        Pipe(*ends, frozenset(pairs), room[ends])
        for ends, pairs in hops.items()
        if bits_per_s * len(cluster.hosts[ends[1]]) > room[ends]
    )


def merged(
    conflicts: Iterable[Mapping[str, frozenset[str]]], item_of: Mapping[str, int], index: Mapping[str, int]
) -> tuple[Conflict, ...]:
    """Conflicts of operators and places as those of items and nodes; one that cannot come about is left out."""
    found = []
    for conflict in conflicts:
        together: dict[int, frozenset[int]] = {}
        for name, places in conflict.items():
            item, nodes = item_of[name], frozenset(index[place] for place in places)
            together[item] = together.get(item, nodes) & nodes
        if all(together.values()):
            found.append(tuple(sorted(together.items())))
    return tuple(found)
