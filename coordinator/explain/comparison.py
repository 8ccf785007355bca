"""Two plans side by side: what a change does to every output's bound, to places and to traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from coordinator.errors import Mistake
from coordinator.plan.deadline_breakdown import guarantee_status, status_values
from coordinator.units import show_ns
from protos.plan.guarantee import Claim
from protos.plan_document import Plan


@dataclass(frozen=True)
class Side:
    """Before or after. `plan` None: there is none, for these `reasons`."""

    plan: Plan | None
    reasons: Sequence[Mistake] = field(default_factory=tuple)


def document(before: Side, after: Side) -> dict[str, Any]:
    """For --json: per output bound, deadline and claim on both sides; operators that move; traffic."""
    names = dict.fromkeys([*_outputs(before), *_outputs(after)])
    return {
        "outputs": {name: {"before": _status(before, name), "after": _status(after, name)} for name in names},
        "moved": {name: {"before": one, "after": other} for name, one, other in moved(before, after)},
        "traffic": {"before": _traffic(before), "after": _traffic(after)},
        "infeasible": {"before": list(map(str, before.reasons)), "after": list(map(str, after.reasons))},
    }


def table(title: str, before: Side, after: Side) -> Table:
    """`rows` with their headings."""
    found = Table(title=title, title_justify="left")
    for heading in ("output", "deadline", "bound", "promise"):
        found.add_column(heading)
    for row in rows(before, after):
        found.add_row(*row)
    return found


def _outputs(side: Side) -> list[str]:
    return list(side.plan.guarantee) if side.plan else []


def _claim(side: Side, name: str) -> Claim | None:
    return side.plan.guarantee.get(name) if side.plan else None


def _status(side: Side, name: str) -> dict[str, Any] | None:
    claim = _claim(side, name)
    return status_values(claim) if claim else None


def _traffic(side: Side) -> float | None:
    return float(side.plan.objective.traffic) if side.plan else None


def moved(before: Side, after: Side) -> list[tuple[str, str, str]]:
    """Operator, where it was, where it is."""
    if before.plan is None or after.plan is None:
        return []
    was, now = before.plan.placement, after.plan.placement
    return [(name, was[name], now[name]) for name in now if name in was and was[name] != now[name]]


def rows(before: Side, after: Side) -> list[tuple[str, str, str, str]]:
    """Output, deadline, bound, what is promised: each `before -> after`, or once where nothing changes."""
    found = []
    for name in dict.fromkeys([*_outputs(before), *_outputs(after)]):
        one, other = _claim(before, name), _claim(after, name)
        bound, promise = (_arrow(tell(one), tell(other)) for tell in (_bound, _guarantee_status))
        deadlines = [_deadline(claim) for claim in (one, other) if claim]  # without a plan nothing is known of it
        found.append((name, _arrow(deadlines[0], deadlines[-1]), bound, promise))
    return found


def _arrow(one: str, other: str) -> str:
    return one if one == other else f"{one} -> {other}"


def _deadline(claim: Claim) -> str:
    return show_ns(claim.deadline_ns)


def _bound(claim: Claim | None) -> str:
    if claim is None:
        return "-"
    if claim.bound_ns is not None:
        return show_ns(claim.bound_ns)
    return f"{show_ns(claim.from_admission_ns)} from admission" if claim.from_admission_ns is not None else "none"


def _guarantee_status(claim: Claim | None) -> str:
    return guarantee_status(claim) if claim else "no plan"


def lines(before: Side, after: Side) -> list[str]:
    """What the rows do not say: infeasible, why not guaranteed, what moves, traffic."""
    found = []
    for side, when in ((before, "as it is"), (after, "with the change")):
        found += [f"{when} infeasible: {reason}" for reason in side.reasons]
    for name in _outputs(after):
        claim = _claim(after, name)
        if claim and not claim.holds:
            found.append(f"{name}: {claim.why}")
    found += [f"{name} moves from {one} to {other}" for name, one, other in moved(before, after)]
    if before.plan is not None and after.plan is not None:
        if not moved(before, after):
            found.append("no operator moves")
        one, other = _traffic(before), _traffic(after)
        found.append(f"traffic {_arrow(f'{one:g}', f'{other:g}')} tuples per burst")
    return found
