"""The admitted-tuples ledger in plain Python: every arrival owes one end to each of its consumers.

This is the readable reference; spark_ledger.py says the same in columns; docs/explanation/report.md
has the rules in prose.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from coordinator.report.counts import POLICED, PROBLEMS_SHOWN, Counts, Outcome, Rank
from coordinator.report.facts.completeness import Trace
from coordinator.report.facts.plan_view import OUTPUT, PEER, RESULT, SIDE, UNIT, PlanView, consumer_id
from coordinator.report.facts.problems import Fault, Problem, grouped
from coordinator.report.facts.reader import Run
from coordinator.report.ledger.balance_sheet import Bucket, Ledger, Miss, Row
from coordinator.report.ledger.reconciliation import settle
from coordinator.report.witness.compare import compare
from protos import records as rec
from protos.records import Lost, Ran, Record, Shed


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
    admitted = [record for _, record in rows if type(record) is rec.Admitted]
    counts.admitted = len(admitted)
    counts.accounted = sum((r.source, r.epoch, r.seq) not in bad for r in admitted)
    counts.obligations = ledger.obligations
    counts.outcomes = dict(ledger.outcomes)
    counts.problem_count = len(ledger.problems)
    counts.contradictions = dict(Counter(map(grouped, ledger.problems)))
    counts.problems = sorted(ledger.problems)[:PROBLEMS_SHOWN]
    return ledger


def exits_of(record: Ran | Lost, plan: PlanView) -> Iterator[tuple[int, int, int]]:
    """(exit, stream, outputs) of a unit that the plan knows."""
    if record.unit in plan.units:
        streams = plan.units[record.unit].exits
        yield from zip(range(4), streams, rec.per_exit(record.outputs, len(streams)), strict=False)


# -- arrivals


def _arrival(ledger: Ledger, incarnation: int, record: Record) -> None:
    if type(record) is rec.Admitted:
        node, stream = ledger.plan.sources.get(record.source_id, (-1, 0))
        known = node == ledger.node(incarnation) and _owe(ledger, incarnation, record, stream, [(0, None)])
        if not known:
            ledger.problems.append(_problem(Fault.ADMITTED_NOWHERE, incarnation, record.source_id, record, 0))
    elif type(record) is rec.Received:
        stream, ordinal = record.stream, record.ordinal
        if not _owe(ledger, incarnation, record, stream, [(ordinal, None)]):
            ledger.problems.append(_problem(Fault.RECEIVED_NOWHERE, incarnation, stream, record, ordinal))
        lineage = (record.source, record.epoch, record.seq, ordinal)
        copies = ledger.received[(record.peer, ledger.node(incarnation), stream, *lineage)]
        copies[incarnation] = copies.get(incarnation, 0) + 1
    elif type(record) is Ran or (type(record) is Lost and record.in_unit):
        _outputs(ledger, incarnation, record)


def _outputs(ledger: Ledger, incarnation: int, record: Ran | Lost) -> None:
    outputs, ordinal, shed = record.outputs, record.ordinal, record.policed_results
    instance = ledger.instances[incarnation, record.unit, record.source, record.epoch, record.seq, ordinal]
    instance.outputs |= outputs
    if isinstance(record, Lost):
        instance.lost += 1
    elif not record.unfinished:
        instance.finals += 1
    if shed:  # each is owed an end of its own; which ordinals they had, the record does not say
        instance.shed += shed
        bucket = Bucket(incarnation, consumer_id(RESULT, record.unit), record.source, record.epoch, record.seq)
        ledger.obligations += shed
        cell = ledger.buckets[bucket][ordinal]
        cell.free += shed
        cell.parents.add(ordinal)
    unit = ledger.plan.units.get(record.unit)
    if unit is None:
        return
    if outputs >> (8 * len(unit.exits)):
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
    if type(record) is Ran:
        if not record.unfinished:
            _book(ledger, incarnation, record, consumer_id(UNIT, record.unit), record.ordinal)
    elif type(record) is Shed:
        _shed(ledger, incarnation, record)
    elif type(record) is Lost:
        _lost(ledger, incarnation, record)
    elif type(record) is rec.Merged:
        _book(ledger, incarnation, record, consumer_id(UNIT, record.unit), record.ordinal, Outcome.MERGED)
    elif type(record) is rec.Absorbed:
        side = consumer_id(SIDE, record.operator, record.stream)
        _book(ledger, incarnation, record, side, record.ordinal, Outcome.ABSORBED)
    elif type(record) is rec.Output:
        _book(ledger, incarnation, record, consumer_id(OUTPUT, record.output), record.ordinal, Outcome.DELIVERED)
        view = ledger.plan.outputs.get(record.output)
        if view is not None and (record.deadline_ns != view.deadline_ns or record.origin_lo_ns > record.origin_hi_ns):
            ledger.problems.append(_problem(Fault.ODD_OUTPUT, incarnation, record.output, record, record.ordinal))
    elif type(record) is rec.Sent:
        stream, ordinal = record.stream, record.ordinal
        _book(ledger, incarnation, record, consumer_id(PEER, record.peer, stream), ordinal)
        lineage = (record.source, record.epoch, record.seq, ordinal)
        copies = ledger.sent[(ledger.node(incarnation), record.peer, stream, *lineage)]
        copies[incarnation] = copies.get(incarnation, 0) + 1


def _shed(ledger: Ledger, incarnation: int, record: Shed) -> None:
    policy, ordinal = record.policy, record.ordinal
    rank = Rank.POLICED if policy in POLICED else Rank.SHED
    if record.of_arrival:
        consumers: tuple[int, ...] = ledger.plan.consumers.get((ledger.node(incarnation), record.stream), ())
    elif record.of_result:
        _book(ledger, incarnation, record, consumer_id(RESULT, record.unit), ordinal, Outcome.SHED, policy)
        given = ledger.plan.before if policy in rec.OWN_RESULT else ledger.plan.through
        kept = given.get((record.unit, record.operator), 0)
        word = sum(0xFF << 8 * exit_ for exit_ in range(4) if kept >> exit_ & 1)
        _miss(ledger, rank, incarnation, record, consumer_id(UNIT, record.unit), ordinal, word)
        return
    else:
        consumers = (consumer_id(UNIT, record.unit),)
    for consumer in consumers:
        _book(ledger, incarnation, record, consumer, ordinal, Outcome.SHED, policy)
        if policy not in rec.UNFUSED:
            _miss(ledger, rank, incarnation, record, consumer, ordinal)


def _lost(ledger: Ledger, incarnation: int, record: Lost) -> None:
    cause, ordinal, stream = record.cause, record.ordinal, record.stream
    if record.never_left:
        consumers: tuple[int, ...] = (consumer_id(PEER, record.peer, stream),)
    elif record.of_arrival:
        consumers = ledger.plan.consumers.get((ledger.node(incarnation), stream), ())
    else:
        consumers = (consumer_id(UNIT, record.unit),)
    for consumer in consumers:
        _book(ledger, incarnation, record, consumer, ordinal, Outcome.LOST, cause)
        if not record.in_unit:
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
