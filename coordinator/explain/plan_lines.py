"""A plan that was just made, in lines: in brief what is guaranteed and what runs where, or all that is known of it.

Both begin with the verdict. The table of task units belongs to the long form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from coordinator.explain import (
    age_lines,
    cost_lines,
    failover_lines,
    link_lines,
    sharing_lines,
    source_lines,
    window_lines,
)
from coordinator.guarantee import bounds
from coordinator.model.progress import relative_gap
from coordinator.plan import confidence_lines, deadline_breakdown, policy_choice
from coordinator.spec.costs import MEASURED
from coordinator.spec.query import GUESSED
from coordinator.spec.sharing import owners
from coordinator.units import counted, show_ns
from protos.json_shape import Json
from protos.plan.operators import ADD
from protos.plan.search import Objective
from protos.plan_document import Plan

if TYPE_CHECKING:
    from rich.table import Table

IN_JSON = (
    "hash", "queries", "status", "allocator", "model", "units", "solver", "objective", "placement", "sub_deadlines_ns",
    "guarantee", "tasks",
)  # of the plan's document  # fmt: skip
MOST_NAMES, FIRST_NAMES = 8, 6  # of a node's operators
MOST_OF_UNIT, FIRST_OF_UNIT = 4, 3


def document(plan: Plan) -> Json:
    """For --json: parts of the plan's own document, and `notes`: what its bounds leave out, in sentences."""
    written = plan.to_json()
    parts = (*IN_JSON, *(["failover"] if plan.failover is not None else []))
    return {name: written[name] for name in parts} | {
        "costs": written.get("costs", {}),
        "notes": link_lines.lines(plan),
    }


def brief(plan: Plan) -> list[str]:
    """The verdict, the outputs with what is not guaranteed first, why that is so, and what runs where."""
    return [
        _verdict(plan),
        *(_claimed(plan, name) for name in sorted(plan.guarantee, key=lambda name: plan.guarantee[name].holds)),
        *_why_not(plan),
        *(line for claim in plan.guarantee.values() for line in confidence_lines.lines(claim)),
        *_searched_in_brief(plan),
        *_placement(plan),
        *_basis_in_brief(plan),
        *policy_choice.sentences(plan),
        *age_lines.lines(plan),
        *sharing_lines.sentences(plan),
        *failover_lines.summary(plan),
    ]


def whole(plan: Plan) -> list[str]:
    """The verdict, what costs, links and policies rest on, how the search ended, and all of every output."""
    several = deadline_breakdown.left_out_of_several(plan.guarantee)
    assumed = bounds.assumed(plan)
    return [
        _verdict(plan),
        *cost_lines.lines(plan),
        *source_lines.lines(plan),
        *link_lines.lines(plan),
        *policy_choice.sentences(plan),
        *(_outcome(plan) if plan.model == "sound" else ()),
        _objective(plan),
        *(line for name in plan.guarantee for line in _output(plan, name, several)),
        *age_lines.lines(plan),
        *several.values(),
        *window_lines.of_plan(plan),
        *sharing_lines.sentences(plan),
        *([assumed] if assumed else ()),
        *failover_lines.summary(plan),
    ]


def task_units(plan: Plan) -> Table:
    """A row for each, by node."""
    from rich.table import Table

    table = Table(title=f"{plan.query}: {plan.allocator} placement", title_justify="left")
    for heading in ("node", "policy", "unit", "operators", "sub-deadline"):
        table.add_column(heading, justify="right" if heading in ("unit", "sub-deadline") else "left")
    for node, tasks in plan.tasks.items():
        policy = policy_choice.of_node(plan.cluster.nodes[node]).name
        for task in tasks:
            names = _some(task.operators, MOST_OF_UNIT, FIRST_OF_UNIT)
            table.add_row(node, policy, str(task.id), names, show_ns(task.sub_deadline_ns))
    return table


def is_missed(plan: Plan) -> bool:
    """Whether an output is not guaranteed at all, so that 'explain' has to look for what helps."""
    claims = plan.guarantee.values()
    return any(deadline_breakdown.guarantee_status(claim) == deadline_breakdown.MISSED for claim in claims)


def _verdict(plan: Plan) -> str:
    return deadline_breakdown.verdict(plan.guarantee) + cost_lines.on_guesses(plan)


def _claimed(plan: Plan, name: str) -> str:
    """An output's deadline and bound, and whether that is guaranteed."""
    claim = plan.guarantee[name]
    bound = "no bound" if claim.bound_ns is None else f"bound {show_ns(claim.bound_ns)}"
    said = "guaranteed" if claim.guaranteed else "not guaranteed for every result" if claim.holds else "not guaranteed"
    return f"{name}{owners.whose(plan, name)}: deadline {show_ns(claim.deadline_ns)}, {bound}, {said}"


def _why_not(plan: Plan) -> list[str]:
    """Why outputs are not guaranteed; those of one reason together."""
    whys: dict[str, list[str]] = {}
    for name, claim in plan.guarantee.items():
        if not claim.holds:
            whys.setdefault(claim.why, []).append(name)
    return [f"why not {', '.join(names)}: {why}" for why, names in whys.items()]


def _searched_in_brief(plan: Plan) -> list[str]:
    """Why it is not better."""
    if plan.model != "sound":
        return [_objective(plan)]
    return [
        *(f"not possible: {why}" for why in plan.solver.why or ()),
        *deadline_breakdown.beyond_caps(plan),
        *deadline_breakdown.giving_way(plan),
    ]


def _placement(plan: Plan) -> Iterator[str]:
    """What each node runs; names are left out where a node has many."""
    for node, tasks in plan.tasks.items():
        names = list(dict.fromkeys(name.removesuffix(ADD) for task in tasks for name in task.operators))
        yield f"node {node} runs {_some(names, MOST_NAMES, FIRST_NAMES) or 'nothing'}"


def _some(names: Sequence[str], most: int, first: int) -> str:
    """All of at most `most`, else the first ones and the last."""
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:first])}, ..., {names[-1]} ({len(names)})"


def _basis_in_brief(plan: Plan) -> list[str]:
    """What bounds rest on, where it is worth a word: costs that are not as declared, sources, links."""
    kinds = {one.kind for one in (plan.costs or {}).values()}
    costs = cost_lines.lines(plan) if kinds & {MEASURED, GUESSED} else []
    return [*costs, *source_lines.lines(plan), *link_lines.lines(plan)]


def _output(plan: Plan, name: str, several: dict[str, str]) -> list[str]:
    """All of an output. several: what is said of more than one output, by why."""
    claim = plan.guarantee[name]
    more = (
        *confidence_lines.lines(claim),
        *deadline_breakdown.left_out(claim, several),
        *deadline_breakdown.asked(claim),
    )
    return [f"output {_claimed(plan, name)}: {claim.why}", *(f"  {line}" for line in more)]


def _outcome(plan: Plan) -> list[str]:
    """What the search of model sound ended with."""
    solver, over = plan.solver, deadline_breakdown.beyond_caps(plan)
    placements, choices = counted(solver.placements or 0, "placement"), counted(solver.analyses or 0, "choice")
    within = "within the caps " if over else ""
    return [
        f"model sound: {_ended_with(plan)}; looked at {placements} and {choices} of sub-deadlines",
        *(f"  {within}not possible: {why}" for why in solver.why or ()),
        *over,
        *deadline_breakdown.giving_way(plan),
    ]


def _ended_with(plan: Plan) -> str:
    """The outcome, and what it takes for granted where the claims do not say the same."""
    said, claims = plan.solver.outcome, plan.guarantee.values()
    if said != "guaranteed" or all(claim.guaranteed for claim in claims):
        return said
    other = not all(policy_choice.covered(policy_choice.of_node(node)) for node in plan.cluster.nodes.values())
    old = any(deadline_breakdown.guarantee_status(claim) == deadline_breakdown.ADMITTED for claim in claims)
    where = (["every node ran edf"] if other else []) + (["tuples came in without age"] if old else [])
    aged = (
        "" if all(claim.is_fresh for claim in claims) else ", but for an age or a reaction, which it does not look for"
    )
    return f"guaranteed{' if ' if where else ''}{' and '.join(where)}{aged}"


def _objective(plan: Plan) -> str:
    """What the search looked for and how far it got."""
    objective, solver = plan.objective, plan.solver
    source = {
        "model": "of the deadline model",
        "sound": "by their bounds",
        "deadline": "of the deadline allocator's own placement",
        "proportional": "in proportion to cost (1): no demand check holds",
        "kept": "kept of what runs already, the others of the deadline model",
    }[solver.sub_deadlines]
    best = f"{plan.status}: NLR {objective.nlr:g} (bound {objective.bound:g}, gap {solver.gap:g}), "
    least = ", the least of any guaranteed plan" if plan.status == "optimal" else _at_least(objective)
    sound = plan.model == "sound"
    return (
        f"{'' if sound else best}traffic {objective.traffic:g} tuples per burst"
        f"{least if sound else _at_least(objective)}, solver {solver.name}, sub-deadlines {source}"
    )


def _at_least(objective: Objective) -> str:
    """What the traffic is at least, where that is not proven the least."""
    if objective.traffic_bound is None:
        return ""
    least = objective.traffic_bound
    return f" (bound {least:g}, gap {relative_gap(objective.traffic, least):.2%})"


__all__ = ["brief", "document", "is_missed", "task_units", "whole"]
