"""What an item's demand bound costs: the terms of (3) that a completion on a node settles, and those it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator.model.problem import Problem


@dataclass(frozen=True)
class Share:
    """d'[s,o] of one output and item, in ns; `per_ns`: what a nanosecond more or less adds to NLR."""

    terminal: int
    due_ns: float
    per_ns: float

    def late_ns(self, end_ns: float) -> float:
        """By how much a share has to exceed d' where the item's demand bound is `end_ns`."""
        return max(0.0, end_ns - self.due_ns)

    def slack_ns(self, end_ns: float) -> float:
        """By how much a share may be below d' there."""
        return max(0.0, self.due_ns - end_ns)


def shares(problem: Problem) -> list[tuple[Share, ...]]:
    """Per item, one share for each output that it serves."""
    found: list[list[Share]] = [[] for _ in problem.items]
    for number, terminal in enumerate(problem.terminals):
        for index in terminal.items:
            item = problem.items[index]
            found[index].append(Share(number, float(terminal.share(item)), 1 / item.weight_ns))
    return [tuple(each) for each in found]


def latest_ns(problem: Problem) -> dict[int, int]:
    """The latest sub-deadline an item can have in any plan: what the rest of each path needs at least is taken off."""
    fastest = {index: min(item.cost_ns.values()) for index, item in enumerate(problem.items)}
    found: dict[int, int] = {}
    for terminal in problem.terminals:
        head: dict[int, int] = {}
        tail: dict[int, int] = {}
        inside = sorted(terminal.items)  # the built order is topological
        for index in inside:
            head[index] = max((head[one] for one in problem.items[index].before), default=0) + fastest[index]
        for index in reversed(inside):
            tail.setdefault(index, 0)
            for one in problem.items[index].before:
                tail[one] = max(tail.get(one, 0), tail[index] + fastest[index])
        for index in inside:
            room = terminal.deadline_ns - head[index] - tail[index] + fastest[index]
            found[index] = min(found.get(index, room), room)
    return found


@dataclass(frozen=True)
class Path:
    """Items of an output from its first to its last, one after the other: (5) for one path."""

    terminal: int
    items: tuple[int, ...]


def longest_path(problem: Problem, number: int, taken_ns: Mapping[int, float]) -> tuple[float, Path]:
    """The longest path of an output where its items take so long, and its length in ns."""
    terminal = problem.terminals[number]
    ends: dict[int, float] = {}
    back: dict[int, int | None] = {}
    for index in sorted(terminal.items):  # the built order is topological
        last = max(problem.items[index].before, key=ends.__getitem__, default=None)
        ends[index] = taken_ns[index] + (0.0 if last is None else ends[last])
        back[index] = last
    path: list[int] = []
    step: int | None = terminal.end
    while step is not None:
        path.append(step)
        step = back[step]
    return ends[terminal.end], Path(number, tuple(reversed(path)))
