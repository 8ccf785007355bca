"""Tuples are admitted once, one number after the other, and nothing comes of one that was not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from coordinator.report.facts.completeness import Status, Trace
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.facts.problems import Fault
from coordinator.report.landing.record_array import Raw, usable_records
from coordinator.report.witness.instants import Found
from coordinator.report.witness.keys import Ints, Pairs
from coordinator.report.witness.rows import Rows, mapped
from protos import records as rec

LINEAGE = ("source", "epoch", "seq")


def compare(plan: PlanView, traces: Sequence[Trace], found: Rows, skipped: Mapping[int, Ints]) -> Iterator[Found]:
    """Lineages that were admitted again, and results of tuples that no node admitted. skipped: of each incarnation, the
    places of tuples before which numbers were left out."""
    admitted, outputs = found.of(rec.ADMITTED), found.of(rec.OUTPUT)
    if len(admitted):
        yield Fault.ADMITTED_AGAIN, admitted.where(np.bincount(admitted.lineage)[admitted.lineage] > 1)
    for trace in traces:
        if not trace.scan.gaps and trace.status is not Status.UNKNOWN:
            mine = admitted.where(admitted.inc == trace.incarnation.number)
            fed = mine.where(~np.isin(mine.source, list(plan.windows)))
            yield Fault.NUMBER_SKIPPED, fed.where(np.isin(fed.place, skipped[trace.incarnation.number]))
    told: dict[int, bool] = dict.fromkeys((t.incarnation.node for t in traces), True)
    for trace in traces:
        told[trace.incarnation.node] &= trace.status is not Status.UNKNOWN or trace.only_open
    sure = {source: 1 for source, (node, _) in plan.sources.items() if told.get(node, False)}
    known = Pairs((outputs.lineage,), (admitted.lineage,)).any()
    yield Fault.NEVER_ADMITTED, outputs.where(~known & (mapped(outputs.source, sure, 0) > 0))


class Numbers:
    """The numbers that an incarnation admitted, as stretches without a hole. A source counts on over all plans."""

    def __init__(self) -> None:
        self._stretches = [np.zeros((5, 0), np.int64)]  # source, epoch, first, last, place of the first

    def take(self, before: int, raw: Raw) -> None:
        """Records, with how many came before them."""
        places = np.flatnonzero(usable_records(raw) & (raw["kind"] == rec.ADMITTED))
        if not len(places):
            return
        source, epoch, seq = (raw[name][places].astype(np.int64) for name in LINEAGE)
        self._stretches.append(_stretches(np.stack([source, epoch, seq, seq, before + places])))

    def skipped(self) -> Ints:
        """Places of the tuples before which their source left numbers out."""
        source, epoch, first, last, place = _ordered(np.concatenate(self._stretches, axis=1))
        same = (source[1:] == source[:-1]) & (epoch[1:] == epoch[:-1])
        # A stretch may lie within another one, of numbers that came twice: the greatest so far counts.
        group = np.cumsum(np.concatenate(([0], ~same))) if len(source) else np.zeros(0, np.int64)
        upto = _running_most(group, last)
        found: Ints = place[1:][same & (first[1:] - upto[:-1] > 1)]
        return found


def _ordered(stretches: Ints) -> Ints:
    source, epoch, first, _, place = stretches
    found: Ints = stretches[:, np.lexsort((place, first, epoch, source))]
    return found


def _stretches(numbers: Ints) -> Ints:
    """Joins those that follow one another."""
    ordered = _ordered(numbers)
    source, epoch, first = ordered[:3]
    begins = np.ones(len(source), np.bool_)
    begins[1:] = (source[1:] != source[:-1]) | (epoch[1:] != epoch[:-1]) | (first[1:] - first[:-1] > 1)
    found = ordered[:, begins]
    found[3] = ordered[3, np.append(np.flatnonzero(begins)[1:], len(source)) - 1]
    return found


def _running_most(group: Ints, last: Ints) -> Ints:
    """The greatest so far, of each group."""
    found = last.copy()
    for at in np.flatnonzero(np.diff(group, prepend=-1) != 0).tolist():
        until = int(np.searchsorted(group, group[at], side="right"))
        found[at:until] = np.maximum.accumulate(found[at:until])
    return found


__all__ = ["Numbers", "compare"]
