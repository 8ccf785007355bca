"""Surviving topology: what is left of a query and a cluster when a host fails.

With it die its sources, the outputs delivered there, operators that may run nowhere else, and what depends on any of
these through trigger inputs: an operator by its one input, a join by any of them, a union that takes any number by the
last. What then leads to no output goes too, and sources that nothing reads any more.

A side input that dies leaves its reader without it: the edge is dropped. The reader then reads nothing there, as before
the first value (a new plan starts with fresh state, so it could not keep the newest either). Rejected: letting readers
die as well, since a side input triggers nothing and operators have to do without one at the start anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coordinator.spec import core_assignment, graph
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Operator, Query


@dataclass(frozen=True)
class SurvivingTopology:
    """`query` None: no output is left. `sides`: ports of surviving operators whose side input is lost."""

    query: Query | None
    cluster: Cluster
    lost_outputs: tuple[str, ...]
    lost_sources: tuple[str, ...]
    lost_operators: tuple[str, ...]
    lost_sides: Mapping[str, tuple[str, ...]]


def without(query: Query, cluster: Cluster, host: str) -> SurvivingTopology:
    """A resolved query and its cluster without a host."""
    down = frozenset(node.name for node in cluster.hosts[host])
    dead = _dead(query, cluster, down)
    outputs = [one for one in query.outputs if one.origin not in dead and one.at not in down]
    useful = _useful(query, {one.origin for one in outputs}, dead)
    operators = [_left(one, dead, down) for one in query.operators if one.name in useful]
    read = {name for one in operators for name in (*one.inputs, *one.side.values())}
    sources = [replace(one, forbidden=_pairs(one.forbidden, down)) for one in query.sources if one.name in read]
    kept = {one.name for one in sources}
    left = _divided(replace(query, sources=tuple(sources), operators=tuple(operators), outputs=tuple(outputs)))
    before = {one.name: one.side for one in query.operators}
    lost = {one.name: tuple(port for port in before[one.name] if port not in one.side) for one in operators}
    return SurvivingTopology(
        left if outputs else None,
        _cluster(cluster, down),
        tuple(one.name for one in query.outputs if one not in outputs),
        tuple(one.name for one in query.sources if one.name not in kept),
        tuple(one.name for one in query.operators if one.name not in useful),
        {name: ports for name, ports in lost.items() if ports},
    )


def _dead(query: Query, cluster: Cluster, down: frozenset[str]) -> set[str]:
    """Streams that nothing produces any more."""
    dead = {source.name for source in query.sources if source.at in down}
    for operator in graph.order(query):
        installed = cluster.catalog.operators[operator.run]
        enough = any if installed.kind == "union" and installed.variadic else all
        fed = enough(name not in dead for name in operator.inputs)
        if not fed or down.issuperset(core_assignment.allowed(operator, cluster)):
            dead.add(operator.name)
    return dead


def _useful(query: Query, origins: set[str], dead: set[str]) -> set[str]:
    """Operators that lead to what is left of the outputs, through triggers or side inputs."""
    by_name = {operator.name: operator for operator in query.operators}
    useful: set[str] = set()
    waiting = list(origins)
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in useful and name not in dead:
            useful.add(name)
            waiting += [*by_name[name].inputs, *by_name[name].side.values()]
    return useful


def _divided(left: Query) -> Query:
    """With what still leads to outputs of each of its queries; one may have lost all of them."""
    members = {}
    origins = {one.name: one.origin for one in left.outputs}
    for name, member in (left.parts if left.members else {}).items():
        needed = _useful(left, {origins[one] for one in member.outputs}, set())
        read = {one for each in left.operators if each.name in needed for one in (*each.inputs, *each.side.values())}
        members[name] = replace(
            member,
            sources=tuple(one for one in member.sources if one in read),
            operators=tuple(one for one in member.operators if one in needed),
            called={one: own for one, own in member.called.items() if one in needed},
        )
    return replace(left, members=members)


def _left(operator: Operator, dead: set[str], down: frozenset[str]) -> Operator:
    nodes = operator.nodes
    return replace(
        operator,
        inputs=tuple(name for name in operator.inputs if name not in dead),
        side={port: name for port, name in operator.side.items() if name not in dead},
        nodes=nodes if nodes is None else tuple(name for name in nodes if name not in down),
        barred=tuple(name for name in operator.barred if name not in down),
        forbidden=_pairs(operator.forbidden, down),
    )


def _pairs(pairs: tuple[tuple[str, str], ...], down: frozenset[str]) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in pairs if down.isdisjoint(pair))


def _cluster(cluster: Cluster, down: frozenset[str]) -> Cluster:
    left = [node for node in cluster.nodes.values() if node.name not in down]
    nodes = {node.name: replace(node, index=index) for index, node in enumerate(left)}
    links = tuple(link for link in cluster.links if down.isdisjoint(link.between))
    return replace(cluster, nodes=nodes, links=links)
