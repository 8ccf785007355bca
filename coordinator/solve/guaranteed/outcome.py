"""Outcome of a search of the `sound` model, as the rest of the planner knows it: an allocation with its figures, and
what the other choices would have been."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from coordinator.errors import InfeasibleError, OutOfTimeError
from coordinator.model import routes
from coordinator.model.allocation import Allocation
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.solve.guaranteed.candidate import candidate
from coordinator.solve.guaranteed.search import Finder, Sound
from coordinator.solve.guaranteed.sub_deadlines import Effort, Search
from coordinator.solve.milp import deadline
from coordinator.spec.cluster import Cluster
from protos.plan.search import PaperChoice, SoundAlternative

LARGEST_ALTERNATIVES = 12
SECONDS = 5.0
ANALYSES = 24


def allocation(found: Sound) -> Allocation:
    """Per item the sum of its operators' sub-deadlines; NLR is that of these sub-deadlines, traffic is what counts."""
    shares = found.candidate.per_operator(found.objective.due_ns)
    d_ns = {index: sum(shares[name] for name in item.members) for index, item in enumerate(found.problem.items)}
    nlr = round(laxity(found.problem, d_ns), 6)
    hops, least = found.candidate.hops, found.traffic_bound
    return Allocation(found.problem, found.place, d_ns, hops, nlr, 0.0, found.proven, "sound", least)


def over_caps(found: Sound, cluster: Cluster) -> dict[str, float]:
    """What is used on average of the nodes whose caps a plan exceeds."""
    used: dict[int, Fraction] = {}
    for index, at in found.place.items():
        used[at] = used.get(at, Fraction(0)) + found.problem.items[index].load[at]
    nodes = cluster.nodes.values()
    return {node.name: float(used[node.index]) for node in nodes if used.get(node.index, Fraction(0)) > node.cap}


def laxity(problem: Problem, d_ns: Mapping[int, int]) -> float:
    """[P] (3) and (4): sum over outputs and items of |d_s / c'_s - d / c|."""
    return sum(
        abs(terminal.deadline_ns / terminal.weight_ns - d_ns[index] / problem.items[index].weight_ns)
        for terminal in problem.terminals
        for index in terminal.items
    )


@dataclass(frozen=True)
class Others:
    """`alternatives`: per operator that is free, and other node: traffic, whether that is guaranteed (with the
    sub-deadlines found for it), and the `paper` model's NLR; None: impossible. `paper`: what that one would choose."""

    alternatives: dict[str, dict[str, SoundAlternative | None]]
    paper: PaperChoice | None


def others(finder: Finder, found: Sound) -> Others:
    """Where few operators are free, what other choices would bring; nothing otherwise."""
    problem, names = found.problem, [node.name for node in found.problem.nodes]
    free = [i for i in range(len(problem.items)) if i not in problem.held]
    moves = [(i, node) for i in free for node in problem.items[i].nodes if node != found.place[i]]
    if not moves or len(moves) > LARGEST_ALTERNATIVES:
        return Others({}, None)
    alternatives: dict[str, dict[str, SoundAlternative | None]] = {}
    for index, node in moves:
        figures = _moved(finder, {**found.place, index: node})
        for name in problem.items[index].members:
            alternatives.setdefault(name, {})[names[node]] = figures
    return Others(alternatives, _paper(problem, found, names))


def _moved(finder: Finder, place: dict[int, int]) -> SoundAlternative | None:
    """One placement, with sub-deadlines searched for it."""
    problem = finder.problem
    laid = finder.laid(place)
    if laid is None:
        return None
    laid_out = candidate(finder.setting, laid.names, laid.hops)
    search = Search(laid_out, finder.charges, Effort(ANALYSES, finder.until), spared=finder.spared)
    objective = search.feasible()
    traffic = float(routes.traffic(problem, laid.hops))
    guaranteed = bool(objective and objective.holds)
    return SoundAlternative(traffic=traffic, guaranteed=guaranteed, nlr=_nlr(problem, place))


def _nlr(problem: Problem, place: Mapping[int, int]) -> float | None:
    """The `paper` model's best NLR of a placement; None: it has no solution there, or not in time."""
    try:
        return deadline.allocate(problem, Limits(SECONDS), fixed=place).nlr
    except (InfeasibleError, OutOfTimeError):
        return None


def _paper(problem: Problem, found: Sound, names: list[str]) -> PaperChoice | None:
    """What the `paper` model would choose: the free operators that it places elsewhere, and both NLRs."""
    try:
        best = deadline.allocate(problem, Limits(SECONDS))
    except (InfeasibleError, OutOfTimeError):
        return None
    elsewhere = {
        name: names[best.place[index]]
        for index, item in enumerate(problem.items)
        if best.place[index] != found.place[index]
        for name in item.members
    }
    here = _nlr(problem, found.place) if elsewhere else best.nlr
    return PaperChoice(elsewhere=elsewhere, nlr=best.nlr, traffic=float(best.traffic), nlr_here=here)
