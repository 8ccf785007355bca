"""Search state: a placement changed move by move, with demand, normalised laxity and traffic up to date. No solver.

What makes this cheap. In (6) the sub-deadlines D[o] may as well stand at their lower bounds `least` (the cost of what
stands before on the node, in the order of d'): that holds every demand row. Each output stream s
then asks alone for shares d[s,o] >= least[o] along its paths, so a move touches the streams of the items behind
it on two nodes and no others. An output whose items all have least <= d' has NLR 0.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coordinator.model.problem import Problem
from coordinator.solve import sub_deadline_allocation

TOLERANCE = 1e-9


@dataclass(frozen=True, order=True)
class Score:
    """Compared from left to right. `over`: by how much paths exceed their deadlines and nodes their caps, relative;
    above 0: no plan. `nlr` of [P] (3), exact where an output has a single path, else an upper bound; `traffic`: tuples
    per burst between nodes."""

    over: float
    nlr: float
    traffic: float

    def better(self, other: Score) -> bool:
        """Strictly better, by more than rounding."""
        for one, two in ((self.over, other.over), (self.nlr, other.nlr), (self.traffic, other.traffic)):
            if abs(one - two) > 1e-7 * max(1.0, abs(two)):
                return one < two
        return False


class Output:
    """One output stream under (3) to (5): its items in topological order, d' in ns, the positions before each."""

    def __init__(self, problem: Problem, number: int) -> None:
        terminal = problem.terminals[number]
        self.items = sub_deadline_allocation.topological(problem, terminal)
        at = {index: position for position, index in enumerate(self.items)}
        self.before = [tuple(at[one] for one in problem.items[index].before) for index in self.items]
        self.cost = [problem.items[index].weight_ns for index in self.items]
        self.deadline_ns = terminal.deadline_ns
        self.due = [float(terminal.share(problem.items[index])) for index in self.items]
        self.end = at[terminal.end]

    def longest(self, wanted: list[float]) -> tuple[float, list[int]]:
        """(5): length of the longest path to the end, and its positions."""
        ends: list[float] = []
        back: list[int] = []
        for position, before in enumerate(self.before):
            last = max(before, key=ends.__getitem__, default=-1)
            ends.append(wanted[position] + (ends[last] if last >= 0 else 0.0))
            back.append(last)
        path, step = [], self.end
        while step >= 0:
            path.append(step)
            step = back[step]
        return ends[self.end], path

    def laxity(self, least: list[int]) -> tuple[float, float]:
        """(relative excess, NLR) of the best shares found."""
        over, nlr, _ = self.shares(least)
        return over, nlr

    def shares(self, least: list[int]) -> tuple[float, float, list[float]]:
        """(relative excess, NLR, share of every item in ns).

        Shares stand at d' or at `least`; where a path is then too long it is shortened at its costliest items, where
        a nanosecond weighs least: optimal for a single path, an upper bound for more.
        """
        nlr, wanted = 0.0, list(self.due)
        for position, index in enumerate(self.items):
            above = least[index] - self.due[position]
            if above > 0:
                wanted[position] = float(least[index])
                nlr += above / self.cost[position]
        if nlr == 0.0:
            return 0.0, 0.0, wanted
        while True:
            length, path = self.longest(wanted)
            over = length - self.deadline_ns
            if over <= TOLERANCE * self.deadline_ns:
                return 0.0, nlr, wanted
            for position in sorted(path, key=lambda one: -self.cost[one]):
                given = min(over, wanted[position] - least[self.items[position]])
                if given > 0:
                    wanted[position] -= given
                    nlr += given / self.cost[position]
                    over -= given
            if over > TOLERANCE * self.deadline_ns:
                return over / self.deadline_ns, nlr, wanted


class SearchState:
    """The state. `place[i]`: node of item i, -1 while it has none."""

    def __init__(self, problem: Problem, due_ns: Mapping[int, int]) -> None:
        count = len(problem.items)
        self.problem = problem
        self.due = [due_ns[index] for index in range(count)]
        self.rank = [0] * count
        for position, index in enumerate(problem.order):
            self.rank[index] = position
        self.nodes = [(problem.held[i],) if i in problem.held else item.nodes for i, item in enumerate(problem.items)]
        self.cost = [item.cost_ns for item in problem.items]
        self.load = [{node: float(load) for node, load in item.load.items()} for item in problem.items]
        self.cap = [float(node.cap) for node in problem.nodes]
        self.outputs = [Output(problem, number) for number in range(len(problem.terminals))]
        self.serves: list[list[int]] = [[] for _ in range(count)]
        for number, output in enumerate(self.outputs):
            for index in output.items:
                self.serves[index].append(number)
        self.tuples = [float(stream.tuples) for stream in problem.streams]
        self.streams: list[list[int]] = [[] for _ in range(count)]
        for number, stream in enumerate(problem.streams):
            for index in {*stream.readers, *([stream.item] if stream.item is not None else [])}:
                self.streams[index].append(number)
        self.place = [-1] * count
        self.least = [0] * count
        self.here: list[list[int]] = [[] for _ in problem.nodes]  # ranks, ascending
        self.used = [0.0] * len(problem.nodes)
        self.output_over = [0.0] * len(self.outputs)
        self.output_nlr = [0.0] * len(self.outputs)
        self.over = self.nlr = 0.0
        self.traffic = sum(self._crossing(number) for number in range(len(self.tuples)))

    def score(self) -> Score:
        """The figures of the placement as it stands."""
        over, nlr = (0.0 if one < TOLERANCE else one for one in (self.over, self.nlr))  # sums accumulate rounding
        return Score(over, nlr, self.traffic)

    def wanted_ns(self) -> dict[int, float]:
        """5.2.6: the smallest share of every item over the outputs it serves."""
        found: dict[int, float] = {}
        for output in self.outputs:
            for index, share in zip(output.items, output.shares(self.least)[2], strict=True):
                found[index] = min(found.get(index, share), share)
        return found

    def load_placement(self, place: Mapping[int, int]) -> None:
        """Replaces the whole placement; its sums start afresh, free of accumulated rounding."""
        self.here = [[] for _ in self.problem.nodes]
        self.used = [0.0] * len(self.problem.nodes)
        self.place = [place[index] for index in range(len(self.place))]
        for index, node in enumerate(self.place):
            self.here[node].append(self.rank[index])
            self.used[node] += self.load[index][node]
        for ranks in self.here:
            ranks.sort()
        self.over = sum(self._overload(node) for node in range(len(self.here)))
        for node in range(len(self.here)):
            self._demand(node, 0)
        self.output_over, self.output_nlr = [0.0] * len(self.outputs), [0.0] * len(self.outputs)
        self.nlr = 0.0
        self._outputs(range(len(self.outputs)))
        self.traffic = sum(self._crossing(number) for number in range(len(self.tuples)))

    def move(self, index: int, node: int) -> None:
        """Moves an item; -1 takes it off."""
        before = self.place[index]
        if before == node:
            return
        self.traffic -= sum(self._crossing(number) for number in self.streams[index])
        changed: set[int] = set()
        for at, joins in ((before, False), (node, True)):
            if at < 0:
                continue
            self.over -= self._overload(at)
            position = bisect_left(self.here[at], self.rank[index])
            if joins:
                self.here[at].insert(position, self.rank[index])
                self.used[at] += self.load[index][at]
            else:
                del self.here[at][position]
                self.used[at] -= self.load[index][at]
            self.over += self._overload(at)
            self.place[index] = node
            changed |= self._demand(at, position)
        if node < 0:
            self.place[index], self.least[index] = -1, 0
            changed.update(self.serves[index])
        self._outputs(changed)
        self.traffic += sum(self._crossing(number) for number in self.streams[index])

    def fits(self, index: int, node: int) -> bool:
        """Whether an item could join a node with every sub-deadline there still at d', within the node's cap."""
        if self.used[node] + self.load[index][node] > self.cap[node] * (1 + TOLERANCE):
            return False
        order, ranks, cost = self.problem.order, self.here[node], self.cost[index][node]
        position = bisect_left(ranks, self.rank[index])
        busy = self.least[order[ranks[position - 1]]] if position else 0
        if busy + cost > self.due[index]:
            return False
        return all(self.least[order[rank]] + cost <= self.due[order[rank]] for rank in ranks[position:])

    def attraction(self, index: int) -> dict[int, float]:
        """Per node that something beside the item uses its streams on: tuples per burst saved there against a node of
        no relation. Exact for the streams it reads; for its own, what lies at that node already."""
        found: dict[int, float] = {}
        for number in self.streams[index]:
            stream = self.problem.streams[number]
            own = stream.item == index
            start = -1 if own else self.place[stream.item] if stream.item is not None else stream.node
            nodes = {self.place[reader] for reader in stream.readers if reader != index} | set(stream.sinks)
            for node in nodes | {start}:
                if node is not None and node >= 0:
                    found[node] = found.get(node, 0.0) + self.tuples[number]
        return found

    def _overload(self, node: int) -> float:
        return max(0.0, self.used[node] - self.cap[node] * (1 + TOLERANCE))

    def _demand(self, node: int, position: int) -> set[int]:
        """(6) from a position on; returns the outputs for which it matters."""
        order, ranks = self.problem.order, self.here[node]
        busy = self.least[order[ranks[position - 1]]] if position else 0
        changed: set[int] = set()
        for rank in ranks[position:]:
            index = order[rank]
            busy += self.cost[index][node]
            if busy > self.due[index] or self.least[index] > self.due[index]:
                changed.update(self.serves[index])
            elif busy != self.least[index]:  # below d' it only matters where something else has to be shortened
                changed.update(one for one in self.serves[index] if self.output_nlr[one] or self.output_over[one])
            self.least[index] = busy
        return changed

    def _outputs(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            over, nlr = self.outputs[number].laxity(self.least)
            self.over += over - self.output_over[number]
            self.nlr += nlr - self.output_nlr[number]
            self.output_over[number], self.output_nlr[number] = over, nlr

    def _crossing(self, number: int) -> float:
        """Tuples per burst of a stream between nodes, sent straight to each node that needs it."""
        stream, place = self.problem.streams[number], self.place
        start = place[stream.item] if stream.item is not None else stream.node
        ends = {place[reader] for reader in stream.readers}
        ends.update(stream.sinks)
        ends.discard(start if start is not None else -1)
        ends.discard(-1)
        return self.tuples[number] * len(ends)
