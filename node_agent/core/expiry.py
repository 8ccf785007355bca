"""Expiry: a tuple that is too old for every output as an operator would start is shed, or a cheaper operator runs.

The lower bound of the age counts, so a tuple is late only if it is late on any reading of the clocks. Where the first
operator of a unit sheds late tuples, the engine sheds them as it chooses, so that they cost no instance. It looks at
the heads of all such units at every choice by which one may be late: no tuple waits longer, even behind urgent ones.
Within a unit, and where a cheaper operator may run, the executor asks just before the operator starts.

The declared cost of an operator may be wrong. Therefore a result that only outputs take is judged once more as its
operator ends, by the clock: it is not delivered where it is late for sure and its operator sheds late tuples.
"""

from collections.abc import Callable, Iterable, Mapping

from node_agent.core import plan as plans
from node_agent.core.lineage import Lineage
from node_agent.core.model import Calls, CompiledPlan, Route, Step, Unit


class Lateness:
    """Of one operator that is asked about as it would start.

    before: the operator of its unit whose result it would run on; 0: it heads the unit. variant: runs in its place;
    None: the tuple is shed. runs: what that is, and its parameters. now: the clock, where the operators of an instance
    start at instants of their own.
    """

    __slots__ = ("before", "late_ns", "now", "runs", "variant")

    def __init__(self, late: plans.Late, before: int, variant: Step | None) -> None:
        self.late_ns, self.before, self.variant = late.late_ns, before, variant
        self.runs = late.run, late.with_json
        self.now: Callable[[], int] | None = None

    def concerns(self, at_ns: int, lineage: Lineage) -> bool:
        """Whether that tuple is late for an operator that would start now."""
        return is_late(at_ns, lineage, self.late_ns)


def is_late(at_ns: int, lineage: Lineage, late_ns: int) -> bool:
    """Whether the tuple is older than that at least. Its origin is an interval: only the least age that it may have
    counts, so nothing that may still be in time is dropped."""
    return at_ns - lineage[5] > late_ns


def wire(plan: plans.Plan, spec: plans.Unit, steps: Mapping[int, Step], calls: Calls) -> None:
    """Give the steps of a unit what they need. Raises KeyError where the call of a variant is missing."""
    before = 0
    for operator_id in spec.operators:
        operator, step = plan.operator_by_id[operator_id], steps[operator_id]
        late = operator.late
        if late is not None and (late.run or before):
            variant = None
            if late.run:
                call, plain = calls[-operator_id]
                variant = Step(operator, call, plain)
                variant.cost_ns, variant.sides = late.cost_ns, step.sides
            step.judge(Lateness(late, before, variant))
        before = operator_id


def outdated_ns(operator: plans.Operator, route: Route) -> int:
    """How old a result may be as its operator ends, where that one sheds what is late and nothing but outputs here
    takes the result; 0: of any age."""
    if operator.late is None or operator.late.run or route.units or route.joins or route.sides or route.sends:
        return 0
    return max((output.deadline_ns for output in route.outputs), default=0)


class Expiry:
    """The units of an engine whose first operator sheds what is late. No head of them has waited for longer than it may
    before due_ns."""

    __slots__ = ("due_ns", "least_ns", "units")

    def __init__(self, units: list[Unit]) -> None:
        self.units, self.due_ns = units, 0
        self.least_ns = min(unit.late_ns for unit in units)


def expiry(loaded: Iterable[CompiledPlan]) -> Expiry | None:
    """None where no unit sheds what is late."""
    units = [unit for each in loaded for unit in each.units if unit.late_ns]
    return Expiry(units) if units else None


__all__ = ["Expiry", "Lateness", "expiry", "outdated_ns", "wire"]
