"""Remedies where a change is refused.

Either everything is planned anew, where operators that run may move, or the least of what was declared is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from coordinator.change.admission import promised
from coordinator.change.next_plan import Change
from coordinator.errors import CoordinatorError
from coordinator.model.incumbent import Incumbent
from coordinator.solve import planner
from coordinator.solve.repair import repair_search
from coordinator.solve.repair.repair import Repair
from coordinator.solve.repair.what_if_runs import Case
from coordinator.units import counted
from protos.plan_document import Plan

MEND_S = 10.0
REPLAN_S = 20.0
MOST_MENDS = 3


@dataclass(frozen=True)
class Remedies:
    """`replacement`: a plan of all queries that promises everything wanted, None: none was found; `moved`: operators
    that run and would be elsewhere, from and to; `repairs`: of what was declared."""

    replacement: Plan | None
    moved: Mapping[str, tuple[str, str]]
    repairs: tuple[Repair, ...] = ()

    def lines(self, file: str) -> list[str]:
        """`file`: where the replacement is."""
        if self.replacement is not None:
            moves = ", ".join(f"{name} from {one} to {other}" for name, (one, other) in self.moved.items())
            what = "without moving what runs, with other sub-deadlines and task units for it"
            if moves:
                run = "runs" if len(self.moved) == 1 else "run"
                what = f"if {counted(len(self.moved), 'operator')} that {run} moved: {moves}"
            return [
                f"it would fit {what}",
                f"that plan is {file}; 'coordinator deploy {file} --replace' changes to it as a whole, with fresh "
                "state where operators move and no promise while it does",
            ]
        if self.repairs:
            head = "planned anew with every operator free it does not fit either; what would make room where it is:"
            return [
                head,
                *(f"  {mend.text}" for mend in self.repairs),
                "a change of what runs, of a source that both read or of a node, cannot be added: write it in every "
                "file that says so, 'coordinator plan' all queries together, then 'coordinator deploy --replace'",
            ]
        return [
            "planned anew with every operator free it does not fit either, and no single change was found that helps"
        ]

    def document(self) -> dict[str, Any]:
        """For --json."""
        return {
            "replacement": self.replacement.hash if self.replacement is not None else None,
            "moved": {name: list(pair) for name, pair in self.moved.items()},
            "mends": [mend.document() for mend in self.repairs],
        }


def remediation_options(change: Change, tell: Callable[[str], None] = lambda _: None) -> Remedies:
    """Of a change that is refused. What is found was planned; it takes up to half a minute."""
    limits = replace(change.choices.limits, seconds=min(REPLAN_S, change.choices.limits.seconds))
    free = replace(change.choices, incumbent=Incumbent(spared=_late(change)), limits=limits, quick=True)
    wanted = {name for name, claim in change.before.guarantee.items() if promised(claim)}
    wanted |= {output.name for output in change.query.outputs} - change.before.guarantee.keys()
    tell("planning anew with every operator free")
    try:
        made = planner.plan(change.query, change.cluster, change.types, free)
    except CoordinatorError:
        made = None
    if made is not None and all(promised(made.guarantee[name]) for name in wanted):
        moved = {
            name: (at, made.placement[name])
            for name, at in change.before.placement.items()
            if made.placement.get(name, at) != at
        }
        return Remedies(made, moved)
    charges = replace(change.choices.charges, loading_ns=change.choices.loading_ns)
    case = Case(change.query, change.cluster, change.types, replace(change.choices, limits=limits, charges=charges))
    found = repair_search.find(case, MEND_S, tell)
    return Remedies(None, {}, found.repairs[:MOST_MENDS])


def _late(change: Change) -> frozenset[str]:
    """Outputs that do not hold now need not hold then."""
    if change.before.model != "sound":
        return frozenset()
    return frozenset(name for name, claim in change.before.guarantee.items() if not promised(claim))
