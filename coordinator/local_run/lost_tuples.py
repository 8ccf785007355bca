"""Which tuples were lost where, and why: counted from the trace's LOST records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from coordinator.report.facts.merged_plans import own
from coordinator.report.facts.reader import Run, records_of
from coordinator.report.verdict import scan_trace
from protos import records as rec

NO_UNIT = NO_PEER = -1


@dataclass(frozen=True)
class Lost:
    """Tuples that ended at one place for one cause. operators: of the unit in which they were, if they had come to
    one; where: the place in words; node: whose log tells more."""

    node: str
    operators: tuple[str, ...]
    where: str
    cause: str
    tuples: int

    def document(self) -> dict[str, Any]:
        """For --json."""
        return {
            "node": self.node, "operators": list(self.operators), "where": self.where, "cause": self.cause,
            "tuples": self.tuples,
        }  # fmt: skip


def lost(run: Run) -> list[Lost]:
    """All of a run, the most first."""
    counts: Counter[tuple[int, int, int, int, int]] = Counter()  # node, unit, peer, stream, cause
    for incarnation in run.incarnations:
        plans = [each for each in records_of(incarnation) if isinstance(each[1], rec.Plan)]
        epochs = scan_trace(incarnation, plans, run.plan).epochs
        found = (each for _, each in records_of(incarnation) if isinstance(each, rec.Lost))
        for record in own(found, epochs, run.plan):
            counts[incarnation.node, *_place(record), record.cause] += 1
    return [_described(run, *key, tuples) for key, tuples in counts.most_common()]


def _place(record: rec.Lost) -> tuple[int, int, int]:
    """Unit, peer and stream."""
    if record.in_unit:
        return record.unit, NO_PEER, 0
    return NO_UNIT, record.peer if record.never_left else NO_PEER, record.stream


def _described(run: Run, at: int, unit: int, peer: int, stream: int, cause: int, tuples: int) -> Lost:
    plan = run.plan
    node = plan.nodes.get(at, str(at))
    name = rec.Lost.cause.text(cause)
    if unit in plan.units:
        return Lost(node, plan.units[unit].operators, f"at {plan.units[unit].label} on {node}", name, tuples)
    of = f"of {plan.streams[stream]} " if stream in plan.streams else ""
    where = f"on {node}" if peer == NO_PEER else f"from {node} to {plan.nodes.get(peer, peer)}"
    return Lost(node, (), of + where, name, tuples)
