"""Simulated annealing of traffic: items, alone or with neighbours, move between nodes, and worse is taken by chance.

What is late at (1), and what exceeds a cap, has a price, so the search goes through placements that are no plan. The
price rises while the temperature falls (Kirkpatrick, Gelatt and Vecchi, 1983). A neighbour is an item that shares a
stream: a chain moves as one, where each of its items alone would cross twice. Moves cost what their items' streams and
their two nodes' items cost, some 10 us. No solver.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import log
from operator import gt

from coordinator.solve.heuristics.search_state import TOLERANCE, SearchState

HOT, COLD = 2.0, 1 / 15  # temperatures, in mean tuples of a stream
PRICE = 7.0  # of what is late by its own cost, in mean tuples, at first; it goes with the temperature's inverse root
FULL = 100.0  # lateness of a node that is twice as busy as its cap
NEAR = 0.85  # of the moves go to a node that a stream of the item touches
ALONE, SOME, LEFT = 0.4, 0.7, 0.3  # chances that an item moves alone, or at most with some, each left out by LEFT
GROUPS = 10_000  # remembered: most come again
STRIDE = 256  # moves between two questions for the time
LEAST = 1e-7  # of traffic, relative, by which a placement has to be better than the one before


@dataclass(frozen=True)
class Group:
    """Items that move together. `reads`: how many of them read each of their streams; `makes`: streams of theirs."""

    items: tuple[int, ...]
    ranks: frozenset[int]
    reads: dict[int, int]
    makes: frozenset[int]


class Annealing:
    """A run from a state's placement, which has to be whole. The state itself stays."""

    def __init__(self, state: SearchState, dice: random.Random) -> None:
        self.state, self.dice = state, dice
        self.place = list(state.place)
        order, items, nodes = state.problem.order, state.problem.items, range(len(state.here))
        self.due = [state.due[index] for index in order]  # these four by rank
        self.weight = [items[index].weight_ns for index in order]
        self.cost = [[state.cost[index].get(node, 0) for index in order] for node in nodes]
        self.load = [[state.load[index].get(node, 0.0) for index in order] for node in nodes]
        self.here = [list(ranks) for ranks in state.here]
        self.late = [self._lateness(node, ranks) for node, ranks in enumerate(self.here)]
        self.traffic, self.best = state.traffic, float("inf")
        self.alone = [self._single(index) for index in range(len(self.place))]
        self.together = lru_cache(GROUPS)(self._together)
        self.free = [index for index, nodes in enumerate(state.nodes) if len(nodes) > 1]
        self.near: list[list[int]] = [[] for _ in self.place]  # items that share a stream and may be on any node
        self.ends: list[list[int]] = [[] for _ in self.place]  # where streams enter and leave
        self.beside: list[list[int]] = [[] for _ in self.place]  # all items that share a stream
        self.start: list[int] = []
        self.users: list[list[int]] = []  # per stream and node
        for number in range(len(state.tuples)):
            self._stream(number)

    def run(self, passed: Callable[[], float], found: Callable[[Sequence[int]], None]) -> None:
        """Until `passed`, the part of the run that is over, is 1. `found` is called with each placement that holds (1)
        with less traffic than those before."""
        mean = sum(self.state.tuples) / max(1, len(self.state.tuples))
        while self.free and (share := passed()) < 1:
            cooled = (COLD / HOT) ** share
            for _ in range(STRIDE):
                moved = self._moved(mean * HOT * cooled, mean * PRICE / cooled**0.5)
                if moved and self.traffic < self.best * (1 - LEAST) and not any(self.late):
                    self.best = self.traffic
                    found(self.place)

    def _stream(self, number: int) -> None:
        stream = self.state.problem.streams[number]
        start = self.place[stream.item] if stream.item is not None else stream.node
        assert start is not None  # an item or a node makes it
        self.start.append(start)
        self.users.append([0] * len(self.here))
        for node in (*stream.sinks, *(self.place[reader] for reader in stream.readers)):
            self.users[number][node] += 1
        linked = [*stream.readers, *([stream.item] if stream.item is not None else [])]
        for index in linked:
            others = [one for one in linked if one != index]
            self.beside[index] += others
            self.near[index] += [one for one in others if len(self.state.nodes[one]) == len(self.here)]
            self.ends[index] += [stream.node] if stream.node is not None else []
            self.ends[index] += stream.sinks if index == stream.item else ()

    def _single(self, index: int) -> Group:
        streams = self.state.problem.streams
        reads = {number: int(index in streams[number].readers) for number in self.state.streams[index]}
        makes = frozenset(number for number in reads if streams[number].item == index)
        return Group((index,), frozenset((self.state.rank[index],)), reads, makes)

    def _moved(self, temperature: float, price: float) -> bool:
        """Tries a move; whether it was taken. What it may cost is drawn first, so that most need not be weighed."""
        draw = self.dice.random
        index = self.free[int(draw() * len(self.free))]
        home, node = self.place[index], self._target(index)
        if node == home or node not in self.state.cost[index]:
            return False
        group = self._group(index, home)
        most = -temperature * log(1.0 - draw())
        traffic = self._gain(group, home, node)
        if traffic - price * self.late[home] > most:
            return False
        joined = sorted([*self.here[node], *group.ranks])
        late = self._lateness(node, joined)
        worse = traffic + price * (late - self.late[node])
        if worse - price * self.late[home] > most:
            return False
        rest = [rank for rank in self.here[home] if rank not in group.ranks]
        less = self._lateness(home, rest) if self.late[home] else 0.0
        if worse + price * (less - self.late[home]) > most:
            return False
        self.here[home], self.here[node] = rest, joined
        self.late[home], self.late[node] = less, late
        self.traffic += traffic
        self._move(group, home, node)
        return True

    def _target(self, index: int) -> int:
        draw = self.dice.random
        if draw() >= NEAR:
            return int(draw() * len(self.here))
        beside, ends = self.beside[index], self.ends[index]
        at = int(draw() * (len(beside) + len(ends)))
        return self.place[beside[at]] if at < len(beside) else ends[at - len(beside)]

    def _group(self, first: int, home: int) -> Group:
        """An item, with all linked ones on its node, or some of them."""
        draw = self.dice.random
        drawn = draw()
        if drawn < ALONE:
            return self.alone[first]
        left = LEFT if drawn < SOME else 0.0
        items, frontier, seen = [first], [first], {first}
        while frontier:
            for one in self.near[frontier.pop()]:
                if self.place[one] == home and one not in seen:
                    seen.add(one)
                    if draw() >= left:
                        items.append(one)
                        frontier.append(one)
        return self.alone[first] if len(items) == 1 else self.together(frozenset(items))

    def _together(self, items: frozenset[int]) -> Group:
        reads: dict[int, int] = {}
        for index in items:
            for number, readers in self.alone[index].reads.items():
                reads[number] = reads.get(number, 0) + readers
        singles = [self.alone[index] for index in items]
        ranks = frozenset(self.state.rank[index] for index in items)
        return Group(tuple(sorted(items)), ranks, reads, frozenset().union(*(one.makes for one in singles)))

    def _gain(self, group: Group, home: int, node: int) -> float:
        """Tuples per burst more, of a group that goes from a node to another: no third one matters."""
        found = 0.0
        for number, moved in group.reads.items():
            users, start = self.users[number], self.start[number]
            if number in group.makes:
                hops = (users[home] > moved) - (users[node] > 0)
            else:
                hops = (not users[node] and node != start) - (users[home] == moved and home != start)
            if hops:
                found += self.state.tuples[number] * hops
        return found

    def _move(self, group: Group, home: int, node: int) -> None:
        for index in group.items:
            self.place[index] = node
        for number, moved in group.reads.items():
            self.users[number][home] -= moved
            self.users[number][node] += moved
            if number in group.makes:
                self.start[number] = node

    def _lateness(self, node: int, ranks: Sequence[int]) -> float:
        """By how much items end after their d', each by its own cost, and the node is above its cap; 0: (6) holds."""
        costs = self.cost[node]
        ends = list(accumulate(map(costs.__getitem__, ranks)))
        dues = list(map(self.due.__getitem__, ranks))
        over = sum(map(self.load[node].__getitem__, ranks)) / self.state.cap[node] - 1 - TOLERANCE
        late = FULL * over if over > 0 else 0.0
        if any(map(gt, ends, dues)):
            weights = map(self.weight.__getitem__, ranks)
            late += sum((end - due) / weight for end, due, weight in zip(ends, dues, weights, strict=True) if end > due)
        return late
