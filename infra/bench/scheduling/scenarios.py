"""Random workloads for scheduling policies: a class and a seed give one scenario, the same on any machine.

A scenario is a handful of queries on one or two nodes, what each tuple of each operator costs, and when tuples come.
Its load is what all of that asks of the busiest node, over the time in which it comes.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, log, log1p, sqrt
from random import Random
from typing import NamedTuple

US, MS = 1_000, 1_000_000
LOADS = (0.6, 0.85, 1.0, 1.1, 1.35, 1.6, 2.0)
VARIATIONS = (0.0, 0.0, 0.5, 1.0, 2.0, 4.0)  # of costs: standard deviation over mean
TUPLES = 1000  # of all sources together
DECISION_NS = 5 * US
LINK_NS = MS // 2
RANKS = 100  # of Zipf's gaps


class Operator(NamedTuple):
    """mean_ns: what a tuple costs on average. reads: the operators before it in its query; none: the source. joins:
    waits for a tuple of each of them."""

    node: int
    mean_ns: int
    reads: tuple[int, ...]
    joins: bool = False


@dataclass(frozen=True)
class Query:
    """Operators in an order in which each comes after those that it reads; the last one gives the results. at_ns: when
    its tuples come. costs_ns: by operator, of each tuple."""

    operators: tuple[Operator, ...]
    deadline_ns: int
    at_ns: tuple[int, ...]
    costs_ns: tuple[tuple[int, ...], ...]

    @property
    def work_ns(self) -> int:
        """Of a tuple, on average."""
        return sum(each.mean_ns for each in self.operators)


@dataclass(frozen=True)
class Scenario:
    """kind: its class. whole: a query's operators on a node are one task unit, as far as they are a chain; else each is
    one. decision_ns: what choosing the next instance takes."""

    kind: str
    seed: int
    load: float
    variation: float
    whole: bool
    decision_ns: int
    queries: tuple[Query, ...]


Shape = tuple[Operator, ...]
Gaps = Callable[[Random], float]  # of mean 1


@dataclass(frozen=True)
class Kind:
    """A class of scenarios. queries: how many, from and to. room: deadlines as multiples of a query's work. spread:
    the dearest work of an operator over the cheapest. burst: tuples that come at once, from and to. zipf: rates
    by rank. decision: its cost as a multiple of the mean work of a tuple, from and to; none: DECISION_NS."""

    name: str
    shape: str = "single"
    queries: tuple[int, int] = (3, 8)
    room: tuple[float, float] = (4, 60)
    spread: float = 10
    burst: tuple[int, int] = (1, 1)
    gaps: str = "exponential"
    zipf: bool = False
    nodes: int = 1
    decision: tuple[float, float] | None = None


KINDS = (
    Kind("steady"),
    Kind("bursts", burst=(4, 30)),
    Kind("zipf", gaps="zipf", zipf=True, queries=(5, 12)),
    Kind("urgent and bulk", shape="urgent", burst=(1, 20)),
    Kind("chains", shape="chain", burst=(1, 10)),
    Kind("joins", shape="join", queries=(2, 5), burst=(1, 6)),
    Kind("two nodes", shape="chain", nodes=2, burst=(1, 8)),
    Kind("dear decisions", decision=(0.1, 3.0), burst=(1, 30), queries=(5, 12)),
)


def scenario(kind: Kind, seed: int) -> Scenario:
    """The scenario of a class and a seed."""
    dice = Random(f"{kind.name} {seed}")
    load, variation = dice.choice(LOADS), dice.choice(VARIATIONS)
    count = dice.randint(*kind.queries)
    base_ns = 200 * US if kind.decision is None else 50 * US
    drawn = [_shape(kind, dice, base_ns, number, count) for number in range(count)]
    works = [sum(each.mean_ns for each in shape) for shape in drawn]
    mean_ns = sum(works) / count
    decision_ns = DECISION_NS if kind.decision is None else round(_between(dice, *kind.decision) * mean_ns)
    shares = [1 / (rank + 1) if kind.zipf else dice.uniform(0.5, 1.5) for rank in range(count)]
    dice.shuffle(shares)
    if kind.shape == "urgent":
        shares = [3.0 if number < count // 2 else 1.0 for number in range(count)]
    total = sum(shares)
    # span: so long that the busiest node has that load
    asked = [0.0] * kind.nodes
    for shape, share in zip(drawn, shares, strict=True):
        for each in shape:
            asked[each.node] += TUPLES * share / total * each.mean_ns
    span_ns = max(asked) / load
    draw = _lognormal(variation)
    queries = []
    for number, (shape, share) in enumerate(zip(drawn, shares, strict=True)):
        burst = dice.randint(*kind.burst)
        room = _between(dice, *kind.room)
        if kind.shape == "urgent":
            urgent = number < count // 2
            burst = 1 if urgent else burst
            room = _between(dice, 3, 12) if urgent else _between(dice, 30, 120)
        at_ns = tuple(_instants(dice, kind.gaps, max(1, round(TUPLES * share / total)), burst, span_ns))
        costs = tuple(tuple(max(1, round(each.mean_ns * draw(dice))) for _ in at_ns) for each in shape)
        work_ns = sum(each.mean_ns for each in shape)
        hops = LINK_NS * (kind.nodes - 1)
        queries.append(Query(shape, round(room * max(work_ns, mean_ns / 2)) + hops, at_ns, costs))
    whole = dice.random() < 0.5
    return Scenario(kind.name, seed, load, variation, whole, decision_ns, tuple(queries))


def _between(dice: Random, low: float, high: float) -> float:
    """Evenly on a logarithmic scale."""
    return exp(dice.uniform(log(low), log(high)))


def _shape(kind: Kind, dice: Random, base_ns: int, number: int, count: int) -> Shape:
    def cost() -> int:
        return round(base_ns * _between(dice, 1, kind.spread))

    if kind.shape == "single":
        return (Operator(0, cost(), ()),)
    if kind.shape == "urgent":
        length = 2 if number < count // 2 else 5
        mean_ns = base_ns if number < count // 2 else 3 * base_ns
        return _chain([0] * length, [mean_ns] * length)
    if kind.shape == "chain":
        length = dice.randint(1, 6)
        nodes = sorted(dice.randrange(kind.nodes) for _ in range(length))
        if dice.random() < 0.5:
            nodes = [kind.nodes - 1 - each for each in nodes]
        return _chain(nodes, [cost() for _ in range(length)])
    # a head, two branches of one to three operators, a join, a tail
    found = [Operator(0, cost(), ())]
    ends = []
    for _ in range(2):
        before = 0
        for _ in range(dice.randint(1, 3)):
            found.append(Operator(0, cost(), (before,)))
            before = len(found) - 1
        ends.append(before)
    found.append(Operator(0, cost(), tuple(ends), joins=True))
    found.append(Operator(0, cost(), (len(found) - 1,)))
    return tuple(found)


def _chain(nodes: Sequence[int], means_ns: Sequence[int]) -> Shape:
    return tuple(
        Operator(node, mean_ns, (place - 1,) if place else ())
        for place, (node, mean_ns) in enumerate(zip(nodes, means_ns, strict=True))
    )


def _instants(dice: Random, gaps: str, tuples: int, burst: int, span_ns: float) -> Iterator[int]:
    """Bursts at random gaps, scaled to the span."""
    bursts = -(-tuples // burst)
    draw = _zipf() if gaps == "zipf" else (lambda random: random.expovariate(1))
    at = list(accumulate(draw(dice) for _ in range(bursts + 1)))
    for number in range(tuples):
        yield round(at[number // burst] / at[-1] * span_ns)


def _zipf() -> Gaps:
    """The r-th of RANKS gaps has probability 1/r and is r times the least."""
    until = list(accumulate(1 / rank for rank in range(1, RANKS + 1)))
    mean = RANKS / until[-1]
    return lambda random: (bisect(until, random.random() * until[-1]) + 1) / mean


def _lognormal(variation: float) -> Gaps:
    """Mean 1 and that coefficient of variation."""
    variance = log1p(variation * variation)
    return lambda random: exp(sqrt(variance) * random.gauss(0, 1) - variance / 2)
