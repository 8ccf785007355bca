"""Ages on admission: those that leave an output no time at all, and those that may be declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from coordinator.guarantee import admission_ages
from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.system import read
from coordinator.solve.repair.bisect import first
from coordinator.solve.repair.repair import Change, Edit
from coordinator.solve.repair.what_if_runs import Case, WhatIfRuns
from coordinator.spec import graph
from coordinator.spec.runtime_charges import RuntimeOverhead
from coordinator.units import exact, show_ns, step_of
from protos.plan_document import Plan

WHOLE = 100  # percent
SHARES = (WHOLE, 50, 10, 1)  # of the room for an age, the largest that holds first: a small age need not hold either
PART = 100  # of a deadline, that an age is where nothing is known of the room for one
LEAST_NS = 100_000  # above what a look at the sockets takes, else fresh tuples would be refused


def hopeless(case: Case) -> list[str]:
    """Sources whose tuples may be as old on admission as an output's whole deadline."""
    due = {output.name: output.deadline_ns for output in case.query.outputs}
    found = []
    for source in case.query.sources:
        least_ns = min((due[name] for name in _outputs(case, source.name)), default=None)
        if least_ns is not None and source.max_age_ns >= least_ns:
            found.append(source.name)
    return found


def undeclared(case: Case) -> list[str]:
    """Sources without a `max_age` that lead to an output; a timer's ticks have an age that is known."""
    return [
        source.name
        for source in case.query.sources
        if not source.max_age_ns and (source.pull is None or source.pull.run) and _outputs(case, source.name)
    ]


def modest(case: Case, names: Sequence[str]) -> Change:
    """Those sources with an age that leaves nearly all of each deadline."""
    due = {output.name: output.deadline_ns for output in case.query.outputs}
    ages_ns = {}
    for name in names:
        least_ns = min(due[output] for output in _outputs(case, name))
        age_ns = max(1, min(least_ns // 2, max(least_ns // PART, LEAST_NS)))
        ages_ns[name] = age_ns // step_of(age_ns) * step_of(age_ns)
    return _declared(case, ages_ns)


def aged(case: Case, ages_ns: Mapping[str, int]) -> Case:
    """With these ages on admission; 0: any."""
    sources = tuple(
        replace(source, max_age_ns=ages_ns.get(source.name, source.max_age_ns)) for source in case.query.sources
    )
    return replace(case, query=replace(case.query, sources=sources))


def declare_ages(trials: WhatIfRuns, case: Case, plan: Plan, names: Sequence[str], after: str = "") -> Change | None:
    """The largest `max_age` of those sources, which have none in `case`, under which its outputs hold: what `plan`, its
    plan, has room for, or a share of that. `after`: what was changed before, in words."""
    room = plan.analysis.ages or admission_ages.proposed(
        analyse(read(plan), RuntimeOverhead.read(plan.analysis.charges))
    )
    left = {name: ns for name, ns in room.max_age_ns.items() if name in names} if room is not None else {}
    if not left:
        return None
    others = {source.name for source in case.query.sources if not source.max_age_ns} - set(names)

    def ages(percent: int) -> dict[str, int]:
        found = {}
        for name, room_ns in left.items():
            share_ns = max(1, room_ns * percent // 100)
            found[name] = share_ns // step_of(share_ns) * step_of(share_ns)
        return found

    def holds(percent: int) -> bool:
        told = ", ".join(f"{name} {show_ns(age_ns)}" for name, age_ns in ages(percent).items())
        found = trials.outcome(aged(case, ages(percent)), f"{after}{', ' if after else ''}ages of {told}")
        return found.holds and (bool(others) or not found.ageless)

    for bad, good in pairwise((WHOLE, *SHARES)):
        if holds(good):
            percent = good if good == WHOLE else first(holds, bad, good).value
            return _declared(case, ages(percent))
    return None


def _declared(case: Case, ages_ns: Mapping[str, int]) -> Change:
    told = ", ".join(f"{name} {show_ns(age_ns)}" for name, age_ns in ages_ns.items())
    edits = tuple(Edit("sources", name, "max_age", exact(age_ns)) for name, age_ns in ages_ns.items())
    text = f"declare how old tuples may be on admission at most (max_age): {told}"
    return Change("age", text, aged(case, ages_ns), edits)


def _outputs(case: Case, source: str) -> list[str]:
    """Outputs that a source leads to."""
    reached = {source}
    for operator in graph.order(case.query):
        if reached & set(operator.inputs):
            reached.add(operator.name)
    return [output.name for output in case.query.outputs if output.origin in reached]
