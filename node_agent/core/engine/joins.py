"""Joins by lineage: complete results, and results that are given up.

A join gives one result per lineage, when every port has delivered a tuple. A port whose branch was filtered, shed or
lost delivers an absence instead; then there is no result. A lineage that comes twice, by way of a union, waits for
partners of its own, in a row.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from node_agent.core.lineage import Lineage
from node_agent.core.model import Join, Unit, Waiting
from node_agent.core.punctuation import ABSENCE, Punctuation, Removal

GONE = Removal(0)  # as a payload: that branch was shed or lost


class JoinEnd(NamedTuple):
    """A result that no longer waits: complete, all ports have delivered, or given up."""

    unit: Unit
    entry: Waiting
    complete: bool


def arrive(at_ns: int, join: Join, port: int, lineage: Lineage, payload: object) -> Sequence[JoinEnd]:
    """A tuple, ABSENT or GONE at a port of a join. Returns what no longer waits, in order: the oldest entry where there
    were too many, a tuple that is one too many of its lineage, and the result that is complete."""
    ends: list[JoinEnd] = []
    key = lineage[:4]
    entry = join.waiting.get(key)
    if entry is None:
        if len(join.waiting) >= Join.LIMIT:
            ends += _given_up(join, join.waiting.pop(next(iter(join.waiting))))
        entry = join.waiting[key] = Waiting(join.ports, at_ns + join.wait_ns)
    absent = payload is ABSENCE or payload is GONE
    row = 0
    while entry.taken >> port & 1:
        row += 1
        if row == Join.IN_A_ROW:
            return ends if absent else [*ends, JoinEnd(join.unit, _single_entry(lineage), complete=False)]
        if entry.after is None:
            entry.after = Waiting(join.ports, at_ns + join.wait_ns)
        entry = entry.after
    entry.taken |= 1 << port
    if absent:
        entry.absent |= Waiting.FILTERED if payload is ABSENCE else Waiting.REMOVED
        entry.punctuation = lineage
    else:
        entry.lineages[port], entry.values[port] = lineage, payload
    if entry.taken == (1 << join.ports) - 1:  # the first in its row: ports fill in the order of arrival
        del join.waiting[key]
        if entry.after is not None:
            join.waiting[key] = entry.after
        ends.append(JoinEnd(join.unit, entry, complete=True))
    return ends


def expired(at_ns: int, join: Join) -> Iterator[JoinEnd]:
    """Results whose contributors have not come in time, the oldest first."""
    while join.waiting:
        key = next(iter(join.waiting))
        if join.waiting[key].expires_ns > at_ns:
            return
        yield from _given_up(join, join.waiting.pop(key))


def stopped(join: Join) -> list[JoinEnd]:
    """The plan is unloaded: everything that waits is given up."""
    entries = list(join.waiting.values())
    join.waiting.clear()
    return [end for entry in entries for end in _given_up(join, entry)]


def all_absent(unit: Unit, lineage: Lineage) -> bool:
    """Count an absence at a union: it gives nothing only when none of its inputs has anything to give."""
    key, absences = lineage[:4], unit.absences
    count = absences.pop(key, 0) + 1
    if count == unit.inputs:
        return True
    if len(absences) >= Unit.LIMIT:
        del absences[next(iter(absences))]
    absences[key] = count
    return False


def numbers(lineage: Lineage, punctuation: Punctuation) -> list[Lineage]:
    """Of a removed range: each of its numbers, the latest ones if it is longer than a join remembers."""
    if not isinstance(punctuation, Removal):
        return []
    source, epoch, last, ordinal, lo_ns, hi_ns = lineage
    first = max(punctuation.first, last + 1 - Join.LIMIT)
    return [(source, epoch, number, ordinal, lo_ns, hi_ns) for number in range(first, last + 1)]


def _given_up(join: Join, entry: Waiting) -> Iterator[JoinEnd]:
    """It, and what waits behind it for the same lineage."""
    row: Waiting | None = entry
    while row is not None:
        yield JoinEnd(join.unit, row, complete=False)
        row = row.after


def _single_entry(lineage: Lineage) -> Waiting:
    entry = Waiting(1, 0)
    entry.lineages[0] = lineage
    return entry


__all__ = ["GONE", "JoinEnd", "all_absent", "arrive", "expired", "numbers", "stopped"]
