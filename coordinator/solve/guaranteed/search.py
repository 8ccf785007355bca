"""The `sound` model: a placement of least traffic, sub-deadlines for it, the analysis; where that fails a cut; again.

It ends with a guaranteed plan, with the proof that there is none (the proven rows alone leave nothing), or with the
best plan that was found. A placement that no sub-deadlines made hold is left out and not proven impossible, unless
even with every unit before all others some output is late: then it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod

from coordinator.errors import InfeasibleError, Mistake, no_placement_in_time
from coordinator.guarantee.analysis import never
from coordinator.model import incumbent, problem, routes
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.model.progress import Progress, Watch
from coordinator.model.routes import Hops
from coordinator.solve.guaranteed import benders_cuts, large, lower_bounds
from coordinator.solve.guaranteed.candidate import Candidate, Setting, candidate
from coordinator.solve.guaranteed.impossible import impossible
from coordinator.solve.guaranteed.master import Master, Offer, nearest
from coordinator.solve.guaranteed.necessary_conditions import NecessaryConditions
from coordinator.solve.guaranteed.objective_rank import ObjectiveRank
from coordinator.solve.guaranteed.relief import Relief, Step
from coordinator.solve.guaranteed.sub_deadlines import RELAXED, Effort, Search
from coordinator.solve.heuristics import scale
from coordinator.solve.milp import capacity_rows, least_violation, milp
from coordinator.solve.milp.unplaceable import unplaceable
from coordinator.spec.runtime_charges import RuntimeOverhead
from coordinator.units import counted

FEW = 2000  # placements up to which all are looked at, one by one
MOST_PLACEMENTS = 300  # tried where there are more
MOST_TIES = 6  # placements of the same traffic, for the sake of slack
MOST_TIGHTENED = 16  # placements for --tighten
ANALYSES = 80  # per placement, until it holds
FEWER_ANALYSES = 24  # where there are more placements than can be looked at
SHARE = 3  # part of the time for the placements by traffic, where there are more; then steps from the best
LARGE_ANALYSES = 6  # for the first placement of a large problem
STEP_ANALYSES = 3  # for each step from there
WORSE_STEPS = 12  # in a row, where none is better
MOST_REASONS = 6
POLISH = 150  # analyses to improve the one chosen
ANALYSES_LEFT = 6  # time for so many is left for what comes after the search: claims, ages, the audit
LEAST_LEFT, MOST_LEFT = 0.15, 0.25  # of the time limit


@dataclass(frozen=True)
class Sound:
    """What was found. `proven`: no guaranteed plan has less traffic; `traffic_bound`: what it is at least;
    `impossible`: the reasons why no plan is guaranteed, proven; `analyses`, `cuts`, `placements`: what it took;
    `hurried`: time ended it, so the result may be another on another machine."""

    candidate: Candidate
    objective: ObjectiveRank
    problem: Problem
    place: Mapping[int, int]
    proven: bool
    traffic_bound: float
    analyses: int
    cuts: int
    placements: int
    impossible: tuple[Mistake, ...] = ()
    hurried: bool = False

    @property
    def traffic(self) -> Fraction:
        """Tuples per burst that cross between nodes."""
        return routes.traffic(self.problem, self.candidate.hops)

    @property
    def outcome(self) -> str:
        """In words, for the plan."""
        if not self.objective.excess:
            return "guaranteed"
        if self.objective.holds:
            return f"guaranteed, but for {', '.join(sorted(self.objective.excess))}"
        if self.impossible:
            return "proven impossible"
        return f"no guaranteed plan was found{' in time' if self.hurried else ''}, none is proven impossible"


@dataclass(frozen=True)
class Laid:
    """A placement by operators and nodes, with its routes."""

    names: Mapping[str, str]
    hops: Hops


@dataclass
class _Tried:
    """`late`: why no sub-deadlines make it hold, proven, or nothing."""

    offer: Offer
    search: Search
    objective: ObjectiveRank
    late: str | None = None


@dataclass
class Finder:
    """One search. `tighten`: the output whose bound is to be small, else least traffic and then most slack; `spared`:
    outputs that need not hold, of which nothing is proven either."""

    setting: Setting
    charges: RuntimeOverhead
    limits: Limits
    held: Mapping[str, str] = field(default_factory=dict)
    tighten: str | None = None
    watch: Watch | None = None
    conflicts: Sequence[Mapping[str, frozenset[str]]] = ()
    spared: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.began = time.monotonic()
        self.ended = self.began + self.limits.seconds
        self.longest_s = 0.0  # that an analysis took: what is left to do after the search takes a few of them
        query, cluster = self.setting.query, self.setting.cluster
        hops = self.setting.incumbent.hops
        self.problem = problem.build(query, cluster, self.held, conflicts=self.conflicts, incumbent_hops=hops)
        self.conditions = NecessaryConditions(incumbent.relaxed(query, self.spared, RELAXED), cluster, self.problem)
        self.quickest = routes.Quickest.of(self.problem, cluster)
        self.analyses = self.cuts = 0
        self.least: float | None = None  # proven: no guaranteed plan has less traffic
        self.best: _Tried | None = None
        self.seen = 0

    @property
    def until(self) -> float:
        """When the search ends (time.monotonic), so that all is done within the limit."""
        least_s, most_s = self.limits.seconds * LEAST_LEFT, self.limits.seconds * MOST_LEFT
        left_s = min(most_s, max(least_s, ANALYSES_LEFT * self.longest_s))
        return min(self.ended, self.began + self.limits.seconds - left_s)

    def run(self, best_effort: bool, quick: bool = False) -> Sound:
        """The plan; `quick`: without reasons, and without more slack than it takes.

        Raises InfeasibleError where it is proven that none is guaranteed, or none is possible at all, OutOfTimeError
        where nothing was looked at in time.
        """
        self.conditions.rates  # noqa: B018 - finds sources without a curve
        reasons = [*self.conditions.unbounded, *impossible(self.conditions)]
        if reasons:
            left = len(reasons) - MOST_REASONS
            more = [Mistake("more_reasons", f"and {left} more")] if left > 0 else []
            return self._give_up(reasons[:MOST_REASONS] + more, best_effort)
        found: list[_Tried] = []
        try:
            if scale.takes(self.problem, self.limits):
                return self._result(self._large(), ())
            master = Master(self.conditions, self.limits)
            for tried in self._guaranteed(master):
                found.append(tried)
        except KeyboardInterrupt:  # the best so far is the result
            if self.best is None:
                raise
            self.ended = time.monotonic()
            return self._result(min(found, key=self._key) if found else self.best, ())
        if not found and not master.steering and master.infeasible:
            return self._give_up(
                [Mistake("infeasible", "no plan is guaranteed")] if quick else self._why(), best_effort
            )
        if self.best is None:
            raise no_placement_in_time(self.limits.seconds)
        if not found and self._plain:
            worse = 0 if self._few else WORSE_STEPS
            found = [self._relieved(self.best, large.worst(self.conditions, self.charges), worse)]
        chosen = min(found, key=self._key) if found else self.best
        return self._result(chosen if quick and not self.tighten else self._polished(chosen), ())

    @property
    def _plain(self) -> bool:
        """Whether steps know all that a placement has to keep to."""
        return self.problem.meshed and not self.problem.stores and not self.problem.conflicts

    def _large(self) -> _Tried:
        """A first placement, and steps from the best one until it holds."""
        worst = large.worst(self.conditions, self.charges)
        self.least = large.traffic_bound(
            self.conditions, self.limits, self.began + self.limits.seconds / large.BOUND_SHARE
        )
        place = large.start(worst, self.limits, self.watch)
        first = self._try(Offer(place, routes.direct(self.problem, place), 0.0), LARGE_ANALYSES)
        return self._relieved(first, worst, WORSE_STEPS)

    def _relieved(self, best: _Tried, worst: Problem, worse_steps: int = 0) -> _Tried:
        """The best of the steps from a placement, until one holds, none is better, or time is up. `worse_steps`: so
        many in a row may be worse than the best, where none is better."""
        seen = {Step(best.offer.place, best.offer.unit_cuts).key}
        at, worse = best, 0
        while not best.objective.holds and worse <= worse_steps and time.monotonic() < self.until:
            after = self._next(at, worst, seen)
            if after is None:
                break
            at = after
            if self._nearer(at) < self._nearer(best):
                best, worse = at, 0
            else:
                worse += 1
        return best

    def _next(self, best: _Tried, worst: Problem, seen: set[tuple[object, ...]]) -> _Tried | None:
        """The first step that is better, else the best of them. `seen`: steps that were tried."""
        found: _Tried | None = None
        due_ns = best.search.candidate.per_operator(best.objective.due_ns)
        relief = Relief(worst, Step(best.offer.place, best.offer.unit_cuts), best.objective)
        for step in relief.steps():
            if time.monotonic() >= self.until:
                return found
            if step.key in seen:
                continue
            seen.add(step.key)
            offer = Offer(step.place, routes.direct(self.problem, step.place), 0.0, step.cuts)
            tried = self._step(offer, due_ns)
            if self._nearer(tried) < self._nearer(best):
                return tried
            found = tried if found is None or self._nearer(tried) < self._nearer(found) else found
        return found

    def _step(self, offer: Offer, due_ns: Mapping[str, int]) -> _Tried:
        """A placement near to another whose sub-deadlines, by operator, are these."""
        laid = candidate(self.setting, self._names(offer.place), offer.hops, offer.unit_cuts)
        effort = self._effort(STEP_ANALYSES)
        search = Search(laid, self.charges, effort, self.tighten, self.spared, first_ns=due_ns, stop=self._stop())
        return self._seen(self._searched(offer, search))

    def _guaranteed(self, master: Master) -> Iterator[_Tried]:
        """Guaranteed placements by their traffic: all of the least, or for `tighten` the first few."""
        few = self._few
        until = self.until if few else min(self.until, self.began + self.limits.seconds / SHARE)
        most = MOST_TIGHTENED if self.tighten else MOST_TIES
        first: float | None = None
        count = 0
        while count < most and self.seen < (FEW if few else MOST_PLACEMENTS) and time.monotonic() < until:
            offer = master.offer(until)
            if offer is None:
                if not few and master.infeasible and master.drop_oldest():
                    continue
                return
            traffic = float(routes.traffic(self.problem, offer.hops))
            if first is not None and not self.tighten and traffic > first + 1e-6:
                return
            if not master.steering and first is None:
                self.least = max(self.least or 0.0, min(traffic, offer.traffic_bound))
            tried = self._try(offer, ANALYSES if few else FEWER_ANALYSES, until)
            if tried.objective.holds:
                took = float(routes.traffic(self.problem, tried.offer.hops))
                first = took if first is None else min(first, took)
                count += 1
                yield tried
            self._exclude(master, tried, few)

    @property
    def _few(self) -> bool:
        """Whether all placements are looked at, one by one."""
        return prod(len(self.conditions.cost_ns[item.members[0]]) for item in self.problem.items) <= FEW

    def _exclude(self, master: Master, tried: _Tried, few: bool) -> None:
        """Cuts, so that the next offer is another."""
        holds = tried.objective.holds
        proven = tried.late is not None
        master.exclude(tried.offer.place, proven)
        if not holds:
            self.cuts += 1
        if not holds and not proven and not few:
            for node, work_ns, room_ns in benders_cuts.failing(self.conditions, tried.objective.analysis):
                master.cut(node, work_ns, room_ns)
                self.cuts += 1

    def _try(self, offer: Offer, analyses: int = ANALYSES, until: float | None = None) -> _Tried:
        """Sub-deadlines for a placement, with the routes offered; where these do not hold, with the quickest. What is
        late under the quickest is late under any routes."""
        hops = self.quickest.hops(offer.place)
        tried = self._routed(offer, analyses, until)
        if not tried.objective.holds and hops is not None and hops != offer.hops:
            if capacity_rows.exceeded(self.problem, offer.place, hops):
                laid = candidate(self.setting, self._names(offer.place), hops)
                tried.late = tried.late and lower_bounds.late(laid.system, self.charges, self.spared)
            else:
                other = self._routed(replace(offer, hops=hops), analyses, until)
                late = tried.late and other.late
                tried = min(tried, other, key=self._key)
                tried.late = late
        return self._seen(tried)

    def _seen(self, tried: _Tried) -> _Tried:
        """Counted; the best is kept."""
        self.seen += 1
        if self.best is None or self._key(tried) < self._key(self.best):
            self.best = tried
        self._tell()
        return tried

    def _routed(self, offer: Offer, analyses: int, until: float | None) -> _Tried:
        laid = candidate(self.setting, self._names(offer.place), offer.hops, offer.unit_cuts)
        hopeless = lower_bounds.late(laid.system, self.charges, self.spared, cut=False)
        late = lower_bounds.late(laid.system, self.charges, self.spared) if hopeless else None
        effort = self._effort(1 if hopeless else analyses, until)
        search = Search(laid, self.charges, effort, self.tighten, self.spared, stop=self._stop())
        return self._searched(offer, search, late)

    def _searched(self, offer: Offer, search: Search, late: str | None = None) -> _Tried:
        objective = search.feasible()
        assert objective is not None  # the first analysis is always made
        self.analyses += search.effort.analyses
        self.longest_s = max(self.longest_s, search.longest_s)
        return _Tried(offer, search, objective, late)

    def over(self) -> bool:
        """Whether the time limit is over, also for what follows the search."""
        return time.monotonic() >= self.began + self.limits.seconds

    def _stop(self) -> Callable[[], bool]:
        """What ends an analysis early: time, once there is a result."""
        return never if self.best is None else lambda: time.monotonic() >= self.until

    def _names(self, place: Mapping[int, int]) -> dict[str, str]:
        """The node of every operator."""
        nodes = self.problem.nodes
        return {name: nodes[place[i]].name for i, item in enumerate(self.problem.items) for name in item.members}

    def laid(self, place: Mapping[int, int]) -> Laid | None:
        """A placement with routes of least traffic; None: caps, room or links do not allow it."""
        model = milp.base(self.problem, place)
        answer = milp.solve(model, model.traffic(), self.limits, time.monotonic() + 5.0)
        if answer.solution is None:
            return None
        meshed, hops = self.problem.meshed, answer.solution.hops
        routed = routes.direct(self.problem, place) if meshed else routes.pruned(self.problem, place, hops)
        return Laid(self._names(place), routed)

    def _key(self, tried: _Tried) -> tuple[object, ...]:
        late = tried.objective.rank()[:2]
        traffic = routes.traffic(self.problem, tried.offer.hops)
        if self.tighten:
            return (*late, *tried.objective.rank(self.tighten)[2:3], traffic)
        return (*late, traffic, *tried.objective.rank()[2:])

    def _nearer(self, tried: _Tried) -> tuple[object, ...]:
        """The key of a step: fewer late outputs, then the one that is nearest to its deadline nearer still."""
        late = tried.objective.late
        return (len(late), min(late.values(), default=0), *self._key(tried))

    def _effort(self, analyses: int, until: float | None = None) -> Effort:
        return Effort(analyses, self.until if until is None else until)

    def _polished(self, tried: _Tried) -> _Tried:
        search = tried.search
        search.effort, search.stop = self._effort(POLISH), self._stop()
        tried.objective = search.improve() or tried.objective
        self.analyses += search.effort.analyses
        return tried

    def _give_up(self, reasons: list[Mistake], best_effort: bool) -> Sound:
        """Proven: nothing is guaranteed. The plan that comes nearest, if that is wanted."""
        if not best_effort:
            raise InfeasibleError(reasons)
        offer = self.best.offer if self.best else nearest(self.conditions, self.limits)[0]
        if offer is None:
            crowded = unplaceable(self.problem)
            offer = self._beyond_caps()
            if offer is None:
                raise InfeasibleError(crowded)
            reasons = [*reasons, *(reason for reason in crowded if reason not in reasons)]
        return self._result(self._polished(self._try(offer)), tuple(reasons))

    def _beyond_caps(self) -> Offer | None:
        """With caps that are exceeded as little as can be; None: something else is in the way."""
        widened = least_violation.widened(self.problem, self.limits)
        if widened is None:
            return None
        self.problem, self.conditions = widened, replace(self.conditions, problem=widened, unbounded=[])
        return nearest(self.conditions, self.limits)[0]

    def _why(self) -> list[Mistake]:
        """The rows that leave nothing."""
        offer, said = nearest(self.conditions, self.limits)
        if offer is None:
            return unplaceable(self.problem)
        if said:
            return said
        assert self.best is not None  # then placements were tried, and each is proven impossible
        return [Mistake("nearest_is_late", f"{self.best.late} (of the placements, the one that comes nearest)")]

    def _result(self, tried: _Tried, impossible: tuple[Mistake, ...]) -> Sound:
        traffic = routes.traffic(self.problem, tried.offer.hops)
        least = min(self.least or 0.0, float(traffic))
        proven = tried.objective.holds and not self.tighten and least >= float(traffic) - 1e-6
        return Sound(
            tried.search.candidate,
            tried.objective,
            self.problem,
            tried.offer.place,
            proven,
            least,
            self.analyses,
            self.cuts,
            self.seen,
            impossible,
            time.monotonic() >= self.until,
        )

    def _tell(self) -> None:
        if self.watch and self.best:
            traffic = float(routes.traffic(self.problem, self.best.offer.hops))
            seconds = time.monotonic() - self.began
            yet = f"no guaranteed plan yet, {counted(self.seen, 'placement')} looked at"
            self.watch(Progress(seconds, self.best.objective.holds, 0.0, traffic, None, self.least, yet))
