"""Which operators compute the same: what they are themselves, and what they read, all the way back to the sources.

Two operators may be shared where their unfolded trees are equal. Side inputs may lead back, so these trees may be
infinite; equal ones are then the classes of the coarsest partition in which operators of a class are equal themselves
and read, port by port, streams of equal classes (partition refinement, Paige and Tarjan 1987; here in rounds, of which
there are as many as side inputs stand one behind the other).
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from coordinator.spec import core_assignment, graph
from coordinator.spec.catalog import Catalog
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Operator, Query
from coordinator.units import show_ns
from protos import json_shape

Face = tuple[tuple[str, Hashable, str], ...]  # what is compared, its value, how a sentence says it


def face(operator: Operator, catalog: Catalog) -> Face:
    """What an operator is, without what it reads and where it may run."""
    installed = catalog.operators.get(operator.run)
    defaults = installed.parameters if installed else {}
    given = {name: one.default for name, one in defaults.items() if not one.required} | dict(operator.parameters)
    selectivity = _selectivity(operator, given)
    pairs = frozenset(operator.forbidden)
    parts: list[tuple[str, Hashable, str]] = [
        ("run", operator.run, f"run {operator.run}"),
        *((f"with.{name}", _text(given[name]), f"with {name} {_text(given[name])}") for name in sorted(given)),
        ("cost", operator.cost_ns, f"cost {show_ns(operator.cost_ns)}"),
        ("selectivity", selectivity, f"selectivity {_said(selectivity)}"),
        ("hang", operator.hang_ns, f"hang {show_ns(operator.hang_ns)}"),
        ("memory", operator.memory_bytes, f"memory {operator.memory_bytes} bytes"),
        ("state", operator.state, f"state {operator.state}"),
        ("forbid_streams", pairs, f"forbid_streams {json.dumps(sorted(map(list, pairs)))}"),
        ("side", tuple(sorted(operator.side)), f"side inputs {', '.join(sorted(operator.side)) or 'none'}"),
    ]
    for port, rule in sorted(operator.side_rules.items()):
        said = _text(json_shape.write(rule))
        parts.append((f"side.{port}", said, f"side input {port} {said}"))
    parts += _overload(operator)
    if operator.max_bytes:
        parts.append(("max_size", operator.max_bytes, f"max_size {operator.max_bytes} bytes"))
    if installed is None or (installed.variadic and not operator.is_windowed):  # it is told what its inputs are called
        names = operator.inputs if operator.called is None else operator.called
        parts.append(("called", tuple(names), f"inputs called {', '.join(names)}"))
    return tuple(parts)


def _overload(operator: Operator) -> list[tuple[str, Hashable, str]]:
    """Of windows, of what is late, of a queue with a limit and of fusions; nothing of operators without."""
    found: list[tuple[str, Hashable, str]] = []
    if operator.window is not None:
        spans = ("length", "hop") if operator.window.kind != "count" else ()
        for what, value in json_shape.write(operator.window).items():
            shown = show_ns(value) if what.endswith("_ns") or what in spans else _text(value)
            found.append((f"window.{what}", _text(value), f"window {what.removesuffix('_ns')} {shown}"))
    for what, given in (("on_late", operator.on_late), ("queue", operator.queue), ("sync", operator.sync)):
        if given is not None:
            said = _text(json_shape.write(given))
            found.append((what, said, f"{what} {said}"))
    return found


def _text(value: Any) -> str:
    """1, 1.0 and true are three values."""
    return json.dumps(value, sort_keys=True, default=repr)


def _selectivity(operator: Operator, given: Mapping[str, Any]) -> Hashable:
    """A filter has, without a declaration, what its parameters say."""
    if operator.selectivity is not None:
        pairs = tuple(sorted((int(k), int(m)) for k, m in operator.selectivity.at_most))
        return Fraction(str(operator.selectivity.mean)), pairs
    if operator.run == "filter":
        keep, of = int(given.get("keep", 1)), int(given.get("of", 2))
        return Fraction(str(float(Fraction(keep, of)))), ((of, keep),)
    return None


def _said(selectivity: Any) -> str:
    if selectivity is None:
        return "not declared"
    mean, pairs = selectivity
    worst = f", at most {', '.join(f'{m} of any {k}' for k, m in pairs)}" if pairs else ""
    return f"{float(mean):g}{worst}"


def classes(queries: Sequence[Query], catalog: Catalog) -> list[dict[str, int]]:
    """The class of every stream, query by query; a source is what its name says, in every query."""
    faces = [{one.name: face(one, catalog) for one in query.operators} for query in queries]
    orders = [graph.order(query) for query in queries]
    reads = [{one.name: graph.ordered_inputs(one, catalog) for one in query.operators} for query in queries]
    found = [dict.fromkeys((one.name for one in query.producers), 0) for query in queries]
    count = 0
    while True:
        numbers: dict[Hashable, int] = {}
        after: list[dict[str, int]] = []
        for query, order, own, read, before in zip(queries, orders, faces, reads, found, strict=True):
            now = {one.name: numbers.setdefault(("source", one.name), len(numbers)) for one in query.sources}
            for one in order:
                sides = tuple((port, before[one.side[port]]) for port in sorted(one.side))
                values = tuple((what, value) for what, value, _ in own[one.name])
                key = (values, tuple(now[name] for name in read[one.name]), sides)
                now[one.name] = numbers.setdefault(key, len(numbers))
            after.append(now)
        found = after
        if len(numbers) == count:
            return found
        count = len(numbers)


def common(one: Operator, other: Operator, cluster: Cluster) -> tuple[str, ...]:
    """The places where both may run, in the cluster's order."""
    allowed = set(core_assignment.allowed(other, cluster))
    return tuple(name for name in core_assignment.allowed(one, cluster) if name in allowed)


def differences(one: Operator, other: Operator, cluster: Cluster) -> list[tuple[str, str]]:
    """Where two operators that read the same differ: how each says it. Empty: they could be shared."""
    mine, its = ({what: (value, said) for what, value, said in face(each, cluster.catalog)} for each in (one, other))
    found = []
    for what in dict.fromkeys([*mine, *its]):
        left, right = mine.get(what), its.get(what)
        if left is None or right is None or left[0] != right[0]:
            found.append((left[1] if left else f"no {what}", right[1] if right else f"no {what}"))
    for port in sorted(set(one.side) & set(other.side)):
        if one.side[port] != other.side[port]:
            found.append((f"side input {port} {one.side[port]}", f"side input {port} {other.side[port]}"))
    if not common(one, other, cluster):
        where = (", ".join(core_assignment.allowed(each, cluster)) for each in (one, other))
        left_said, right_said = (f"on {names}" for names in where)
        found.append((left_said, right_said))
    return found
