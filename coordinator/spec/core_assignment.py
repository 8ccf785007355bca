"""Core assignment: a query's node names as places of a cluster. `a` is any core of a, `a.1` that one.

Sources and outputs `at: a` are on the first: clients connect there, and what they admit or take out has one order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from coordinator.spec.cluster import Cluster
from coordinator.spec.files.yaml_source import nearest
from coordinator.spec.query import Operator, Query
from coordinator.units import counted


def check(query: Query, cluster: Cluster) -> None:
    """Notes names that the cluster does not have, and operators that may run nowhere."""
    for source in query.sources:
        _known(query, cluster, [source.at], f"source '{source.name}'", (*source.keys, "at"))
    for operator in query.operators:
        if operator.window is not None:
            continue  # its other half says the same
        _known(query, cluster, operator.nodes or (), f"operator '{operator.name}'", (*operator.keys, "nodes"))
        keys = (*operator.keys, "forbid_nodes")
        _known(query, cluster, operator.barred, f"operator '{operator.name}'", keys)
        allowed = {node.name for name in operator.nodes or cluster.hosts for node in cluster.places(name)}
        barred = {node.name for name in operator.barred for node in cluster.places(name)}
        if allowed and allowed <= barred:
            text = f"operator '{operator.name}' may run nowhere: 'forbid_nodes' names every node that is allowed"
            query.file.wrong("may_run_nowhere", keys, text, f"leave one of {', '.join(sorted(allowed))}")
    for one in query.producers:
        for pair in one.forbidden:
            _known(query, cluster, pair, f"'{one.name}'", (*one.keys, "forbid_streams"))
    for output in query.outputs:
        _known(query, cluster, [output.at], f"output '{output.name}'", (*output.keys, "at"))


def resolve(query: Query, cluster: Cluster) -> Query:
    """The query with places for names; those have been checked. Resolving twice changes nothing on one-core nodes, but
    a first place's name is its host's, so do it once."""
    return replace(
        query,
        sources=tuple(
            replace(one, at=first(cluster, one.at), forbidden=_pairs(cluster, one.forbidden)) for one in query.sources
        ),
        operators=tuple(_operator(one, cluster) for one in query.operators),
        outputs=tuple(replace(one, at=first(cluster, one.at)) for one in query.outputs),
    )


def first(cluster: Cluster, name: str) -> str:
    """The first place that a known name means."""
    return cluster.places(name)[0].name


def allowed(operator: Operator, cluster: Cluster) -> tuple[str, ...]:
    """Where an operator of a resolved query may run: what it names, or every place, less what it forbids; in the
    cluster's order."""
    named = set(operator.nodes if operator.nodes is not None else cluster.nodes) - set(operator.barred)
    return tuple(name for name in cluster.nodes if name in named)


def _known(query: Query, cluster: Cluster, names: Iterable[str], what: str, keys: tuple[object, ...]) -> None:
    for name in names:
        if not cluster.places(name):
            query.file.wrong(
                "unknown_node", keys, f"{what} names node '{name}', which is unknown", meant(cluster, name)
            )


def meant(cluster: Cluster, name: str) -> str:
    """The end of a sentence about a name that is unknown: the nearest, or how many cores there are."""
    host = name.partition(".")[0]
    if host not in cluster.hosts:
        return nearest(name, cluster.names)
    return f"node '{host}' has {counted(len(cluster.hosts[host]), 'core')}, write '{host}' for any of them"


def _operator(operator: Operator, cluster: Cluster) -> Operator:
    return replace(
        operator,
        nodes=None if operator.nodes is None else _names(cluster, operator.nodes),
        barred=_names(cluster, operator.barred),
        forbidden=_pairs(cluster, operator.forbidden),
    )


def _names(cluster: Cluster, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node.name for name in names for node in cluster.places(name)))


def _pairs(cluster: Cluster, pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    found = ((one.name, two.name) for a, b in pairs for one in cluster.places(a) for two in cluster.places(b))
    return tuple(dict.fromkeys(pair for pair in found if pair[0] != pair[1]))
