"""A plan's task units on their nodes as transactions, so that every method has the same units, places and costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from coordinator.calculus.curves import Bursts, Curve, Jcp
from coordinator.calculus.selectivity import Selectivity
from coordinator.guarantee.system import System, Unit
from infra.papers.conventional.transactions import Activity, Event, Output, Release, Step, Transactions


class BeyondTransactionsError(ValueError):
    """The plan has what a transaction has not: joins, unions, windows, links with a bandwidth, ages."""


def read(system: System) -> Transactions:
    """Activities in the order of the system's units. Raises BeyondTransactionsError."""
    _refuse(system)
    at = {number: index for index, number in enumerate(system.order)}
    makers = {stream: (at[unit.id], step + 1) for unit in system.units.values() for stream, step in unit.exits.items()}
    found: list[Activity] = []
    for number in system.order:
        found.append(_activity(system, system.units[number], makers, found))
    outputs = []
    for name, output in system.outputs.items():
        by, steps = makers[output.stream]
        link_ns = _links_ns(system, output.stream, output.node)
        outputs.append(Output(name, by, steps, link_ns, output.deadline_ns))
    return Transactions(tuple(found), tuple(outputs))


def due_ns(system: System) -> tuple[int, ...]:
    """The plan's sub-deadlines, by activity."""
    return tuple(system.units[number].sub_deadline_ns for number in system.order)


def _refuse(system: System) -> None:
    several = any(len(unit.inputs) != 1 or unit.unsound for unit in system.units.values())
    wide = any(link.bandwidth_bps for link in system.links.values())
    aged = any(source.max_age_ns for source in system.sources.values())
    if several or wide or aged or system.windows or any(node.batch != 1 for node in system.nodes.values()):
        raise BeyondTransactionsError("units of one input, links without a bandwidth, tuples of no age only")


def _activity(system: System, unit: Unit, makers: Mapping[str, tuple[int, int]], before: list[Activity]) -> Activity:
    stream = unit.inputs[0]
    link_ns = _links_ns(system, stream, unit.node)
    steps = tuple(_steps(unit))
    if stream in system.sources:
        event = _event(system.sources[stream].curve)
        return Activity(unit.name, unit.node, event, steps, link_ns=link_ns)
    by, left_after = makers[stream]
    maker = before[by]
    passes = _one_of(system.units[system.order[by]].stages[left_after - 1].selectivity)
    one_of = maker.one_of * maker.steps[left_after - 1].one_of * passes
    return Activity(unit.name, unit.node, maker.event, steps, Release(by, left_after, link_ns), one_of)


def _steps(unit: Unit) -> Iterator[Step]:
    one_of = 1
    for stage in unit.stages:
        yield Step(stage.cost_ns, stage.best_ns, one_of)
        one_of *= _one_of(stage.selectivity)


def _one_of(selectivity: Selectivity) -> int:
    """r of a selectivity of ceil(k / r)."""
    pairs = sorted(selectivity.pairs)
    if pairs[0] != (1, 1) or len(pairs) > 2 or any(most != 1 for _, most in pairs):
        raise BeyondTransactionsError("filters that let one of so many pass only")
    return pairs[-1][0]


def _event(curve: Curve | None) -> Event:
    match curve:
        case Bursts():
            return Event(int(curve.period), curve.size)
        case Jcp() if not curve.gap:
            return Event(int(curve.period), 1, int(curve.jitter))
        case _:
            raise BeyondTransactionsError("bursts, or periods with jitter, only")


def _links_ns(system: System, stream: str, node: str) -> int:
    """The latency of the hops that bring a stream to a node."""
    entry = {end: start for start, end in system.hops.get(stream, ())}
    total_ns = 0
    while node in entry:
        total_ns += system.links[entry[node], node].latency_ns
        node = entry[node]
    return total_ns


__all__ = ["BeyondTransactionsError", "due_ns", "read"]
