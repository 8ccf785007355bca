"""Ages on admission that a plan has room for, as lines for the query: nothing where all that can be is guaranteed."""

from __future__ import annotations

from coordinator.units import exact
from protos.plan_document import Plan


def lines(plan: Plan) -> list[str]:
    """The largest that sources may declare which declare none."""
    ages = plan.analysis.ages
    if ages is None:
        return []
    *names, last = ages.outputs
    which = f"{', '.join(names)} and {last} are" if names else f"{last} is"
    head = f"{which} guaranteed with these ages, the largest that this plan has room for; under 'sources:' write"
    return [head, *(f"  {name}: {{max_age: {exact(age_ns)}}}" for name, age_ns in ages.max_age_ns.items())]


__all__ = ["lines"]
