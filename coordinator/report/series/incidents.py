"""Incidents of a run: which node was away, slept or refused tuples, when, and what was missed meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Literal

import numpy as np

from coordinator.report.facts.reader import Run
from coordinator.report.series.record_rows import Ints
from coordinator.report.series.run_clock import Presence, Refusal, RunClock
from protos.records import REASON_STOPPED, REASONS

MOST = 60  # of a run; the longest stay
IncidentKind = Literal["away", "restarted", "asleep", "no_trace", "new_plan", "refused"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What was recorded during an incident and its aftermath. late: results; the others: tuples."""

    late: int = 0
    shed: int = 0
    lost: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Incident:
    """from_ns, until_ns: since the run's beginning; until_ns None: up to its end. what: in words."""

    kind: IncidentKind
    node: str
    from_ns: int
    until_ns: int | None
    what: str
    cost: Cost = Cost()


def of_nodes(run: Run, clock: RunClock) -> Iterator[Incident]:
    """Those that show in when runtimes were there."""
    by_node: dict[int, list[Presence]] = {number: [] for number in run.plan.nodes}
    for presence in clock.presences:
        by_node[presence.incarnation.node].append(presence)
    for number, presences in by_node.items():
        node = run.plan.nodes[number]
        presences.sort(key=lambda one: one.from_ns)
        if not presences:
            yield Incident("no_trace", node, 0, None, "no record of it is here")
        for before, after in pairwise(presences):
            yield _between(node, before, after)
        if presences and presences[-1].crashed:
            yield Incident("away", node, presences[-1].until_ns, None, "its runtime crashed and did not come back")
        for presence in presences:
            for since_ns, until_ns in presence.asleep:
                yield Incident("asleep", node, since_ns, until_ns, "its clock stood still: the machine was suspended")


def of_plans(run: Run, clock: RunClock) -> Iterator[Incident]:
    """One per plan after the first, from its first node to its last."""
    begun: dict[int, list[tuple[int, str]]] = {}
    for presence in clock.presences:
        for at_ns, plan in presence.committed:
            begun.setdefault(plan, []).append((at_ns, run.plan.nodes[presence.incarnation.node]))
    every = sorted((min(found), plan, found) for plan, found in begun.items())
    hashes = [run.plan.hash, *run.earlier]
    for (at_ns, node), plan, found in every[1:]:
        named = f" {hashes[plan][:8]}" if plan < len(hashes) else ""
        nodes = len({name for _, name in found})
        where = "" if nodes == 1 else f" on {nodes} nodes"
        yield Incident("new_plan", node, at_ns, max(found)[0], f"plan{named} began{where}")


def _between(node: str, before: Presence, after: Presence) -> Incident:
    how = "its runtime crashed and was started again" if before.crashed else "its runtime was started again"
    since_ns, until_ns = before.until_ns, max(before.until_ns, after.from_ns)
    return Incident("away" if before.crashed else "restarted", node, since_ns, until_ns, how)


def of_refusals(run: Run, node: int, refusals: Iterable[Refusal], apart_ns: int) -> Iterator[Incident]:
    """Refusals of one source for one reason that follow one another within `apart_ns` are one. Those of a plan that was
    told to end are none."""
    names = {source.id: source.name for local in run.plan.made.nodes.values() for source in local.sources}

    def same(one: Refusal) -> tuple[int, int]:
        return one.source, one.reason

    refused = sorted((one for one in refusals if one.reason != REASON_STOPPED), key=lambda r: (same(r), r.from_ns))
    for (id_, number), found in groupby(refused, key=same):
        each, source = list(found), names.get(id_, str(id_))
        reason = REASONS[number] if 0 < number < len(REASONS) else f"reason {number}"
        begin, end, tuples = each[0].from_ns, each[0].until_ns, each[0].tuples
        for one in each[1:]:
            if one.from_ns > end + apart_ns:
                yield _refused(run.plan.nodes[node], source, reason, begin, end, tuples)
                begin, end, tuples = one.from_ns, one.until_ns, 0
            end, tuples = max(end, one.until_ns), tuples + one.tuples
        yield _refused(run.plan.nodes[node], source, reason, begin, end, tuples)


def _refused(node: str, source: str, reason: str, begin: int, end: int, tuples: int) -> Incident:
    what = f"source {source} refused {tuples:,} {'tuple' if tuples == 1 else 'tuples'}: {reason.replace('_', ' ')}"
    return Incident("refused", node, begin, end, what)


class Costs:
    """Counts what was recorded during incidents, and for a while after each. Instants are of the run."""

    def __init__(self, incidents: Sequence[Incident], length_ns: int, after_ns: int) -> None:
        self.incidents = sorted(incidents, key=_length, reverse=True)[:MOST]
        self.incidents.sort(key=lambda one: (one.from_ns, one.node))
        ends = (length_ns if one.until_ns is None else one.until_ns + after_ns for one in self.incidents)
        self._spans = [(one.from_ns, end) for one, end in zip(self.incidents, ends, strict=True)]
        self._found = {what: np.zeros(len(self._spans), np.int64) for what in ("late", "shed", "lost", "refused")}

    def add(self, what: Literal["late", "shed", "lost", "refused"], at_ns: Ints, tuples: Ints | None = None) -> None:
        """What happened at these instants; tuples: how many at each, else one."""
        if not len(at_ns):
            return
        for n, (since_ns, until_ns) in enumerate(self._spans):
            within = (at_ns >= since_ns) & (at_ns <= until_ns)
            self._found[what][n] += int(within.sum() if tuples is None else tuples[within].sum())

    def with_costs(self) -> list[Incident]:
        """The incidents with their costs, in order."""
        costs = (
            Cost(**{what: int(found[n]) for what, found in self._found.items()}) for n in range(len(self.incidents))
        )
        return [replace(one, cost=cost) for one, cost in zip(self.incidents, costs, strict=True)]


def _length(one: Incident) -> tuple[bool, int]:
    """Those of nodes before refusals, of which there may be many."""
    return one.kind != "refused", (1 << 60) if one.until_ns is None else one.until_ns - one.from_ns


__all__ = ["Cost", "Costs", "Incident", "IncidentKind", "of_nodes", "of_plans", "of_refusals"]
