"""The plan after a change, in which everything that runs stays as it is: one query more, or one less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coordinator.change.admission import AdmissionResult, judged, promised
from coordinator.change.transition import LOADING_NS, charged_ns
from coordinator.errors import AuditError, InfeasibleError, Mistake, OutOfTimeError, bad_file
from coordinator.model import incumbent, problem, routes
from coordinator.model.allocation import Allocation
from coordinator.model.choices import Choices
from coordinator.model.incumbent import Incumbent
from coordinator.model.limits import Limits
from coordinator.model.progress import Watch
from coordinator.plan import assemble, reopen, running_plan
from coordinator.plan.layout import Layout
from coordinator.plan.policy_choice import SOUND, of_node
from coordinator.plan.running_plan import RunningPlan
from coordinator.solve import planner
from coordinator.solve.audit import audit_guarantee as sound_audit
from coordinator.solve.audit.audit import audit
from coordinator.solve.guaranteed import outcome
from coordinator.spec import core_assignment, costs, graph, query_reader
from coordinator.spec.checks import declarations, query_checks
from coordinator.spec.cluster import Cluster
from coordinator.spec.costs import Costs
from coordinator.spec.files.yaml_source import nearest
from coordinator.spec.query import Query
from coordinator.spec.sharing import compose
from coordinator.spec.sharing.compose import Composite
from protos.plan.search import SubDeadlines
from protos.plan_document import Plan

NEAREST_S = 10.0


@dataclass(frozen=True)
class Change:
    """`before`: the plan that runs; `after`: the next one, None where there is none; `query`, `cluster`, `types`,
    `choices`: what it is planned from; `added`, `removed`: queries; `shared`: operators of the added query that run
    already."""

    before: Plan
    after: Plan | None
    verdict: AdmissionResult
    query: Query
    cluster: Cluster
    types: Mapping[str, str]
    choices: Choices
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wish:
    """How a query is to be added. `limits`: of the search; `best_effort`: its own outputs need not be guaranteed;
    `loading_ns`: the longest stretch for which loading a plan keeps a node's thread; `measured`: costs in place of
    those that it declares."""

    limits: Limits
    best_effort: bool = False
    share: bool = True
    loading_ns: int = LOADING_NS
    measured: Costs | None = None


def added(plan: Plan, path: Path, file: Path, wish: Wish, watch: Watch | None = None) -> Change:
    """With the query of a file more. `plan`: verified, of `path`. Raises BadInputError."""
    there = _as_it_runs(running_plan.read(plan, path), plan)
    refuse_survivors(plan, path)
    joining = _joining(file, there, wish.measured)
    composed = compose.extend(there.composite, joining, there.cluster, wish.share, there.place)
    query, types = composed.query, dict(graph.types(composed.query, there.cluster.catalog))
    before = reopen.choices(plan)
    choices = replace(
        before,
        limits=replace(wish.limits, seed=before.limits.seed, solver=before.limits.solver),
        incumbent=incumbent.read(plan, set(there.place), plan.hash),
        tighten=None,
        loading_ns=charged_ns(plan, wish.loading_ns),
    )
    shared = tuple(name for name in composed.members[joining.name].operators if name in there.place)
    new = frozenset(output.name for output in joining.outputs)
    need_not = new if wish.best_effort else frozenset()

    def attempt(spared: frozenset[str], loading_ns: int) -> tuple[Plan | None, AdmissionResult]:
        wanted = replace(choices, incumbent=replace(choices.incumbent, spared=spared), loading_ns=loading_ns)
        made, told = _planned(query, there.cluster, types, wanted, watch)
        if made is None:
            return None, AdmissionResult((), told)
        return made, replace(judged(plan, made, need_not, wish.loading_ns), proof=told)

    after, verdict = None, AdmissionResult(())
    for spared in _attempts(plan, new, wish.best_effort):
        after, verdict = attempt(spared, choices.loading_ns)
        if verdict.admitted:
            break
    if not verdict.admitted and choices.loading_ns:  # is it only the change itself?
        other = attempt(spared, 0)
        if other[1].only_during:
            after, verdict = other
    return Change(plan, after, verdict, query, there.cluster, types, choices, (joining.name,), (), shared)


def _planned(
    query: Query, cluster: Cluster, types: Mapping[str, str], choices: Choices, watch: Watch | None
) -> tuple[Plan | None, tuple[Mistake, ...]]:
    """A plan, and where it is proven that none holds the reasons: then it is the nearest one, if there is any."""
    try:
        return planner.plan(query, cluster, types, choices, watch), ()
    except InfeasibleError as error:
        reasons = tuple(error.reasons)
    if choices.model != "sound":
        return None, reasons
    try:
        nearest_ = replace(choices, best_effort=True, quick=True, limits=replace(choices.limits, seconds=NEAREST_S))
        return planner.plan(query, cluster, types, nearest_, watch), reasons
    except (InfeasibleError, OutOfTimeError):
        return None, reasons


def _as_it_runs(there: RunningPlan, plan: Plan) -> RunningPlan:
    """With the policies that the nodes run, also where the planner chose them: a change does not choose again."""
    ran = plan.cluster.nodes
    nodes = {name: replace(node, policy=of_node(ran[name])) for name, node in there.cluster.nodes.items()}
    return replace(there, cluster=replace(there.cluster, nodes=nodes))


def _attempts(plan: Plan, new: frozenset[str], best_effort: bool) -> list[frozenset[str]]:
    """Which outputs need not hold: those that do not hold now; and with `best_effort`, if all else fails, new ones."""
    if plan.model != "sound":
        return [frozenset()]
    late = frozenset(name for name, claim in plan.guarantee.items() if not promised(claim))
    return [late, late | new] if best_effort else [late]


def _joining(file: Path, there: RunningPlan, measured: Costs | None) -> Query:
    """One query file, checked against the cluster and the queries that run. Raises BadInputError."""
    query, cluster = query_reader.load(file), there.cluster
    if query.name in there.members:
        alike = "as in this file" if there.members[query.name].sha256 == query.sha256 else "not as in this file"
        mend = f"'coordinator remove {query.name}' ends it; a query beside it needs another name"
        query.file.wrong("runs_already", ("query",), f"query '{query.name}' runs already, {alike}", mend)
        query.file.check()
    costs.check(measured, [query.name])
    query = costs.applied(query, measured, cluster.catalog)
    query_checks.check(query, cluster)
    declarations.check(query)
    return core_assignment.resolve(query, cluster)


def refuse_survivors(plan: Plan, path: Path) -> None:
    """Raises BadInputError for a plan that any node of may fail: what is kept could not move in a fail-over plan."""
    if plan.failover is not None:
        text = "survives the failure of any one node, which a change of it would not"
        mend = (
            "plan all queries anew with 'coordinator plan QUERY... CLUSTER --survive 1' and deploy that with --replace"
        )
        raise bad_file(path, "change_of_surviving_plan", text, mend)


def removed(plan: Plan, path: Path, names: Sequence[str], loading_ns: int = LOADING_NS) -> Change:
    """Without these queries. Nothing is searched: what is left stays as it is. Raises BadInputError."""
    there = _as_it_runs(running_plan.read(plan, path), plan)
    refuse_survivors(plan, path)
    unknown = [name for name in names if name not in there.members]
    if unknown:
        raise bad_file(path, "unknown_query", f"has no query '{unknown[0]}'", nearest(unknown[0], there.members))
    if set(names) == set(there.members):
        text = f"runs nothing else than {', '.join(there.members)}: 'coordinator stop {path}' ends it"
        raise bad_file(path, "last_query", text)
    left: Composite = there.composite
    for name in dict.fromkeys(names):
        left = compose.without(left, name)
    query = left.query
    types = {one.name: there.types[one.name] for one in query.producers}
    stays = incumbent.read(plan, {operator.name for operator in query.operators}, plan.hash)
    choices = replace(reopen.choices(plan), incumbent=stays)
    made = _laid(plan, query, there.cluster, types, choices)
    verdict = judged(plan, made, loading_ns=loading_ns)
    return Change(plan, made, verdict, query, there.cluster, types, choices, removed=tuple(names))


def _laid(plan: Plan, query: Query, cluster: Cluster, types: Mapping[str, str], choices: Choices) -> Plan:
    """The plan of what is left: every choice is made."""
    stays: Incumbent = choices.incumbent
    built = problem.build(query, cluster, choices.held(cluster), incumbent_hops=stays.hops)
    place = {index: cluster.nodes[stays.place[item.members[0]]].index for index, item in enumerate(built.items)}
    hops = routes.direct(built, place)
    d_ns = {index: sum(stays.due_ns[name] for name in item.members) for index, item in enumerate(built.items)}
    nlr = round(outcome.laxity(built, d_ns), 6)
    kind: SubDeadlines = "sound" if plan.model == "sound" else "kept"
    allocation = Allocation(built, place, d_ns, hops, nlr, 0.0, False, kind, 0.0)
    layout = Layout(query, cluster, types, stays.place, stays.due_ns, hops, SOUND, choices.units, stays.units)
    held = {name: node for name, node in choices.place.items() if name in stays.place}
    made = assemble.build(
        layout, allocation, choices.allocator, plan.solver, held, {}, choices.charges, plan.model, incumbent=stays
    )
    if violations := audit(made) or sound_audit.audit(made):
        raise AuditError(violations)
    return made
