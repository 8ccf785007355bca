"""How much of a burst, or of what ran above plan, is left when somebody waits."""

from __future__ import annotations

from random import Random

import numpy as np

from coordinator.report.blame.core_timeline import Span


def span(instances: list[tuple[int, int]], until: int) -> Span:
    """Of instances from an instant to another."""
    edges = [0, *(at for one in instances for at in one), until]
    gaps = tuple((edges[i], edges[i + 1]) for i in range(0, len(edges), 2) if edges[i] < edges[i + 1])
    start = np.array([since for since, _ in instances], np.int64)
    ns = np.array([end - since for since, end in instances], np.int64)
    none = np.zeros(len(instances), np.int64)
    return Span(none, start, none.astype(np.uint64), ns, none, none, 0, 0, gaps)


def test_all_of_it_as_long_as_something_runs() -> None:
    made = span([(0, 10), (10, 30)], 30)
    assert made.left_of(np.array([10, 0])) == 10


def test_what_was_made_up_for_is_not_left() -> None:
    made = span([(0, 10), (14, 30), (40, 50)], 50)
    assert made.left_of(np.array([10, 0, 0])) == 0
    assert made.left_of(np.array([10, 16, 0])) == 12, "10 less 4, and 16, less 10"
    assert made.left_of(np.array([0, 0, 7])) == 7, "gaps before it take nothing off"


def test_never_more_than_there_was_nor_less_than_nothing() -> None:
    for seed in range(200):
        random = Random(seed)
        edges = sorted(random.sample(range(1, 1000), 2 * random.randint(1, 8)))
        instances = list(zip(edges[::2], edges[1::2], strict=True))
        made = span(instances, 1000)
        work = np.array([random.randint(0, end - since) for since, end in instances])
        left = 0
        for (since, _), extra, before in zip(instances, work.tolist(), [0, *edges[1::2]], strict=False):
            left = max(0, left - (since - before)) + extra
        left = max(0, left - (1000 - edges[-1]))
        assert made.left_of(work) == left, seed


def test_nothing_ran() -> None:
    assert span([], 10).left_of(np.zeros(0, np.int64)) == 0
