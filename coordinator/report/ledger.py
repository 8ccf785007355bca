"""The admitted-tuples ledger in plain Python: every arrival owes one end to each of its consumers.

This is the readable reference; spark_ledger.py says the same in columns, and README.md has the rules in prose.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator.report.completeness import Status, Trace, incomplete_nodes, unknown_nodes
from coordinator.report.plan_view import OUTPUT, PEER, RESULT, SIDE, UNIT, PlanView, consumer_id, consumer_parts
from coordinator.report.problems import Fault, Problem
from coordinator.report.reader import Run
from coordinator.report.shape import LOST_LINK, LOST_RESTART, PROBLEMS_SHOWN, Counts, Outcome, Rank
from protos import records as rec
from protos.records import FLAG, NO_REF, Record

Row = tuple[int, Record]  # incarnation, record: of this plan and of a kind that the ledger reads


class Bucket(NamedTuple):
    """All that one consumer of one incarnation owes to one lineage; ordinals are counted inside."""

    incarnation: int
    consumer: int
    source: int
    epoch: int
    seq: int


@dataclass
class Cell:
    """Of one ordinal: arrivals with a recorded ordinal, arrivals that a RAN only counts, and ends."""

    fixed: int = 0
    free: int = 0
    ends: int = 0
    parents: set[int] = field(default_factory=set)  # ordinals of those RANs


@dataclass
class Instance:
    """What all RAN and LOST records of one task instance say together."""

    outputs: int = 0  # bytes of the outputs words, or-ed
    finals: int = 0
    lost: int = 0
    shed: int = 0  # results that policing shed


class Miss(NamedTuple):
    """A tuple that came to an early end: `reach` says which outputs miss it, and whether surely."""

    rank: Rank
    node: int
    consumer: int
    kept: int  # outputs word: exits that had given their output before
    source: int
    epoch: int
    seq: int
    ordinal: int


@dataclass
class Ledger:
    """The books of one run while they are written."""

    plan: PlanView
    traces: list[Trace]
    buckets: dict[Bucket, dict[int, Cell]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(Cell)))
    instances: dict[tuple[int, ...], Instance] = field(default_factory=lambda: defaultdict(Instance))
    # link and tuple -> records of each incarnation, of the sending and of the receiving node
    sent: dict[tuple[int, ...], dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    received: dict[tuple[int, ...], dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    outcomes: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    problems: list[Problem] = field(default_factory=list)
    misses: list[Miss] = field(default_factory=list)
    obligations: int = 0

    def node(self, incarnation: int) -> int:
        return self.traces[incarnation].incarnation.node


def keep(run: Run, traces: list[Trace], rows: Iterable[Row], counts: Counts) -> Ledger:
    """Write the ledger of a run and put its totals into `counts`."""
    rows = list(rows)
    ledger = Ledger(run.plan, traces)
    for row in rows:
        _arrival(ledger, *row)
        _end(ledger, *row)
    _settle_instances(ledger)
    _settle_buckets(ledger)
    _settle_links(ledger, run)
    bad = {(p.source, p.epoch, p.seq) for p in ledger.problems}
    admitted = [record for _, record in rows if record.kind == rec.ADMITTED]
    counts.admitted = len(admitted)
    counts.accounted = sum((r.source, r.epoch, r.seq) not in bad for r in admitted)
    counts.obligations = ledger.obligations
    counts.outcomes = dict(ledger.outcomes)
    counts.problem_count = len(ledger.problems)
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
    return record.ref != NO_REF and (record.w1 == rec.POLICY_SELECTIVITY or record.w4 != 0)


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
    if record.ref == NO_REF:  # on admission: none of the stream's consumers here got it
        consumers: tuple[int, ...] = ledger.plan.consumers.get((ledger.node(incarnation), record.w3), ())
    elif of_result(record):
        _book(ledger, incarnation, record, consumer_id(RESULT, record.ref), ordinal, Outcome.SHED, policy)
        given = ledger.plan.before if policy == rec.POLICY_SELECTIVITY else ledger.plan.through
        kept = given.get((record.ref, record.w4), 0)
        word = sum(0xFF << 8 * exit_ for exit_ in range(4) if kept >> exit_ & 1)
        _miss(ledger, Rank.SHED, incarnation, record, consumer_id(UNIT, record.ref), ordinal, word)
        return
    else:
        consumers = (consumer_id(UNIT, record.ref),)
    for consumer in consumers:
        _book(ledger, incarnation, record, consumer, ordinal, Outcome.SHED, policy)
        _miss(ledger, Rank.SHED, incarnation, record, consumer, ordinal)


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


# -- settling


def _settle_instances(ledger: Ledger) -> None:
    """An instance consumed its tuple or filtered it; one that failed loses what its exits had not given yet."""
    for (incarnation, unit, source, epoch, seq, ordinal), instance in ledger.instances.items():
        view = ledger.plan.units.get(unit)
        filtered = not instance.outputs and not instance.shed and view is not None and bool(view.exits)
        if instance.finals:
            ledger.outcomes[Outcome.FILTERED if filtered else Outcome.CONSUMED, 0] += instance.finals
        if instance.lost:
            node, consumer = ledger.node(incarnation), consumer_id(UNIT, unit)
            ledger.misses.append(Miss(Rank.LOST, node, consumer, instance.outputs, source, epoch, seq, ordinal))


def seen_filtering(ledger: Ledger) -> set[tuple[int, int]]:
    """(unit, exit) pairs of which an instance that ended well gave nothing."""
    seen: set[tuple[int, int]] = set()
    for (_, unit, *_), instance in ledger.instances.items():
        if instance.finals and not instance.lost and not instance.shed and unit in ledger.plan.units:
            exits = range(len(ledger.plan.units[unit].exits))
            seen.update((unit, e) for e in exits if not instance.outputs >> (8 * e) & 0xFF)
    return seen


def _settle_buckets(ledger: Ledger) -> None:
    excess: list[Problem] = []
    explained: set[Bucket] = set()
    for bucket, cells in ledger.buckets.items():
        opened, unexplained = _match(cells)
        for ordinal, n in opened:
            _open(ledger, bucket, ordinal, n)
        if opened:
            first, total = min(opened)[0], sum(n for _, n in opened)
            _open_problem(ledger, Problem(Fault.OPEN, *bucket, first, total))
            explained.update(_half_done(ledger, bucket))
        if unexplained:
            first, total = min(unexplained)[0], sum(n for _, n in unexplained)
            excess.append(Problem(Fault.NO_ARRIVAL, *bucket, first, total))
    for problem in excess:
        status = ledger.traces[problem.incarnation].status
        if status in (Status.CLEAN, Status.DAMAGED) or (
            status is Status.CRASHED and Bucket(*problem[1:6]) not in explained
        ):
            ledger.problems.append(problem)


def _match(cells: dict[int, Cell]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pair arrivals with ends, same ordinal first. Returns ((ordinal, n) still open, (ordinal, n) ends too many).

    What a RAN only counted may have had any ordinal that descends from the RAN's own, so an end that is left over
    takes such an arrival that is left over, the lowest ordinals first.
    """
    fixed, free, strays = [], [], []
    parents: set[int] = set()
    for ordinal in sorted(cells):
        cell = cells[ordinal]
        left = max(cell.ends - cell.fixed, 0)
        fixed.append((ordinal, max(cell.fixed - cell.ends, 0)))
        free.append((ordinal, max(cell.free - left, 0)))
        strays.append((ordinal, max(left - cell.free, 0)))
        if cell.free > left:
            parents |= cell.parents
    related = [(o, n) for o, n in strays if n and parents & {o, o >> 8, o >> 16, o >> 24, 0}]
    foreign = [(o, n) for o, n in strays if n and not parents & {o, o >> 8, o >> 16, o >> 24, 0}]
    renamed, free = _take(free, sum(n for _, n in related))
    _, related = _take(related, renamed)
    opened: dict[int, int] = defaultdict(int)
    for ordinal, n in (*fixed, *free):
        opened[ordinal] += n
    return [(o, n) for o, n in sorted(opened.items()) if n], related + foreign


def _take(cells: list[tuple[int, int]], n: int) -> tuple[int, list[tuple[int, int]]]:
    """Take up to n from the first cells. Returns (how many were taken, what is left)."""
    taken, left = 0, []
    for ordinal, held in cells:
        some = min(held, n - taken)
        taken += some
        if held > some:
            left.append((ordinal, held - some))
    return taken, left


def _open(ledger: Ledger, bucket: Bucket, ordinal: int, n: int) -> None:
    """An obligation without an end: what that means depends on how far the trace can be trusted."""
    status = ledger.traces[bucket.incarnation].status
    rank = Rank.UNDECIDABLE
    if status is Status.CRASHED:
        ledger.outcomes[Outcome.LOST, LOST_RESTART] += n
        rank = Rank.LOST
    elif status is Status.UNKNOWN:
        ledger.outcomes[Outcome.UNDECIDABLE, 0] += n
    else:
        ledger.outcomes[Outcome.OPEN, 0] += n
    node = ledger.node(bucket.incarnation)
    lineage = (bucket.source, bucket.epoch, bucket.seq, ordinal)
    ledger.misses.append(Miss(rank, node, bucket.consumer, 0, *lineage))


def _open_problem(ledger: Ledger, problem: Problem) -> None:
    if ledger.traces[problem.incarnation].status in (Status.CLEAN, Status.DAMAGED):
        ledger.problems.append(problem)


def _half_done(ledger: Ledger, bucket: Bucket) -> Iterator[Bucket]:
    """What a unit that was running at the crash may have given out already, before its RAN record was written."""
    kind, ref, _ = consumer_parts(bucket.consumer)
    node = ledger.node(bucket.incarnation)
    if kind == UNIT and ref in ledger.plan.units and ledger.plan.units[ref].node == node:
        yield bucket._replace(consumer=consumer_id(RESULT, ref))
        for stream in ledger.plan.units[ref].exits:
            for consumer in ledger.plan.consumers.get((node, stream), ()):
                yield bucket._replace(consumer=consumer)


def _settle_links(ledger: Ledger, run: Run) -> None:
    """SENT without RECEIVED is lost where the peer's traces prove it; RECEIVED without SENT is a contradiction.

    An incarnation may send again what the one before it sent, and the peer takes it once: so each is compared alone.
    """
    incomplete, unknown = incomplete_nodes(run, ledger.traces), unknown_nodes(run, ledger.traces)
    for key, sends in ledger.sent.items():
        node, peer, stream, source, epoch, seq, ordinal = key
        arrived = sum(ledger.received.get(key, {}).values())
        gone = sum(max(0, n - arrived) for n in sends.values())
        here = sum(sends.values()) - gone
        if here:
            ledger.outcomes[Outcome.SENT, 0] += here
        if gone:
            proven = peer in ledger.plan.nodes and peer not in incomplete
            outcome = (Outcome.LOST, LOST_LINK) if proven else (Outcome.UNDECIDABLE, 0)
            ledger.outcomes[outcome] += gone
            rank = Rank.LOST if proven else Rank.UNDECIDABLE
            consumer = consumer_id(PEER, peer, stream)
            ledger.misses.append(Miss(rank, node, consumer, 0, source, epoch, seq, ordinal))
    for key, copies in ledger.received.items():
        peer, _, stream, source, epoch, seq, ordinal = key
        if peer in unknown:
            continue
        for incarnation, n in copies.items():
            extra = n - sum(ledger.sent.get(key, {}).values())
            if extra > 0:
                problem = Problem(Fault.NOT_SENT, incarnation, stream, source, epoch, seq, ordinal, extra)
                ledger.problems.append(problem)
