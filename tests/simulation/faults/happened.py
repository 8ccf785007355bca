"""What has to have happened in some seed of many: a fault that never fires, or an end that no tuple ever has, proves
nothing."""

from collections import Counter

from tests.simulation.faults.faults import KINDS

FAULTS = (*KINDS, "cut_one_way")
SOMETIMES = (
    "met", "late", "undecidable", "verdicts across a suspension", "queues at their limit", "no result: GAVE_UP",
    "no result: LOST", "no result: SHED", "no result: taken over by a dead incarnation", "tuples refused",
)  # fmt: skip
ENOUGH = 200  # seeds, in which all of it happens


def never(counts: Counter[str]) -> list[str]:
    """What did not."""
    return [each for each in (*FAULTS, *SOMETIMES) if not counts[each]]
