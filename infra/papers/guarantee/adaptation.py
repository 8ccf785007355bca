"""[Q] 4.4: three ways to make queries schedulable that are not: a faster CPU, weaker QoS, sampled input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from coordinator.calculus.theorems import sharper
from infra.papers.claims import Band, always
from infra.papers.guarantee.random_queries import Drawn, admitted, densest, draw, limit
from infra.papers.guarantee.table2 import FACTOR, WINDOW_NS
from infra.papers.one_node import run as simulate
from infra.papers.policies import POLICIES
from infra.papers.pool import spread
from infra.papers.reproduction import SEEDS, Effort, Figure, Tell

BEYOND = 1.05  # of the limit: queries that are too many
MOST = 4.0  # times the CPU, the delay bounds
EVERY = 2  # of sampling: each second tuple, rho = 1/2
DRAWS = 10
RATIO = Fraction(1, EVERY)


@dataclass(frozen=True)
class Adapted:
    """One draw. faster, weaker: the least factor that is admitted, None: none up to MOST; sampled: whether rho = 1/2
    is; missed: what QED then misses, %, by way; above: by how many tuples, at most, a sampled stream exceeds rho alpha
    over an interval: taken at random, and each second one; ceiled: each second one, above ceil(rho alpha)."""

    refused: bool
    faster: float | None
    weaker: float | None
    sampled: bool
    missed: dict[str, float]
    random_above: float
    second_above: float
    second_ceiled: float


def weaker(each: Drawn, by: float) -> Drawn:
    """So many times the delay bound, and so much less throughput."""
    delay_ns = None if each.delay_ns is None else round(each.delay_ns * by)
    return replace(each, delay_ns=delay_ns, per_task_ns=round(each.per_task_ns * by))


def sampled(each: Drawn) -> Drawn:
    """Each second tuple: twice the period, the same jitter, half of the throughput asked for."""
    return replace(each, period_ns=EVERY * each.period_ns, per_task_ns=EVERY * each.per_task_ns)


def least(admits: Callable[[float], bool]) -> float | None:
    """The least factor from 1 on that is admitted, to 1 %; None: none up to MOST."""
    if not admits(MOST):
        return None
    low, high = 1.0, MOST
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if admits(middle) else (middle, high)
    return high


def above(chosen: Sequence[int], each: Drawn, ceiled: bool) -> float:
    """How far the sampled tuples of the densest stream, by number, exceed rho alpha over an interval."""
    curve = each.curve()
    at = [int(curve.span(number + 1)) for number in chosen]
    pairs = ((last - first + 1, at[last] - at[first]) for first in range(len(at)) for last in range(first, len(at)))
    return max(float(kept - _allowed(curve.count(length_ns), ceiled)) for kept, length_ns in pairs)


def _allowed(count: int, ceiled: bool) -> Fraction | int:
    return -(-count // EVERY) if ceiled else RATIO * count


def adapted(seed: int, most: int | None = None) -> Adapted:
    """A set of table 2 beyond its limit, or so many queries with costs large enough."""
    drawn = draw(seed, FACTOR)
    if most is None:
        drawn = drawn[: round(limit(drawn, sharper) * BEYOND)]
    else:
        drawn = [each.scaled(cost=420 / most) for each in drawn[:most]]
    faster = least(lambda by: admitted([each.scaled(cost=1 / by) for each in drawn], sharper))
    less = least(lambda by: admitted([weaker(each, by) for each in drawn], sharper))
    half = [sampled(each) for each in drawn]
    ways = {"sampled": half}
    if faster is not None:
        ways["faster"] = [each.scaled(cost=1 / faster) for each in drawn]
    if less is not None:
        ways["weaker"] = [weaker(each, less) for each in drawn]
    jittered = next(each for each in drawn if each.jitter_ns is not None)
    random = Random(f"samples, {seed}")
    taken, second = [number for number in range(100) if random.random() < RATIO], range(0, 100, EVERY)
    return Adapted(
        not admitted(drawn, sharper), faster, less, admitted(half, sharper),
        {way: simulate(POLICIES["qed"], densest(each, WINDOW_NS)).missed for way, each in ways.items()},
        above(taken, jittered, False), above(second, jittered, False), above(second, jittered, True),
    )  # fmt: skip


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Every way, of each draw."""
    seeds = SEEDS[effort][:DRAWS]
    tell("three ways")
    yield three_ways(spread(adapted, [(seed, 30 if effort == "tiny" else None) for seed in seeds]), seeds)


def three_ways(found: Sequence[Adapted], seeds: list[int]) -> Figure:
    """What each does for a set that is refused."""
    faster = [each.faster for each in found if each.faster is not None]
    less = [each.weaker for each in found if each.weaker is not None]
    return Figure(
        "section 4.4: three ways to make queries schedulable",
        [
            always("a faster CPU does", [each.refused and each.faster is not None for each in found], "draws"),
            always("weaker QoS does", [each.refused and each.weaker is not None for each in found], "draws"),
            always("sampled input does, rho = 1/2", [each.refused and each.sampled for each in found], "draws"),
            always("a sample at rate rho has the arrival curve rho alpha", [each.random_above <= 0 for each in found],
                   "draws"),
        ],
        {"CPU, times as fast": str(Band.of(faster)) if faster else None,
         "delay bounds, times as long": str(Band.of(less)) if less else None,
         "tuples above rho alpha: taken at random": str(Band.of(each.random_above for each in found)),
         "each second one": str(Band.of(each.second_above for each in found)),
         "each second one, above ceil(rho alpha)": str(Band.of(each.second_ceiled for each in found))},
        [
            always("QED then misses nothing", [not any(each.missed.values()) for each in found], "draws"),
            always("each second tuple does not have rho alpha either, but ceil(rho alpha)",
                   [each.second_above > 0 >= each.second_ceiled for each in found], "draws"),
        ],
        f"{BEYOND - 1:.0%} more queries of table 2 than the test admits, costs x {FACTOR}. Weaker: all delay bounds so "
        "many times as long, and all throughputs so many times less. Random: each tuple with probability rho, 100 "
        "tuples of one densest stream.",
        seeds,
    )  # fmt: skip
