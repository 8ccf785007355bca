"""[Q] table 2: the random queries, in whole ns, how many of them are admitted, and the arrivals that are tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from coordinator.calculus.curves import Jcp
from coordinator.calculus.service import DelayBound, RateLatency, deadlines
from coordinator.calculus.theorems import Answer, QosQuery
from infra.papers.one_node import Query, Workload
from node_agent.core.plan import Arrivals, Service

MS = 1_000_000
MOST = 1600  # queries that are drawn
THROUGHPUT_DEVIATION = 0.005  # per ms; printed 1, which makes half of the throughputs negative


@dataclass(frozen=True)
class Drawn:
    """One query of table 2. period: T or 1/r; jitter: tau + tau', None: a rate-bounded stream; delay or rate: the one
    QoS that it asks for; cost: the upper bound of a task."""

    period_ns: int
    jitter_ns: int | None
    delay_ns: int | None
    per_task_ns: int  # 1/P, where no delay is asked for
    cost_ns: int

    @property
    def gap_ns(self) -> int:
        """D = T/2; a rate-bounded stream keeps its period."""
        return self.period_ns if self.jitter_ns is None else self.period_ns // 2

    def curve(self) -> Jcp:
        """The arrival curve; at most one more than r t for a rate-bounded stream."""
        return Jcp(self.period_ns, 0 if self.jitter_ns is None else self.gap_ns, self.jitter_ns or 0)

    def service(self) -> DelayBound | RateLatency:
        """The service curve."""
        return RateLatency(Fraction(1, self.per_task_ns), 0) if self.delay_ns is None else DelayBound(self.delay_ns)

    def qos(self, name: str) -> QosQuery:
        """For the test."""
        return QosQuery(name, self.curve(), self.service(), self.cost_ns)

    def unit(self) -> Query:
        """For the engine. Policies without service curves see the first task's deadline."""
        jittered = (Arrivals(self.jitter_ns, self.period_ns),) if self.jitter_ns is not None else ()
        service = Service(0, self.per_task_ns) if self.delay_ns is None else Service(self.delay_ns)
        due_ns = self.per_task_ns if self.delay_ns is None else self.delay_ns
        return Query(due_ns, self.cost_ns, (service,), (Arrivals(0, self.gap_ns), *jittered))

    def scaled(self, rate: float = 1, throughput: float = 1, cost: float = 1) -> Drawn:
        """With so many times the input rate, the throughput asked for, the cost."""
        return replace(
            self,
            period_ns=round(self.period_ns / rate),
            jitter_ns=None if self.jitter_ns is None else round(self.jitter_ns / rate),
            per_task_ns=round(self.per_task_ns / throughput),
            cost_ns=round(self.cost_ns * cost),
        )


def draw(seed: int, scale: float = 1.0) -> list[Drawn]:
    """Table 2; task costs times `scale`."""
    random = Random(f"table 2, {seed}")

    def normal(mean: float, deviation: float) -> float:
        return max(mean / 10, random.gauss(mean, deviation))

    drawn = []
    for _ in range(MOST):
        jcp, delay = random.random() < 0.5, random.random() < 0.5
        period_ns = round(normal(20, 2) * MS) if jcp else round(MS / normal(0.05, 0.005))
        drawn.append(
            Drawn(
                period_ns,
                round(3.5 * period_ns) if jcp else None,
                round(normal(10, 1) * MS) if delay else None,
                round(MS / normal(0.05, THROUGHPUT_DEVIATION)),
                round(normal(0.018, 0.002) * scale * MS),
            )
        )
    return drawn


Test = Callable[[Sequence[QosQuery]], Answer]


def admitted(drawn: Sequence[Drawn], test: Test) -> bool:
    """By one of the tests of `coordinator.calculus.theorems`."""
    return test([each.qos(str(number)) for number, each in enumerate(drawn)]).admitted


def limit(drawn: Sequence[Drawn], test: Test) -> int:
    """The most queries, taken in order, that are admitted: more queries only add demand."""
    low, high = 0, len(drawn)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if admitted(drawn[:middle], test) else (low, middle - 1)
    return low


def densest(drawn: Sequence[Drawn], until_ns: int) -> Workload:
    """Every stream as dense as its curve allows, all from one instant on; every task costs its upper bound."""
    streams = []
    for each in drawn:
        curve = each.curve()
        streams.append([int(curve.span(n)) for n in range(1, curve.count(until_ns) + 1)])
    return workload(drawn, streams)


def at_random(drawn: Sequence[Drawn], seed: int, until_ns: int) -> Workload:
    """Streams in random phases: jittered periods, and gaps of at least 1/r that are else exponential with that "
    "mean."""
    random = Random(f"arrivals, {seed}")
    streams = []
    for each in drawn:
        at_ns, phase_ns, found, n = -(10**12), random.randrange(2 * each.period_ns), [], 0
        while at_ns <= until_ns:
            if each.jitter_ns is None:
                gap_ns = max(each.period_ns, round(random.expovariate(1) * each.period_ns))
                at_ns = phase_ns if not n else at_ns + gap_ns
            else:
                wanted_ns = phase_ns + n * each.period_ns + random.randrange(each.jitter_ns + 1)
                at_ns = max(at_ns + each.gap_ns, wanted_ns)
            n += 1
            found.append(at_ns)
        streams.append(found[:-1])
    return workload(drawn, streams)


def workload(drawn: Sequence[Drawn], streams: Sequence[Sequence[int]]) -> Workload:
    """Instants per stream, in order, with QoS deadlines by theorem 2 (rounded down to a ns)."""
    tuples = sorted(
        (at_ns, number, int(due_ns))
        for number, (each, stream) in enumerate(zip(drawn, streams, strict=True))
        for at_ns, due_ns in zip(stream, deadlines(stream, each.service()), strict=True)
    )
    return Workload(
        [each.unit() for each in drawn],
        [at_ns for at_ns, _, _ in tuples],
        [number for _, number, _ in tuples],
        [drawn[number].cost_ns for _, number, _ in tuples],
        [due_ns for _, _, due_ns in tuples],
    )
