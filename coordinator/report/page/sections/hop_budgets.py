"""The budget of each hop on an output's way: what the plan predicts at most, beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from coordinator.report.facts.reader import Run
from coordinator.report.report_document import LatencyBreakdown
from protos.plan.guarantee import Step

AGE, REST = "age before admission", "rest"
QUEUED, RUNNING = "queued for ", "running "


@dataclass(frozen=True, slots=True)
class HopBudget:
    """One hop. predicted_ns: its part of the bound; sub_deadline_ns: of a unit; both None where the plan says nothing.
    mean_ns, tail_ns: of all delivered results, and of the slowest hundredth; queued_ns: of the mean."""

    hop: str
    predicted_ns: int | None = None
    sub_deadline_ns: int | None = None
    mean_ns: int | None = None
    tail_ns: int | None = None
    queued_ns: int = 0

    @property
    def is_above(self) -> bool:
        """Whether the slowest took longer than predicted, in the mean."""
        return self.predicted_ns is not None and self.tail_ns is not None and self.tail_ns > self.predicted_ns


def hop_budgets(run: Run, output: str, measured: LatencyBreakdown | None) -> list[HopBudget]:
    """In the order of the bound's trail, then what was measured beside it."""
    found = {hop.hop: hop for hop in _predicted(run, output)}
    for name, mean_ns, tail_ns, queued_ns in _measured(measured):
        known = found.get(name, HopBudget(name, sub_deadline_ns=_sub_deadlines(run).get(name)))
        found[name] = replace(known, mean_ns=mean_ns, tail_ns=tail_ns, queued_ns=queued_ns)
    hops = [hop for hop in found.values() if hop.hop != REST]
    rest = found.get(REST)
    return [*hops, *([rest] if rest and (rest.mean_ns or rest.tail_ns) else [])]


def _predicted(run: Run, output: str) -> Iterator[HopBudget]:
    """By the hops that a report measures: sockets on both ends belong to their link."""
    claim = run.plan.made.guarantee.get(output)
    moving: list[Step] = []
    for step in claim.trail if claim is not None else ():
        if step.kind in ("socket", "link"):
            moving.append(step)
            continue
        if moving:
            yield _link(moving)
            moving = []
        if step.kind == "age":
            yield HopBudget(AGE, step.ns)
        elif step.unit is not None and step.unit in run.plan.units:
            name = _unit(run, step.unit)
            yield HopBudget(name, step.ns, _sub_deadlines(run).get(name))
        else:
            yield HopBudget(step.what, step.ns)
    if moving:
        yield _link(moving)


def _link(steps: Sequence[Step]) -> HopBudget:
    """Its last step is read where it leads to; links write who they lead to in words only."""
    last = steps[-1]
    to = last.node if last.kind == "socket" else last.what.rpartition(" to ")[2]
    return HopBudget(f"link to {to}", sum(step.ns for step in steps))


def _unit(run: Run, unit: int) -> str:
    view = run.plan.units[unit]
    return f"{view.label} at {run.plan.nodes[view.node]}"


def _sub_deadlines(run: Run) -> dict[str, int]:
    tasks = (task for tasks in run.plan.made.tasks.values() for task in tasks)
    return {_unit(run, task.id): task.sub_deadline_ns for task in tasks if task.id in run.plan.units}


def _measured(split: LatencyBreakdown | None) -> Iterator[tuple[str, int, int, int]]:
    """Hop, mean, mean of the slowest, and how much of the mean it was queued; of units both parts together."""
    sums: dict[str, list[int]] = {}
    for hop in split.hops if split is not None and split.results else ():
        own = sums.setdefault(hop.hop.removeprefix(QUEUED).removeprefix(RUNNING), [0, 0, 0])
        own[0] += hop.mean_ns or 0
        own[1] += hop.tail_mean_ns or 0
        own[2] += (hop.mean_ns or 0) if hop.kind == "queue" else 0
    for name, (mean_ns, tail_ns, queued_ns) in sums.items():
        yield name, mean_ns, tail_ns, queued_ns


__all__ = ["HopBudget", "hop_budgets"]
