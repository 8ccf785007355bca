"""The plans that one change after the other makes, each from the one before.

The first three are stored. A further one has what `add` and `remove` made of them, and names the plan that it keeps, as
each plan of a change does: so no two of them have the same hash.
"""

from dataclasses import replace
from functools import cache

from protos.plan_document import Plan
from tests.simulation.agents import agents_line

BASE, GROWN, REDUCED = STORED = ("changes_base", "changes_grown", "changes_reduced")
LONGEST = 24
CHAIN = (*STORED, *(f"{(REDUCED, GROWN)[number % 2]}+{number}" for number in range(len(STORED), LONGEST)))
WITH_MORE = CHAIN[1::2]


@cache
def plan(name: str) -> Plan:
    """Of the chain, or another stored one."""
    stored, further, _ = name.partition("+")
    made = agents_line.plan(stored)
    if not further:
        return made
    assert made.kept is not None, "a change has made it"
    return replace(made, kept=replace(made.kept, of=plan(CHAIN[CHAIN.index(name) - 1]).hash)).sealed()


def following(name: str, kind: str) -> str:
    """What that change makes of a plan of the chain; the same where there is nothing to add or to remove, and at its
    end."""
    changes = name in CHAIN[:-1] and (name in WITH_MORE) == (kind == "remove")
    return CHAIN[CHAIN.index(name) + 1] if changes else name


__all__ = ["BASE", "CHAIN", "WITH_MORE", "following", "plan"]
