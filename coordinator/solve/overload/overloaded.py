"""The plan of more load than the nodes have time for.

What is shed, late or displaced is no load that has to be served. So the most urgent outputs get what they ask for, in
placement and in order, and what is too much is spread over the others, as evenly as the nodes allow.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from coordinator.model import problem
from coordinator.solve.guaranteed.candidate import candidate
from coordinator.solve.guaranteed.objective_rank import objective_rank
from coordinator.solve.guaranteed.search import Finder, Sound
from coordinator.solve.guaranteed.sub_deadlines import Effort
from coordinator.solve.milp import least_violation
from coordinator.solve.overload import giving_way, precedence, served_shares

ANALYSES = 160
SHOWN = Fraction(1, 10**6)  # of a share: what is less than this below 1 is served


@dataclass(frozen=True)
class Overloaded:
    """`found`: the plan, as a search gives it; `served`: of each output that gives way, the share that can at most be
    served."""

    found: Sound
    served: Mapping[str, float]


def overloaded(finder: Finder, found: Sound) -> Overloaded | None:
    """A better plan than that of a search which has come to use nodes beyond their caps. None: everything can be
    served, or nothing better is known. Afterwards the finder's problem has the caps that this plan needs."""
    setting = finder.setting
    hops = setting.incumbent.hops
    declared = problem.build(
        setting.query, setting.cluster, finder.held, conflicts=finder.conflicts, incumbent_hops=hops
    )
    first = precedence.first(declared, finder.limits)
    spread = least_violation.spread(declared, finder.limits, first)
    if spread is None:
        return None
    names = {output.name for output in setting.query.outputs}
    shares = served_shares.served(declared, spread.place)
    served = {name: share for name, share in shares.items() if name in names and share < 1 - SHOWN}
    if not served:
        return None
    finder.problem = spread.problem
    laid = finder.laid(spread.place)
    if laid is None:
        return None
    whole = candidate(setting, laid.names, laid.hops)
    until = max(finder.until, time.monotonic() + least_violation.SECONDS)
    ordered = giving_way.ordered(setting, whole, served, finder.charges, Effort(ANALYSES, until))
    objective = objective_rank(whole.with_deadlines(ordered.due_ns), finder.charges, frozenset(served))
    better = replace(
        found,
        candidate=whole,
        objective=objective,
        problem=spread.problem,
        place=spread.place,
        proven=False,
        analyses=found.analyses + ordered.analyses + 1,
        placements=found.placements + 1,
    )
    return Overloaded(better, {name: float(share) for name, share in served.items()})
