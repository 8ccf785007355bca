"""[Q] 5.1: 300 s of table 2's streams under FIFO, by Lindley's recursion on arrays: six million tasks in seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coordinator.calculus.theorems import sharper
from infra.papers.claims import Band, holds
from infra.papers.guarantee.random_queries import MS, Drawn, draw, limit
from infra.papers.guarantee.table2 import FACTOR, MANY
from infra.papers.pool import spread
from infra.papers.reproduction import SEEDS, Effort, Figure, Tell

Instants = npt.NDArray[np.int64]  # ns
LENGTHS_MS = {"tiny": (30, 300), "quick": (300, 3000), "full": (300, 300_000)}  # the paper has 300 s
DRAWS = 5


@dataclass(frozen=True)
class Long:
    """FIFO's misses of one draw, %, where all streams begin together and densely, and in random phases; longest: the
    longest time that a task takes there, ms."""

    together: float
    apart: float
    longest_ms: float


def densest(each: Drawn, until_ns: int) -> Instants:
    """As `random_queries.densest`: the span of n tuples, n from 1."""
    n = np.arange(until_ns // each.period_ns + 2 + (each.jitter_ns or 0) // each.period_ns, dtype=np.int64)
    at: Instants = np.maximum(n * each.gap_ns, n * each.period_ns - (each.jitter_ns or 0))
    return at[at <= until_ns]


def at_random(each: Drawn, until_ns: int, random: np.random.Generator) -> Instants:
    """As `random_queries.at_random`: jittered periods, or gaps of at least 1/r, from a random phase on."""
    n = np.arange(until_ns // each.period_ns + 1, dtype=np.int64)
    phase_ns = int(random.integers(2 * each.period_ns))
    if each.jitter_ns is None:
        gaps = np.maximum(each.period_ns, (random.exponential(each.period_ns, len(n))).astype(np.int64))
        at = phase_ns + np.cumsum(gaps) - gaps[0]
    else:
        wanted = phase_ns + n * each.period_ns + random.integers(each.jitter_ns + 1, size=len(n))
        at = n * each.gap_ns + np.maximum.accumulate(wanted - n * each.gap_ns)
    within: Instants = at[at <= until_ns]
    return within


def dues(each: Drawn, at: Instants) -> Instants:
    """By theorem 2: a delay bound, or max(a_n, D_(n-1)) + 1/P."""
    if each.delay_ns is not None:
        return at + each.delay_ns
    n = np.arange(len(at), dtype=np.int64)
    return (n + 1) * each.per_task_ns + np.maximum.accumulate(at - n * each.per_task_ns)


def fifo(drawn: Sequence[Drawn], streams: Sequence[Instants]) -> tuple[float, float]:
    """(missed, %; the longest response, ms): a task ends at max(its arrival, the end of the one before) + its cost."""
    at = np.concatenate(streams)
    due = np.concatenate([dues(each, stream) for each, stream in zip(drawn, streams, strict=True)])
    cost = np.repeat(np.array([each.cost_ns for each in drawn], dtype=np.int64), [len(stream) for stream in streams])
    order = np.argsort(at, kind="stable")  # of one instant: in the order of the queries
    at, due, cost = at[order], due[order], cost[order]
    work = np.cumsum(cost)
    ends = work + np.maximum.accumulate(at - (work - cost))
    return 100 * float(np.mean(ends > due)), float(np.max(ends - at)) / MS


def long_run(seed: int, until_ms: int, most: int | None = None) -> Long:
    """The queries of one draw that the test admits, or so many of them."""
    drawn = draw(seed, FACTOR)
    drawn = drawn[: limit(drawn, sharper) if most is None else most]
    random = np.random.default_rng(seed)
    apart, longest_ms = fifo(drawn, [at_random(each, until_ms * MS, random) for each in drawn])
    together, _ = fifo(drawn, [densest(each, until_ms * MS) for each in drawn])
    return Long(together, apart, longest_ms)


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """300 ms and 300 s."""
    seeds, lengths = SEEDS[effort][:DRAWS], LENGTHS_MS[effort]
    tell(f"{lengths[-1] / 1000:g} s")
    work = [(seed, until_ms, 60 if effort == "tiny" else None) for until_ms in lengths for seed in seeds]
    found = iter(spread(long_run, work))
    yield three_hundred({until_ms: [next(found) for _ in seeds] for until_ms in lengths}, seeds)


def three_hundred(found: dict[int, list[Long]], seeds: list[int]) -> Figure:
    """By the length in ms, of each draw."""
    short, long = found[min(found)], found[max(found)]
    return Figure(
        "figure 4 over 300 s: FIFO at the limit (%)",
        [
            holds(f"FIFO misses many (more than {MANY} %), streams in random phases",
                  [each.apart > MANY for each in long]),
            holds(f"or all of them beginning together (more than {MANY} %)", [each.together > MANY for each in long]),
        ],
        {f"{until_ms / 1000:g} s: together, in random phases": f"{Band.of(each.together for each in draws)}, "
         f"{Band.of(each.apart for each in draws)}" for until_ms, draws in found.items()}
        | {"longest response in random phases (ms)": str(Band.of(each.longest_ms for each in long))},
        [
            holds("what FIFO misses is of the first 300 ms: the share over 300 s is a hundredth or less of that",
                  [each.together <= before.together / 100 for each, before in zip(long, short, strict=True)]),
            holds("in random phases no task takes longer than 5 ms, half of the mean delay bound",
                  [each.longest_ms <= 5 for each in long]),
        ],
        f"The queries of table 2 that the test admits, costs x {FACTOR}, every task at its bound. The text says 300 s "
        "of data, and not that the streams begin together again and again. FIFO only: RR and SPT are not run for so "
        "long.",
        seeds,
    )  # fmt: skip
