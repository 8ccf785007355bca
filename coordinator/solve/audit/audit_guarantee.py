"""Rechecks what a plan of model `sound` promises, from the plan alone: the bounds, computed again.

Placement, caps, routes, units and the sums of sub-deadlines along every path are checked for all plans alike; the
demand rows (6) are not promised here: the bounds take their place.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.guarantee import admission_ages
from coordinator.guarantee.analysis import Analysis, analyse
from coordinator.guarantee.bounds import Claim, claims
from coordinator.guarantee.confidence import confident_bounds
from coordinator.guarantee.system import read
from coordinator.plan import policy_choice
from coordinator.spec.runtime_charges import RuntimeOverhead
from protos.plan_document import Plan


def audit(plan: Plan) -> list[str]:
    """Violations, one sentence each."""
    if plan.model != "sound":
        return []
    analysis = analyse(read(plan), RuntimeOverhead.read(plan.analysis.charges))
    found, ages = claims(analysis), plan.analysis.ages
    violations = _confident(plan, analysis, found)
    if ages is not None and not admission_ages.holds(analysis, ages):
        violations.append(f"with the ages that it proposes not all of {', '.join(ages.outputs)} are guaranteed")
    for name, claim in found.items():
        stated = plan.guarantee[name]
        if (claim.bound_ns, claim.guaranteed) != (stated.bound_ns, stated.guaranteed):
            violations.append(
                f"output {name}: its bound is {claim.bound_ns} ns, guaranteed {claim.guaranteed}, stated as "
                f"{stated.bound_ns} ns, {stated.guaranteed}"
            )
        if claim.document().data_paths != stated.data_paths:
            violations.append(f"output {name}: the paths of its data are not as stated")
        bound_ns = claim.bound_ns if claim.bound_ns is not None else claim.from_admission_ns
        late = bound_ns is None or bound_ns > claim.deadline_ns
        edf = all(policy_choice.covered(policy_choice.of_node(node)) for node in plan.cluster.nodes.values())
        if plan.solver.outcome == "guaranteed" and edf and late:
            violations.append(f"output {name}: the plan is called guaranteed, but its bound is {bound_ns} ns")
    return violations


def _confident(plan: Plan, analysis: Analysis, found: Mapping[str, Claim]) -> list[str]:
    """Bounds with a confidence that do not follow from the plan's measurements."""
    costs = plan.costs or {}
    measured = {name: origin.distributions for name, origin in costs.items() if origin.distributions}
    again = confident_bounds.documents(
        plan, analysis, measured, {name: claim.document() for name, claim in found.items()}
    )
    return [
        f"output {name}: its bound with a confidence is not as stated"
        for name, claim in again.items()
        if claim.confident != plan.guarantee[name].confident
    ]
