"""Instants of tuples against their causes, within one incarnation: its clock is one.

Nothing happens to a tuple before it came. A result leaves its operator while its instance runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from coordinator.report.facts.plan_view import OUTPUT, PlanView, consumer_parts
from coordinator.report.facts.problems import Fault
from coordinator.report.witness.keys import LEAST, MOST, Bools, Ints, Pairs
from coordinator.report.witness.rows import Rows, mapped
from protos import records as rec
from protos.records import Admitted, Lost, Ran

Found = tuple[Fault, Rows]
HasEnded = Callable[[Ints, Ints, Ints], Bools]


def compare(plan: PlanView, found: Rows, has_ended: HasEnded) -> Iterator[Found]:
    """Rows of whole lineages whose instants contradict others'. has_ended: whether instances of some incarnations and
    units ended at some instants."""
    yield Fault.BEFORE_ITS_CAUSE, found.where(_too_early(found))
    outputs = found.of(rec.OUTPUT)
    yield Fault.OUTSIDE_ITS_RUN, outputs.where(_outside(plan, outputs, instances(found), has_ended))


@dataclass(frozen=True, slots=True)
class Instances:
    """What ran: RAN, and LOST of what had begun. at: their places among all rows; turn: a number that those which ran
    at once, as a batch, share; it grows in each incarnation."""

    rows: Rows
    at: Ints
    since: Ints  # its decision began
    start: Ints
    end: Ints
    turn: Ints


def instances(found: Rows) -> Instances:
    """All that ran, in order."""
    is_ran = found.kind == rec.RAN
    began = (found.kind == rec.LOST) & (found.flagged == 0) & (found.ref != rec.NO_REF) & (found[Lost.start_ns] != 0)
    at = np.flatnonzero(is_ran | began)
    rows = found.where(at)
    ran = rows.kind == rec.RAN
    end = np.where(ran, rows[Ran.end_ns], rows[Lost.at_ns])
    # Of one that hung, only the end of the instance before is known: what was drained after that has later instants.
    hung = ~ran & (rows[Lost.cause] == rec.CAUSE_OPERATOR_HUNG)
    start = np.where(ran, rows[Ran.start_ns], np.where(hung, end, rows[Lost.start_ns]))
    since = start - np.where(ran, rows[Ran.decision_ns], 0)
    new = np.ones(len(at), np.bool_)
    new[1:] = (np.diff(start) != 0) | (np.diff(end) != 0) | (np.diff(rows.inc) != 0)
    return Instances(rows, at, since, start, end, np.cumsum(new))


def _too_early(found: Rows) -> Bools:
    """Before the tuple came to this incarnation; or released after it started, or ended before."""
    came = found.of(rec.ADMITTED, rec.RECEIVED)
    arrived = Pairs((found.inc, found.lineage), (came.inc, came.lineage)).least(came.at_ns)
    start, end = found[Ran.start_ns], found[Ran.end_ns]
    backwards = (found.kind == rec.RAN) & ((found[Ran.release_ns] > start) | (start > end))
    lost = (found.kind == rec.LOST) & (found.flagged == 0) & (found.ref != rec.NO_REF)
    backwards |= lost & (found[Lost.start_ns] > found[Lost.at_ns])
    crossed = found[Admitted.origin_lo_ns] > found[Admitted.origin_hi_ns]
    admitted = (found.kind == rec.ADMITTED) & crossed
    wrong: Bools = ((arrived != MOST) & (found.at_ns < arrived)) | backwards | admitted
    return wrong


def _outside(plan: PlanView, outputs: Rows, ran: Instances, has_ended: HasEnded) -> Bools:
    """Results at other instants than those at which what made them ran."""
    unit = mapped(_streams(plan, outputs), {stream: unit for stream, (unit, _) in plan.producer.items()}, -1)
    since, until = np.full(len(outputs), MOST), np.full(len(outputs), LEAST)
    for bits in (0, 8, 16, 24, 32):
        pairs = Pairs(
            (outputs.inc, unit, outputs.lineage, outputs.ordinal >> bits),
            (ran.rows.inc, ran.rows.ref, ran.rows.lineage, ran.rows.ordinal),
        )
        since = np.minimum(since, pairs.least(ran.start))
        until = np.maximum(until, pairs.most(ran.end))
    at_ns = outputs.at_ns
    wrong: Bools = (since != MOST) & (at_ns < since)
    behind = np.flatnonzero((since != MOST) & (at_ns > until))
    if len(behind):  # what waited for the rest of its burst left with the last of it
        wrong[behind] |= ~has_ended(outputs.inc[behind], unit[behind], at_ns[behind])
    return wrong


def _streams(plan: PlanView, outputs: Rows) -> Ints:
    """The stream that each result came on: an output that several plans have is fed by one of each."""
    fed: dict[int, int] = {}
    for (_, stream), consumers in plan.consumers.items():
        for consumer in consumers:
            kind, ref, _ = consumer_parts(consumer)
            if kind == OUTPUT:
                fed[ref << 8 | stream >> 16] = stream
    return mapped(outputs.ref << 8 | outputs.number, fed, -1)


__all__ = ["Found", "Instances", "compare", "instances"]
