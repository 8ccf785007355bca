"""Which query an output belongs to, from plan.json alone."""

from __future__ import annotations

from protos.plan_document import Plan


def owners(plan: Plan) -> dict[str, str]:
    """The query of each output; empty for a plan of one query."""
    queries = plan.queries
    return {one: name for name, facts in queries.items() for one in facts.outputs} if len(queries) > 1 else {}


def whose(plan: Plan, output: str) -> str:
    """` of fleet` behind an output's name; nothing where there is one query."""
    owner = owners(plan).get(output)
    return f" of {owner}" if owner else ""
