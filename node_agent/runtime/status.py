"""Builds the status rows of outputs, units and sources, each a tuple as in ipc.Status. Rows that do not fit in a
message are left out, and counted."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from node_agent.core.model import Unit
from node_agent.host.ipc import OutputRow, SourceRow, UnitRow
from node_agent.runtime.deployments.deployed_plan import Deployed
from node_agent.runtime.deployments.lifecycle import Plans
from node_agent.runtime.links.delivery_counts import DeliveryCounts

MOST_CHARACTERS = 48 * 1024  # of all rows, about half of what a message may have
FRAME = 60  # characters of a row's punctuation and small numbers, about

Row = TypeVar("Row", bound=tuple[object, ...])


class StatusRows(NamedTuple):
    """left_out: rows of any kind."""

    outputs: tuple[OutputRow, ...]
    units: tuple[UnitRow, ...]
    sources: tuple[SourceRow, ...]
    left_out: int


def rows(at_ns: int, plans: Plans, delivery_counts: Mapping[str, DeliveryCounts]) -> StatusRows:
    """Of everything that is loaded; outputs come first."""
    deployed = sorted(plans.by_hash.values(), key=lambda each: -each.plan.epoch)
    budget = [MOST_CHARACTERS]
    outputs, without = _within(budget, _outputs(plans, delivery_counts))
    sources, fewer = _within(budget, (row for each in deployed for row in _sources(each)))
    units, less = _within(budget, (row for each in deployed for row in _units(at_ns, each)))
    return StatusRows(outputs, units, sources, without + fewer + less)


def _within(budget: list[int], found: Iterable[Row]) -> tuple[tuple[Row, ...], int]:
    """The rows that fit, and how many do not."""
    fit: list[Row] = []
    left_out = 0
    for row in found:
        size = FRAME + sum(len(str(value)) for value in row)
        if size > budget[0]:
            left_out += 1
        else:
            budget[0] -= size
            fit.append(row)
    return tuple(fit), left_out


def _outputs(plans: Plans, delivery_counts: Mapping[str, DeliveryCounts]) -> Iterator[OutputRow]:
    for name, counts in delivery_counts.items():
        found = plans.output(name)
        if found is not None:
            yield (
                name, found[1].deadline_ns, counts.met, counts.late, counts.undecidable, counts.worst_ns,
                tuple(counts.latencies()),
            )  # fmt: skip


def _sources(deployed: Deployed) -> Iterator[SourceRow]:
    for source in deployed.plan.sources:
        if not source.window:  # windows have counters of their own
            route = deployed.loaded.source_routes[source.id]
            yield deployed.hash, source.name, route.admitted, route.shed, route.lost, route.refused, route.policed


def _units(at_ns: int, deployed: Deployed) -> Iterator[UnitRow]:
    """One row per unit, also where the policy has it run in pieces: a tuple counts when the first of them has ended,
    what is queued or gone in any of them."""
    names = deployed.plan.operator_by_id
    pieces: dict[int, list[Unit]] = {}
    for unit in deployed.loaded.units:
        pieces.setdefault(unit.id, []).append(unit)
    for id_, parts in pieces.items():
        spec, first = parts[-1].spec, parts[-1]  # of a unit's pieces the first was added last
        yield (
            deployed.hash, id_, tuple(names[each].name for each in spec.operators), spec.sub_deadline_ns,
            sum(len(part.queue) for part in parts), first.runs, sum(part.shed for part in parts),
            sum(part.lost for part in parts), first.timed, first.timed_ns, first.worst_ns, first.recent_ns(at_ns),
            sum(part.unfused for part in parts),
        )  # fmt: skip
