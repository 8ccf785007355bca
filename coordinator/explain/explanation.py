"""A plan in sentences, from plan.json alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from coordinator.explain import (
    age_lines,
    cost_lines,
    failover_lines,
    link_lines,
    plan_summary,
    sharing_lines,
    source_lines,
    window_lines,
)
from coordinator.guarantee.analysis import never
from coordinator.plan import confidence_lines, deadline_breakdown, freshness_lines, policy_choice
from coordinator.spec.sharing.owners import owners
from coordinator.units import counted, show_ns
from protos.plan.search import Alternative, PaperAlternative
from protos.plan_document import Plan

FAILS = "If a node fails"
PARTS = "Where each deadline goes"
SEVERAL = "Which query needs what"


def short(plan: Plan, stop: Callable[[], bool] = never) -> dict[str, list[str]]:
    """Sections of sentences: the plan in short, where each output's deadline goes, and what binds. stop: whether there
    is no time any more to try what breaks first."""
    claims = plan.guarantee.values()
    holding = sum(claim.holds for claim in claims)
    held = f"{holding} of {counted(len(claims), 'output')} guaranteed{confidence_lines.with_less(plan.guarantee)}"
    title = f"Plan {plan.hash[:8]} of query {plan.query}: {held}"
    lines = _once(line for name in plan.graph.outputs for line in deadline_breakdown.sentences(plan, name))
    lines += deadline_breakdown.left_out_of_several(plan.guarantee).values()
    lines += policy_choice.sentences(plan)
    said = [
        *plan_summary.lines(plan, stop),
        *deadline_breakdown.beyond_caps(plan),
        *deadline_breakdown.giving_way(plan),
        *cost_lines.lines(plan),
        *source_lines.lines(plan),
        *link_lines.lines(plan),
        *age_lines.lines(plan),
    ]
    told = {window_lines.TITLE: found} if (found := window_lines.of_plan(plan)) else {}
    several = {SEVERAL: sharing_lines.sentences(plan)} if owners(plan) else {}
    return {
        title: said,
        PARTS: lines,
        **told,
        **several,
        **({FAILS: failover_lines.sentences(plan)} if plan.failover is not None else {}),
    }


def _once(lines: Iterable[str]) -> list[str]:
    """Without what was said of a node at an output before."""
    found: list[str] = []
    for line in lines:
        if line not in found or not line.startswith("  node "):
            found.append(line)
    return found


def explain(plan: Plan) -> dict[str, list[str]]:
    """Sections of sentences: the plan, each output's deadline, each operator's place, each node's work, what
    crosses."""
    return {
        f"Plan {plan.hash[:8]} of query {plan.query}": _summary(plan),
        "How each deadline is divided": [line for name in plan.graph.outputs for line in _divided(plan, name)],
        "Why each operator is where it is": _places(plan),
        "What each node runs": _nodes(plan),
        "What crosses between nodes": _crossing(plan) or ["nothing"],
        "What is guaranteed": [line for name in plan.graph.outputs for line in _guaranteed(plan, name)]
        + _analysed(plan),
        FAILS: failover_lines.sentences(plan),
    }


def _summary(plan: Plan) -> list[str]:
    objective, solver, status = plan.objective, plan.solver, plan.status
    lines = [
        f"{status} under model {plan.model}, solver {solver.name}, seed {solver.seed}, gap {solver.gap:g}",
        f"NLR {objective.nlr:g} (at least {objective.bound:g}): 0 is the same slack per cost for all operators",
        f"traffic {objective.traffic:g} tuples per burst",
    ]
    if solver.sub_deadlines == "proportional":
        lines.append("sub-deadlines in proportion to cost (1): the deadline model has no solution for this placement")
    if solver.sub_deadlines == "deadline":
        lines.append("sub-deadlines of the deadline allocator's own placement, not of this one")
    if plan.kept is not None:
        told, of = counted(len(plan.kept.operators), "operator"), plan.kept.of[:8]
        lines.append(f"{told} kept place, sub-deadline and task unit of plan {of}, which ran before")
    return lines


def _divided(plan: Plan, output: str) -> list[str]:
    """The longest path to an output and what each stretch of it on one node gets."""
    graph, due = plan.graph, plan.sub_deadlines_ns
    end, deadline_ns = graph.outputs[output].origin, graph.outputs[output].deadline_ns
    path = longest_path(plan, end)
    stretches: list[list[str]] = []
    for name in path:
        if stretches and plan.placement[stretches[-1][-1]] == plan.placement[name]:
            stretches[-1].append(name)
        else:
            stretches.append([name])
    used_ns = sum(due[name] for name in path)
    parts = [
        f"{_range(names)} on {plan.placement[names[0]]} {show_ns(sum(due[name] for name in names))}"
        for names in stretches
    ]
    return [
        f"{output}: {show_ns(deadline_ns)} = {' + '.join(parts)}"
        + (f" + {show_ns(deadline_ns - used_ns)} unused" if used_ns < deadline_ns else ""),
        *[
            f"    {name}: {show_ns(due[name])} for a cost of {show_ns(graph.operators[name].cost_ns)} per "
            + ("window" if graph.operators[name].closes else "tuple")
            for name in path
        ],
    ]


def _guaranteed(plan: Plan, output: str) -> list[str]:
    """The bound beside the deadline, and where its time goes."""
    claim = plan.guarantee[output]
    bound = "no bound" if claim.bound_ns is None else f"bound {show_ns(claim.bound_ns)}"
    said = "guaranteed" if claim.guaranteed else "not guaranteed"
    lines = [f"{output}: deadline {show_ns(claim.deadline_ns)}, {bound}, {said}: {claim.why}"]
    lines += [f"    at most {show_ns(part.ns)}: {part.what}" for part in claim.trail]
    told = (*confidence_lines.lines(claim), *freshness_lines.judged(claim), *freshness_lines.hops(claim))
    return lines + [f"    {line}" for line in told]


def _analysed(plan: Plan) -> list[str]:
    """What the bounds rest on, node by node."""
    lines = []
    for node, found in plan.analysis.nodes.items():
        share = f"worst-case utilisation {found.utilisation:.4g}; " if found.bounded else ""
        lines.append(f"node {node}: {share}{found.why}")
    return lines


def longest_path(plan: Plan, end: str) -> list[str]:
    """The operators from a source to `end` whose sub-deadlines add up to most."""
    operators, due = plan.graph.operators, plan.sub_deadlines_ns
    best: dict[str, tuple[int, str | None]] = {}
    stack = [end]
    while stack:
        name = stack[-1]
        before = [one for one in operators[name].inputs if one in operators]
        waiting = [one for one in before if one not in best]
        if waiting:
            stack += waiting
            continue
        latest = max(((best[one][0], one) for one in before), default=None)
        best[name] = (due[name] + (latest[0] if latest else 0), latest[1] if latest else None)
        stack.pop()
    path: list[str] = []
    step: str | None = end
    while step is not None:
        path.append(step)
        step = best[step][1]
    return path[::-1]


def _places(plan: Plan) -> list[str]:
    lines = []
    for name, operator in plan.graph.operators.items():
        if operator.window is not None:
            continue  # where its other half is
        at, allowed = plan.placement[name], operator.nodes or list(plan.cluster.nodes)
        others = [node for node in allowed if node != at]
        if len(allowed) == 1:
            why = "the query allows no other node" if operator.nodes else "there is no other node"
        elif name in plan.held:
            why = "held there by --place"
        elif plan.allocator == "sqpr":
            why = f"least CPU, traffic and imbalance; {', '.join(others)} was possible; deadlines were not looked at"
        else:
            why = f"chosen over {', '.join(others)}: {_chosen_by(plan, name)}"
        told = [_elsewhere(node, figures) for node, figures in plan.alternatives.get(name, {}).items()]
        lines.append(f"{name} on {at}: {why}" + (f" ({'; '.join(told)})" if told else ""))
    return lines


def _chosen_by(plan: Plan, name: str) -> str:
    """Why a free operator is where it is; under `sound` also where the `paper` model would put it, and why."""
    if plan.model != "sound":
        return "evenest slack (NLR), then least traffic"
    wish = plan.solver.tighten
    why = f"the least bound for {wish} with every output guaranteed" if wish else "guaranteed, then least traffic"
    paper = plan.paper
    if not paper or name not in paper.elsewhere:
        return why
    here = "no solution here" if paper.nlr_here is None else f"NLR {paper.nlr_here:g} here"
    at = paper.elsewhere[name]
    return f"{why}; the paper model would choose {at}, with NLR {paper.nlr:g} against {here}, without regard to traffic"


def _elsewhere(node: str, figures: Alternative | None) -> str:
    """What the plan would be with the operator on another node."""
    if figures is None:
        return f"on {node}: infeasible"
    laxity = "no solution of the paper model" if figures.nlr is None else f"NLR {figures.nlr:g}"
    if isinstance(figures, PaperAlternative):
        return f"on {node}: {laxity}, traffic {figures.traffic:g}"
    said = "guaranteed" if figures.guaranteed else "no guarantee found"
    return f"on {node}: {said}, traffic {figures.traffic:g}, {laxity}"


def _nodes(plan: Plan) -> list[str]:
    lines = []
    for node, tasks in plan.tasks.items():
        facts = plan.cluster.nodes[node]
        lines.append(f"{node} ({facts.policy}): {counted(len(tasks), 'task unit')}")
        lines += [
            f"    unit {task.id}: {_range(task.operators)}, sub-deadline {show_ns(task.sub_deadline_ns)}"
            for task in sorted(tasks, key=lambda task: task.sub_deadline_ns)
        ]
    return lines


def _crossing(plan: Plan) -> list[str]:
    names = {facts.index: name for name, facts in plan.cluster.nodes.items()}
    streams = {facts.id: name for name, facts in plan.graph.streams.items()}
    return [
        f"{streams[send.stream]}: {node} -> {names[send.peer]}"
        for node, local in plan.nodes.items()
        for send in local.sends
    ]


def _range(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)} operators)"
