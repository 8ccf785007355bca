"""[Q] theorems 3, 4 and 5 for comparison, corrected, beside the sharper test with service curves.

Corrected: demand is a whole number of tasks (the printed (3) has no floor and rejects almost everything); U < 1 is
required first, and the check runs to a finite horizon H = (D_max + sum C_i sigma_i) / (1 - U) (the printed one runs
over all t >= 0); in (8) the supremum runs over the sharing queries, j <= M, not j <= N.

floor((alpha_i (x) beta_i*)(t)) is the number of QoS deadlines by t where the stream is as dense as its curve allows,
so the tests count deadlines: no convolution is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile
from math import ceil

from coordinator.calculus.curves import Spanned, Time
from coordinator.calculus.service import Service, deadlines
from coordinator.errors import MistakeError


@dataclass(frozen=True)
class Shifted:
    """Theorem 3: beta*(t) = beta(t + D_max) makes every deadline earlier by the longest task, which then may block."""

    service: Service
    earlier: Time

    @property
    def rate(self) -> Fraction | None:
        """Unchanged."""
        return self.service.rate

    def inverse(self, k: int) -> Time:
        """Not before the arrival."""
        return max(Fraction(0), self.service.inverse(k) - self.earlier)


@dataclass(frozen=True)
class QosQuery:
    """(alpha, beta) and the worst cost of a task: [Q] definition 5."""

    name: str
    arrivals: Spanned
    service: Service
    cost: Time

    def __post_init__(self) -> None:
        if self.cost <= 0:
            raise MistakeError("not_above_zero", f"{self.name}: a cost of {self.cost} says that nothing runs")

    @property
    def rate(self) -> Fraction:
        """min(arrivals, service): what has to be done in the long run."""
        return min(self.arrivals.rate, self.arrivals.rate if self.service.rate is None else self.service.rate)

    @property
    def unbounded(self) -> bool:
        """More arrives than has to be served: the deadlines hold, but delay and queue grow without end."""
        return self.service.rate is not None and self.arrivals.rate > self.service.rate

    def due(self, horizon: Time, service: Service | None = None) -> list[Time]:
        """All QoS deadlines up to the horizon, the stream being as dense as it may."""
        spans = (self.arrivals.span(n) for n in range(1, self.arrivals.count(horizon) + 1))
        return list(takewhile(lambda due: due <= horizon, deadlines(spans, service or self.service)))


@dataclass(frozen=True)
class Answer:
    """Whether a test admits the queries; if not, the first t at which more than t is demanded (None: U >= 1)."""

    admitted: bool
    utilisation: Fraction
    t: Time | None = None
    demand: Time | None = None


def theorem4(queries: Sequence[QosQuery]) -> Answer:
    """(3): sum floor(alpha_i (x) beta_i*)(t) D_i <= t."""
    return theorem5(queries, 0, 0)


def theorem5(queries: Sequence[QosQuery], sharing: int, shared: Time) -> Answer:
    """(8): as theorem 4, the first `sharing` queries having a branch of cost `shared` in common, run once per tuple."""
    longest = max(query.cost for query in queries)

    def due(query: QosQuery, horizon: Time) -> list[Time]:
        return query.due(horizon, Shifted(query.service, longest))

    return _search(queries, sharing, shared, due, {})


def sharper(
    queries: Sequence[QosQuery], sharing: int = 0, shared: Time = 0, always_block: Sequence[str] = ()
) -> Answer:
    """For every u: sum gamma_i(deadlines by u) + max {C_j : none of j's is due by u} <= u; see `demand`.

    `always_block`: queries taken to block at any u, for comparison (a stream with more arrivals than service has jobs
    with ever later deadlines; but while one of those runs, no other of the same stream is due).
    """
    blocks = {query.name: query.name in always_block for query in queries}
    return _search(queries, sharing, shared, QosQuery.due, blocks)


def _horizon(queries: Sequence[QosQuery], utilisation: Fraction) -> Time:
    """H = (D_max + sum C_i sigma_i) / (1 - U), sigma_i with: deadlines by t, even made earlier by D_max, <= sigma_i +
    rate t. Costs in full: more than sharing leaves."""
    longest = max(query.cost for query in queries)
    bursts = sum((query.cost * (query.arrivals.burst + query.rate * longest) for query in queries), Fraction(0))
    return (longest + bursts) / (1 - utilisation)


def _utilisation(queries: Sequence[QosQuery], sharing: int, shared: Time) -> Fraction:
    saved = sum((query.rate for query in queries[:sharing]), Fraction(0)) - max(
        (query.rate for query in queries[:sharing]), default=Fraction(0)
    )
    return sum((query.rate * query.cost for query in queries), Fraction(0)) - saved * shared


def _search(
    queries: Sequence[QosQuery],
    sharing: int,
    shared: Time,
    deadlines_of: Callable[[QosQuery, Time], list[Time]],
    blocks: dict[str, bool],
) -> Answer:
    """The first t at which the demand is above t. `blocks`: empty where deadlines are shifted instead."""
    utilisation = _utilisation(queries, sharing, shared)
    if utilisation >= 1:
        return Answer(False, utilisation)
    horizon = ceil(_horizon(queries, utilisation))
    due = sorted((at, i) for i, query in enumerate(queries) for at in deadlines_of(query, horizon))
    counts = [0] * len(queries)
    waiting = sorted(range(len(queries)), key=lambda i: queries[i].cost)  # of those that may block, the costliest last
    shared_runs, demand = 0, Fraction(0)
    for position, (t, i) in enumerate(due):
        counts[i] += 1
        demand += queries[i].cost - (shared if i < sharing else 0)
        if i < sharing and counts[i] > shared_runs:
            shared_runs += 1
            demand += shared
        if position + 1 < len(due) and due[position + 1][0] == t:
            continue
        while waiting and counts[waiting[-1]] and not blocks.get(queries[waiting[-1]].name):
            waiting.pop()
        blocked = queries[waiting[-1]].cost if blocks and waiting else 0
        if demand + blocked > t:
            return Answer(False, utilisation, t, demand + blocked)
    return Answer(True, utilisation)
