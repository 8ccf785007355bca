"""Nodes that run activities without interruption, as small as it can be: what the analyses are held against.

It shares the description of transactions with them, and nothing else. Times are small integers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

from infra.papers.conventional.transactions import Transactions

Key = Callable[[int, int, int], int]  # of an activity, its release and its event: the least goes first
RELEASED, ENDED, CHOOSES = 0, 1, 2  # in this order at one instant


@dataclass(frozen=True)
class Story:
    """What declarations leave open: `events`: instants by the first activity of each transaction; `quick`: the share
    of steps and links that take the least; `late_ties`: activities that go last where keys are equal."""

    events: dict[int, Sequence[int]]
    quick: float
    late_ties: frozenset[int]
    seed: int


def worst(of: Transactions, key: Key, story: Story) -> dict[str, int]:
    """From event to result, by output."""
    return _Run(of, key, story).go()


class _Run:
    def __init__(self, of: Transactions, key: Key, story: Story) -> None:
        self.of, self.key, self.story, self.dice = of, key, story, Random(story.seed)
        self.events: list[tuple[int, int, int, tuple[int, ...]]] = []
        self.waiting: dict[str, list[tuple[int, bool, int, int, int]]] = {node: [] for node in of.nodes}
        self.running: set[str] = set()
        self.order = 0
        self.ran = dict.fromkeys(range(len(of.activities)), 0)
        self.last_ns = dict.fromkeys(range(len(of.activities)), 0)
        self.seen = 0
        self.found = {output.name: 0 for output in of.outputs}

    def at(self, ns: int, kind: int, *given: int) -> None:
        self.order += 1
        heappush(self.events, (ns, kind, self.order, given))

    def go(self) -> dict[str, int]:
        for number, instants in self.story.events.items():
            for event_ns in instants:
                self.arrive(event_ns + self.link(self.of.activities[number].link_ns), number, event_ns)
        while self.events:
            ns, kind, _, given = heappop(self.events)
            if kind == RELEASED:
                self.release(ns, *given)
            elif kind == ENDED:
                self.running.discard(self.of.nodes[given[0]])
                self.at(ns, CHOOSES, given[0])
            else:
                self.choose(ns, given[0])
        return self.found

    def link(self, most_ns: int) -> int:
        return 0 if self.dice.random() < self.story.quick else most_ns

    def arrive(self, ns: int, number: int, event_ns: int) -> None:
        """In order, as links are."""
        self.last_ns[number] = max(ns, self.last_ns[number])
        self.at(self.last_ns[number], RELEASED, number, event_ns)

    def release(self, ns: int, number: int, event_ns: int) -> None:
        activity = self.of.activities[number]
        self.order += 1
        tie = number in self.story.late_ties
        heappush(self.waiting[activity.node], (self.key(number, ns, event_ns), tie, self.order, number, event_ns))
        self.at(ns, CHOOSES, self.of.nodes.index(activity.node))

    def choose(self, ns: int, node_number: int) -> None:
        node = self.of.nodes[node_number]
        if node in self.running or not self.waiting[node]:
            return
        *_, number, event_ns = heappop(self.waiting[node])
        self.running.add(node)
        self.at(self.run(ns, number, event_ns), ENDED, node_number)

    def run(self, ns: int, number: int, event_ns: int) -> int:
        """One of so many jobs passes a filter, the first first."""
        activity, job = self.of.activities[number], self.ran[number]
        self.ran[number] += 1
        for done, step in enumerate(activity.steps, start=1):
            if job % step.one_of:
                break
            ns += step.best_ns if self.dice.random() < self.story.quick else step.cost_ns
            self.leave(ns, number, done, job, event_ns)
        return ns

    def leave(self, ns: int, number: int, done: int, job: int, event_ns: int) -> None:
        for output in self.of.outputs:
            if (output.by, output.steps) == (number, done):
                took_ns = ns + self.link(output.link_ns) - event_ns
                self.found[output.name] = max(self.found[output.name], took_ns)
        maker = self.of.activities[number]
        for behind, activity in enumerate(self.of.activities):
            after = activity.after
            if after is not None and (after.by, after.steps) == (number, done):
                passes = activity.one_of // maker.one_of
                if not job % passes:
                    self.arrive(ns + self.link(after.link_ns), behind, event_ns)


__all__ = ["Key", "Story", "worst"]
