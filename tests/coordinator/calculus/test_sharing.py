"""Theorems 4 and 5 and the sharper test against their definitions, at every
instant and far beyond their horizon, and against a node that runs the tasks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from random import Random

from coordinator.calculus.curves import Bursts, Jcp, RateBurst, Spanned, Time
from coordinator.calculus.service import DelayBound, RateLatency, Service
from coordinator.calculus.theorems import Answer, QosQuery, sharper, theorem4, theorem5
from tests.simulation.guarantees.edf_node import instants

SETS = 150


def stream(draw: Random) -> Spanned:
    period = draw.randint(4, 30)
    return draw.choice(
        [
            Jcp(period, draw.randint(0, period - 1), draw.randint(0, 40)),
            Bursts(draw.randint(1, 5), period),
            RateBurst(draw.randint(1, 4), Fraction(1, period)),
        ]
    )


def trace(curve: Spanned, draw: Random, dense: bool) -> list[int]:
    return instants(lambda n: int(curve.span(n)), 300, lambda: 0 if dense else draw.choice([0, 0, 1, 7]))


# -- theorems


def queries_of(draw: Random, sharing: int) -> list[QosQuery]:
    """The first `sharing` read one stream."""
    common, found = stream(draw), []
    count = draw.randint(max(2, sharing), 4)
    for number in range(count):
        arrivals = common if number < sharing else stream(draw)
        delay = DelayBound(draw.randint(2, 60))
        rated = RateLatency(Fraction(1, draw.randint(1, 12)), draw.randint(0, 20))
        room = Fraction(draw.randint(20, 120), 100 * count) / arrivals.rate
        service: Service = rated if draw.random() < 0.3 else delay
        found.append(QosQuery(f"{number}", arrivals, service, max(1, round(room))))
    return found


def due(query: QosQuery, horizon: int, earlier: int) -> list[Time]:
    """By the definition: D_n = max over j <= n of a_j + beta^-1(n - j + 1)."""
    spans = [query.arrivals.span(n) for n in range(1, query.arrivals.count(horizon) + 1)]
    inverse = [max(0, query.service.inverse(k) - earlier) for k in range(1, len(spans) + 1)]
    return [max(spans[j] + inverse[n - j] for j in range(n + 1)) for n in range(len(spans))]


def defined(queries: Sequence[QosQuery], sharing: int, shared: int, sharp: bool, horizon: int) -> bool:
    """The inequality of a test up to a horizon, written down as it stands."""
    longest = max(int(query.cost) for query in queries)
    every = [due(query, horizon, 0 if sharp else longest) for query in queries]
    for t in sorted({at for each in every for at in each if at < horizon}):  # in between the demand does not grow
        counts = [bisect_right(each, t) for each in every]
        numbered = list(zip(counts, queries, strict=True))
        demand = sum(n * (query.cost - shared * (i < sharing)) for i, (n, query) in enumerate(numbered))
        demand += shared * max(counts[:sharing], default=0)  # the supremum of (8), over the sharing ones: j <= M
        if sharp:
            demand += max((query.cost for n, query in numbered if not n), default=0)
        if demand > t:
            return False
    return True


def late(queries: Sequence[QosQuery], sharing: int, shared: int, starts: Sequence[int], until: int) -> int:
    """The worst lateness on a node that runs these tasks by non-preemptive EDF, streams as dense as may be from
    `starts` on. A shared branch runs with the first task of its tuple. 0: nothing is late."""
    jobs = []
    for i, query in enumerate(queries):
        for n, at in enumerate(due(query, until, 0)):
            arrival = starts[i] + query.arrivals.span(n + 1)
            jobs.append((arrival, starts[i] + at, i, n))
    jobs.sort()
    now, worst, position = Fraction(0), Fraction(0), 0
    done, waiting = set[int](), list[tuple[Time, int, int]]()
    while position < len(jobs) or waiting:
        if not waiting:
            now = max(now, Fraction(jobs[position][0]))
        while position < len(jobs) and jobs[position][0] <= now:
            _, at, i, n = jobs[position]
            waiting.append((at, i, n))
            position += 1
        at, i, n = min(waiting)
        waiting.remove((at, i, n))
        cost = Fraction(queries[i].cost)
        if i < sharing:
            cost -= shared if n in done else 0
            done.add(n)
        now += cost
        worst = max(worst, now - at)
    return int(-(-worst // 1))


def test_the_tests_are_their_definitions_and_what_they_admit_is_never_late() -> None:
    admitted = {"theorem": 0, "sharper": 0}
    for seed in range(SETS):
        draw = Random(seed)
        sharing = draw.choice([0, 0, 2, 3])
        queries = queries_of(draw, sharing)
        shared = draw.randint(0, min((int(query.cost) for query in queries[:sharing]), default=0))
        answers: dict[str, Answer] = {
            "theorem": theorem5(queries, sharing, shared) if sharing else theorem4(queries),
            "sharper": sharper(queries, sharing, shared),
        }
        assert answers["sharper"].admitted or not answers["theorem"].admitted, f"seed {seed}: less sharp"
        for name, answer in answers.items():
            if answer.t is None and not answer.admitted:
                assert answer.utilisation >= 1
                continue
            horizon = 160 if answer.admitted else int(answer.t or 0) + 2
            held = defined(queries, sharing, shared, name == "sharper", horizon)
            assert held is answer.admitted, f"seed {seed}: {name} says {answer}"
            if answer.admitted:
                admitted[name] += 1
                common = draw.randint(0, 3)
                for starts in (
                    [1] * len(queries),
                    *([1 - (i == first) for i in range(len(queries))] for first in range(sharing, len(queries))),
                    [common if i < sharing else draw.randint(0, 40) for i in range(len(queries))],
                ):
                    assert not late(queries, sharing, shared, starts, 120), f"seed {seed}: {name} admits {queries}"
    assert admitted["sharper"] > admitted["theorem"] > SETS // 20, admitted
