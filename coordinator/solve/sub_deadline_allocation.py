"""Sub-deadlines in integers for a placement that is settled, and what makes a placement impossible. No solver, no
floats.

Given the placement and the order of (6), each demand row is a lower bound of one sub-deadline: the cost of what
stands before it on its node. A placement is feasible exactly when, with every d at that bound, no path exceeds its
deadline.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from coordinator.model.problem import Problem, Terminal


def least_ns(problem: Problem, place: Mapping[int, int]) -> dict[int, int]:
    """(6) as lower bounds: cumulated cost per node in the order of d'."""
    busy: dict[int, int] = {}
    least: dict[int, int] = {}
    for index in problem.order:
        node = place[index]
        busy[node] = busy.get(node, 0) + problem.items[index].cost_ns[node]
        least[index] = busy[node]
    return least


def longest_path(problem: Problem, terminal: Terminal, d_ns: Mapping[int, int]) -> tuple[int, list[int]]:
    """(5): the longest path to a terminal under given sub-deadlines, in ns, and its items from source to end."""
    ends: dict[int, int] = {}
    back: dict[int, int | None] = {}
    for index in topological(problem, terminal):
        before = [(ends[one], one) for one in problem.items[index].before]
        latest = max(before, default=(0, None), key=lambda pair: pair[0])
        ends[index], back[index] = latest[0] + d_ns[index], latest[1]
    path: list[int] = []
    step: int | None = terminal.end
    while step is not None:
        path.append(step)
        step = back[step]
    return ends[terminal.end], path[::-1]


def topological(problem: Problem, terminal: Terminal) -> list[int]:
    """Items of a terminal; a contracted chain stands where its head stands, so the built order is topological."""
    done: list[int] = []
    seen: set[int] = set()
    stack = [(terminal.end, False)]
    while stack:
        index, expanded = stack.pop()
        if expanded:
            done.append(index)
        elif index not in seen:
            seen.add(index)
            stack.append((index, True))
            stack.extend((before, False) for before in problem.items[index].before)
    return done


def settle(problem: Problem, place: Mapping[int, int], wanted_ns: Mapping[int, Fraction]) -> dict[int, int] | None:
    """Integers near `wanted_ns` that hold (5) and (6) exactly; None where the placement cannot hold them.

    Rounds down, lifts to the demand bounds, and takes back from a path, where it is then too long, from the item with
    most to give.
    """
    least = least_ns(problem, place)
    d_ns = {index: max(least[index], int(wanted_ns[index] + Fraction(1, 16))) for index in least}
    for terminal in problem.terminals:
        if longest_path(problem, terminal, least)[0] > terminal.deadline_ns:
            return None
        while True:
            length_ns, path = longest_path(problem, terminal, d_ns)
            over_ns = length_ns - terminal.deadline_ns
            if over_ns <= 0:
                break
            giver = max(path, key=lambda index: d_ns[index] - least[index])
            d_ns[giver] -= min(over_ns, d_ns[giver] - least[giver])
    return d_ns


def per_operator(problem: Problem, d_ns: Mapping[int, int]) -> dict[str, int]:
    """A chain's sub-deadline split among its members in proportion to cost, rounded down; the last takes the rest."""
    shares: dict[str, int] = {}
    for index, item in enumerate(problem.items):
        left = d_ns[index]
        for name, weight_ns in zip(item.members[:-1], item.members_ns[:-1], strict=True):
            shares[name] = d_ns[index] * weight_ns // item.weight_ns
            left -= shares[name]
        shares[item.members[-1]] = left
    return shares
