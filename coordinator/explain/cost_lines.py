"""Basis of a plan's costs, in sentences: measured, declared or guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from coordinator.explain import source_lines
from coordinator.spec.costs import FEW, MEASURED, UNUSED
from coordinator.spec.query import GUESS_NS, GUESSED, Query
from coordinator.units import show_ns
from protos.plan.costs import CostOrigin
from protos.plan.operators import ADD

if TYPE_CHECKING:
    from protos.plan_document import Plan


def _halves(names: Sequence[str]) -> list[str]:
    """Without the collecting half of an operator with a window, where the other one is there."""
    return [name for name in names if not (name.endswith(ADD) and name.removesuffix(ADD) in names)]


def lines(plan: Plan) -> list[str]:
    """What a plan's costs rest on, in a sentence or a few."""
    origins, sources = plan.costs or {}, plan.graph.sources
    calls = {name: one.pull.cost_ns for name, one in sources.items() if one.pull is not None and name in origins}
    return _lines({**{name: one.cost_ns for name, one in plan.graph.operators.items()}, **calls}, origins)


def _lines(costs_ns: Mapping[str, int], origins: Mapping[str, CostOrigin]) -> list[str]:
    kinds = {kind: [n for n, one in origins.items() if one.kind == kind] for kind in (MEASURED, GUESSED, UNUSED)}
    declared = len(costs_ns) - len(kinds[MEASURED]) - len(kinds[GUESSED])
    told = []
    if kinds[MEASURED]:
        told.append(f"{len(kinds[MEASURED])} of {len(costs_ns)} measured ({_measured(origins, kinds[MEASURED])})")
    if declared:
        which = f"all {declared}" if declared == len(costs_ns) and declared > 1 else str(declared)
        guess = "a guess until 'coordinator profile' has measured it"
        if declared > 1:
            guess = "guesses until 'coordinator profile' has measured them"
        told.append(f"{which} as declared in the query, {guess}")
    if kinds[GUESSED]:
        told.append(f"{len(kinds[GUESSED])} GUESSED, since the query has no 'cost:' for {_some(kinds[GUESSED])}")
    found = [f"costs: {'; '.join(told)}"]
    if kinds[GUESSED]:
        each = show_ns(max(costs_ns[name] for name in kinds[GUESSED]))
        found.append(
            f"what is promised holds only if no call of {_some(kinds[GUESSED])} takes longer than {each}, which nobody "
            "has measured or declared: run it, then 'coordinator profile' and 'coordinator plan --costs costs.yaml'"
        )
    return found + _doubts(origins, kinds)


def on_guesses(plan: Plan) -> str:
    """To end a verdict: nothing is promised beyond what was guessed, or what not all calls kept to."""
    origins = (plan.costs or {}).values()
    guessed = any(one.kind == GUESSED for one in origins) or bool(source_lines.guessed(plan))
    weak = ["the guessed costs hold"] if guessed else []
    below = sorted({one.of for one in origins if one.kind == MEASURED} - {"worst"})
    weak += [f"no call takes longer than {' or '.join(below)} with the margin"] if below else []
    promised = any(claim.holds for claim in plan.guarantee.values())
    return f", if {' and '.join(weak)}" if weak and promised else ""


def guesses(query: Query) -> str:
    """Of a query without a plan: whose costs are guessed; empty: nobody's."""
    names = [one.name for one in query.operators if one.cost_from is not None and one.cost_from.kind == GUESSED]
    return f"the query has no 'cost:' for {_some(names)}, so {show_ns(GUESS_NS)} each is guessed" if names else ""


def of_query(query: Query) -> list[str]:
    """The same of a query without a plan, where a cost is not as declared."""
    origins = {one.name: one.cost_from for one in query.operators if one.cost_from is not None}
    return _lines({one.name: one.cost_ns for one in query.operators}, origins) if origins else []


def _measured(origins: Mapping[str, CostOrigin], names: Sequence[str]) -> str:
    first = origins[names[0]]
    days = sorted({origins[name].measured[:10] for name in names})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"{first.file}, {when}; {first.of} times {first.margin}"


def _doubts(origins: Mapping[str, CostOrigin], kinds: Mapping[str, Sequence[str]]) -> list[str]:
    """What is weak about them."""
    found = []
    figures = {origins[name].of for name in kinds[MEASURED]}
    for of in sorted(figures - {"worst"}):
        beyond = "one call in a hundred takes" if of == "p99" else "many calls take"
        found.append(f"with costs of {of} {beyond} longer, but for the margin: bounds hold only while none does")
    if few := [name for name in kinds[MEASURED] if origins[name].samples < FEW]:
        found.append(f"measured in fewer than {FEW} calls, too few to trust: {_some(few)}")
    if waits := [name for name in kinds[MEASURED] if origins[name].why]:
        found.append(f"{_some(waits)}: waits beside its CPU time, which no bound counts; declare a cost that has it")
    found += [f"the measured cost of {name} is not used: {origins[name].why}" for name in kinds[UNUSED]]
    return found


def _some(names: Sequence[str]) -> str:
    told = _halves(names)
    return ", ".join(told) if len(told) <= 6 else f"{', '.join(told[:5])} and {len(told) - 5} more"
