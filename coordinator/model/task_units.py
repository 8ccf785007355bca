"""Task units: the paths of operators that one task instance runs without a break ([P] 5.3).

Printed rules: an operator with one output stream merges with a successor that has one input stream; an operator with
several output streams merges with the successor on the way to the least end-to-end deadline. Here an operator has one
stream, so "several output streams" are several consumers of it: operators, sends and outputs. Side inputs trigger
nothing and do not count. A join or union starts a unit. A unit has at most four exits (streams that leave it),
because a trace record has room for four.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

LARGEST_EXITS = 4
Units = Literal["path", "operator"]


@dataclass(frozen=True)
class Use:
    """A consumer of a stream: an operator it triggers, or (None) an output or another node's operator; `deadline_ns` it
    leads to, 0 for none; `mergeable`: on the same node, with this one trigger input."""

    operator: str | None
    deadline_ns: int
    mergeable: bool


def extract(
    names: list[str], uses: Mapping[str, list[Use]], leaves: Callable[[str, str | None], bool], units: Units
) -> list[tuple[str, ...]]:
    """The units of one node's operators (`names` in topological order), in the order of their first operators.

    `leaves(name, next)`: whether the stream of `name` has any consumer besides `next`.
    """
    follows: dict[str, str] = {}
    if units == "path":
        for name in names:
            successor = _successor(uses[name])
            if successor is not None:
                follows[name] = successor
    followed = set(follows.values())
    found = []
    for name in names:
        if name in followed:
            continue
        unit, exits = [name], 0
        while unit[-1] in follows:
            successor = follows[unit[-1]]
            exits += leaves(unit[-1], successor)
            if exits >= LARGEST_EXITS:  # the last operator's own stream takes the fourth place
                found.append(tuple(unit))
                unit, exits = [], 0
            unit.append(successor)
        found.append(tuple(unit))
    return found


def _successor(uses: list[Use]) -> str | None:
    """The one operator to merge with, if any."""
    triggering = [use for use in uses if use.deadline_ns or use.operator]
    if not triggering:
        return None
    if len(triggering) == 1:
        return triggering[0].operator if triggering[0].mergeable else None
    least = min(use.deadline_ns for use in triggering)
    return next((use.operator for use in triggering if use.mergeable and use.deadline_ns == least), None)
