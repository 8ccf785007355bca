"""Selectivity as a curve: at most sigma(k) outputs of any k consecutive inputs (theory: a mean bounds nothing, a filter
with mean 0.5 may pass ten in a row)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf

from coordinator.errors import MistakeError

TABLE = 4096


class UndeclaredError(ValueError):
    """Nothing bounds how many outputs there can be."""


@dataclass(frozen=True)
class Selectivity:
    """The subadditive extension to every k of declared pairs (k_j, m_j): of any k_j in a row at most m_j.

    A window of k <= k_j inputs lies in one of k_j, so it has at most m_j; one of a + b has at most sigma(a) +
    sigma(b). Both together: sigma(k) = min over j of m_j + sigma(k - k_j), sigma(0) = 0. Pairs with k_j above TABLE,
    and counts above it, are extended by whole copies only, which is sound as well. `()`: no output at all.
    """

    pairs: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if any(k < 1 or m < 0 for k, m in self.pairs):
            raise MistakeError("negative", "selectivity pairs are [inputs >= 1, outputs >= 0]")

    @property
    def rate(self) -> Fraction:
        """Outputs per input in the long run."""
        return min((Fraction(m, k) for k, m in self.pairs), default=Fraction(0))

    @cached_property
    def _small(self) -> tuple[tuple[int, int], ...]:
        return tuple(pair for pair in self.pairs if pair[0] <= TABLE)

    @cached_property
    def _densest(self) -> tuple[int, int]:
        """Of the small pairs, the one with the fewest outputs per input."""
        return min(self._small, key=lambda pair: (Fraction(pair[1], pair[0]), pair))

    @cached_property
    def _table(self) -> list[int]:
        """sigma(0), sigma(1), ... by the recursion; grows as asked."""
        return [0]

    def __call__(self, k: int) -> int:
        """sigma(k)."""
        if not self.pairs or k <= 0:
            return 0
        if self.pairs == ((1, 1),):
            return k
        large = min((-(-k // n) * m for n, m in self.pairs if n > TABLE), default=None)
        if not self._small:
            assert large is not None
            return large
        best_n, best_m = self._densest
        copies = max(0, -(-(k - TABLE) // best_n))
        table, rest = self._table, k - copies * best_n
        while len(table) <= rest:
            n = len(table)
            table.append(min(m + table[max(0, n - each)] for each, m in self._small))
        small = copies * best_m + table[rest]
        return small if large is None else min(small, large)


ONE = Selectivity(((1, 1),))


def declared(at_most: Sequence[Sequence[int]], mean: Fraction | float) -> Selectivity:
    """The curve of a declaration; nothing declared: 1 output per input.

    Where no pair allows more outputs than inputs the operator is a filter, and [1, 1] is understood. Raises
    UndeclaredError where the mean is above 1 and no pair bounds it.
    """
    pairs = {(int(k), int(m)) for k, m in at_most}
    if not pairs and mean > 1:
        raise UndeclaredError(f"has {float(mean):g} outputs per input on average and no 'at_most' that bounds them")
    if all(m <= k for k, m in pairs):
        pairs.add((1, 1))
    return Selectivity(tuple(sorted(pairs)))


def contradicting(at_most: Sequence[Sequence[int]]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Two pairs of which one allows fewer inputs more outputs than the other allows as many or more: one is a slip."""
    ordered = sorted((int(k), int(m)) for k, m in at_most)
    for i, (k, m) in enumerate(ordered):
        for other_k, other_m in ordered[i + 1 :]:
            if m > other_m or (k == other_k and m != other_m):
                return ((k, m), (other_k, other_m)) if m > other_m else ((other_k, other_m), (k, m))
    return None


def contradiction(at_most: Sequence[Sequence[int]], mean: Fraction | float) -> tuple[int, int] | None:
    """The pair that a mean goes beyond, if there is one: a worst case below the average."""
    ratio, pair = min(((Fraction(m, k), (k, m)) for k, m in at_most), default=(inf, None))
    return pair if mean > ratio else None
