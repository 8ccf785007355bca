"""The best schedule of a node at given multipliers: a dynamic programme over its items in the order of (6).

A schedule is the set of items that a node runs. Their order is fixed, so each item's demand bound is the cost of those
before it plus its own, and the programme's state is that sum. Labels (sum, value) that another label undercuts in
both are dropped; where too many are left, neighbours are merged into one that undercuts each. So the value is exact
with few labels and a lower bound always. After van den Akker, Hoogeveen and van de Velde, "Parallel machine scheduling
by column generation", Operations Research 47 (1999).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coordinator.model.problem import Problem

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, order=True)
class Schedule:
    """A column: items of one node in the order of (6), and the demand bound of each in ns."""

    node: int
    items: tuple[int, ...]
    ends_ns: tuple[int, ...]


@dataclass(frozen=True)
class Piece:
    """A part of an item's price: `late` for each ns after `due_ns`, minus `slack` for each before it."""

    due_ns: float
    late: float
    slack: float


@dataclass(frozen=True)
class Price:
    """What an item adds to the value of a schedule: its pieces at its demand bound, minus `reward`. It never falls
    with the demand bound."""

    reward: float
    pieces: tuple[Piece, ...]

    def at(self, ends_ns: Floats) -> Floats:
        """The price at each of some demand bounds."""
        found = np.full(len(ends_ns), -self.reward)
        for piece in self.pieces:
            over = ends_ns - piece.due_ns
            found += piece.late * np.maximum(over, 0.0)
            if piece.slack:
                found += piece.slack * np.minimum(over, 0.0)
        return found


@dataclass(frozen=True)
class Priced:
    """`value`: of no schedule of the node is it less; infinite: the node cannot run what is pinned to it."""

    value: float
    schedules: list[Schedule]


@dataclass(frozen=True)
class _Job:
    index: int
    cost_ns: int
    latest_ns: int
    pinned: bool


@dataclass(frozen=True)
class _Step:
    """How the labels after one item arose: the label before, and whether the item was taken."""

    job: _Job
    parents: npt.NDArray[np.intp]
    taken: npt.NDArray[np.bool_]


class NodePricing:
    """The programme of one node."""

    def __init__(self, problem: Problem, node: int, latest_ns: Mapping[int, int]) -> None:
        self.node = node
        self.jobs: list[_Job] = []
        for index in problem.order:
            item, held = problem.items[index], problem.held.get(index)
            nodes = item.nodes if held is None else (held,)
            if node in nodes:
                self.jobs.append(_Job(index, item.cost_ns[node], latest_ns[index], len(nodes) == 1))

    def price(self, prices: Sequence[Price], labels: int, wanted: int, held: Mapping[int, int] | None = None) -> Priced:
        """The least value of a schedule, and the `wanted` best that were found; at most `labels` labels at a time.
        `held`: items on these nodes, as if they were pinned there."""
        ends, values = np.zeros(1), np.zeros(1)
        steps: list[_Step] = []
        for job in self.jobs:
            price, at = prices[job.index], (held or {}).get(job.index, self.node)
            if at != self.node:
                continue
            pinned = job.pinned or job.index in (held or {})
            if not pinned and (job.cost_ns > job.latest_ns or price.at(np.array([float(job.cost_ns)]))[0] >= 0):
                continue  # it pays at no place of the order
            later = ends + job.cost_ns
            later = later[: int(np.searchsorted(later, job.latest_ns, side="right"))]
            worth = values[: len(later)] + price.at(later)
            parents = np.arange(len(later))
            taken = np.ones(len(later), dtype=np.bool_)
            if not pinned:
                later, worth = np.concatenate((ends, later)), np.concatenate((values, worth))
                parents = np.concatenate((np.arange(len(ends)), parents))
                taken = np.concatenate((np.zeros(len(ends), dtype=np.bool_), taken))
            if len(later) == 0:
                return Priced(float("inf"), [])
            order = np.lexsort((worth, later)) if len(later) > 1 else np.zeros(1, dtype=np.intp)
            later, worth = later[order], worth[order]
            lowest = np.minimum.accumulate(worth)
            kept = np.flatnonzero(np.concatenate((np.ones(1, dtype=np.bool_), worth[1:] < lowest[:-1])))
            first, last = _merged(later[kept], labels)
            ends, values = later[kept[first]], worth[kept[last]]
            chosen = order[kept[last]]
            steps.append(_Step(job, parents[chosen], taken[chosen]))
        best = range(len(values) - 1, max(-1, len(values) - 1 - wanted), -1)  # values fall as sums grow
        traced = [self._traced(steps, label) for label in best]
        return Priced(float(values[-1]), [each for each in traced if each])

    def _traced(self, steps: Sequence[_Step], label: int) -> Schedule | None:
        """None where a merged label hid that an item would be too late."""
        jobs: list[_Job] = []
        for step in reversed(steps):
            if step.taken[label]:
                jobs.append(step.job)
            label = int(step.parents[label])
        jobs.reverse()
        found = schedule(self.node, [(job.index, job.cost_ns) for job in jobs])
        held = all(end_ns <= job.latest_ns for job, end_ns in zip(jobs, found.ends_ns, strict=True))
        return found if held else None


def schedule(node: int, costs_ns: Sequence[tuple[int, int]]) -> Schedule:
    """The schedule of items, each with its cost on the node, in the order of (6)."""
    ends: list[int] = []
    for _, cost_ns in costs_ns:
        ends.append(cost_ns + (ends[-1] if ends else 0))
    return Schedule(node, tuple(index for index, _ in costs_ns), tuple(ends))


def _merged(ends: Floats, labels: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """First and last label of each group; each is its own where there are few enough. The merged one has the first's
    sum and the last's value, the least of both."""
    every = np.arange(len(ends))
    if len(ends) <= labels:
        return every, every
    scale = np.log(np.maximum(ends, 1.0))
    group = ((scale - scale[0]) * (labels / max(scale[-1] - scale[0], 1e-9))).astype(np.intp)
    first = np.flatnonzero(np.concatenate((np.ones(1, dtype=np.bool_), group[1:] != group[:-1])))
    return first, np.append(first[1:], len(ends)) - 1
