"""Which streams cross between nodes under a placement, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush

from coordinator.model.problem import Problem, Stream
from coordinator.spec.cluster import Cluster

Hops = dict[str, tuple[tuple[int, int], ...]]


def needed(stream: Stream, place: Mapping[int, int]) -> tuple[int, set[int]]:
    """The node where a stream originates, and the other nodes that read or deliver it."""
    start = place[stream.item] if stream.item is not None else stream.node
    assert start is not None  # a stream comes from an item or from a node
    return start, ({place[reader] for reader in stream.readers} | set(stream.sinks)) - {start}


def direct(problem: Problem, place: Mapping[int, int]) -> Hops:
    """Every stream straight from its origin to each node that needs it, but for the hops that are kept."""
    hops: Hops = {}
    for stream in problem.streams:
        start, ends = needed(stream, place)
        if ends:
            hops[stream.name] = _walked(
                dict.fromkeys(ends, start), start, ends, problem.incumbent_hops.get(stream.name)
            )
    return hops


def pruned(problem: Problem, place: Mapping[int, int], chosen: Mapping[str, set[tuple[int, int]]]) -> Hops:
    """The hops of a solver that some reader needs: followed back from each reader, one way in per node."""
    hops: Hops = {}
    for stream in problem.streams:
        start, ends = needed(stream, place)
        entry: dict[int, int] = {}
        frontier = [start]
        while frontier:
            node = frontier.pop(0)
            for one, other in sorted(chosen.get(stream.name, set())):
                if one == node and other != start and other not in entry:
                    entry[other] = one
                    frontier.append(other)
        if used := _walked(entry, start, ends, problem.incumbent_hops.get(stream.name)):
            hops[stream.name] = used
    return hops


def _walked(
    entry: Mapping[int, int], start: int, ends: Iterable[int], incumbent_hops: Sequence[tuple[int, int]] | None = None
) -> tuple[tuple[int, int], ...]:
    """The hops from `start` to all ends. `entry`: the node before each node on its way; `incumbent_hops`: those that
    are taken already: what they reach is reached by them."""
    if incumbent_hops:
        entry = {**entry, **{end: one for one, end in incumbent_hops}}
    used: set[tuple[int, int]] = set()
    for end in ends:
        node = end
        while node != start:
            used.add((entry[node], node))
            node = entry[node]
    return tuple(sorted(used))


@dataclass
class Quickest:
    """Ways of least latency, and of these with the fewest hops; they are the same for every placement, so they are
    found once. `latency_ns`: of every link, each way."""

    problem: Problem
    latency_ns: Mapping[tuple[int, int], int]
    _known: dict[tuple[int, frozenset[tuple[int, int]]], dict[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, cluster: Cluster) -> Quickest:
        """The links of a cluster."""
        latency_ns = {}
        for link in cluster.links:
            one, other = (cluster.nodes[name].index for name in link.between)
            latency_ns[one, other] = latency_ns[other, one] = link.latency_ns
        return cls(problem, latency_ns)

    def hops(self, place: Mapping[int, int]) -> Hops | None:
        """Every stream so; None: one cannot get where it is needed."""
        found: Hops = {}
        for stream in self.problem.streams:
            start, ends = needed(stream, place)
            entry = self._entries(start, stream.forbidden) if ends else {}
            if any(end not in entry for end in ends):
                return None
            if used := _walked(entry, start, ends, self.problem.incumbent_hops.get(stream.name)):
                found[stream.name] = used
        return found

    def _entries(self, start: int, forbidden: frozenset[tuple[int, int]]) -> dict[int, int]:
        """The node before each node on its way from `start`."""
        if (start, forbidden) in self._known:
            return self._known[start, forbidden]
        beyond: dict[int, list[int]] = {}
        for one, other in sorted(self.problem.links - forbidden):
            beyond.setdefault(one, []).append(other)
        entry: dict[int, int] = {}
        waiting = [(0, 0, start, start)]
        while waiting:
            ns, count, node, before = heappop(waiting)
            if node in entry:
                continue
            entry[node] = before
            for other in beyond.get(node, ()):
                if other not in entry:
                    heappush(waiting, (ns + self.latency_ns[node, other], count + 1, other, node))
        del entry[start]
        self._known[start, forbidden] = entry
        return entry


def traffic(problem: Problem, hops: Mapping[str, tuple[tuple[int, int], ...]]) -> Fraction:
    """Mean tuples per burst that cross between nodes, every hop counted."""
    tuples = {stream.name: stream.tuples for stream in problem.streams}
    return sum((tuples[name] * len(pairs) for name, pairs in hops.items()), Fraction(0))
