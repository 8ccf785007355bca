"""Audit of what a plan under overload says can be served: no node has more than its time, or more could be said."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from coordinator.solve.audit.audit_local import downstream
from protos.plan_document import Plan

TOLERANCE = Fraction(1, 10**6)


def served(plan: Plan, load: Mapping[str, Fraction]) -> list[str]:
    """Violations; `load`: of its node, by operator. An operator runs as often as the output that is served most needs,
    and all that leads to no output by triggers is left out."""
    shares = plan.solver.served
    if not shares:
        return []
    found = [f"output {name} gives way, but is not of the plan" for name in shares if name not in plan.graph.outputs]
    found += [f"output {name} is served to {share:g}" for name, share in shares.items() if not 0 <= share < 1]
    used: dict[str, Fraction] = {}
    for name, at in plan.placement.items():
        reached = downstream(plan, name)
        ends = [shares.get(output, 1.0) for output, one in plan.graph.outputs.items() if one.origin in reached]
        used[at] = used.get(at, Fraction(0)) + load[name] * Fraction(max(ends, default=0.0))
    return found + [
        f"node {node}: what is said to be served there takes {float(part):.4f} of it"
        for node, part in used.items()
        if part > 1 + TOLERANCE
    ]
