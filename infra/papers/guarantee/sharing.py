"""[Q] figure 9: the four queries of table 3 under QED, a branch of growing cost run once for three of them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random

from coordinator.calculus.service import deadlines
from infra.papers.guarantee.random_queries import MS
from infra.papers.guarantee.table3 import SHARING, queries
from infra.papers.one_node import Query, Workload
from infra.papers.one_node import run as simulate
from infra.papers.policies import POLICIES
from infra.papers.pool import spread as each_of
from infra.papers.reproduction import Curve, Effort, Figure, Plot, Tell
from node_agent.core.plan import Service

UNTIL_MS = 2000
SERVICES = ((Service(10 * MS),), (Service(13 * MS),), (Service(10 * MS),), (Service(3 * MS, 20 * MS, 3),))


Streams = tuple[list[Fraction], list[Fraction]]  # of the three queries, of Q4; ms
SEEDS = [1, 2, 3]
RANDOM_MS = 20_000


def densest() -> Streams:
    """From one instant on, each as dense as its curve allows."""
    first, *_, fourth = queries()
    at = [
        [Fraction(each.arrivals.span(n)) for n in range(1, each.arrivals.count(Fraction(UNTIL_MS)) + 1)]
        for each in (first, fourth)
    ]
    return at[0], at[1]


def drawn(seed: int, until_ms: int) -> Streams:
    """Within the curves: a tuple per period, up to tau + tau' late; Q4's gaps 1/R and exponential above, mean 2/R."""
    random = Random(f"table 3, {seed}")
    three: list[Fraction] = []
    while not three or three[-1] < until_ms:
        wanted = Fraction(4 * len(three) * MS + random.randrange(10 * MS), MS)
        three.append(max(three[-1] + Fraction(5, 4), wanted) if three else wanted)
    fourth = [Fraction(0)]
    while fourth[-1] < until_ms:
        fourth.append(fourth[-1] + 5 + Fraction(round(random.expovariate(1 / 5) * MS), MS))
    return three, fourth


def shared(shared_us: int, streams: Streams | None = None) -> Workload:
    """The densest arrivals, or others; costs at their bounds."""
    tuples = []
    three, fourth = streams or densest()
    for number, each in enumerate(queries()):
        instants = three if number < SHARING else fourth
        for nth, (at, due) in enumerate(zip(instants, deadlines(instants, each.service), strict=True)):
            group = nth if number < SHARING else -1
            tuples.append((int(at * MS), number, int(each.cost * MS), int(due * MS), group))
    tuples.sort()
    units = [
        Query(service[0].latency_ns or MS, int(each.cost * MS), service)
        for each, service in zip(queries(), SERVICES, strict=True)
    ]
    at_ns, query, cost_ns, due_ns, group_of = (list(column) for column in zip(*tuples, strict=True))
    return Workload(units, at_ns, query, cost_ns, due_ns, group_of, shared_us * 1000)


def least(seed: int, until_ms: int) -> int:
    """The least shared cost in us, from 1.1 ms down in steps of 20 us, from which on nothing is missed."""
    streams = drawn(seed, until_ms)
    cost_us = 1100
    while simulate(POLICIES["qed"], shared(cost_us - 20, streams)).missed == 0:
        cost_us -= 20
    return cost_us


def missed(shared_us: int) -> list[float]:
    """QMR of each query, %."""
    done = simulate(POLICIES["qed"], shared(shared_us))
    return [100 * late / arrived for late, arrived in zip(done.late, done.arrived, strict=True)]


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Misses over the shared cost."""
    tell("shared costs")
    step = 10 if effort == "full" else 50
    costs_us = list(range(700, 1201, step)) if effort != "tiny" else [800, 1050]
    found = {cost_us: missed(cost_us) for cost_us in costs_us}
    none_us = next(
        (cost_us for cost_us in costs_us if not any(any(found[each]) for each in costs_us if each >= cost_us)), None
    )
    below = [found[cost_us] for cost_us in costs_us if any(found[cost_us])]
    spread = max((max(each[:SHARING]) - min(each[:SHARING]) for each in below), default=0.0)
    fourth = max((abs(each[3] - each[0]) for each in below), default=0.0)
    yield Figure(
        "figure 9: no misses from a shared cost of (ms)",
        {"all four": 0.86, "the four": "almost alike"},
        {
            "all four": None if none_us is None else none_us / 1000,
            "largest difference among Q1 to Q3 (points)": round(spread, 1),
            "largest difference of Q4 from Q1 (points)": round(fourth, 1),
        },
        none_us is not None and none_us <= 860,
        "Misses go to 0 as the shared branch grows, as printed, but with the densest arrivals and every task at "
        "its bound they do so only where the sharper test admits (1.0154 ms): that test leaves nothing to spare here. "
        "Up to 0.92 the processor is overloaded at the largest rates, so misses cannot be 0 at 0.86 for long; "
        "streams in "
        "random phases, in the next row, come near it. Nor are the queries alike in overload: see the differences.",
        f"Densest arrivals from one instant, every task at its bound, {UNTIL_MS} ms; the result of the branch is "
        "kept until the last of the "
        "three has taken it.",
        [],
        [
            Plot(
                "figure 9",
                "cost of the shared branch, ms",
                "QMR, %",
                [
                    Curve(
                        f"Q{number + 1}", [each / 1000 for each in costs_us], [found[each][number] for each in costs_us]
                    )
                    for number in range(4)
                ]
                + [Curve("all, printed", [0.86], [0.0], printed=True)],
            )
        ],
    )
    if effort != "tiny":
        tell("random streams")
        yield _random(effort)


def _random(effort: Effort) -> Figure:
    lengths = (UNTIL_MS, RANDOM_MS) if effort == "full" else (UNTIL_MS,)
    found = each_of(least, [(seed, until_ms) for until_ms in lengths for seed in SEEDS])
    by_length = {until: found[i * len(SEEDS) : (i + 1) * len(SEEDS)] for i, until in enumerate(lengths)}
    lowest = min(found)
    return Figure(
        "figure 9: streams at random within their curves (ms)",
        {"no misses from": 0.86, "the test": "leaves a reserve"},
        {
            f"{until / 1000:g} s": ", ".join(f"{each / 1000:g}" for each in costs)
            for until, costs in by_length.items()
        },
        max(found) < 1015,
        "There is a reserve, as printed: at random nothing is missed well below the 1.0154 ms that the test asks for, "
        f"from {lowest / 1000:g} ms on in the most favourable run (printed: 0.86). Longer runs need more. Q4's mean "
        "rate is half of its bound here. Length and streams of the paper's run are not printed.",
        "As above, in steps of 0.02 ms; the three share a stream with jitter uniform within tau + tau'; Q4's gaps are "
        "exponential above 1/R (the text of 5.1 for rate-bounded streams). A value per seed.",
        SEEDS,
    )  # fmt: skip
