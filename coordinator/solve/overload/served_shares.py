"""The share of each output's results that can at most be served on a placement, by time alone: no cap, no charge.

Ranks are served in their order. Within a rank all outputs are served alike, up to the share at which a node on the way
of one of them is full; the others go on. What two outputs need runs as often as the one that is served more.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from coordinator.model.problem import LEAST_CAP, Problem, Terminal
from coordinator.solve.overload.precedence import Rank, ranks

WHOLE = Fraction(1)


def served(problem: Problem, place: Mapping[int, int]) -> dict[str, Fraction]:
    """By output, from 0 to 1."""
    room = {node.index: max(LEAST_CAP, WHOLE - problem.calls.get(node.name, 0)) for node in problem.nodes}
    runs = dict.fromkeys(range(len(problem.items)), Fraction(0))  # the share of its tuples that an item runs on
    found: dict[str, Fraction] = {}
    for rank in ranks(problem):
        found |= _rank(problem, place, rank, runs, room)
    return found


def _rank(
    problem: Problem, place: Mapping[int, int], rank: Rank, runs: dict[int, Fraction], room: dict[int, Fraction]
) -> dict[str, Fraction]:
    """One rank, in what the ranks before it have left; takes what it is served from `room`."""
    level, growing = Fraction(0), list(rank)
    found: dict[str, Fraction] = {}
    while growing:
        more = _until_full(problem, place, growing, runs, room, level)
        for index in {index for terminal in growing for index in terminal.items}:
            added = max(Fraction(0), more - max(level, runs[index]))
            room[place[index]] -= added * problem.items[index].load[place[index]]
            runs[index] = max(runs[index], more)
        level = more
        full = {node for node, left in room.items() if left <= 0}
        stopped = [one for one in growing if level >= WHOLE or _is_stopped(problem, place, one, runs, full, level)]
        found |= {one.name: level for one in stopped}
        growing = [one for one in growing if one not in stopped]
    return found


def _until_full(
    problem: Problem,
    place: Mapping[int, int],
    growing: list[Terminal],
    runs: Mapping[int, Fraction],
    room: Mapping[int, Fraction],
    level: Fraction,
) -> Fraction:
    """The next level of these outputs at which a node is full, an item runs on more tuples than before, or all is
    served."""
    items = {index for terminal in growing for index in terminal.items}
    steps = [WHOLE, *(runs[index] for index in items if runs[index] > level)]
    asked: dict[int, Fraction] = {}
    for index in items:
        if runs[index] <= level:
            asked[place[index]] = asked.get(place[index], Fraction(0)) + problem.items[index].load[place[index]]
    steps += [level + room[node] / load for node, load in asked.items() if load]
    return min(steps)


def _is_stopped(
    problem: Problem,
    place: Mapping[int, int],
    terminal: Terminal,
    runs: Mapping[int, Fraction],
    full: set[int],
    level: Fraction,
) -> bool:
    """Whether more of an output would take more of a full node."""
    return any(
        runs[index] <= level and place[index] in full and problem.items[index].load[place[index]] > 0
        for index in terminal.items
    )
