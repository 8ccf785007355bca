"""Failover of a plan's outputs and operators when a node fails, in sentences, from plan.json alone."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.units import counted, show_ns
from protos.plan_document import Plan, Survivor

SHOWN = 4


def summary(plan: Plan) -> list[str]:
    """A line per host: what moves, what is lost, what is left and whether it is guaranteed."""
    return [f"without {host}: {_summary(entry)}" for host, entry in (plan.failover or {}).items()]


def sentences(plan: Plan) -> list[str]:
    """The same and more: bounds, and side inputs that are lost."""
    if plan.failover is None:
        return ["not planned for; 'coordinator plan --survive 1' finds a plan under which any one may fail"]
    found = []
    for host, entry in plan.failover.items():
        found.append(f"without {host}: {_summary(entry)}")
        after = entry.plan
        for name, claim in (after.guarantee if after else {}).items():
            bound = "no bound" if claim.bound_ns is None else f"bound {show_ns(claim.bound_ns)}"
            said = "guaranteed" if claim.holds else f"not guaranteed: {claim.why}"
            found.append(f"    {name}: deadline {show_ns(claim.deadline_ns)}, {bound}, {said}")
        for name, ports in entry.lost_sides.items():
            found.append(f"    {name} reads nothing at {', '.join(ports)}: that side input is lost")
        if after:
            found.append(f"    coordinator deploy PLAN --without {host}")
    return found


def _summary(entry: Survivor) -> str:
    if entry.plan is None:
        return f"nothing is left; every output is lost ({_names(entry.lost_outputs)})"
    moved: dict[str, list[str]] = {}
    for name, at in entry.moved.items():
        moved.setdefault(at, []).append(name)
    parts = "; ".join(f"{_names(names)} to {at}" for at, names in moved.items())
    claims = entry.plan.guarantee.values()
    held = sum(claim.holds for claim in claims)
    lost = f"; lost: {_names(entry.lost_outputs)}" if entry.lost_outputs else ""
    return (
        f"{f'moved: {parts}' if parts else 'nothing moves'}; "
        f"{held} of {counted(len(claims), 'output')} left guaranteed{lost}"
    )


def _names(names: Sequence[str]) -> str:
    if len(names) <= SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[: SHOWN - 1])}, ..., {names[-1]} ({len(names)})"
