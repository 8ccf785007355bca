"""Mends that change no number: an operator that may run elsewhere, or is moved; a policy that the test covers; an age
that is declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from coordinator import graph
from coordinator.mend.bisect import first, step_of
from coordinator.mend.mend import Mend
from coordinator.mend.promise import host
from coordinator.mend.trial import Case, Plan, Trials
from coordinator.query import Operator
from coordinator.units_of_measure import show_ns


def pinned(case: Case, missed: Mapping[str, str]) -> list[str]:
    """Entries of the query whose operators may not run everywhere, those that lead to a missed output first."""
    wanted = {output.origin for output in case.query.outputs if output.name in missed or not missed}
    for operator in reversed(graph.order(case.query)):
        if operator.name in wanted:
            wanted |= set(operator.inputs)
    entries: dict[str, bool] = {}
    for operator in case.query.operators:
        if operator.nodes is not None or operator.name in case.choices.place:
            entry = _entry(operator)
            entries[entry] = entries.get(entry, False) or operator.name in wanted
    return sorted(entries, key=lambda entry: not entries[entry])


def _entry(operator: Operator) -> str:
    """What it stands under in the file: its name, or a chain's range."""
    return str(operator.keys[1])


def free(trials: Trials, entry: str) -> Mend | None:
    """Without the restriction to nodes of one entry of the query. None: it does not help."""
    case = trials.case
    members = [operator.name for operator in case.query.operators if _entry(operator) == entry]
    operators = tuple(
        replace(operator, nodes=None) if operator.name in members else operator for operator in case.query.operators
    )
    place = {name: node for name, node in case.choices.place.items() if name not in members}
    changed = Case(
        replace(case.query, operators=operators), case.cluster, case.types, replace(case.choices, place=place)
    )
    found = trials.outcome(changed, f"{entry} free")
    if not found.holds or found.plan is None:
        return None
    held = [name for name in members if name in case.choices.place]
    pinned_ = any(operator.nodes is not None for operator in case.query.operators if operator.name in members)
    where = ", ".join(dict.fromkeys(found.plan["placement"][name] for name in members))
    what = " and ".join([*(["'nodes:'"] if pinned_ else []), *(["--place"] if held else [])])
    text = f"let {entry} run anywhere (no {what}): it goes to {where}"
    return Mend("free", text, changed, what_if=(f"operators.{entry}.nodes=null",) if pinned_ else ())


def moves(case: Case, plan: Plan | None) -> Iterator[tuple[str, str]]:
    """Operators that are free to run elsewhere, and where; nothing without a plan that says where they are."""
    if plan is None:
        return
    for operator in case.query.operators:
        if operator.name in case.choices.place:
            continue
        for node in operator.nodes if operator.nodes is not None else tuple(case.cluster.nodes):
            if node != plan["placement"][operator.name] and node not in operator.barred:
                yield operator.name, node


def move(trials: Trials, name: str, node: str) -> Mend | None:
    """One free operator held elsewhere. None: it does not help."""
    case = trials.case
    place = {**case.choices.place, name: node}
    changed = replace(case, choices=replace(case.choices, place=place))
    if not trials.holds(changed, f"{name} on {node}"):
        return None
    return Mend("move", f"hold {name} to {node}", changed, place={name: node})


def policy(trials: Trials, covered: Sequence[str]) -> Mend | None:
    """The first covered policy on every node that has another. None: it does not help, or all are covered."""
    case = trials.case
    chosen = case.choices.policy
    other = [node for node in case.cluster.nodes.values() if (chosen or node.policy) not in covered]
    if not other:
        return None
    nodes = {
        name: replace(node, policy=covered[0] if node in other else node.policy)
        for name, node in case.cluster.nodes.items()
    }
    changed = replace(case, cluster=replace(case.cluster, nodes=nodes), choices=replace(case.choices, policy=None))
    if not trials.holds(changed, f"policy {covered[0]}"):
        return None
    names = list(dict.fromkeys(host(node) for node in other))
    text = f"schedule {', '.join(names)} by {covered[0]}: there is a bound for no other policy"
    return Mend("policy", text, changed, what_if=tuple(f"nodes.{name}.policy={covered[0]}" for name in names))


def declare_ages(trials: Trials, plan: Plan, ageless: Sequence[str]) -> Mend | None:
    """The largest `max_age` of all sources without one, in proportion to what their outputs leave, that makes every
    output guaranteed and not only from admission on."""
    case = trials.case
    claims = plan["guarantee"]
    left: dict[str, int] = {}
    for source in case.query.sources:
        fed = [name for name in _outputs(case, source.name) if name in ageless]
        if not source.max_age_ns and fed:
            left[source.name] = min(claims[name]["deadline_ns"] - claims[name]["from_admission_ns"] for name in fed)

    def ages(percent: int) -> dict[str, int]:
        found = {}
        for name, room_ns in left.items():
            share_ns = max(1, room_ns * percent // 100)
            found[name] = share_ns // step_of(share_ns) * step_of(share_ns)
        return found

    def changed(percent: int) -> Case:
        chosen = ages(percent)
        sources = tuple(
            replace(source, max_age_ns=chosen.get(source.name, source.max_age_ns)) for source in case.query.sources
        )
        return replace(case, query=replace(case.query, sources=sources))

    def holds(percent: int) -> bool:
        found = trials.outcome(changed(percent), f"ages of {percent} % of what is left")
        return found.holds and not found.ageless

    if not left or not (holds(100) or holds(1)):
        return None
    percent = 100 if holds(100) else first(holds, 100, 1)
    told = ", ".join(f"{name} {show_ns(age_ns)}" for name, age_ns in ages(percent).items())
    changes = tuple(f"sources.{name}.max_age={age_ns} ns" for name, age_ns in ages(percent).items())
    return Mend(
        "age", f"declare how old tuples may be on admission, at most (max_age): {told}", changed(percent), (), changes
    )


def _outputs(case: Case, source: str) -> list[str]:
    """Outputs that a source leads to."""
    reached = {source}
    for operator in graph.order(case.query):
        if reached & set(operator.inputs):
            reached.add(operator.name)
    return [output.name for output in case.query.outputs if output.origin in reached]
