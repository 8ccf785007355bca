"""Several queries as one graph to plan: operators that several of them need run once ([Q] 4.2).

A source name means one stream in all queries, and an output name one output. Operators that compute the same from the
same sources become one, under the name that the earlier query gives it; others keep their names, or where a name is
taken get their query's before it: `fleet/O3`, which no file can hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coordinator.errors import BadInputError
from coordinator.spec import core_assignment
from coordinator.spec.cluster import Cluster
from coordinator.spec.files.declared_ranges import Range
from coordinator.spec.files.query_file import CHAIN_NAME
from coordinator.spec.query import Operator, Query, Source
from coordinator.spec.sharing import equivalence, match
from coordinator.spec.sharing.joined_files import joined, rooted
from coordinator.units import show_ns
from protos import digests, json_shape
from protos.plan.queries import QueryPart
from protos.plan.sources import Connector, Pull

SEPARATOR = "/"


@dataclass(frozen=True)
class Composite:
    """`query`: all of them as one, to be planned like any other; `members`: what belongs to which, by its name;
    `shared`: operators that several need, and which."""

    query: Query
    members: Mapping[str, QueryPart]
    shared: Mapping[str, tuple[str, ...]]


def compose(queries: Sequence[Query], cluster: Cluster, share: bool = True) -> Composite:
    """Checked and resolved queries as one, in their order; one alone stays what it is. Raises BadInputError, with both
    lines, where two have the same name or an output of the same name, or declare a source differently."""
    found, problems = of(queries[0]), []
    for query in queries[1:]:
        try:
            found = extend(found, query, cluster, share)
        except BadInputError as error:
            problems += error.problems
    if problems:
        raise BadInputError(problems)
    return found


def of(query: Query) -> Composite:
    """A query, composed already or not, as what it is composed of."""
    users = query.users
    shared = {one.name: users[one.name] for one in query.operators if len(users[one.name]) > 1}
    return Composite(query, query.parts, shared)


def extend(
    composite: Composite, query: Query, cluster: Cluster, share: bool = True, place: Mapping[str, str] | None = None
) -> Composite:
    """`compose` with one more. `place`: where operators run already: what joins shares only what it allows to run
    there. Raises BadInputError."""
    there, joining = rooted(composite.query), rooted(query)
    _check(composite, there, query.name, joining)
    pairs = match.shared(there, joining, cluster, place) if share else {}
    names = _names(there, joining, query.name, pairs)
    own = {one.name: one for one in joining.operators}
    partner = {pairs[name]: own[name] for name in pairs}
    operators = [_narrowed(one, partner.get(one.name), cluster) for one in there.operators]
    operators += [_renamed(one, names, cluster) for one in joining.operators if one.name not in pairs]
    known = {source.name for source in there.sources}
    member = QueryPart(
        sources=tuple(one.name for one in query.sources),
        operators=tuple(names[one.name] for one in query.operators),
        outputs=tuple(one.name for one in query.outputs),
        sha256=query.sha256,
        called={names[one.name]: one.name for one in query.operators if names[one.name] != one.name},
    )
    members = {**composite.members, query.name: member}
    first = not composite.query.members  # its names are its own still
    there_ranges = _ranges(there, {one.name: one.name for one in there.operators}) if first else there.ranges
    composed = Query(
        "+".join(members),
        (*there.sources, *(one for one in joining.sources if one.name not in known)),
        tuple(operators),
        (*there.outputs, *(replace(one, origin=names[one.origin]) for one in joining.outputs)),
        _digest(members),
        joined(there, joining),
        members,
        (*there_ranges, *_ranges(joining, names)),
    )
    return of(composed)


def _ranges(query: Query, names: Mapping[str, str]) -> tuple[Range, ...]:
    """Its declared ranges, of operators by what the whole calls them."""
    found = []
    for one in query.ranges:
        name = one.name
        if one.section == "operators":
            name = f"{one.of}{SEPARATOR}{name}" if CHAIN_NAME.fullmatch(name) else names[name]
        found.append(replace(one, name=name))
    return tuple(found)


def without(composite: Composite, name: str) -> Composite:
    """What is left when a query goes: what others need stays as it is, under its name. The query has to be one of
    several."""
    members = {one: member for one, member in composite.members.items() if one != name}
    assert members and name in composite.members
    query = composite.query
    needed = {one for member in members.values() for one in (*member.sources, *member.operators)}
    outputs = {one for member in members.values() for one in member.outputs}
    left = replace(
        query,
        name="+".join(members),
        sources=tuple(one for one in query.sources if one.name in needed),
        operators=tuple(one for one in query.operators if one.name in needed),
        outputs=tuple(one for one in query.outputs if one.name in outputs),
        sha256=_digest(members),
        members=members,
    )
    return of(left)


def _digest(members: Mapping[str, QueryPart]) -> str:
    """Of all files; of one alone, its own."""
    if len(members) == 1:
        return next(iter(members.values())).sha256
    return digests.sha256("\n".join(one.sha256 for one in members.values()).encode()).hexdigest()


def _check(composite: Composite, there: Query, name: str, joining: Query) -> None:
    """Raises BadInputError where the two cannot be on one cluster."""
    wrong = joining.file.wrong
    if name in composite.members:
        text = f"query '{name}' is also that of {_stands(there, composite.members[name])}"
        wrong("query_twice", ("query",), text, "names of queries have to differ: rename one")
    operators = {one.name: one for one in there.operators}
    sources = {one.name: one for one in there.sources}
    outputs = {one.name: one for one in there.outputs}
    for source in joining.sources:
        if source.name in operators:
            at = there.file.place(*operators[source.name].keys)
            text = f"source '{source.name}' has the name of an operator, {at}"
            mend = "a source's name is its own on the whole cluster: rename one of the two"
            wrong("source_named_as_operator", source.keys, text, mend)
        elif source.name in sources and (unlike := _unlike(sources[source.name], source)):
            at = there.file.place(*sources[source.name].keys)
            text = f"source '{source.name}' is declared differently in {at}: {unlike}"
            mend = "one name is one stream: declare it alike, or rename one of the two"
            wrong("source_declared_differently", source.keys, text, mend)
    for output in joining.outputs:
        if output.name in outputs:
            at = there.file.place(*outputs[output.name].keys)
            text = f"output '{output.name}' is also that of {at}"
            mend = "clients ask for it by its name alone: rename one of the two"
            wrong("output_twice", output.keys, text, mend)
    joining.file.check()


def _stands(there: Query, member: QueryPart) -> str:
    """The file of a query that is there."""
    first = next(one for one in there.outputs if one.name in member.outputs)
    return there.file.place(*first.keys[:1], "query")


def _unlike(one: Source, other: Source) -> str:
    """How two declarations of a source differ, as theirs and ours; empty: they do not."""
    found = []
    for what, left, right in (
        ("at", one.at, other.at),
        ("type", one.type or other.type, other.type or one.type),
        ("max_age", show_ns(one.max_age_ns), show_ns(other.max_age_ns)),
        ("forbid_streams", sorted(one.forbidden), sorted(other.forbidden)),
        ("max_rate", _limit(one), _limit(other)),
        ("value", one.limit.value if one.limit else "", other.limit.value if other.limit else ""),
        ("on_full", one.on_full, other.on_full),
        *_pulls(one.pull, other.pull),
        ("max_size", one.max_bytes, other.max_bytes),
        ("from", _place(one.connector), _place(other.connector)),
    ):
        if left != right:
            found.append(f"{what} {left} there, {right} here")
    there, here = (
        {key: value for key, value in json_shape.write(each.arrival.written).items() if key != "file"}
        for each in (one, other)
    )
    for key in dict.fromkeys([*there, *here]):
        if there.get(key) != here.get(key):
            left, right = (_written(key, each.get(key)) for each in (there, here))
            found.append(f"arrival {key.removesuffix('_ns')} {left} there, {right} here")
    return "; ".join(found)


def _pulls(one: Pull | None, other: Pull | None) -> list[tuple[str, Any, Any]]:
    """What there is to compare of sources that nodes make themselves."""
    left, right = one or Pull(), other or Pull()
    return [
        ("run", left.run or "none", right.run or "none"),
        ("with", dict(left.parameters), dict(right.parameters)),
        ("every", show_ns(left.every_ns), show_ns(right.every_ns)),
        ("offset", show_ns(left.offset_ns), show_ns(right.offset_ns)),
        ("cost", show_ns(left.cost_ns), show_ns(right.cost_ns)),
    ]


def _place(connector: Connector | None) -> str:
    """All that is said of it."""
    given = json_shape.write(connector) if connector else {}
    return " ".join(str(each) for each in given.values()) or "clients"


def _limit(source: Source) -> str:
    return f"{source.limit.tuples} per {show_ns(source.limit.span_ns)}" if source.limit else "none"


def _written(key: str, value: Any) -> str:
    """A value of `Arrival.written` for people."""
    if key in ("counts", "spans_ns", "sha256"):
        return "of one recording" if value is not None else "none"
    return show_ns(value) if key.endswith("_ns") and value is not None else str(value or "none")


def _names(there: Query, joining: Query, query: str, pairs: Mapping[str, str]) -> dict[str, str]:
    """What the streams of a query that joins are called among the others."""
    names = {one.name: one.name for one in joining.sources} | dict(pairs)
    taken = {one.name for one in there.producers} | {one.name for one in joining.sources}
    for operator in joining.operators:
        if operator.name in names:
            continue
        halves = [operator.name] if operator.window is None else [operator.said, operator.name]
        added = [half.removeprefix(operator.said) for half in halves]
        name, count = operator.said, 1
        while not taken.isdisjoint(name + end for end in added):
            name = f"{query}{SEPARATOR}{operator.said}" + (f"{SEPARATOR}{count}" if count > 1 else "")
            count += 1
        taken.update(name + end for end in added)
        names.update({half: name + end for half, end in zip(halves, added, strict=True)})
    return names


def _renamed(operator: Operator, names: Mapping[str, str], cluster: Cluster) -> Operator:
    """With what its streams are called among the others; operators that are told what their inputs are called are told
    what their own query calls them."""
    inputs = tuple(names[name] for name in operator.inputs)
    own = operator.inputs if operator.called is None else operator.called
    return replace(
        operator,
        name=names[operator.name],
        inputs=inputs,
        side={port: names[name] for port, name in operator.side.items()},
        closes=names[operator.closes] if operator.closes else "",
        called=own
        if own != inputs and not operator.is_windowed and cluster.catalog.operators[operator.run].variadic
        else None,
    )


def _narrowed(operator: Operator, partner: Operator | None, cluster: Cluster) -> Operator:
    """An operator that is there, where both it and what takes part in it may run."""
    if partner is None:
        return operator
    both = equivalence.common(operator, partner, cluster)
    if both == core_assignment.allowed(operator, cluster):
        return operator
    return replace(operator, nodes=both, barred=())
