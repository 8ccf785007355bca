"""How likely a call takes longer than a cost, at most, as far as a sample of calls says: order statistics.

Of n independent calls let X be the one that r others are above (or equal to). Then the probability that a call takes
longer than X is above p only if at most r of n calls fell into a part of the distribution that is likelier than p, and
that happens with probability P(Bin(n, p) <= r) at most, for any distribution. The p at which this is `alpha` is the
upper confidence limit of Clopper and Pearson (1934).

Several limits are used of one sample, so they share `alpha`: rank r_j of the grid has alpha / ((j + 1) (j + 2)), half
of it the largest call alone, which sum up to alpha. The ranks are chosen by n, not by what was measured.

Floats are in probabilities only, which are rounded up; costs are integers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, exp, lgamma, log, log1p

from protos.plan.costs import CostDistribution

ROUNDED_UP = 1 + 1e-9  # beyond the error of the sums below
ENOUGH = 1e-5  # how much above the least p a limit may be, relatively
GROWTH = 8  # a rank is an eighth above the one before: of the sample's size, and coarser than that only by chance
LEAST_TERM = 1e-13


@lru_cache(maxsize=4096)
def upper_limit(n: int, above: int, alpha: float) -> float:
    """The least p with P(Bin(n, p) <= above) <= alpha, or a little more; 1 where every call is above."""
    if above >= n:
        return 1.0
    low = (above + 0.5) / n
    while binomial_tail(n, above, low) <= alpha:
        low /= 2  # never far: there about half of the samples have as few
    high = low
    while binomial_tail(n, above, high) > alpha:
        low, high = high, min(1.0, high * 1.5)
    while high - low > ENOUGH * high:
        middle = (low + high) / 2
        if binomial_tail(n, above, middle) <= alpha:
            high = middle
        else:
            low = middle
    return min(1.0, high * ROUNDED_UP)


def lower_limit(n: int, above: int, alpha: float) -> float:
    """The greatest p with P(Bin(n, p) >= above) <= alpha, or a little less; 0 where no call is above."""
    low, high = 0.0, above / n
    while high - low > ENOUGH * high:
        middle = (low + high) / 2
        if 1 - binomial_tail(n, above - 1, middle) <= alpha:
            low = middle
        else:
            high = middle
    return low


def binomial_tail(n: int, most: int, p: float) -> float:
    """P(Bin(n, p) <= most), summed from its largest term downwards."""
    if p >= 1:
        return 0.0 if most < n else 1.0
    peak = min(most, int((n + 1) * p))
    found = 0.0
    for direction, first in ((-1, peak), (1, peak + 1)):
        k, term = first, _term(n, first, p)
        while 0 <= k <= most and (term > LEAST_TERM * found or term > 0 == found):
            found += term
            term *= k * (1 - p) / ((n - k + 1) * p) if direction < 0 else (n - k) * p / ((k + 1) * (1 - p))
            k += direction
    return min(1.0, found)


def _term(n: int, k: int, p: float) -> float:
    if not 0 <= k <= n:
        return 0.0
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p))


def ranks(n: int) -> Iterator[int]:
    """How many calls are above the order statistics that are looked at."""
    rank = 0
    while rank < n:
        yield rank
        rank += max(1, rank // GROWTH)


def share_of_alpha(alpha: float, position: int) -> float:
    """What a rank has of it, by its position in the grid."""
    return alpha / ((position + 1) * (position + 2))


def samples_needed(p: float, alpha: float) -> int:
    """Calls without which not even the longest of them says that another takes longer with probability p at most."""
    return ceil(log(share_of_alpha(alpha, 0)) / log1p(-p)) if p < 1 else 1


@dataclass(frozen=True)
class Limit:
    """A call at speed 1 takes longer than `cost_ns` with probability `exceeded` at most."""

    cost_ns: int
    exceeded: float


@dataclass(frozen=True)
class TailLimits:
    """Of one operator: `steps` by descending cost; `samples`: calls of the node with the fewest. All steps hold at once
    but for the share `alpha` of samples that they were made with."""

    steps: tuple[Limit, ...]
    samples: int

    @property
    def largest_ns(self) -> int:
        """The longest call, as far as buckets say."""
        return self.steps[0].cost_ns

    def exceeded(self, cost_ns: int) -> float:
        """Of any cost: by the next smaller one that is known."""
        at = bisect_left(self._costs, cost_ns + 1)
        return 1.0 if at == 0 else self.steps[len(self.steps) - at].exceeded

    @cached_property
    def _costs(self) -> list[int]:
        return [step.cost_ns for step in reversed(self.steps)]


def of_sample(found: CostDistribution, alpha: float) -> TailLimits:
    """Of one node's calls."""
    ends = [ceil(ns * Fraction(str(found.speed))) for ns, _ in found.calls]
    above, left = [], found.samples
    for _, calls in found.calls:
        left -= calls
        above.append(left)  # calls above this bucket's end
    steps: list[Limit] = []
    at = len(ends) - 1
    for position, rank in enumerate(ranks(found.samples)):
        while at and above[at - 1] <= rank:
            at -= 1
        limit = Limit(ends[at], upper_limit(found.samples, rank, share_of_alpha(alpha, position)))
        if steps and steps[-1].cost_ns == limit.cost_ns:
            steps[-1] = min(steps[-1], limit, key=lambda one: one.exceeded)
        else:
            steps.append(limit)
    return TailLimits(tuple(steps), found.samples)


def of_samples(found: Sequence[CostDistribution], alpha: float) -> TailLimits:
    """Of several nodes, on any of which it may run: the greater probability of all, at every cost."""
    each = [of_sample(one, alpha / len(found)) for one in found]
    costs = sorted({step.cost_ns for one in each for step in one.steps}, reverse=True)
    steps = [Limit(cost, max(one.exceeded(cost) for one in each)) for cost in costs]
    largest = max(one.largest_ns for one in each)
    return TailLimits(
        tuple(step for step in steps if step.exceeded < 1 or step.cost_ns == largest),
        min(one.samples for one in each),
    )


def of_operators(measured: Mapping[str, Sequence[CostDistribution]], alpha: float) -> dict[str, TailLimits]:
    """Of all operators, which share `alpha`."""
    return {name: of_samples(found, alpha / len(measured)) for name, found in measured.items()}


__all__ = [
    "Limit", "TailLimits", "binomial_tail", "lower_limit", "of_operators", "of_sample", "of_samples", "ranks",
    "samples_needed", "share_of_alpha", "upper_limit",
]  # fmt: skip
