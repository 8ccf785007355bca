"""Expected results in plain Python: met, late, shed, lost or undecidable, once per lineage key and output."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol

from coordinator.report.counts import INSTANT_LIMIT, QUANTILES, Above, Counts, Rank, nearest_rank
from coordinator.report.facts.merged_plans import number_of
from coordinator.report.facts.plan_view import UNIT, Reach, consumer_parts
from coordinator.report.ledger.balance_sheet import Ledger, Miss, Row
from coordinator.report.ledger.idle import Window
from coordinator.report.ledger.reconciliation import seen_filtering
from protos.latency import Latency, Verdict
from protos.records import Output

Key = tuple[int, int, int, int, int]  # output, source, epoch, seq, ordinal
Answer = tuple[int, Latency]  # rank and latency; the least answer of a key counts
ANY = Latency(INSTANT_LIMIT, -INSTANT_LIMIT)
NONE = Latency(0, 0)
RANKS = {Verdict.MET: Rank.MET, Verdict.LATE: Rank.LATE, Verdict.UNDECIDABLE: Rank.UNDECIDABLE}


def instant(value: int) -> int:
    """A recorded instant, clamped to what both engines can subtract."""
    return max(-INSTANT_LIMIT, min(INSTANT_LIMIT, value))


class ResultListener(Protocol):
    """Hears of each expected result: its output, its tuple (source, epoch, seq), and its latency; None: not
    delivered."""

    def __call__(
        self, output: int, lineage: tuple[int, int, int], ordinal: int, rank: Rank, latency: Latency | None
    ) -> None: ...


def expect(
    ledger: Ledger, rows: Iterable[Row], counts: Counts, idle: frozenset[Window] = frozenset(),
    told: ResultListener | None = None,
) -> dict[Key, int | None]:  # fmt: skip
    """Count the expected results into `counts`. Returns them with the latency's upper bound [ns]; None: not
    delivered. idle: windows that count as no answer of theirs."""
    answers: dict[Key, Answer] = {}

    def answer(key: Key, new: Answer) -> None:
        rank, latency = answers.get(key, new)
        if rank == new[0] == Rank.DELIVERED:  # the first of several copies came no earlier, and no later, than any did
            least_ns, most_ns = min(latency.least_ns, new[1].least_ns), min(latency.most_ns, new[1].most_ns)
            answers[key] = rank, Latency(most_ns, least_ns)
        else:
            answers[key] = min((rank, latency), new)

    for incarnation, r in rows:
        if type(r) is not Output:
            continue
        view = ledger.plan.outputs.get(r.output)
        if view is not None and view.node == ledger.node(incarnation):
            latency = Latency.between(instant(r.origin_lo_ns), instant(r.origin_hi_ns), instant(r.at_ns))
            if (r.source, r.epoch, r.seq) in ledger.doubted:
                latency = ANY
            elif (r.source, r.epoch, r.seq) in ledger.suspended:
                latency = latency._replace(most_ns=INSTANT_LIMIT)
            answer((view.id, r.source, r.epoch, r.seq, r.ordinal), (Rank.DELIVERED, latency))
    reach = Reach(ledger.plan, seen_filtering(ledger))
    for miss in ledger.misses:
        for output, sure in _missing(reach, miss).items():
            rank = miss.rank if sure or miss.rank == Rank.UNDECIDABLE else _UNSURE[miss.rank]
            answer((output, miss.source, miss.epoch, miss.seq, miss.ordinal), (rank, NONE))
    if told is not None:
        _tell(ledger, answers, told)
    return _count(ledger, answers, counts, idle)


def _tell(ledger: Ledger, answers: dict[Key, Answer], told: ResultListener) -> None:
    for (output, source, epoch, seq, ordinal), (answer, latency) in answers.items():
        lineage = (source, epoch, seq)
        if answer == Rank.DELIVERED:
            rank = RANKS[latency.verdict(ledger.plan.outputs[output].deadline_ns)]
            told(output, lineage, ordinal, rank, latency)
        else:
            told(output, lineage, ordinal, Rank(answer), None)


_UNSURE = {Rank.LOST: Rank.LOST_UNSURE, Rank.SHED: Rank.SHED_UNSURE, Rank.POLICED: Rank.POLICED_UNSURE}


def _missing(reach: Reach, miss: Miss) -> dict[int, bool]:
    """The outputs that a miss keeps from their result, less those behind exits that had given theirs."""
    kind, ref, _ = consumer_parts(miss.consumer)
    if kind != UNIT:
        return reach.consumer(miss.node, miss.consumer)
    return reach.after(ref, sum(1 << exit_ for exit_ in range(4) if miss.given_exits >> (8 * exit_) & 0xFF))


def _hold(ledger: Ledger, key: Key, lower: int, counts: Counts) -> None:
    """Against the bound of the plan that the tuple was admitted under."""
    output, source = key[:2]
    bound_ns = ledger.plan.bounds.get((output, number_of(source)))
    if bound_ns is not None and lower > bound_ns:
        n, most_ns = counts.above.get(output, Above(0, 0))
        counts.above[output] = Above(n + 1, max(most_ns, lower - bound_ns))


def _count(
    ledger: Ledger, answers: dict[Key, Answer], counts: Counts, idle: frozenset[Window]
) -> dict[Key, int | None]:
    results: dict[tuple[int, int], int] = defaultdict(int)
    bounds: dict[int, list[int]] = defaultdict(list)
    delivered: dict[Key, int | None] = dict.fromkeys(answers)
    windows: dict[tuple[int, ...], set[int]] = defaultdict(set)
    idle_met: dict[int, int] = defaultdict(int)
    for key, (answer, latency) in answers.items():
        output, rank = key[0], answer
        if rank == Rank.DELIVERED:
            rank = RANKS[latency.verdict(ledger.plan.outputs[output].deadline_ns)]
            bounds[output].append(latency.most_ns)
            delivered[key] = latency.most_ns
            _hold(ledger, key, latency.least_ns, counts)
        results[output, rank] += 1
        if key[1:4] in idle:
            idle_met[output] += rank == Rank.MET
        elif key[1] in ledger.plan.windows:
            windows[key[:4]].add(rank)
    counts.results, counts.idle_met = dict(results), {output: n for output, n in idle_met.items() if n}
    for (output, source, *_), ranks in windows.items():
        answered, on_time = counts.window_answers.get((output, source), (0, 0))
        counts.window_answers[output, source] = (answered + 1, on_time + (ranks == {Rank.MET}))
    for output, found in bounds.items():
        found.sort()
        n = counts.delivered[output] = len(found)
        asked = {nearest_rank(n, k) for k in range(1, QUANTILES + 1)}
        counts.ranks[output] = {rank: found[rank - 1] for rank in asked}
    return delivered
