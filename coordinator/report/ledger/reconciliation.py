"""Reconciles the ledger: tuples that never ended, ends without an arrival, links and instances."""

from collections import defaultdict
from collections.abc import Iterator

from coordinator.report.counts import LOST_LINK, LOST_RESTART, Outcome, Rank
from coordinator.report.facts.completeness import Status, incomplete_nodes, unknown_nodes
from coordinator.report.facts.plan_view import PEER, RESULT, UNIT, consumer_id, consumer_parts
from coordinator.report.facts.problems import Fault, Problem
from coordinator.report.facts.reader import Run
from coordinator.report.ledger.balance_sheet import Bucket, Cell, Ledger, Miss


def settle(ledger: Ledger, run: Run) -> None:
    """Instances, buckets and links, once all records are booked."""
    _settle_instances(ledger)
    _settle_buckets(ledger)
    _settle_links(ledger, run)


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
