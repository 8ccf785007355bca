"""All nodes' instants on one clock, for pictures: the middle of what is known of the offsets between clocks.

A CLOCK record holds the interval of (own clock - the peer's) at its instant. Between two records the middle is
interpolated, so that time goes on steadily; before the first and after the last it stays. A verdict is never drawn from
this: what lies within an interval is not known.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Protocol

import numpy as np
import numpy.typing as npt

from coordinator.report.facts.reader import Incarnation, Run

FAR_NS = 1 << 61  # an offset beyond it is how an agent writes that it knows none
Point = tuple[int, int]  # instant on the one clock, how far it is ahead of the other
Knots = Sequence[Point]


class Probe(Protocol):
    """What a CLOCK record says of a peer's clock."""

    @property
    def at_ns(self) -> int: ...
    @property
    def peer(self) -> int: ...
    @property
    def offset_lo_ns(self) -> int: ...
    @property
    def offset_hi_ns(self) -> int: ...


class OneClock:
    """Instants of any incarnation of a run on the clock `reference`.

    alone: clock domains that no CLOCK record relates to it, each drawn from its own beginning.
    """

    def __init__(self, run: Run, clocks: Iterable[tuple[Incarnation, Probe]], begins: Mapping[str, int]) -> None:
        """clocks: the CLOCK records. begins: the first instant seen in each clock domain."""
        domains = dict.fromkeys(incarnation.clock for incarnation in run.incarnations)
        self.reference = next(iter(domains), "")
        self._conversions: dict[str, tuple[tuple[Knots, int], ...]] = {self.reference: ()}
        known = _known(run, clocks)
        line = deque([self.reference])
        while line:
            near = line.popleft()
            for domain in domains:
                if domain not in self._conversions and (near, domain) in known:
                    self._conversions[domain] = (known[near, domain], *self._conversions[near])
                    line.append(domain)
        self.alone = [domain for domain in domains if domain not in self._conversions]
        first_ns = begins.get(self.reference, 0)
        for domain in self.alone:
            self._conversions[domain] = (([(0, begins.get(domain, 0) - first_ns)], -1),)

    def at(self, clock: str, at_ns: int) -> int:
        """An instant of that clock domain, on the reference."""
        for knots, sign in self._conversions.get(clock, ()):
            at_ns += sign * _between(knots, at_ns)
        return at_ns

    def many(self, clock: str, at_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """As `at`, of many instants of one clock domain, to some ns."""
        for knots, sign in self._conversions.get(clock, ()):
            instants, offsets = np.array(knots, np.int64).T
            first = offsets[0]
            between = np.interp(at_ns - instants[0], instants - instants[0], offsets - first)
            at_ns = at_ns + sign * (first + between.astype(np.int64))
        return at_ns


def _known(run: Run, clocks: Iterable[tuple[Incarnation, Probe]]) -> dict[tuple[str, str], tuple[Knots, int]]:
    """(near, far) -> what to add to, or to take from, far's instants for near's. A node that had several clocks while
    it ran cannot be told from a record about it, so such records are left out."""
    had: dict[int, set[str]] = {}
    for incarnation in run.incarnations:
        had.setdefault(incarnation.node, set()).add(incarnation.clock)
    found: dict[tuple[str, str], list[Point]] = {}
    for incarnation, record in clocks:
        peers = had.get(record.peer, set())
        if len(peers) == 1 and abs(record.offset_lo_ns) < FAR_NS and abs(record.offset_hi_ns) < FAR_NS:
            (peer,) = peers
            if peer != incarnation.clock:
                offset_ns = (record.offset_lo_ns + record.offset_hi_ns) // 2
                found.setdefault((incarnation.clock, peer), []).append((record.at_ns, offset_ns))
    conversions: dict[tuple[str, str], tuple[Knots, int]] = {}
    for (own, peer), points in sorted(found.items()):
        points.sort()
        conversions[peer, own] = points, -1  # an own instant is that much ahead of the peer's
        conversions.setdefault((own, peer), ([(at - offset, offset) for at, offset in points], 1))
    return conversions


def _between(knots: Knots, at_ns: int) -> int:
    """The offset at that instant."""
    right = bisect_right(knots, at_ns, key=itemgetter(0))
    if right in {0, len(knots)}:
        return knots[min(right, len(knots) - 1)][1]
    (since, before), (until, after) = knots[right - 1], knots[right]
    return before + (after - before) * (at_ns - since) // max(until - since, 1)
