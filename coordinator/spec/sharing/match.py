"""Which operator of a query that joins takes part in which operator that is there already."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.spec import graph
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Operator, Query
from coordinator.spec.sharing import equivalence

Place = Mapping[str, str]
Pair = tuple[str, str]


def shared(there: Query, joining: Query, cluster: Cluster, place: Place | None = None) -> dict[str, str]:
    """{operator of `joining`: that of `there` which does its work}: both compute the same, read the same streams and
    may run on a node in common; with `place`, of what runs already, where it is. No two operators of one query take
    part in the same one: what a query computes twice, it wants twice.

    Of several that fit, the one of the same name, or else the first in the file. So the most is shared wherever no
    query has equal operators of its own.
    """
    old, new = equivalence.classes([there, joining], cluster.catalog)
    by_class: dict[int, list[Operator]] = {}
    for operator in there.operators:
        by_class.setdefault(old[operator.name], []).append(operator)
    by_name = {operator.name: operator for operator in there.operators}
    own = {operator.name: operator for operator in joining.operators}
    banned: set[tuple[str, str]] = set()
    while True:
        found: dict[str, str] = {source.name: source.name for source in joining.sources}
        taken: set[str] = set()
        for operator in graph.order(joining):
            read = [found.get(name) for name in graph.ordered_inputs(operator, cluster.catalog)]
            fitting = [
                one
                for one in by_class.get(new[operator.name], ())
                if one.name not in taken
                and (operator.name, one.name) not in banned
                and graph.ordered_inputs(one, cluster.catalog) == read
                and _together(one, operator, cluster, place)
            ]
            if fitting:
                fitting.sort(key=lambda one, name=operator.name: one.name != name)  # type: ignore[misc]
                found[operator.name] = fitting[0].name
                taken.add(fitting[0].name)
        pairs = {name: found[name] for name in own if name in found}
        apart = {pair for pair in pairs.items() if not _same_sides(by_name[pair[1]], own[pair[0]], found)}
        apart |= _half_windows(own, by_name, pairs)
        if not apart:
            return pairs
        banned |= apart


def _together(there: Operator, joining: Operator, cluster: Cluster, place: Place | None) -> bool:
    both = equivalence.common(there, joining, cluster)
    return bool(both) if place is None else place[there.name] in both


def _same_sides(there: Operator, joining: Operator, found: Mapping[str, str]) -> bool:
    """Classes say that equal streams stand at the side inputs; that it is the same one depends on what is shared."""
    return all(found.get(stream) == there.side[port] for port, stream in joining.side.items())


def _half_windows(own: Mapping[str, Operator], there: Mapping[str, Operator], pairs: Mapping[str, str]) -> set[Pair]:
    """Pairs of which only one half of a window operator is shared: its windows close once, for one operator."""
    found: set[Pair] = set()
    for operator in own.values():
        if not operator.closes:
            continue
        both = [(name, pairs[name]) for name in (operator.closes, operator.name) if name in pairs]
        if len(both) == 1 or (both and there[both[1][1]].closes != both[0][1]):
            found |= set(both)
    return found
