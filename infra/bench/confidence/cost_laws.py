"""What operators' calls cost: a law each, from which the plan's samples and the held-out runs are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from node_agent.runtime.deployments.cost_meter import bucket, upper_ns
from protos.plan.costs import CostDistribution

Draw = Callable[[Any, int], Any]  # so many factors, of a generator


def _bimodal(dice: Any, n: int) -> Any:
    """One call in fifty takes a slow branch."""
    slow = dice.random(n) < 0.02
    return dice.uniform(0.8, 1.2, n) * np.where(slow, 4.0, 1.0)


LAWS: Mapping[str, Draw] = {
    "lognormal": lambda dice, n: dice.lognormal(0.0, 0.4, n),  # cv 0.42
    "gamma": lambda dice, n: dice.gamma(4.0, 0.25, n),  # cv 0.5
    "bimodal": _bimodal,
}


@dataclass(frozen=True)
class Law:
    """Of one operator: `name` of its kind; `scale_ns`: of a factor of 1."""

    name: str
    scale_ns: float

    def costs_ns(self, dice: Any, n: int) -> list[int]:
        """So many calls."""
        found = np.ceil(LAWS[self.name](dice, n) * self.scale_ns).astype(np.int64)
        return [int(each) for each in np.maximum(found, 1)]


@dataclass(frozen=True)
class Sample:
    """Calls that a profile has measured, and the law that they are of."""

    law: Law
    calls: CostDistribution
    worst_ns: int
    mean_ns: int


def sample(name: str, most_ns: float, node: str, n: int, seed: str) -> Sample:
    """Of a law such that the largest of its calls is about `most_ns`; in the buckets that agents count in."""
    dice = np.random.default_rng(Random(seed).getrandbits(64))
    factors = LAWS[name](dice, n)
    law = Law(name, most_ns / float(factors.max()))
    costs = np.maximum(np.ceil(factors * law.scale_ns), 1).astype(np.int64)
    values, times = np.unique(costs, return_counts=True)
    found: dict[int, int] = {}
    for value, n_of in zip(values, times, strict=True):
        end = upper_ns(bucket(int(value)))
        found[end] = found.get(end, 0) + int(n_of)
    calls = CostDistribution(node=node, speed=1.0, calls=tuple(sorted(found.items())))
    return Sample(law, calls, int(costs.max()), int(costs.mean()) + 1)


__all__ = ["LAWS", "Law", "Sample", "sample"]
