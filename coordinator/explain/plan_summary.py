"""Summary of a plan in a few sentences: what runs where and why there, which output is tightest, what breaks it first,
and which sources may lose fresh tuples to their own `max_age`.

What breaks it first is found by analysing the same plan with dearer operators: sources are held to what they declare,
so a cost that was underrated is what makes a promise wrong. Nothing is planned again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from coordinator.guarantee import bounds
from coordinator.guarantee.analysis import analyse, never
from coordinator.guarantee.system import read
from coordinator.plan.deadline_breakdown import SAID, totals
from coordinator.spec.runtime_charges import RuntimeOverhead
from coordinator.spec.sharing.owners import whose
from coordinator.units import show_ns
from protos.plan.guarantee import Claim
from protos.plan.operators import ADD
from protos.plan.search import Alternative, PaperAlternative
from protos.plan_document import Plan

MOST_PERCENT = 1000  # dearer; beyond that nothing is said
MOST_OPERATORS = 40  # of plans in which each operator is tried alone
NUMBERED = re.compile(r"(.*?)(\d+)")


def lines(plan: Plan, stop: Callable[[], bool] = never) -> list[str]:
    """Four sentences, or fewer; one more for each source whose `max_age` is short. stop: whether there is no time any
    more to try what breaks first."""
    return [*_where(plan), *_why(plan), *_tightest(plan), *_first_to_break(plan, stop), *_short_ages(plan)]


def _names(plan: Plan) -> list[str]:
    """Operators as users know them: a window's two halves are one."""
    return [name for name, one in plan.graph.operators.items() if one.window is None]


def _where(plan: Plan) -> list[str]:
    at: dict[str, list[str]] = {}
    for name in _names(plan):
        at.setdefault(plan.placement[name], []).append(name)
    idle = [node for node in plan.cluster.nodes if node not in at]
    told = "; ".join(f"{node} runs {listed(names)}" for node, names in at.items())
    return [f"{told}{f'; nothing runs on {listed(idle)}' if idle else ''}"]


def _why(plan: Plan) -> list[str]:
    """Why what could be elsewhere is where it is."""
    operators, nodes = plan.graph.operators, list(plan.cluster.nodes)
    if len(nodes) == 1:
        return []
    held = [name for name in _names(plan) if name in plan.held]
    pinned = [name for name in _names(plan) if len(operators[name].nodes or nodes) == 1]
    free = [name for name in _names(plan) if name not in {*held, *pinned}]
    if not free:
        return ["no operator has a choice of node: the query pins them" + (", or --place" if held else "")]
    kept = plan.kept.operators if plan.kept else ()
    least = "the least" if plan.status == "optimal" else "the least that was found"
    reason = f"which sends {least} between nodes with every output guaranteed"
    if plan.allocator == "sqpr":
        reason = "by CPU, traffic and balance, without regard to deadlines"
    elif plan.model != "sound":
        reason = "for the evenest slack (NLR), then the least traffic"
    elif plan.solver.tighten:
        reason = f"for the least bound of {plan.solver.tighten} with every output guaranteed"
    elif not all(claim.guaranteed for claim in plan.guarantee.values()):
        reason = f"which sends {least} between nodes"
    told = []
    for node, names in groupby(free, key=lambda name: plan.placement[name]):
        here = list(names)
        why = "where it ran already" if all(name in kept for name in here) else reason
        told.append(f"{listed(here)} could be elsewhere and {'is' if len(here) == 1 else 'are'} on {node}, {why}")
        told[-1] += _elsewhere(plan, here)
    return told + ([f"the query pins {listed(pinned)}"] if pinned and len(pinned) <= 6 else [])


def _elsewhere(plan: Plan, names: Sequence[str]) -> str:
    """What would be lost on the other nodes, where that was tried."""
    tried = [plan.alternatives.get(name, {}) for name in names]
    lost = {node for each in tried for node, one in each.items() if not _holds(one)}
    more = {node: one.traffic for each in tried for node, one in each.items() if one is not None and _holds(one)}
    told = [f"on {listed(sorted(lost))} no guarantee was found"] if lost else []
    told += [
        f"on {node} {traffic:g} tuples per burst would cross, here {plan.objective.traffic:g}"
        for node, traffic in sorted(more.items())
        if node not in lost
    ]
    return f" ({'; '.join(told)})" if told else ""


def _holds(found: Alternative | None) -> bool:
    """Whether it may be: it is guaranteed, or of a model that promises nothing."""
    return isinstance(found, PaperAlternative) or (found is not None and found.guaranteed)


def _bound_ns(claim: Claim) -> int | None:
    return claim.from_admission_ns if claim.bound_ns is None else claim.bound_ns


def _tightest(plan: Plan) -> list[str]:
    """The output with the least of its deadline left."""
    known = {name: ns for name, claim in plan.guarantee.items() if (ns := _bound_ns(claim)) is not None}
    if not known:
        return ["no output has a bound"]
    name = max(known, key=lambda one: known[one] / plan.guarantee[one].deadline_ns)
    claim, parts = plan.guarantee[name], totals(plan, name)
    kind = max((kind for kind in parts if kind != "slack"), key=lambda kind: parts[kind])
    since = ", counted from admission" if claim.bound_ns is None else ""
    which = f"tightest is {name}{whose(plan, name)}" if len(plan.guarantee) > 1 else f"{name}"
    verb = ":" if len(plan.guarantee) > 1 else " takes"
    return [
        f"{which}{verb} at most {show_ns(known[name])} of {show_ns(claim.deadline_ns)}{since}; the largest part is "
        f"{SAID[kind]}, {show_ns(parts[kind])}"
    ]


class _NoTimeError(Exception):
    """There was no time to try it."""


def _first_to_break(plan: Plan, stop: Callable[[], bool]) -> list[str]:
    """How much dearer operators may be than planned, all of them and the least tolerant one alone."""
    try:
        return _broken_first(plan, stop)
    except _NoTimeError:
        return ["how much dearer operators may be was not found in time: more with --time-limit"]


def _broken_first(plan: Plan, stop: Callable[[], bool]) -> list[str]:
    now = outputs_that_hold(plan, {})
    if not now:
        return []
    names = list(plan.graph.operators)
    together = least_percent(plan, now, names, MOST_PERCENT, stop)
    if together is None:
        other = "a link slower than declared, or " if len(plan.cluster.nodes) > 1 else ""
        roomy = f"it would hold with all of them {MOST_PERCENT // 100 + 1} times as high"
        return [f"costs are not what breaks it first, {roomy}; {other}a node that fails would"]
    first = sorted(now - outputs_that_hold(plan, dict.fromkeys(names, together)))
    late = f"{listed(first)} {'is' if len(first) == 1 else 'are'} late"
    told = f"first to break, should costs be underrated: with all of them {_overrun(together)} {late}"
    alone, least = None, MOST_PERCENT
    for name in names if len(names) <= MOST_OPERATORS else ():
        found = least_percent(plan, now, [name], least - 1, stop) if least > 1 else None
        if found is not None:
            alone, least = name, found
    if alone is None:
        return [told]
    cost_ns = plan.graph.operators[alone].cost_ns
    dear = show_ns(cost_ns * (100 + least) // 100)
    return [f"{told}; so it is with {alone.removesuffix(ADD)} alone at {dear} instead of {show_ns(cost_ns)}"]


def _short_ages(plan: Plan) -> list[str]:
    """Sources of which a tuple may be refused as too old although it was fresh as it came: it waits for the look at the
    sockets, at the longest for one instance and the interval between two looks."""
    waits = analyse(read(plan), RuntimeOverhead.read(plan.analysis.charges)).delays.drains
    return [
        f"source {name} takes tuples up to {show_ns(source.max_age_ns)} old, but {source.at} may read its sockets only "
        f"after {show_ns(waits[source.at])}: fresh ones are refused as too old then, so give it a longer 'max_age', or "
        "keep long operators off its node"
        for name, source in plan.graph.sources.items()
        if 0 < source.max_age_ns < waits.get(source.at, 0)
    ]


def _overrun(percent: int) -> str:
    return f"{percent} % higher" if percent < 100 else f"{1 + percent / 100:.3g} times as high"


def least_percent(
    plan: Plan, now: frozenset[str], names: Sequence[str], most: int, stop: Callable[[], bool] = never
) -> int | None:
    """By how many percent these have to be dearer for an output not to hold any more; None: by more than `most`.
    Raises _NoTimeError."""
    if stop():
        raise _NoTimeError
    if outputs_that_hold(plan, dict.fromkeys(names, most)) >= now:
        return None
    low, high = 0, most
    while high - low > 1:
        if stop():
            raise _NoTimeError
        middle = (low + high) // 2
        low, high = (middle, high) if outputs_that_hold(plan, dict.fromkeys(names, middle)) >= now else (low, middle)
    return high


def outputs_that_hold(plan: Plan, percents: Mapping[str, int]) -> frozenset[str]:
    """Outputs whose bound is within the deadline with some operators so many percent dearer."""
    graph = plan.graph
    operators = {
        name: replace(one, cost_ns=-(-one.cost_ns * (100 + percents[name]) // 100)) if name in percents else one
        for name, one in graph.operators.items()
    }
    changed = replace(plan, graph=replace(graph, operators=operators))
    claims, _ = bounds.analysed(analyse(read(changed), RuntimeOverhead.read(plan.analysis.charges)))
    return frozenset(
        name for name, claim in claims.items() if (ns := _bound_ns(claim)) is not None and ns <= claim.deadline_ns
    )


def listed(names: Sequence[str]) -> str:
    """`a, b and c`; of numbered names in a row the first and the last."""
    runs: list[list[str]] = []
    for name in names:
        before, own = NUMBERED.fullmatch(runs[-1][-1]) if runs else None, NUMBERED.fullmatch(name)
        if before and own and (before[1], int(before[2]) + 1) == (own[1], int(own[2])):
            runs[-1].append(name)
        else:
            runs.append([name])
    told = [one for run in runs for one in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else run)]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
