"""All comparisons of a run's records.

One look at all records follows each incarnation in its order, and parts its records by lineage; then each part is
compared by itself. So what is in memory is a part, for a run of any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np

from coordinator.report.facts.completeness import Trace
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.problems import Problem
from coordinator.report.facts.raw import raw_pieces
from coordinator.report.landing.record_array import RECORD_DTYPE, Raw, usable_records
from coordinator.report.witness import admissions, ends, instants, links, origins, sums
from coordinator.report.witness.admissions import Numbers
from coordinator.report.witness.instance_ends import InstanceEnds
from coordinator.report.witness.instants import Found
from coordinator.report.witness.lineage_parts import OF_A_PART, Part, Parts
from coordinator.report.witness.order import Order
from coordinator.report.witness.rows import Rows, ledger_rows
from coordinator.report.witness.sums import Sums
from coordinator.report.witness.suspensions import suspended
from protos import records as rec


class Witnessed(NamedTuple):
    """problems: where a record and its second witness disagree, each record once per kind of disagreement, sorted.
    suspended: lineages (source, epoch, seq) that took longer than their clock says."""

    problems: list[Problem]
    suspended: frozenset[tuple[int, int, int]]


def compare(plan: PlanView, traces: Sequence[Trace], of_a_part: int = OF_A_PART) -> Witnessed:
    """What the records of a run's plans say of each other. of_a_part: how many of them are compared at once, about."""
    told, slow = set[Problem](), set[tuple[int, int, int]]()
    with ExitStack() as files:
        parts = Parts(plan, traces, files, of_a_part)
        looks = [_Look(plan, trace) for trace in traces]
        for look in looks:
            told |= set(_problems(look.follow(parts)))
        told |= set(sums.counts([look.sums for look in looks]))
        known = _Known(plan, traces, looks)
        for part in parts:
            told |= set(_problems(known.compared(part)))
            late = part.rows.where(suspended(traces, part.rows, known.clocks))
            slow.update(zip(late.source.tolist(), late.epoch.tolist(), late.seq.tolist(), strict=True))
    return Witnessed(sorted(told), frozenset(slow))


class _Look:
    """One look at an incarnation's records, in their order."""

    def __init__(self, plan: PlanView, trace: Trace) -> None:
        self._plan, self.trace = plan, trace
        self.sums, self.numbers = Sums(trace), Numbers()
        self._clocks = [np.zeros(0, RECORD_DTYPE)]

    def follow(self, parts: Parts) -> Iterator[Found]:
        """What is out of order."""
        order = Order()
        for before, raw in raw_pieces(self.trace.incarnation):
            self.sums.take(before, raw)
            self.numbers.take(before, raw)
            self._clocks.append(raw[usable_records(raw) & (raw["kind"] == rec.CLOCK)])
            rows = _rows(self._plan, self.trace, before, raw)
            parts.add(raw, rows, before)
            if not self.trace.reordered:
                yield from order.take(rows)
        yield from order.end()

    @property
    def clocks(self) -> Raw:
        """Its CLOCK records."""
        return np.concatenate(self._clocks)


class _Known:
    """What a part is compared with beside itself."""

    def __init__(self, plan: PlanView, traces: Sequence[Trace], looks: Sequence[_Look]) -> None:
        self._plan, self._traces = plan, traces
        self.clocks = {look.trace.incarnation.number: look.clocks for look in looks}
        self._skipped = {look.trace.incarnation.number: look.numbers.skipped() for look in looks}
        self._sums = [look.sums for look in looks]
        self._ends = InstanceEnds(
            _rows(plan, trace, *piece) for trace in traces for piece in raw_pieces(trace.incarnation)
        )

    def compared(self, part: Part) -> Iterator[Found]:
        """Where its rows disagree with their second witnesses."""
        rows = part.rows
        yield from instants.compare(self._plan, rows, self._ends.has)
        yield from origins.compare(self._plan, self._traces, rows, self.clocks)
        yield from links.compare(rows, part.numbered)
        yield from ends.compare(self._plan, self._traces, rows, part.merged)
        yield from admissions.compare(self._plan, self._traces, rows, self._skipped)
        yield from sums.compare(rows, self._sums)


def _rows(plan: PlanView, trace: Trace, before: int, raw: Raw) -> Rows:
    return ledger_rows(plan, trace, raw, before + np.arange(len(raw), dtype=np.int64))


def _problems(found: Iterable[Found]) -> Iterator[Problem]:
    for fault, wrong in found:
        for inc, kind, source, epoch, seq, ordinal in zip(
            wrong.inc, wrong.kind, wrong.source, wrong.epoch, wrong.seq, wrong.ordinal, strict=True
        ):
            yield Problem(int(fault), int(inc), int(kind), int(source), int(epoch), int(seq), int(ordinal), 1)


__all__ = ["Witnessed", "compare"]
