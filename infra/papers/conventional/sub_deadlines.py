"""Sub-deadlines by the rules of Kao and Garcia-Molina (1997) for serial subtasks, at planning time.

Their rules divide what is left when a subtask comes; planned, a subtask comes when the one before it is due. Execution
times are those of a whole burst, as [P] (1) needs them: a tuple waits for those of its burst before it. Of an activity
that several outputs need the smallest counts, as [P] 5.2.6 has it; links take their latency off the deadline.

*Ultimate* ("pure" in [P]'s field: the deadline itself), *effective* (less what has still to run), *equal slack*,
*equal flexibility* (slack in proportion to execution times: [P]'s (1), NLR 0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from infra.papers.conventional.transactions import Transactions

Rule = Callable[[Sequence[int], int], list[int]]
"""Of the execution times along a way and its deadline: when each subtask is due, after the event."""


def ultimate(costs_ns: Sequence[int], deadline_ns: int) -> list[int]:
    """UD: all when the whole is due."""
    return [deadline_ns] * len(costs_ns)


def effective(costs_ns: Sequence[int], deadline_ns: int) -> list[int]:
    """ED: early enough for what follows, if that need not wait."""
    return [deadline_ns - sum(costs_ns[i + 1 :]) for i in range(len(costs_ns))]


def equal_slack(costs_ns: Sequence[int], deadline_ns: int) -> list[int]:
    """EQS: slack in equal parts."""
    slack_ns = deadline_ns - sum(costs_ns)
    return [sum(costs_ns[: i + 1]) + slack_ns * (i + 1) // len(costs_ns) for i in range(len(costs_ns))]


def equal_flexibility(costs_ns: Sequence[int], deadline_ns: int) -> list[int]:
    """EQF: slack in proportion to execution times."""
    whole_ns = sum(costs_ns)
    return [int(Fraction(deadline_ns * sum(costs_ns[: i + 1]), whole_ns)) for i in range(len(costs_ns))]


def from_events(of: Transactions, rule: Rule) -> tuple[int, ...]:
    """By activity, after the event."""
    found: dict[int, int] = {}
    for output in of.outputs:
        way = of.way(output)
        dues_ns = rule(burst_costs_ns(of, way), output.deadline_ns - of.links_ns(output))
        for number, due_ns in zip(way, dues_ns, strict=True):
            found[number] = max(1, min(found.get(number, due_ns), due_ns))
    return tuple(found[number] for number in range(len(of.activities)))


def from_releases(of: Transactions, rule: Rule) -> tuple[int, ...]:
    """By activity, after its release. UD and ED leave all of it to each subtask; the others divide it."""
    divides = rule not in (ultimate, effective)
    found: dict[int, int] = {}
    for output in of.outputs:
        way = of.way(output)
        before_ns = 0
        for number, due_ns in zip(
            way, rule(burst_costs_ns(of, way), output.deadline_ns - of.links_ns(output)), strict=True
        ):
            own_ns = max(1, due_ns - before_ns)
            found[number] = min(found.get(number, own_ns), own_ns)
            before_ns = due_ns if divides else 0
    return tuple(found[number] for number in range(len(of.activities)))


def burst_costs_ns(of: Transactions, way: Sequence[int]) -> list[int]:
    """What one burst takes in each activity."""
    return [of.activities[number].work_ns(of.activities[number].batch) for number in way]


__all__ = [
    "Rule", "burst_costs_ns", "effective", "equal_flexibility", "equal_slack", "from_events", "from_releases",
    "ultimate",
]  # fmt: skip
