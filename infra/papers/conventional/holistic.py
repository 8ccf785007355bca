"""Holistic analysis (Tindell and Clark 1994): node by node, with the jitter that the nodes before it make, until
nothing grows.

An activity that is released by another has the jitter J = (latest - least time until its release). Response times are
from the event of the transaction, not from the release: a job that comes late because it was waited for is not charged
for that again where jobs catch up with each other. Jitters only grow, so the first fixed point is the least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from infra.papers.conventional.node_load import NodeLoad, UnboundedError
from infra.papers.conventional.transactions import Transactions

WORTH_HAVING = 3  # times the longest deadline behind an activity: beyond it there is no bound


class Scheduling(Protocol):
    """How nodes choose among jobs; an instance that began is not interrupted."""

    def longest_ns(self, load: NodeLoad, numbers: Sequence[int], at: int) -> int:
        """Of activity number `numbers[at]`, one of those on a node: from the event of a job, moved by the least time
        until its release, to its end, at most."""


def bounds_ns(of: Transactions, scheduling: Scheduling, worth_having: int = WORTH_HAVING) -> dict[str, int | None]:
    """From event to result, per output. None, for all: one grows beyond what is worth having, or U >= 1."""
    try:
        ends_ns = responses_ns(of, scheduling, worth_having)
    except UnboundedError:
        return dict.fromkeys(output.name for output in of.outputs)
    return {
        output.name: ends_ns[output.by] - of.activities[output.by].rest_ns(output.steps) + output.link_ns
        for output in of.outputs
    }


def responses_ns(of: Transactions, scheduling: Scheduling, worth_having: int = WORTH_HAVING) -> list[int]:
    """From the event until each activity has ended, at most. Raises UnboundedError."""
    most_ns = [worth_having * max((each.deadline_ns for each in behind), default=of.longest_ns) for behind in of.behind]
    least_ns = least_releases_ns(of)
    ends_ns = [least + each.cost_ns for least, each in zip(least_ns, of.activities, strict=True)]
    seen: dict[str, list[int]] = {}
    while True:
        changed = False
        for node in of.nodes:
            numbers = of.on(node)
            jitter_ns = [latest_release_ns(of, ends_ns, number) - least_ns[number] for number in numbers]
            if seen.get(node) == jitter_ns:
                continue
            seen[node] = jitter_ns
            load = NodeLoad.of([of.activities[number] for number in numbers], jitter_ns)
            for at, number in enumerate(numbers):
                ends_ns[number] = least_ns[number] + scheduling.longest_ns(load, numbers, at)
                changed = True
                if ends_ns[number] > most_ns[number]:
                    raise UnboundedError("beyond what is worth having")
        if not changed:
            return ends_ns


def latest_release_ns(of: Transactions, ends_ns: Sequence[int], number: int) -> int:
    """After the event, given when activities end."""
    activity = of.activities[number]
    if activity.after is None:
        return activity.link_ns
    by = of.activities[activity.after.by]
    return ends_ns[activity.after.by] - by.rest_ns(activity.after.steps) + activity.after.link_ns


def least_releases_ns(of: Transactions) -> list[int]:
    """After the event, of every activity; links may take no time."""
    found: list[int] = []
    for activity in of.activities:
        after = activity.after
        found.append(found[after.by] + of.activities[after.by].best_ns(after.steps) if after else 0)
    return found


def holds(of: Transactions, found: Mapping[str, int | None]) -> bool:
    """Whether every output is within its deadline."""
    return all((ns := found[output.name]) is not None and ns <= output.deadline_ns for output in of.outputs)


__all__ = ["Scheduling", "bounds_ns", "holds", "latest_release_ns", "least_releases_ns", "responses_ns"]
