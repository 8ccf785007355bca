"""Flows: mean tuples of each stream, and runs of each operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from coordinator.spec import graph
from coordinator.spec.catalog import Catalog
from coordinator.spec.query import Operator, Query
from protos.plan.operators import Window


@dataclass(frozen=True)
class Flow:
    """Mean tuples of a stream: `burst` per burst of its sources, `rate` per ns."""

    burst: Fraction
    rate: Fraction


def flows(query: Query, catalog: Catalog) -> dict[str, Flow]:
    """The mean flow of every stream. A union adds its inputs; a join yields at most its scarcest input; a fusion does
    so too, and besides what it runs on timeout."""
    found = {source.name: Flow(Fraction(source.burst), source.rate) for source in query.sources}
    for operator in graph.order(query):
        entering = triggers(operator, catalog, found)
        if operator.window is not None:
            found[operator.name] = window_closings(operator.window, entering)
            continue
        mean = mean_selectivity(operator)
        found[operator.name] = Flow(entering.burst * mean, entering.rate * mean)
    return found


def triggers(operator: Operator, catalog: Catalog, found: Mapping[str, Flow]) -> Flow:
    """How often an operator runs, per burst and per ns."""
    inputs = [found[name] for name in operator.inputs]
    every = Flow(sum((one.burst for one in inputs), Fraction(0)), sum((one.rate for one in inputs), Fraction(0)))
    if graph.kind(operator, catalog) == "union":
        return every
    scarcest = Flow(min(one.burst for one in inputs), min(one.rate for one in inputs))
    sync = operator.sync
    if sync is None or not (sync.timeout_ns or sync.each):
        return scarcest
    if sync.within_ns is not None:  # each tuple may run by itself
        return every
    return Flow(scarcest.burst, min(every.rate, scarcest.rate + Fraction(1, sync.timeout_ns)))


def window_closings(window: Window, entering: Flow) -> Flow:
    """How many windows close: one per hop, at least one of them with a burst."""
    if window.kind == "count":
        return Flow(max(Fraction(1), entering.burst / window.hop), entering.rate / window.hop)
    return Flow(Fraction(1), Fraction(1, window.hop))


def mean_selectivity(operator: Operator) -> Fraction:
    """As declared; a built-in filter without a declaration passes keep of `of`."""
    if operator.selectivity is None and operator.run == "filter":
        return Fraction(operator.parameters.get("keep", 1), operator.parameters.get("of", 2))
    return operator.mean
