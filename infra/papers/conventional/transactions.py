"""A query as the holistic analyses see it: transactions, each a tree of activities on nodes (Tindell and Clark 1994).

An event of the world releases the first activity of its transaction; the end of an activity, or of a step of it,
releases those behind it. An activity is a task unit: it is never interrupted. All times are whole nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Event:
    """`burst` events at one instant every `period_ns`, each up to `jitter_ns` late (Tindell, Burns and Wellings 1994:
    sporadically periodic, with no time between those of a burst)."""

    period_ns: int
    burst: int = 1
    jitter_ns: int = 0

    def count(self, t_ns: int) -> int:
        """The most events in a closed window of that length; none below 0."""
        return self.burst * ((t_ns + self.jitter_ns) // self.period_ns + 1) if t_ns >= 0 else 0

    def span_ns(self, number: int) -> int:
        """The least time from an event to the one that is `number` - 1 events later."""
        return max(0, (number - 1) // self.burst * self.period_ns - self.jitter_ns)


@dataclass(frozen=True)
class Step:
    """An operator of an activity: of its consecutive jobs one of `one_of` comes to it at most."""

    cost_ns: int
    best_ns: int
    one_of: int = 1


@dataclass(frozen=True)
class Release:
    """What releases an activity that is not the first: the end of that many steps of another, `link_ns` later at
    most."""

    by: int
    steps: int
    link_ns: int


@dataclass(frozen=True)
class Activity:
    """`one_of`: of so many consecutive events one comes to it at most; `after` None: it is the first, and its node is
    where the event is seen, or up to `link_ns` away."""

    name: str
    node: str
    event: Event
    steps: tuple[Step, ...]
    after: Release | None = None
    one_of: int = 1
    link_ns: int = 0

    @cached_property
    def cost_ns(self) -> int:
        """C: of a job that comes to every step."""
        return sum(step.cost_ns for step in self.steps)

    def work_ns(self, jobs: int) -> int:
        """The most that many consecutive jobs take: jobs of a multiframe task (Mok and Chen 1996) where one filters."""
        return sum(step.cost_ns * -(-jobs // step.one_of) for step in self.steps)

    def span_ns(self, number: int) -> int:
        """The least time between the events of a job and of the one `number` - 1 jobs later."""
        return self.event.span_ns((number - 1) * self.one_of + 1)

    @property
    def batch(self) -> int:
        """Jobs that one burst of events releases."""
        return -(-self.event.burst // self.one_of)

    @property
    def utilisation(self) -> float:
        """Of its node, at worst."""
        each = sum(step.cost_ns / step.one_of for step in self.steps)
        return each * self.event.burst / self.one_of / self.event.period_ns

    def best_ns(self, steps: int) -> int:
        """Of that many steps, at least."""
        return sum(step.best_ns for step in self.steps[:steps])

    def rest_ns(self, steps: int) -> int:
        """What a job that leaves after that many steps runs at least until its activity ends."""
        last = self.steps[steps - 1].one_of
        return sum(step.cost_ns for step in self.steps[steps:] if step.one_of == last)


@dataclass(frozen=True)
class Output:
    """What the end of that many steps of an activity delivers, `link_ns` later at most."""

    name: str
    by: int
    steps: int
    link_ns: int
    deadline_ns: int


@dataclass(frozen=True)
class Transactions:
    """`activities`: each behind the one that releases it."""

    activities: tuple[Activity, ...]
    outputs: tuple[Output, ...]

    def on(self, node: str) -> list[int]:
        """The activities of a node."""
        return [number for number, each in enumerate(self.activities) if each.node == node]

    @cached_property
    def nodes(self) -> Sequence[str]:
        """Those with activities."""
        return sorted({each.node for each in self.activities})

    def way(self, output: Output) -> list[int]:
        """The activities behind an output, the first first."""
        found = [output.by]
        while (after := self.activities[found[-1]].after) is not None:
            found.append(after.by)
        return found[::-1]

    @cached_property
    def behind(self) -> list[list[Output]]:
        """The outputs that each activity leads to."""
        return [[each for each in self.outputs if number in self.way(each)] for number in range(len(self.activities))]

    def links_ns(self, output: Output) -> int:
        """What the links on the way to an output take, at most."""
        way = [self.activities[number] for number in self.way(output)]
        return output.link_ns + sum(each.after.link_ns if each.after else each.link_ns for each in way)

    @property
    def longest_ns(self) -> int:
        """The longest deadline."""
        return max(output.deadline_ns for output in self.outputs)


__all__ = ["Activity", "Event", "Output", "Release", "Step", "Transactions"]
