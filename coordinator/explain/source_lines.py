"""Sources that nodes make themselves, in sentences: what nobody has said of their calls, and what bounds leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.units import show_ns

if TYPE_CHECKING:
    from protos.plan_document import Plan


def guessed(plan: Plan) -> dict[str, int]:
    """CPU time of a call, by source, where the query does not say it."""
    return {name: one.pull.cost_ns for name, one in plan.graph.sources.items() if one.pull and one.pull.guessed}


def lines(plan: Plan) -> list[str]:
    """Nothing of a plan whose sources clients feed."""
    found = []
    if costs_ns := guessed(plan):
        each = ", ".join(f"{name} {show_ns(cost_ns)}" for name, cost_ns in costs_ns.items())
        mend = "declare it with 'cost:' under 'sources:', or run it and measure it with 'coordinator profile'"
        found.append(f"CPU time of a call is GUESSED for sources: {each}; {mend}")
    if apart := [name for name, one in plan.graph.sources.items() if one.pull and one.pull.offset_ns]:
        found.append(f"bounds do not count on the offset of {', '.join(apart)}: they hold at any")
    return found


__all__ = ["guessed", "lines"]
