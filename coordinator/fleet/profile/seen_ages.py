"""How old tuples were as they came to their sources, and the `max_age` that follows from it: by source of a plan.

Agents count every tuple that a source was offered, by the greatest age that it may have had, refused ones among them.
As quantiles of costs, those of ages are the upper ends of buckets: at most a sixteenth too large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from coordinator.fleet.profile.profiling import Counts, both, buckets, quantile_ns, sane
from coordinator.spec.costs import FEW, MARGIN
from coordinator.units import counted, exact, show_ns, step_of
from protos import agent_pb2
from protos.plan_document import Plan

P999 = Fraction(999, 10)


@dataclass(frozen=True)
class SeenAges:
    """Of one source: of so many `tuples`, in ns."""

    tuples: int
    p50_ns: int
    p999_ns: int
    worst_ns: int

    @property
    def max_age_ns(self) -> int:
        """That refuses none of them, with the margin that costs have; a round figure."""
        most_ns = max(1, -(-self.worst_ns * MARGIN.numerator // MARGIN.denominator))
        return -(-most_ns // step_of(10 * most_ns)) * step_of(10 * most_ns)

    def document(self) -> dict[str, int]:
        """For --json."""
        return {
            "tuples": self.tuples,
            "p50_ns": self.p50_ns,
            "p99_9_ns": self.p999_ns,
            "worst_ns": self.worst_ns,
            "max_age_ns": self.max_age_ns,
        }


def counts(plan: Plan, replies: Mapping[str, agent_pb2.ProfileReply]) -> Counts:
    """What was told of a plan's sources that have ages: not of timers, whose ticks are as old as their node looks late
    at them. By source and node."""
    aged = {name for name, one in plan.graph.sources.items() if one.pull is None or one.pull.run}
    return {
        (cost.name, node): cost
        for node, reply in replies.items()
        for cost in reply.costs
        if cost.of == agent_pb2.MEASURED_AGE and cost.name in aged and sane(cost)
    }


def since(before: Counts, after: Counts) -> dict[str, SeenAges]:
    """What was seen from `before` on, by source. Without what nothing came to."""
    found = {}
    for (name, _), (then, now) in both(before, after).items():
        seen = buckets(then, now)
        worst_ns = min(now.worst_ns, max(seen, default=now.worst_ns))
        p50_ns, p999_ns = (min(worst_ns, quantile_ns(seen, hundredth)) for hundredth in (50, P999))
        found[name] = SeenAges(now.tuples - then.tuples, p50_ns, p999_ns, worst_ns)
    return found


def lines(plan: Plan, found: Mapping[str, SeenAges]) -> list[str]:
    """A sentence for each source, and what to write."""
    told = []
    for name, one in found.items():
        seen = f"p50 {show_ns(one.p50_ns)}, p99.9 {show_ns(one.p999_ns)}, at most {show_ns(one.worst_ns)}"
        few = ", too few to trust" if one.tuples < FEW else ""
        told.append(f"ages at {name}, of {counted(one.tuples, 'tuple')}{few}: {seen}; {_advice(plan, name, one)}")
    return told


def _advice(plan: Plan, name: str, one: SeenAges) -> str:
    """What its `max_age` should be, beside what it is or what the plan has room for."""
    declared_ns, ages = plan.graph.sources[name].max_age_ns, plan.analysis.ages
    fits = f"'max_age: {exact(one.max_age_ns)}' has a margin of {float(MARGIN - 1):.0%}"
    if declared_ns:
        verdict = "refuses none of them" if one.worst_ns <= declared_ns else "refuses the oldest"
        return f"its max_age, {show_ns(declared_ns)}, {verdict}; {fits}"
    room_ns = ages.max_age_ns.get(name) if ages is not None else None
    if room_ns is None:
        return fits
    if one.worst_ns > room_ns:
        return f"the plan has room for {show_ns(room_ns)}, which would refuse the oldest; {fits}"
    best_ns = min(room_ns, one.max_age_ns)
    return f"under 'sources: {name}:' write 'max_age: {exact(best_ns)}'; the plan has room for {show_ns(room_ns)}"


__all__ = ["SeenAges", "counts", "lines", "since"]
