"""[Q] table 2 and figure 4: how many random queries are admitted, and what each scheduler misses around that limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from coordinator.calculus.theorems import sharper
from infra.papers.claims import Band, always, holds, value
from infra.papers.guarantee.random_queries import MS, Drawn, at_random, densest, draw, limit
from infra.papers.one_node import Workload
from infra.papers.one_node import run as simulate
from infra.papers.policies import POLICIES
from infra.papers.pool import spread
from infra.papers.reproduction import SEEDS, Effort, Figure, Tell

FACTOR = 2.42  # on the costs: brings the limit to the paper's order of size, so that figure 4's axis is comparable
WINDOW_NS = 300 * MS
DEVIATION_NS = 2000 * FACTOR  # of a task's cost: table 2's 0.002 ms
SHOWN = ("qed", "pqed", "pqed-printed", "fifo", "rr", "spt")
PHASED = ("qed", "fifo", "rr", "spt")
PHASED_MS = 500
MANY = 10  # %, of FIFO and RR: "many"
DEAR = 0.1  # of the queries: those whose tasks cost the most
STEPS = 100  # of the limit, in which the first miss is looked for
PRINTED_LIMIT, PRINTED_FIRST = 403, 420


def varied(workload: Workload, seed: int, half: bool) -> Workload:
    """Costs normal, with the bound as the mean, and at most the bound: what is above it is cut to it, or folded
    (half)."""
    random = Random(f"costs, {seed}")
    costs = []
    for bound_ns in workload.cost_ns:
        above = random.gauss(0, DEVIATION_NS)
        costs.append(max(1, round(bound_ns - (abs(above) if half else max(0.0, above)))))
    return replace(workload, cost_ns=costs)


def misses(drawn: Sequence[Drawn], count: int, policy: str, seed: int, half: bool = False) -> float:
    """QMR, %: the first 300 ms after all streams have begun as densely as they may."""
    return simulate(POLICIES[policy], varied(densest(drawn[:count], WINDOW_NS), seed, half)).missed


def first_miss(drawn: Sequence[Drawn], admitted: int, seed: int, half: bool) -> int:
    """The least number of queries above the limit with a miss under QED, in steps of a hundredth."""
    step = max(1, admitted // STEPS)
    count = admitted
    while count <= 1.3 * admitted and misses(drawn, count, "qed", seed, half) == 0:
        count += step
    return count


@dataclass(frozen=True)
class AtLimit:
    """One draw at its limit, costs times FACTOR. printed, scaled: queries that are admitted in the printed units, and
    with those costs. missed: by policy, %; dear: of the dearest tenth of the queries under SPT; first: how far above
    the limit QED misses first, %; phased: by policy, streams in random phases."""

    printed: int
    scaled: int
    missed: dict[str, float]
    dear: float
    first: float
    phased: dict[str, float]


def at_limit(seed: int, most: int | None = None) -> AtLimit:
    """most: queries, where fewer than the limit are to be run."""
    drawn = draw(seed, FACTOR)
    count = limit(drawn, sharper) if most is None else most
    workload = varied(densest(drawn[:count], WINDOW_NS), seed, False)
    done = {policy: simulate(POLICIES[policy], workload) for policy in SHOWN}
    dearest = sorted(range(count), key=lambda number: -drawn[number].cost_ns)[: max(1, round(DEAR * count))]
    late, arrived = (sum(of[number] for number in dearest) for of in (done["spt"].late, done["spt"].arrived))
    phased = at_random(drawn[:count], seed, PHASED_MS * MS)
    return AtLimit(
        limit(draw(seed), sharper) if most is None else most,
        count,
        {policy: each.missed for policy, each in done.items()},
        100 * late / arrived,
        100 * (first_miss(drawn, count, seed, False) / count - 1),
        {policy: simulate(POLICIES[policy], phased).missed for policy in PHASED},
    )


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """The limit, then figure 4."""
    seeds = SEEDS[effort]
    tell("table 2 and figure 4")
    found = spread(at_limit, [(seed, 60 if effort == "tiny" else None) for seed in seeds])
    yield table2(found, seeds)
    yield figure4(found, seeds)
    yield dear(found, seeds)
    yield printed_form(found, seeds)
    yield phases(found, seeds)


def table2(found: Sequence[AtLimit], seeds: list[int]) -> Figure:
    """The limits of each draw."""
    printed, scaled = Band.of(each.printed for each in found), Band.of(each.scaled for each in found)
    return Figure(
        "table 2: queries that are admitted",
        [value("403 queries", printed, PRINTED_LIMIT)],
        {"printed units": str(printed), f"costs x {FACTOR}": str(scaled)},
        [
            always("with the printed units more than twice as many are admitted",
                   [each.printed > 2 * PRINTED_LIMIT for each in found], "draws"),
            holds(f"with costs {FACTOR} times as large 403 is inside of the band",
                  [scaled.low <= PRINTED_LIMIT <= scaled.high], "comparisons"),
        ],
        "The test of theory with floors and blocking; half of the streams and half of the QoS of either kind; "
        "throughput deviation 0.005 (printed 1, by which half of the throughputs were negative) and latency 0. The "
        f"rows below use costs x {FACTOR} to be near the paper's number of queries, for no other reason.",
        seeds,
    )  # fmt: skip


HOW = (
    f"The queries of table 2 that the test admits, costs x {FACTOR}. All streams begin at one instant, each as dense "
    "as its curve allows; 300 ms. Costs are normal, cut at the bound. PQED in its sound form."
)


def figure4(found: Sequence[AtLimit], seeds: list[int]) -> Figure:
    """What each policy misses at the limit."""
    first = Band.of(each.first for each in found)
    return Figure(
        "figure 4: missed at the limit (%)",
        [
            always("QED and PQED miss nothing where the test admits",
                   [each.missed["qed"] == each.missed["pqed"] == 0 for each in found], "draws"),
            holds(f"FIFO and RR miss many (more than {MANY} %)",
                  [min(each.missed["fifo"], each.missed["rr"]) > MANY for each in found]),
            holds("SPT misses some, and fewer",
                  [0 < each.missed["spt"] < min(each.missed["fifo"], each.missed["rr"]) for each in found]),
            value("QED misses from 420 queries on, 4.2 % above the limit", first,
                  100 * (PRINTED_FIRST / PRINTED_LIMIT - 1)),
        ],
        {policy: str(Band.of(each.missed[policy] for each in found)) for policy in SHOWN if policy != "pqed-printed"}
        | {"QED's first miss above the limit (%)": str(first)},
        [holds("there is a reserve above the limit", [each.first > 0 for each in found])],
        f"{HOW} The first miss in steps of 1 % of the limit; it depends on how much less than its bound a task costs.",
        seeds,
    )  # fmt: skip


def dear(found: Sequence[AtLimit], seeds: list[int]) -> Figure:
    """SPT's misses by the cost of a query's task."""
    return Figure(
        "figure 4: dear queries under SPT, at the limit (%)",
        [
            holds("queries whose tasks are dear miss very many (twice the mean)",
                  [each.dear > 2 * each.missed["spt"] for each in found]),
            holds("over all queries SPT looks good: below FIFO and RR",
                  [each.missed["spt"] < min(each.missed["fifo"], each.missed["rr"]) for each in found]),
        ],
        {"all queries": str(Band.of(each.missed["spt"] for each in found)),
         f"dearest {DEAR:.0%}": str(Band.of(each.dear for each in found))},
        [holds("those miss nothing under QED", [each.missed["qed"] == 0 for each in found])],
        HOW,
        seeds,
    )  # fmt: skip


def printed_form(found: Sequence[AtLimit], seeds: list[int]) -> Figure:
    """PQED by (5)-(7)."""
    return Figure(
        "figure 4: PQED as printed, at the limit (%)",
        [always("PQED misses as much as QED, nothing", [each.missed["pqed-printed"] == 0 for each in found], "draws")],
        {name: str(Band.of(each.missed[name] for each in found)) for name in ("pqed-printed", "pqed")},
        [always("`pqed`, which looks at what has arrived between two tuples, misses nothing",
                [each.missed["pqed"] == 0 for each in found], "draws")],
        f"{HOW} Batches by (5)-(7) forget what the other queries have queued already.",
        seeds,
    )  # fmt: skip


def phases(found: Sequence[AtLimit], seeds: list[int]) -> Figure:
    """The same queries, their streams apart."""
    return Figure(
        "figure 4: streams in random phases, at the limit (%)",
        [holds(f"FIFO and RR miss many (more than {MANY} %)",
               [min(each.phased["fifo"], each.phased["rr"]) > MANY for each in found])],
        {policy: str(Band.of(each.phased[policy] for each in found)) for policy in PHASED},
        [holds("nobody misses anything: hundreds of independent streams make an even load",
               [not any(each.phased.values()) for each in found])],
        "Jitter uniform within its bounds, rate-bounded gaps exponential above 1/r, every task at its bound, "
        f"{PHASED_MS} ms.",
        seeds,
    )  # fmt: skip
