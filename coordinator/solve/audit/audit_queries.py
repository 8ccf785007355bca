"""The audit's part on several queries: every part of the plan belongs to one of them, and each has all that it needs.

A query has all that leads to its outputs, through triggers and side inputs, and nothing else; of a fail-over plan less
what is lost. Outputs belong to one query each.
"""

from __future__ import annotations

from protos.plan_document import Plan


def queries(plan: Plan) -> list[str]:
    """Violations of `queries`, one sentence each."""
    graph, found = plan.graph, []
    if plan.query != "+".join(plan.queries):
        found.append("the plan's name is not those of its queries")
    owned = [output for facts in plan.queries.values() for output in facts.outputs]
    if sorted(owned) != sorted(graph.outputs):
        found.append("not every output belongs to exactly one query")
    for name, facts in plan.queries.items():
        ends = [graph.outputs[output].origin for output in facts.outputs if output in graph.outputs]
        needed = _needed(plan, ends)
        for kind, own, every in (
            ("operators", facts.operators, graph.operators.keys()),
            ("sources", facts.sources, graph.sources.keys()),
        ):
            if set(own) != needed & every or len(set(own)) != len(own):
                found.append(f"the {kind} of query {name} are not those that lead to its outputs")
    return found


def _needed(plan: Plan, ends: list[str]) -> set[str]:
    """Streams that lead to some of these."""
    operators = plan.graph.operators
    needed, waiting = set(ends), list(ends)
    while waiting:
        facts = operators.get(waiting.pop())
        before = [*facts.inputs, *facts.side.values()] if facts else []
        waiting += [name for name in before if name not in needed]
        needed |= set(before)
    return needed
