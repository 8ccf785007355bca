"""Repairs that change no number: an operator that may run elsewhere, or is moved; a policy that the test covers; an age
that is declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from coordinator.guarantee import admission_ages
from coordinator.guarantee.analysis import analyse
from coordinator.guarantee.system import read
from coordinator.plan import policy_choice
from coordinator.solve.repair.bisect import first
from coordinator.solve.repair.relaxation import host
from coordinator.solve.repair.repair import Repair
from coordinator.solve.repair.what_if_runs import Case, WhatIfRuns
from coordinator.spec import graph, policy_names
from coordinator.spec.files.query_file import CHAIN_NAME
from coordinator.spec.query import Operator
from coordinator.spec.runtime_charges import RuntimeOverhead
from coordinator.spec.sharing.compose import SEPARATOR
from coordinator.units import exact, show_ns, step_of
from protos.plan_document import Plan


def pinned(case: Case, missed: Mapping[str, str]) -> list[str]:
    """Entries of the query whose operators may not run everywhere, those that lead to a missed output first."""
    wanted = {output.origin for output in case.query.outputs if output.name in missed or not missed}
    for operator in reversed(graph.order(case.query)):
        if operator.name in wanted:
            wanted |= set(operator.inputs)
    entries: dict[str, bool] = {}
    for operator in case.query.operators:
        if operator.nodes is not None or operator.name in case.choices.place:
            entry = _entry(case, operator)
            entries[entry] = entries.get(entry, False) or operator.name in wanted
    return sorted(entries, key=lambda entry: not entries[entry])


def _entry(case: Case, operator: Operator) -> str:
    """What `--what-if` knows it by: its name, or a chain's range; of several queries, with the query that it is of. Of
    both halves of a window operator it is the same."""
    if not _chained(operator):
        return operator.said
    users = case.query.users[operator.name]
    if len(users) > 1:  # it may stand in several chains
        return operator.name
    return f"{users[0]}{SEPARATOR}{operator.entry}" if case.query.members else operator.entry


def _chained(operator: Operator) -> bool:
    return CHAIN_NAME.fullmatch(operator.entry) is not None


def free(trials: WhatIfRuns, entry: str) -> Repair | None:
    """Without the restriction to nodes of one entry of the query. None: it does not help."""
    case = trials.case
    members = [operator.name for operator in case.query.operators if _entry(case, operator) == entry]
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
    where = ", ".join(dict.fromkeys(found.plan.placement[name] for name in members))
    what = " and ".join([*(["'nodes:'"] if pinned_ else []), *(["--place"] if held else [])])
    text = f"let {entry} run anywhere (no {what}): it goes to {where}"
    several = any(_chained(operator) for operator in case.query.operators if operator.name == entry)  # of chains
    return Repair("free", text, changed, what_if=(f"operators.{entry}.nodes=null",) if pinned_ and not several else ())


def moves(case: Case, plan: Plan | None) -> Iterator[tuple[str, str]]:
    """Operators that are free to run elsewhere, and where; nothing without a plan that says where they are. What
    collects windows goes where they are closed."""
    if plan is None:
        return
    for operator in case.query.operators:
        if operator.name in case.choices.place or operator.window is not None:
            continue
        for node in operator.nodes if operator.nodes is not None else tuple(case.cluster.nodes):
            if node != plan.placement[operator.name] and node not in operator.barred:
                yield operator.name, node


def move(trials: WhatIfRuns, name: str, node: str) -> Repair | None:
    """One free operator held elsewhere. None: it does not help."""
    case = trials.case
    place = {**case.choices.place, name: node}
    changed = replace(case, choices=replace(case.choices, place=place))
    if not trials.holds(changed, f"{name} on {node}"):
        return None
    return Repair("move", f"hold {name} to {node}", changed, place={name: node})


def policy(trials: WhatIfRuns) -> Repair | None:
    """The policy with bounds on every node that names another. None: it does not help, or all have bounds."""
    case = trials.case
    chosen = policy_names.read(case.choices.policy) if case.choices.policy is not None else None
    named = policy_choice.everywhere(case.cluster, chosen).nodes.values()
    other = [node for node in named if node.policy is not None and not policy_choice.covered(node.policy)]
    if not other:
        return None
    nodes = {**case.cluster.nodes, **{node.name: replace(node, policy=policy_choice.SOUND) for node in other}}
    changed = replace(case, cluster=replace(case.cluster, nodes=nodes), choices=replace(case.choices, policy=None))
    sound = policy_choice.SOUND.name
    if not trials.holds(changed, f"policy {sound}"):
        return None
    names = list(dict.fromkeys(host(node) for node in other))
    text = f"schedule {', '.join(names)} by {sound}: there is a bound for no other policy"
    return Repair("policy", text, changed, what_if=tuple(f"nodes.{name}.policy={sound}" for name in names))


def hopeless(case: Case) -> list[str]:
    """Sources whose tuples may be as old on admission as an output's whole deadline."""
    due = {output.name: output.deadline_ns for output in case.query.outputs}
    found = []
    for source in case.query.sources:
        least_ns = min((due[name] for name in _outputs(case, source.name)), default=None)
        if least_ns is not None and source.max_age_ns >= least_ns:
            found.append(source.name)
    return found


def ageless(case: Case) -> tuple[str, ...]:
    """Outputs of sources that admit tuples of any age."""
    fed = {name for source in case.query.sources if not source.max_age_ns for name in _outputs(case, source.name)}
    return tuple(output.name for output in case.query.outputs if output.name in fed)


def aged(case: Case, ages_ns: Mapping[str, int]) -> Case:
    """With these ages on admission; 0: any."""
    sources = tuple(
        replace(source, max_age_ns=ages_ns.get(source.name, source.max_age_ns)) for source in case.query.sources
    )
    return replace(case, query=replace(case.query, sources=sources))


def declare_ages(trials: WhatIfRuns, case: Case, plan: Plan, names: Sequence[str], after: str = "") -> Repair | None:
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

    if not (holds(100) or holds(1)):
        return None
    percent = 100 if holds(100) else first(holds, 100, 1).value
    told = ", ".join(f"{name} {show_ns(age_ns)}" for name, age_ns in ages(percent).items())
    changes = tuple(f"sources.{name}.max_age={exact(age_ns)}" for name, age_ns in ages(percent).items())
    text = f"declare how old tuples may be on admission at most (max_age): {told}"
    return Repair("age", text, aged(case, ages(percent)), (), changes)


def _outputs(case: Case, source: str) -> list[str]:
    """Outputs that a source leads to."""
    reached = {source}
    for operator in graph.order(case.query):
        if reached & set(operator.inputs):
            reached.add(operator.name)
    return [output.name for output in case.query.outputs if output.origin in reached]
