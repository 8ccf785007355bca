"""From files to a plan: parse, check, build the problem, solve, extract units, audit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from coordinator.errors import AuditError, InfeasibleError, Mistake, OutOfTimeError, no_placement_in_time
from coordinator.model import incumbent, problem
from coordinator.model.allocation import Allocation
from coordinator.model.chains import Contract
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.model.progress import Watch
from coordinator.plan import assemble, policy_choice
from coordinator.plan.layout import Layout
from coordinator.solve import failover, option_checks, sub_deadline_allocation
from coordinator.solve.audit import audit_guarantee as sound_audit
from coordinator.solve.audit.audit import audit
from coordinator.solve.guaranteed import outcome
from coordinator.solve.guaranteed.candidate import Setting
from coordinator.solve.guaranteed.search import Finder
from coordinator.solve.heuristics import scale
from coordinator.solve.milp import deadline, sqpr
from coordinator.solve.milp.infeasible import explain
from coordinator.solve.milp.unplaceable import unplaceable
from coordinator.solve.overload.overloaded import overloaded
from coordinator.spec import input_files, policy_names
from coordinator.spec.checks import confidence_checks
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Query
from protos.plan.search import PaperAlternative, Solver
from protos.plan_document import Plan

LARGEST_ALTERNATIVES = 12
ALTERNATIVE_SECONDS = 5.0
FIRST_ATTEMPT_SECONDS = 10.0


def make_plan(
    query_paths: Path | Sequence[Path],
    cluster_path: Path,
    choices: Choices,
    watch: Watch | None = None,
    share: bool = True,
) -> Plan:
    """The plan for the files of one query or several, and a cluster. Raises BadInputError, InfeasibleError,
    OutOfTimeError, and AuditError where the planner itself is wrong. `watch` is told how the search for a large
    problem goes; `share`: as of `input_files.read_files`."""
    query, cluster, types = input_files.read_files(query_paths, cluster_path, share=share)
    assert cluster is not None  # a path was given
    return plan(query, cluster, types, choices, watch)


def plan(
    query: Query, cluster: Cluster, types: Mapping[str, str], choices: Choices, watch: Watch | None = None
) -> Plan:
    """As `make_plan`, of a query and a cluster that are checked already; `types`: of every stream."""
    option_checks.check(query, cluster, choices)
    confidence_checks.check(query)
    cluster = policy_choice.everywhere(
        cluster, policy_names.read(choices.policy) if choices.policy is not None else None
    )
    if crowded := incumbent.crowded(query, choices.incumbent):
        raise InfeasibleError(crowded)
    if choices.survive:
        made = failover.survivable(query, cluster, types, choices, plan, watch)
    elif choices.allocator == "deadline" and choices.model == "sound":
        made = _sound(query, cluster, types, choices, watch)
    else:
        made = _by_paper(query, cluster, types, choices, watch)
    violations = audit(made) or sound_audit.audit(made)
    if violations:
        raise AuditError(violations)
    if not choices.best_effort:
        confidence_checks.check_samples(query, made.guarantee)
    return made


def _sound(query: Query, cluster: Cluster, types: Mapping[str, str], choices: Choices, watch: Watch | None) -> Plan:
    """By the guarantee: placement and sub-deadlines such that every output's bound is within its deadline."""
    setting = Setting(query, cluster, types, choices.units, choices.incumbent)
    charged = replace(choices.charges, loading_ns=choices.loading_ns) if choices.loading_ns else choices.charges
    held, conflicts, spared = choices.held(cluster), choices.conflicts, choices.incumbent.spared
    finder = Finder(setting, charged, choices.limits, held, choices.tighten, watch, conflicts, spared)
    impossible: InfeasibleError | None = None
    try:
        found = finder.run(choices.best_effort, choices.quick)
    except InfeasibleError as error:
        if choices.best_effort or not any(output.confidence for output in query.outputs):
            raise
        impossible = error  # of every result; a share of them may be in time all the same
        found = finder.run(True, choices.quick)
    served: Mapping[str, float] = {}
    over = outcome.over_caps(found, cluster)
    if over and not choices.best_effort:  # a search of a large problem has placed what does not fit
        raise impossible or _too_much(found.problem, choices)
    if over and not choices.incumbent.place:
        better = overloaded(finder, found)
        found, served = (better.found, better.served) if better is not None else (found, served)
    other = outcome.others(finder, found) if not choices.quick else outcome.Others({}, None)
    shares = found.candidate.per_operator(found.objective.due_ns)
    place, hops, stay = found.candidate.place, found.candidate.hops, choices.incumbent.units
    cuts = found.candidate.cuts
    layout = Layout(query, cluster, types, place, shares, hops, policy_choice.SOUND, choices.units, stay, cuts)
    solver = Solver(
        name=choices.limits.solver,
        seed=choices.limits.seed,
        contracted="fixed",
        outcome=found.outcome,
        why=tuple(map(str, found.impossible)),
        tighten=choices.tighten,
        placements=found.placements,
        analyses=found.analyses,
        cuts=found.cuts,
        over_caps=outcome.over_caps(found, cluster) or None,
        served=served or None,
    )
    made = assemble.build(
        layout,
        outcome.allocation(found),
        choices.allocator,
        solver,
        choices.place,
        other.alternatives,
        choices.charges,
        model="sound",
        paper=other.paper,
        incumbent=choices.incumbent,
        quick=choices.quick,
        stop=finder.over,
    )
    if impossible is not None and not all(claim.holds for claim in made.guarantee.values()):
        confidence_checks.check_samples(query, made.guarantee)
        raise impossible
    return made


def _too_much(model: problem.Problem, choices: Choices) -> InfeasibleError | OutOfTimeError:
    """Why a placement within the caps was not found: all together is too much, or it was not found in time."""
    least = sum(min(item.load.values()) for item in model.items)
    if least > sum(node.cap for node in model.nodes):
        return InfeasibleError(unplaceable(model, choices.limits))
    return no_placement_in_time(choices.limits.seconds)


def _by_paper(query: Query, cluster: Cluster, types: Mapping[str, str], choices: Choices, watch: Watch | None) -> Plan:
    """By the `paper` model, or by the baseline without deadlines."""
    allocation, contracted = _allocate(query, cluster, choices, watch)
    names = list(cluster.nodes)
    item_of = allocation.problem.item_of()
    place = {operator.name: names[allocation.place[item_of[operator.name]]] for operator in query.operators}
    shares = sub_deadline_allocation.per_operator(allocation.problem, allocation.d_ns)
    if choices.incumbent.place:
        shares = incumbent.fitted(query, shares, choices.incumbent)
        allocation = _as_kept(allocation, shares)
    stay = choices.incumbent.units
    layout = Layout(query, cluster, types, place, shares, allocation.hops, policy_choice.SOUND, choices.units, stay)
    solver = Solver(name=choices.limits.solver, seed=choices.limits.seed, contracted=contracted)
    alternatives = _alternatives(allocation, names) if choices.allocator == "deadline" and not choices.quick else {}
    return assemble.build(
        layout,
        allocation,
        choices.allocator,
        solver,
        choices.place,
        alternatives,
        choices.charges,
        incumbent=choices.incumbent,
    )


def _as_kept(allocation: Allocation, shares: Mapping[str, int]) -> Allocation:
    """With sub-deadlines that are not the model's own: what runs keeps its, so (6) is not claimed, and NLR is that of
    these. Which nodes new operators go to is the model's choice."""
    d_ns = {index: sum(shares[name] for name in item.members) for index, item in enumerate(allocation.problem.items)}
    nlr = round(outcome.laxity(allocation.problem, d_ns), 6)
    return replace(allocation, d_ns=d_ns, nlr=nlr, bound=0.0, proven=False, sub_deadlines="kept")


def _allocate(
    query: Query, cluster: Cluster, choices: Choices, watch: Watch | None = None
) -> tuple[Allocation, Contract]:
    """Pinned chains contracted; where that model has no solution, or none in time, runs of free operators as well.

    The printed rows (6) take the operators of a free chain for jobs of one instant, so long free chains have no
    solution, and proving so is slow. A short attempt, then the coarser model, then the finer one for as long as is
    left.
    """
    seconds = choices.limits.seconds
    until = time.monotonic() + seconds
    held, hops = choices.held(cluster), choices.incumbent.hops
    fine = problem.build(query, cluster, held, conflicts=choices.conflicts, incumbent_hops=hops)
    if choices.allocator == "sqpr":
        return sqpr.allocate(fine, choices.limits, choices.sub_deadlines), "fixed"
    coarse = problem.build(query, cluster, held, "linear", conflicts=choices.conflicts, incumbent_hops=hops)
    attempts: list[tuple[problem.Problem, Contract, float]] = [(fine, "fixed", seconds)]
    if len(coarse.items) < len(fine.items):
        first = min(FIRST_ATTEMPT_SECONDS, seconds / 4)
        attempts = [(fine, "fixed", first), (coarse, "linear", seconds / 2), (fine, "fixed", seconds / 2 - first)]
    impossible: set[str] = set()
    for model, contracted, share in attempts:
        if contracted in impossible:
            continue
        try:
            limits = replace(choices.limits, seconds=share)
            if scale.takes(model, limits):  # takes what is left of all the time, unless nothing is found in its share
                left = replace(limits, seconds=max(share, until - time.monotonic()))
                found = scale.allocate(model, left, watch, patience=share)
            else:
                found = deadline.allocate(model, limits)
        except InfeasibleError:
            impossible.add(contracted)
        except OutOfTimeError:
            continue
        else:
            settled = contracted == "fixed" or "fixed" in impossible
            return replace(found, proven=found.proven and settled), contracted
    if len(impossible) < len({contracted for _, contracted, _ in attempts}):
        raise no_placement_in_time(seconds)
    raise InfeasibleError(
        [Mistake("infeasible", "no placement holds")] if choices.quick else explain(coarse, choices.limits, finest=fine)
    )


def _alternatives(allocation: Allocation, names: Sequence[str]) -> assemble.Alternatives:
    """What the optimum would be with one free operator elsewhere, where there are few enough of them to solve again."""
    problem_ = allocation.problem
    free = [i for i in range(len(problem_.items)) if i not in problem_.held]
    moves = [(i, node) for i in free for node in problem_.items[i].nodes if node != allocation.place[i]]
    found: dict[str, dict[str, PaperAlternative | None]] = {}
    for index, node in moves if len(moves) <= LARGEST_ALTERNATIVES else ():
        figures: PaperAlternative | None = None
        try:
            other = deadline.allocate(problem_, Limits(ALTERNATIVE_SECONDS), fixed={index: node})
            figures = PaperAlternative(nlr=other.nlr, traffic=float(other.traffic))
        except InfeasibleError:
            pass
        except OutOfTimeError:
            continue
        for name in problem_.items[index].members:
            found.setdefault(name, {})[names[node]] = figures
    return found
