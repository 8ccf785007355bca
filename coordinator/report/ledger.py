"""The admitted-tuples ledger in plain Python: every arrival owes one end to each of its consumers.

This is the readable reference; spark_ledger.py says the same in columns; docs/explanation/report.md
has the rules in prose.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from coordinator.report.books import Bucket, Ledger, Miss, Row
from coordinator.report.completeness import Trace
from coordinator.report.plan_view import OUTPUT, PEER, RESULT, SIDE, UNIT, PlanView, consumer_id
from coordinator.report.problems import Fault, Problem, grouped
from coordinator.report.reader import Run
from coordinator.report.settling import settle
from coordinator.report.shape import POLICED, PROBLEMS_SHOWN, Counts, Outcome, Rank
from coordinator.report.witness.compare import compare
from protos import records as rec
from protos.records import FLAG, NO_REF, Record


def keep(run: Run, traces: list[Trace], rows: Iterable[Row], counts: Counts) -> Ledger:
    """Write the ledger of a run and put its totals into `counts`."""
    rows = list(rows)
    ledger = Ledger(run.plan, traces)
    for row in rows:
        _arrival(ledger, *row)
        _end(ledger, *row)
    settle(ledger, run)
    problems, ledger.suspended = compare(run.plan, traces)
    ledger.problems += problems
    bad = ledger.doubted
    admitted = [record for _, record in rows if record.kind == rec.ADMITTED]
    counts.admitted = len(admitted)
    counts.accounted = sum((r.source, r.epoch, r.seq) not in bad for r in admitted)
    counts.obligations = ledger.obligations
    counts.outcomes = dict(ledger.outcomes)
    counts.problem_count = len(ledger.problems)
    counts.contradictions = dict(Counter(map(grouped, ledger.problems)))
    counts.problems = sorted(ledger.problems)[:PROBLEMS_SHOWN]
    return ledger


def exits_of(record: Record, plan: PlanView) -> Iterator[tuple[int, int, int]]:
    """(exit, stream, outputs) of a RAN or LOST record of a unit that the plan knows."""
    if record.ref in plan.units:
        streams = plan.units[record.ref].exits
        yield from zip(range(4), streams, rec.ran_outputs(record.last, len(streams)), strict=False)


def surplus_of(record: Record) -> int:
    """Results that policing shed, from a RAN or LOST record of a unit."""
    return rec.ran_surplus(record.w4) if record.kind == rec.RAN else record.w3 & rec.SURPLUS_MOST


def of_result(record: Record) -> bool:
    """Whether a SHED is about a result of an operator in the unit, not about the unit's tuple."""
    return record.ref != NO_REF and (record.w1 in rec.OWN_RESULT or record.w4 != 0)


def instance_key(incarnation: int, record: Record) -> tuple[int, ...]:
    """Which task instance a RAN or LOST record belongs to."""
    ordinal = rec.ran_ordinal(record.last) if record.kind == rec.RAN else record.w2
    return incarnation, record.ref, record.source, record.epoch, record.seq, ordinal


# -- arrivals


def _arrival(ledger: Ledger, incarnation: int, record: Record) -> None:
    if record.kind == rec.ADMITTED:
        node, stream = ledger.plan.sources.get(record.ref, (-1, 0))
        known = node == ledger.node(incarnation) and _owe(ledger, incarnation, record, stream, [(0, None)])
        if not known:
            ledger.problems.append(_problem(Fault.ADMITTED_NOWHERE, incarnation, record.ref, record, 0))
    elif record.kind == rec.RECEIVED:
        stream, ordinal = record.w3, record.w4
        if not _owe(ledger, incarnation, record, stream, [(ordinal, None)]):
            ledger.problems.append(_problem(Fault.RECEIVED_NOWHERE, incarnation, stream, record, ordinal))
        lineage = (record.source, record.epoch, record.seq, ordinal)
        copies = ledger.received[(record.ref, ledger.node(incarnation), stream, *lineage)]
        copies[incarnation] = copies.get(incarnation, 0) + 1
    elif record.kind == rec.RAN or (record.kind == rec.LOST and not record.flags & FLAG and record.ref != NO_REF):
        _outputs(ledger, incarnation, record)


def _outputs(ledger: Ledger, incarnation: int, record: Record) -> None:
    key = instance_key(incarnation, record)
    ordinal = key[-1]
    instance = ledger.instances[key]
    instance.outputs |= record.last & 0xFFFFFFFF
    if record.kind == rec.LOST:
        instance.lost += 1
    elif not record.flags & FLAG:
        instance.finals += 1
    shed = surplus_of(record)
    if shed:  # each is owed an end of its own; which ordinals they had, the record does not say
        instance.shed += shed
        bucket = Bucket(incarnation, consumer_id(RESULT, record.ref), record.source, record.epoch, record.seq)
        ledger.obligations += shed
        cell = ledger.buckets[bucket][ordinal]
        cell.free += shed
        cell.parents.add(ordinal)
    unit = ledger.plan.units.get(record.ref)
    if unit is None:
        return
    if (record.last & 0xFFFFFFFF) >> (8 * len(unit.exits)):
        ledger.problems.append(_problem(Fault.ODD_EXIT, incarnation, unit.id, record, ordinal))
    for _, stream, n in exits_of(record, ledger.plan):
        # The record counts outputs, it does not name them: one keeps the ordinal, several are children of it.
        named = [ordinal] if n == 1 else [ordinal * 256 + i for i in range(1, n + 1)]
        _owe(ledger, incarnation, record, stream, [(each, ordinal) for each in named])


def _owe(ledger: Ledger, incarnation: int, record: Record, stream: int, arrivals: list[tuple[int, int | None]]) -> bool:
    """Book arrivals (ordinal, parent's ordinal where only counted) on a stream. False: nobody consumes it here."""
    consumers = ledger.plan.consumers.get((ledger.node(incarnation), stream), ())
    for consumer in consumers:
        bucket = Bucket(incarnation, consumer, record.source, record.epoch, record.seq)
        for ordinal, parent in arrivals:
            ledger.obligations += 1
            cell = ledger.buckets[bucket][ordinal]
            if parent is None:
                cell.fixed += 1
            else:
                cell.free += 1
                cell.parents.add(parent)
    return bool(consumers)


# -- ends


def _end(ledger: Ledger, incarnation: int, record: Record) -> None:
    kind, flagged = record.kind, bool(record.flags & FLAG)
    if kind == rec.RAN and not flagged:
        _book(ledger, incarnation, record, consumer_id(UNIT, record.ref), rec.ran_ordinal(record.last))
    elif kind == rec.SHED:
        _shed(ledger, incarnation, record)
    elif kind == rec.LOST:
        _lost(ledger, incarnation, record, flagged)
    elif kind == rec.MERGED:
        _book(ledger, incarnation, record, consumer_id(UNIT, record.ref), record.w3, Outcome.MERGED)
    elif kind == rec.ABSORBED:
        _book(ledger, incarnation, record, consumer_id(SIDE, record.ref, record.w1), record.w2, Outcome.ABSORBED)
    elif kind == rec.OUTPUT:
        _book(ledger, incarnation, record, consumer_id(OUTPUT, record.ref), record.w4, Outcome.DELIVERED)
        view = ledger.plan.outputs.get(record.ref)
        if view is not None and (record.w3 != view.deadline_ns or record.w1 > record.w2):
            ledger.problems.append(_problem(Fault.ODD_OUTPUT, incarnation, record.ref, record, record.w4))
    elif kind == rec.SENT:
        stream, ordinal = record.w2, record.w3
        _book(ledger, incarnation, record, consumer_id(PEER, record.ref, stream), ordinal)
        lineage = (record.source, record.epoch, record.seq, ordinal)
        copies = ledger.sent[(ledger.node(incarnation), record.ref, stream, *lineage)]
        copies[incarnation] = copies.get(incarnation, 0) + 1


def _shed(ledger: Ledger, incarnation: int, record: Record) -> None:
    policy, ordinal = record.w1, record.w2
    rank = Rank.POLICED if policy in POLICED else Rank.SHED
    if record.ref == NO_REF:  # on admission: none of the stream's consumers here got it
        consumers: tuple[int, ...] = ledger.plan.consumers.get((ledger.node(incarnation), record.w3), ())
    elif of_result(record):
        _book(ledger, incarnation, record, consumer_id(RESULT, record.ref), ordinal, Outcome.SHED, policy)
        given = ledger.plan.before if policy in rec.OWN_RESULT else ledger.plan.through
        kept = given.get((record.ref, record.w4), 0)
        word = sum(0xFF << 8 * exit_ for exit_ in range(4) if kept >> exit_ & 1)
        _miss(ledger, rank, incarnation, record, consumer_id(UNIT, record.ref), ordinal, word)
        return
    else:
        consumers = (consumer_id(UNIT, record.ref),)
    for consumer in consumers:
        _book(ledger, incarnation, record, consumer, ordinal, Outcome.SHED, policy)
        _miss(ledger, rank, incarnation, record, consumer, ordinal)


def _lost(ledger: Ledger, incarnation: int, record: Record, flagged: bool) -> None:
    cause, ordinal, stream = record.w1, record.w2, record.w3
    if flagged:  # never left for the peer
        consumers: tuple[int, ...] = (consumer_id(PEER, record.ref, stream),)
    elif record.ref == NO_REF:  # none of the stream's consumers here got it
        consumers = ledger.plan.consumers.get((ledger.node(incarnation), stream), ())
    else:
        consumers = (consumer_id(UNIT, record.ref),)
    for consumer in consumers:
        _book(ledger, incarnation, record, consumer, ordinal, Outcome.LOST, cause)
        if flagged or record.ref == NO_REF:
            _miss(ledger, Rank.LOST, incarnation, record, consumer, ordinal)


def _book(
    ledger: Ledger, incarnation: int, record: Record, consumer: int, ordinal: int,
    outcome: Outcome | None = None, cause: int = 0,
) -> None:  # fmt: skip
    bucket = Bucket(incarnation, consumer, record.source, record.epoch, record.seq)
    ledger.buckets[bucket][ordinal].ends += 1
    if outcome is not None:  # RAN and SENT are judged later, when all their records are known
        ledger.outcomes[outcome, cause] += 1


def _miss(
    ledger: Ledger, rank: Rank, incarnation: int, record: Record, consumer: int, ordinal: int, kept: int = 0
) -> None:
    node = ledger.node(incarnation)
    ledger.misses.append(Miss(rank, node, consumer, kept, record.source, record.epoch, record.seq, ordinal))


def _problem(fault: Fault, incarnation: int, ref: int, record: Record, ordinal: int) -> Problem:
    return Problem(fault, incarnation, ref, record.source, record.epoch, record.seq, ordinal, 1)
