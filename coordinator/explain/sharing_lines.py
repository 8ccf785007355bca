"""Several queries in sentences, from plan.json alone: what runs once for several of them, and what nearly does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from coordinator.plan import reopen
from coordinator.spec import graph
from coordinator.spec.cluster import Cluster
from coordinator.spec.files import yaml_source
from coordinator.spec.query import Operator, Query
from coordinator.spec.sharing import compose, equivalence
from coordinator.spec.sharing.owners import owners
from coordinator.units import counted
from protos.plan.queries import QueryPart
from protos.plan_document import Plan

MOST_LINES = 12


def sentences(plan: Plan) -> list[str]:
    """Of a plan of several queries: the operators that several need, and those that nearly could be shared."""
    if not owners(plan):
        return []
    file = yaml_source.Source(Path("plan.json"), b"", {})
    query = reopen.query(plan, file)
    told = [plan.apart_why] if plan.apart_why else []
    return told + planned_sentences(query, reopen.cluster(plan, file))


def planned_sentences(query: Query, cluster: Cluster) -> list[str]:
    """As `sentences`, of what is planned."""
    members, shared = query.parts, compose.of(query).shared
    together: dict[tuple[str, ...], list[str]] = {}
    collecting = {operator.name for operator in query.operators if operator.window is not None}
    for name, users in shared.items():
        if name in collecting:
            continue  # its other half is named
        together.setdefault(users, []).append(_also(name, members))
    lines = [
        f"{counted(len(member.outputs), 'output')} of {name}: {', '.join(member.outputs) or 'none is left'}"
        for name, member in members.items()
    ]
    for users, names in together.items():
        lines.append(f"run once for {' and '.join(users)}: {', '.join(names)}")
    if not shared:
        lines.append("the queries share no operator")
    near = almost(query, cluster)
    left = [f"and {counted(len(near) - MOST_LINES, 'pair')} more"] if len(near) > MOST_LINES else []
    return lines + near[:MOST_LINES] + left


def _also(name: str, members: Mapping[str, QueryPart]) -> str:
    other = [f"{member.called[name]} in {query}" for query, member in members.items() if name in member.called]
    return f"{name} ({', '.join(other)})" if other else name


def almost(query: Query, cluster: Cluster) -> list[str]:
    """Operators of different queries that run the same on the same streams and yet are two, and what they differ in."""
    users, closing = query.users, {operator.closes: operator for operator in query.operators if operator.closes}
    alike: dict[tuple[str, ...], list[Operator]] = {}
    lines = []
    for operator in query.operators:
        if operator.closes:
            continue
        reads = (operator.run, *graph.ordered_inputs(operator, cluster.catalog))
        others = [one for one in alike.get(reads, ()) if not set(users[one.name]) & set(users[operator.name])]
        if others:
            found = [(equivalence.differences(one, operator, cluster), one) for one in others]
            if operator.window is not None:
                end = closing[operator.name]
                found = [(apart + _closing(closing[one.name], end, apart, cluster), one) for apart, one in found]
            apart, nearest = min(found, key=lambda pair: len(pair[0]))
            lines.append(_sentence(nearest, operator, apart, users))
        alike.setdefault(reads, []).append(operator)
    return lines


def _closing(one: Operator, other: Operator, apart: list[tuple[str, str]], cluster: Cluster) -> list[tuple[str, str]]:
    """What windows differ in when they close, beside what was said."""
    found = [pair for pair in equivalence.differences(one, other, cluster) if pair not in apart]
    return [(f"closing {left}", f"closing {right}") for left, right in found]


def _sentence(one: Operator, other: Operator, apart: list[tuple[str, str]], users: Mapping[str, Sequence[str]]) -> str:
    names = [f"{operator.said} ({' and '.join(users[operator.name])})" for operator in (one, other)]
    if not apart:
        return f"{names[0]} and {names[1]} compute the same and are kept apart"
    left, right = (", ".join(pair[side] for pair in apart) for side in (0, 1))
    return f"{names[0]} and {names[1]} are not shared: {left}; {right}"
