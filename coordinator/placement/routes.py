"""Which streams cross between nodes under a placement, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from coordinator.placement.problem import Problem, Stream

Hops = dict[str, tuple[tuple[int, int], ...]]


def needed(stream: Stream, place: Mapping[int, int]) -> tuple[int, set[int]]:
    """The node where a stream originates, and the other nodes that read or deliver it."""
    start = place[stream.item] if stream.item is not None else stream.node
    assert start is not None  # a stream comes from an item or from a node
    return start, ({place[reader] for reader in stream.readers} | set(stream.sinks)) - {start}


def direct(problem: Problem, place: Mapping[int, int]) -> Hops:
    """Every stream straight from its origin to each node that needs it."""
    hops: Hops = {}
    for stream in problem.streams:
        start, ends = needed(stream, place)
        if ends:
            hops[stream.name] = tuple((start, end) for end in sorted(ends))
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
        used: set[tuple[int, int]] = set()
        for end in ends:
            node = end
            while node != start:
                used.add((entry[node], node))
                node = entry[node]
        if used:
            hops[stream.name] = tuple(sorted(used))
    return hops


def traffic(problem: Problem, hops: Mapping[str, tuple[tuple[int, int], ...]]) -> Fraction:
    """Mean tuples per burst that cross between nodes, every hop counted."""
    tuples = {stream.name: stream.tuples for stream in problem.streams}
    return sum((tuples[name] * len(pairs) for name, pairs in hops.items()), Fraction(0))
