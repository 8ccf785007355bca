"""Costs of operators, and of calls that make a source's tuples, that differ from their query's: measured (costs.yaml),
or guessed for want of both.

A measured cost is normalised to speed 1, since that is what plans divide by a node's speed, and the largest of the
nodes' counts. The margin is for what no measurement has seen: at most one instance in a millisecond is measured,
and the worst of some calls is not the worst of all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any, Literal

from coordinator.spec import overload_given
from coordinator.spec.catalog import Catalog
from coordinator.spec.files import validation, yaml_source
from coordinator.spec.files.costs_file import DEGRADED, CostsFile, MeasuredFile, OperatorCostsFile
from coordinator.spec.files.yaml_source import nearest
from coordinator.spec.query import GUESSED, Operator, Query, Source
from coordinator.units import LARGEST, show_ns
from protos.plan.costs import CostDistribution, CostOrigin

Of = Literal["worst", "p99", "mean"]
MEASURED, UNUSED = "measured", "declared"  # where a cost is from, beside GUESSED; UNUSED: measured, but not this
MARGIN = Fraction(6, 5)
FEW = 100  # calls: with fewer, the 99th percentile is the worst, and the worst says little


@dataclass(frozen=True)
class Use:
    """Which figure of the measured ones plans take, and how many times as much of it."""

    of: Of = "worst"
    margin: Fraction = MARGIN


@dataclass(frozen=True)
class Costs:
    """A costs.yaml, read; `spared`: what of it is left out, by query, so that the cost stays what the query says."""

    file: yaml_source.Source
    queries: Mapping[str, Mapping[str, OperatorCostsFile]]
    use: Use
    spared: frozenset[tuple[str, str]] = frozenset()

    def without(self, names: Collection[tuple[str, str]]) -> Costs:
        """Without some, as (query, name in this file)."""
        return replace(self, spared=self.spared | frozenset(names))


def load(path: Path, use: Use = Use()) -> Costs:
    """Reads costs.yaml. Raises BadInputError with every problem."""
    file = yaml_source.load(path)
    shape = validation.validate(file, CostsFile, {})
    return Costs(file, shape.costs, use)


def check(costs: Costs | None, queries: Collection[str]) -> None:
    """Raises BadInputError where the file has none of these queries: it is of something else."""
    if costs is not None and queries and not any(name in costs.queries for name in queries):
        text = f"costs has no query '{next(iter(queries))}'"
        mend = f"{nearest(next(iter(queries)), costs.queries)}; profile a plan of it, or leave out '--costs'"
        costs.file.wrong("query_not_measured", ("costs",), text, mend)
        costs.file.check()


def applied(query: Query, costs: Costs | None, catalog: Catalog | None) -> Query:
    """A query with its operators' measured costs in place of the declared ones. `catalog`: what is installed, None: not
    known, so versions are not compared. Raises BadInputError where the file has an operator that the query lacks."""
    if costs is None:
        return query
    measured = costs.queries.get(query.name, {})
    known = {one.name: one for one in query.operators}
    names = {*known, *(f"{name}{DEGRADED}" for name, one in known.items() if one.on_late and one.on_late.run)}
    names |= {one.name for one in query.sources if one.pull is not None and one.pull.run}
    for name in measured:
        if name not in names:
            text = f"costs.{query.name} has operator '{name}', which the query lacks"
            mend = f"{nearest(name, names)}; rename or remove it"
            costs.file.wrong("unknown_measured_operator", ("costs", query.name, name), text, mend)
    costs.file.check()
    measured = {name: one for name, one in measured.items() if (query.name, name) not in costs.spared}
    operators = tuple(_operator(one, query, costs, measured, catalog) for one in query.operators)
    sources = tuple(_source(one, query.name, costs, measured.get(one.name), catalog) for one in query.sources)
    query.file.check()
    return replace(query, operators=operators, sources=sources)


def _source(
    source: Source, query: str, costs: Costs, found: OperatorCostsFile | None, catalog: Catalog | None
) -> Source:
    """With the measured cost of the calls that make its tuples."""
    pull = source.pull
    if found is None or pull is None:
        return source
    declared_ns = 0 if pull.guessed else pull.cost_ns
    if why := _differs(found, pull.run, pull.parameters, catalog):
        origin = CostOrigin(kind=UNUSED, declared_ns=declared_ns, file=costs.file.path.name, why=why)
        return replace(source, cost_from=origin)
    cost_ns = figure_ns(found.on.values(), costs.use)
    if cost_ns > LARGEST:
        _too_large(costs, query, source.name)
    origin = _origin(found, declared_ns, costs)
    return replace(source, pull=replace(pull, cost_ns=cost_ns, guessed=False), cost_from=replace(origin, why=""))


def _too_large(costs: Costs, query: str, name: str) -> None:
    """Raises BadInputError."""
    costs.file.wrong("cost_too_large", ("costs", query, name), f"costs.{query}.{name} is too large")
    costs.file.check()


def _operator(
    operator: Operator,
    query: Query,
    costs: Costs,
    measured: Mapping[str, OperatorCostsFile],
    catalog: Catalog | None,
) -> Operator:
    late = operator.on_late
    instead = measured.get(operator.name + DEGRADED)
    if late is not None and instead is not None and not _differs(instead, late.run, late.parameters, catalog):
        operator = replace(operator, on_late=replace(late, cost_ns=figure_ns(instead.on.values(), costs.use)))
    found = measured.get(operator.name)
    if found is None:
        return operator
    if why := _differs(found, operator.run, operator.parameters, catalog):
        before = operator.cost_from
        origin = CostOrigin(kind=UNUSED, declared_ns=operator.cost_ns, file=costs.file.path.name, why=why)
        return operator if before is not None else replace(operator, cost_from=origin)
    cost_ns = figure_ns(found.on.values(), costs.use)
    if cost_ns > LARGEST:
        _too_large(costs, query.name, operator.name)
    hang_ns = operator.hang_ns
    if hang_ns == overload_given.hang_ns(operator.cost_ns):
        hang_ns = overload_given.hang_ns(cost_ns)
    elif hang_ns <= cost_ns:
        text = f"operator '{operator.said}' would be killed within its measured cost, {show_ns(cost_ns)}"
        query.file.wrong("hang_too_short", operator.keys, text, "make 'hang:' longer")
    guessed = operator.cost_from is not None and operator.cost_from.kind == GUESSED
    origin = _origin(found, 0 if guessed else operator.cost_ns, costs)
    return replace(operator, cost_ns=cost_ns, hang_ns=hang_ns, cost_from=origin)


def _origin(found: OperatorCostsFile, declared_ns: int, costs: Costs) -> CostOrigin:
    waits = [each for each in found.on.values() if waiting(each.mean, each.elapsed) and each.rt]
    return CostOrigin(
        kind=MEASURED,
        declared_ns=declared_ns,
        file=costs.file.path.name,
        of=costs.use.of,
        margin=f"{float(costs.use.margin):g}",
        samples=min(each.samples for each in found.on.values()),
        nodes=tuple(found.on),
        measured=max(each.measured for each in found.on.values()),
        why="it waits beside its CPU time" if waits else "",
        distributions=_distributions(found),
    )


def _distributions(found: OperatorCostsFile) -> tuple[CostDistribution, ...]:
    """Node by node; nothing where one does not say how its calls are distributed."""
    if not all(each.calls for each in found.on.values()):
        return ()
    return tuple(
        CostDistribution(node=node, speed=each.speed, calls=tuple((min(ns, each.worst), n) for ns, n in each.calls))
        for node, each in found.on.items()
    )


def waiting(mean_ns: int, elapsed_ns: int) -> bool:
    """Whether calls take much longer by the clock than on the CPU, on average."""
    return elapsed_ns > 2 * mean_ns + 100_000


def _differs(found: OperatorCostsFile, run: str, parameters: Mapping[str, Any], catalog: Catalog | None) -> str:
    """How what was measured is not what will run; empty: it is the same."""
    if found.run != run:
        return f"measured was {found.run}"
    if overload_given.plain(found.with_) != overload_given.plain(parameters):
        return "measured with other parameters"
    installed = catalog.operators.get(run) if catalog is not None else None
    if installed is not None and installed.version != found.version:
        return f"measured was version {found.version}, installed is {installed.version}"
    return ""


def figure_ns(measured: Collection[MeasuredFile], use: Use) -> int:
    """The cost at speed 1 that a plan takes: the largest of all nodes, with the margin."""
    at_1 = max(int(getattr(each, use.of)) * Fraction(str(each.speed)) for each in measured)
    return max(1, ceil(at_1 * use.margin))
