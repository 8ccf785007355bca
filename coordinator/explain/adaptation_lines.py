"""An adaptation in sentences: what changes within the declared ranges, or what would have to change beyond them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator.explain import repair_lines
from coordinator.solve.repair.repair import Repair
from coordinator.solve.repair.what_if_runs import Case
from coordinator.solve.repair.within_ranges.adaptation import Adaptation
from coordinator.solve.repair.within_ranges.ranged import Adjustable

HOLDS = "every output is guaranteed as it is: nothing has to change"
HEAD = "the least change within the declared ranges that makes every output guaranteed"
LESS = "less may do: it was not narrowed down in time, more with --time-limit"
UNTRIED = "not everything within the declared ranges was tried in time, or to a decision; more with --time-limit"


def change(found: Adaptation) -> list[str]:
    """What changes, a line for each value; nothing where no change was found."""
    if found.within is None:
        return []
    lines = [f"{HEAD}:", *(f"  {one.text}" for one in found.within.changes)]
    return lines if found.within.settled else [*lines, f"  {LESS}"]


def missed(found: Adaptation) -> list[str]:
    """What is not guaranteed without a change, and why."""
    known = "undecided" if found.now.undecided else "infeasible"
    lines = [f"{known} as it is: {reason}" for reason in found.now.reasons]
    lines += [f"output {name} is not guaranteed as it is: {why}" for name, why in found.now.missed.items()]
    ageless = ", ".join(found.now.ageless)
    return [*lines, *([f"guaranteed from admission on only: {ageless}"] if ageless else [])]


def tried(values: Sequence[Adjustable]) -> str:
    """What was tried before it is said that nothing within the ranges helps."""
    useful = [one for one in values if one.remedies]
    if not useful:
        return "none of them has a value in a direction that may help"
    if len(useful) == 1:
        return f"{useful[0].range.key} was tried at the end of its range {useful[0].range.written}"
    together = "both together" if len(useful) == 2 else "every two and all together"
    return f"each of {len(useful)} values alone and {together} were tried at the ends of their ranges"


def outside(found: Adaptation, values: Sequence[Adjustable], case: Case) -> list[str]:
    """The nearest changes that leave the ranges."""
    if not found.outside:
        when = "" if found.decided else " in time"
        return [f"beyond the ranges no change was found either{when}: 'coordinator explain' says what was tried"]
    ranges = {one.range.key: one.range.written for one in values}
    lines = []
    for repair in found.outside:
        lines += [f"the nearest change beyond them{_beyond(repair, ranges)}:"]
        lines += [f"  {line}" for line in repair_lines.of_repair(repair, case)]
    return lines


def _beyond(repair: Repair, ranges: Mapping[str, str]) -> str:
    """Which ranges it leaves, where it changes nothing else."""
    keys = [edit.key for edit in repair.edits]
    if not keys or not set(keys) <= ranges.keys():
        return ""
    return f", of the same values ({'; '.join(f'{key} has {ranges[key]}' for key in keys)})"


__all__ = ["HOLDS", "UNTRIED", "change", "missed", "outside", "tried"]
