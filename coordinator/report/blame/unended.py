"""Results that went with a runtime, or on a link: no record tells of their end, and none can be missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from coordinator.report.blame.missed import DTYPE, LINK, LOST, RESTART, Looked, Rows
from coordinator.report.blame.near import Near, NearRecord
from coordinator.report.blame.record_pieces import BEYOND_NS
from coordinator.report.facts.plan_view import (
    OUTPUT,
    PEER,
    RESULT,
    SIDE,
    UNIT,
    PlanView,
    Reach,
    consumer_id,
    consumer_parts,
)
from coordinator.report.facts.reader import Incarnation, Run
from protos import records as rec

JUST_NS = 5_000_000  # what had left so shortly before the last tuple that came may come behind it
Owed = Counter[tuple[int, int]]  # (consumer, ordinal)


def unended(run: Run, looked: Looked, near: Near, crashed: frozenset[int], whole: frozenset[int]) -> Rows:
    """One row for each result that was lost so. crashed, whole: as of `look`."""
    plan = run.plan
    breaks = list(_breaks(run, looked, crashed))
    reach, found = Reach(plan, looked.filtering), list[tuple[int, ...]]()
    for number, codes in looked.open.items():
        for code in codes.tolist():
            mine = [each for each in near.get(code, ()) if each.incarnation.number == number]
            found += _restarted(plan, reach, mine)
    for code in looked.unreceived.tolist():
        found += _on_links(reach, near.get(code, ()), whole, breaks)
    return np.array(found, DTYPE)


def _restarted(plan: PlanView, reach: Reach, mine: list[NearRecord]) -> Iterator[tuple[int, ...]]:
    """What came to an incarnation that crashed, and did not end there."""
    if not mine:
        return
    node = mine[0].incarnation.node
    owed: Owed = Counter()
    for each in mine:
        _book(plan, node, each.record, owed)
    came: dict[int, int] = defaultdict(int)
    for (consumer, _), n in owed.items():
        came[consumer] += n
    last = mine[-1]
    for (consumer, ordinal), left in sorted(owed.items()):
        n = min(left, came[consumer])
        came[consumer] -= max(0, n)
        kind, ref, _ = consumer_parts(consumer)
        for output, sure in reach.consumer(node, consumer).items() if n > 0 and kind != RESULT else ():
            if sure:
                yield _row(last, output, ordinal, RESTART, unit=ref if kind == UNIT else -1)


def _book(plan: PlanView, node: int, record: rec.Record, owed: Owed) -> None:
    for stream, ordinals in _arrivals(plan, record):
        for consumer in plan.consumers.get((node, stream), ()):
            owed.update((consumer, ordinal) for ordinal in ordinals)
    for consumer, ordinal in _ends(plan, node, record):
        owed[consumer, ordinal] -= 1


def _arrivals(plan: PlanView, record: rec.Record) -> Iterator[tuple[int, list[int]]]:
    """Streams, and the ordinals of what came on them."""
    if isinstance(record, rec.Admitted) and record.source_id in plan.sources:
        yield plan.sources[record.source_id][1], [0]
    elif isinstance(record, rec.Received):
        yield record.stream, [record.ordinal]
    elif isinstance(record, rec.Ran) or (isinstance(record, rec.Lost) and record.in_unit):
        unit, ordinal = plan.units.get(record.unit), record.ordinal
        exits = () if unit is None else unit.exits
        for stream, n in zip(exits, rec.per_exit(record.outputs, len(exits)), strict=True):
            yield stream, [ordinal] if n == 1 else [ordinal * 256 + i for i in range(1, n + 1)]


def _ends(plan: PlanView, node: int, record: rec.Record) -> Iterator[tuple[int, int]]:
    if isinstance(record, rec.Ran):
        if not record.unfinished:
            yield consumer_id(UNIT, record.unit), record.ordinal
    elif isinstance(record, rec.Shed | rec.Lost):
        if record.of_arrival:
            yield from ((each, record.ordinal) for each in plan.consumers.get((node, record.stream), ()))
        elif isinstance(record, rec.Lost) and record.never_left:
            yield consumer_id(PEER, record.peer, record.stream), record.ordinal
        elif isinstance(record, rec.Lost) or not record.of_result:
            yield consumer_id(UNIT, record.unit), record.ordinal
    elif isinstance(record, rec.Merged):
        yield consumer_id(UNIT, record.unit), record.ordinal
    elif isinstance(record, rec.Absorbed):
        yield consumer_id(SIDE, record.operator, record.stream), record.ordinal
    elif isinstance(record, rec.Output):
        yield consumer_id(OUTPUT, record.output), record.ordinal
    elif isinstance(record, rec.Sent):
        yield consumer_id(PEER, record.peer, record.stream), record.ordinal


class Break(NamedTuple):
    """A runtime had ended, and the next one did not listen yet: between these instants of a sender's clock."""

    sender: int
    incarnation: Incarnation
    from_ns: int
    until_ns: int


def _breaks(run: Run, looked: Looked, crashed: frozenset[int]) -> Iterator[Break]:
    for each in run.incarnations:
        for peer in run.plan.nodes if each.number in crashed else ():
            last = looked.heard.get((each.number, peer), (0, -BEYOND_NS))[1]
            later = [
                looked.heard[next_.number, peer][0]
                for next_ in run.incarnations
                if next_.node == each.node and (next_.number, peer) in looked.heard and next_.number != each.number
            ]
            until_ns = min((first for first in later if first > last), default=BEYOND_NS)
            yield Break(peer, each, last - JUST_NS, until_ns)


def _on_links(
    reach: Reach, mine: Iterable[NearRecord], whole: frozenset[int], breaks: Sequence[Break]
) -> Iterator[tuple[int, ...]]:
    """What left, and never came: it was lost on the way, or with the runtime that it came to."""
    mine = list(mine)
    came = {
        (each.record.peer, each.incarnation.node, each.record.stream, each.record.ordinal)
        for each in mine
        if isinstance(each.record, rec.Received)
    }
    for each in mine:
        record, node = each.record, each.incarnation.node
        if not isinstance(record, rec.Sent) or record.peer not in whole:
            continue
        if (node, record.peer, record.stream, record.ordinal) not in came:
            for output, sure in reach.stream(record.peer, record.stream).items():
                if sure:
                    broken = _broken(breaks, each, record)
                    why, told = (LINK, each) if broken is None else (RESTART, NearRecord(broken, 0, record))
                    yield _row(told, output, record.ordinal, why, stream=record.stream, peer=record.peer)


def _broken(breaks: Sequence[Break], told: NearRecord, sent: rec.Sent) -> Incarnation | None:
    """The runtime that it came to, if that ended then."""
    for each in breaks:
        here = each.sender == told.incarnation.node and each.incarnation.node == sent.peer
        if here and each.from_ns <= sent.at_ns <= each.until_ns:
            return each.incarnation
    return None


def _row(
    told: NearRecord, output: int, ordinal: int, why: int, unit: int = -1, stream: int = -1, peer: int = -1
) -> tuple[int, ...]:
    record = told.record
    at_ns = record.end_ns if isinstance(record, rec.Ran) else record.at_ns
    head = (output, record.source, record.epoch, record.seq, ordinal, LOST, why, told.incarnation.number, at_ns)
    return (*head, 0, 0, unit, stream, -1, peer, 0)
