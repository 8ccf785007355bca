"""Whether what several queries have in common runs once or apart, by what is guaranteed.

Sharing saves work, and it may cost a guarantee: what is read by several ends a task unit, so what follows queues once
more, and a shared operator has only those nodes which all of its queries allow. So where a plan that shares leaves an
output open, one that does not is made as well, and the one that guarantees more outputs is taken, of equals the one
that shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from coordinator.errors import InfeasibleError, OutOfTimeError
from coordinator.model.choices import Choices
from coordinator.model.progress import Watch
from coordinator.solve import planner
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Query
from protos.plan_document import Plan


@dataclass(frozen=True)
class Asked:
    """What is to be planned: a query, or several as one, a cluster, and the types of all streams."""

    query: Query
    cluster: Cluster
    types: Mapping[str, str]

    @property
    def shares(self) -> bool:
        """Whether some operator is needed by several queries."""
        return any(len(users) > 1 for users in self.query.users.values())


def planned(shared: Asked, apart: Callable[[], Asked], choices: Choices, watch: Watch | None = None) -> Plan:
    """The better plan of the two; `apart`: the same queries without sharing, asked for where that may be better.

    Raises what `planner.plan` raises for the queries that share, where those that do not are no better.
    """
    try:
        made = planner.plan(shared.query, shared.cluster, shared.types, choices, watch)
    except InfeasibleError:
        other = _apart(apart, choices, watch) if _comparable(shared, choices) else None
        if other is None or not any(claim.holds for claim in other.guarantee.values()):
            raise
        return _with_reason(other, "it is proven that no plan is guaranteed")
    open_ = [name for name, claim in made.guarantee.items() if not claim.holds]
    if not open_ or made.solver.served or not _comparable(shared, choices):
        return made  # where there is too much to do already, there is more of it apart
    other = _apart(apart, choices, watch)
    if other is None or _holding(other) <= _holding(made):
        return made
    return _with_reason(other, f"{_holding(made)} of {len(made.guarantee)} outputs are guaranteed")


def _comparable(shared: Asked, choices: Choices) -> bool:
    return shared.shares and (choices.allocator, choices.model) == ("deadline", "sound")


def _apart(apart: Callable[[], Asked], choices: Choices, watch: Watch | None) -> Plan | None:
    asked = apart()
    try:
        return planner.plan(asked.query, asked.cluster, asked.types, choices, watch)
    except (InfeasibleError, OutOfTimeError):
        return None


def _holding(plan: Plan) -> int:
    return sum(claim.holds for claim in plan.guarantee.values())


def _with_reason(apart: Plan, together: str) -> Plan:
    """The plan, saying why nothing is shared."""
    why = (
        f"the queries are kept apart, as with '--no-sharing': where what they have in common runs once, {together}, "
        f"apart {_holding(apart)} of {len(apart.guarantee)} are"
    )
    return replace(apart, apart_why=why).sealed()
