"""Which numbers of sources records name, in plain Python; as columns in spark_counts.py. Asked only of sources whose
node lacks records."""

from collections import defaultdict
from collections.abc import Iterable

from coordinator.report.counts import Came, Counts, Seen
from coordinator.report.facts.plan_view import PlanView
from coordinator.report.ledger.balance_sheet import Row
from coordinator.report.ledger.results import Key, instant
from protos import records as rec


def see(rows: Iterable[Row], answered: Iterable[Key], sources: frozenset[int], plan: PlanView, counts: Counts) -> None:
    """Fill `seen`, `known` and `came`. rows: of the ledgers' kinds; answered: expected results that have an answer."""
    known: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    for incarnation, r in rows:
        if r.source in sources:
            key = r.source, 0 if r.source in plan.windows else r.epoch
            seen = counts.seen.get(key, Seen(r.seq, r.seq))
            counts.seen[key] = Seen(min(seen.first, r.seq), max(seen.last, r.seq))
            if type(r) is rec.Admitted:
                for output in plan.outputs:
                    known[output, *key].add(r.seq)
            if type(r) is rec.Output and r.source in plan.windows:
                origin_ns = instant(r.origin_lo_ns)
                came = counts.came.get((incarnation, r.source), Came(origin_ns, origin_ns))
                first_ns, last_ns = min(came.first_ns, origin_ns), max(came.last_ns, origin_ns)
                counts.came[incarnation, r.source] = Came(first_ns, last_ns)
    for output, source, epoch, seq, _ in answered:
        if source in sources:
            known[output, source, 0 if source in plan.windows else epoch].add(seq)
    counts.known = {key: len(numbers) for key, numbers in known.items()}


__all__ = ["see"]
