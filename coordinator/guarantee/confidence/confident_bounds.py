"""Bounds that as large a share of the results keep as an output asks for, given the costs that were measured.

Where none of the instances that can influence a result takes longer than what was counted on, the analysis by these
costs bounds it. So the share of results beyond the bound is at most the probability that one of them does. Which these
are follows from the plan's own costs (`influence`), so they do not depend on what is counted on. With every pass bounds
become smaller and the instances more; the number of passes with the least bound is taken.

Assumed is what docs/explanation/confidence.md says; of independent costs sums are counted on (`cost_sums`), of others
costs alone (`late_budget`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from coordinator.guarantee import bounds
from coordinator.guarantee.analysis import Analysis, analyse, lessened
from coordinator.guarantee.confidence import cost_sums, late_budget, operator_costs
from coordinator.guarantee.confidence.influence import Influence, uncovered
from coordinator.guarantee.confidence.late_budget import Spender
from coordinator.guarantee.confidence.operator_costs import MEASURED_WITH, OperatorCost, with_costs
from coordinator.guarantee.confidence.quantile_limits import Limit, samples_needed
from coordinator.guarantee.facts import Facts
from coordinator.guarantee.propagate import propagate
from coordinator.guarantee.streams import Delays, Reuse
from coordinator.guarantee.system import System
from coordinator.spec.quality import Confidence
from coordinator.units import counted, show_ns
from protos.plan.costs import CostDistribution
from protos.plan.guarantee import Claim, ConfidentBound, CountedCost

MOST_PASSES = 8
PATIENCE = 2  # passes in a row that bring nothing
SAME = 0.999  # a bound that is not below so much of another brings nothing
_CountedOn = tuple[System, float, dict[str, CountedCost]]  # with what may be late by it
Division = Callable[[Mapping[str, Spender], float], dict[str, Limit]]


@dataclass(frozen=True)
class _None:
    """There is no bound. `needed`: calls of each operator that would do, where there are too few."""

    why: str
    needed: int | None = None


@dataclass(frozen=True)
class _Found:
    """After so many passes: a bound, and the costs that it counts on; `late`: what they use up."""

    bound_ns: int
    late: float
    costs: Mapping[str, CountedCost]


class ConfidentBounds:
    """Of a plan. `plan`: what runs where; `analysis`: by its own costs; `measured`: calls by operator; `division`: of
    what may be late among operators whose costs may depend on each other."""

    def __init__(
        self,
        plan: Facts,
        analysis: Analysis,
        measured: Mapping[str, Sequence[CostDistribution]],
        division: Division = late_budget.divided,
    ) -> None:
        self.costs = operator_costs.read(plan, analysis.system, measured)
        self.certain = _certain(analysis, self.costs)
        self.division = division
        self._influence = Influence(self.certain) if not uncovered(analysis.system) else None

    def of_output(self, name: str, asked: Confidence, claim: Claim) -> ConfidentBound:
        """`claim`: about every result of the output."""
        certain = bounds.deadline_claim(self.certain, name)
        written = ConfidentBound(
            share=float(asked.share),
            measured_with=float(MEASURED_WITH),
            independent=asked.independent,
            bound_ns=None,
            certain_ns=certain.bound_ns,
            late=0.0,
            guaranteed=False,
            why=uncovered(self.certain.system),
            costs={},
        )
        if written.why:
            return written
        if certain.bound_ns is None:
            return replace(written, why=f"by the plan's own costs, which have to bound it too: {certain.why}")
        found = self._best(name, asked)
        if isinstance(found, _None):
            return replace(written, why=found.why, needed=found.needed)
        in_time = found.bound_ns <= claim.deadline_ns
        also = (claim.qos is None or claim.qos.hold) and claim.is_fresh
        return replace(
            written,
            bound_ns=found.bound_ns,
            late=found.late,
            guaranteed=in_time and also,
            why=_why(found, asked, claim, in_time, also),
            costs=dict(sorted(found.costs.items())),
        )

    def _best(self, name: str, asked: Confidence) -> _Found | _None:
        """Over numbers of passes."""
        best = self._after(name, 1, asked)
        if isinstance(best, _None):
            return best
        worse = 0
        for passes in range(2, MOST_PASSES + 1):
            found = self._after(name, passes, asked)
            if isinstance(found, _None):
                break
            worse = 0 if found.bound_ns < SAME * best.bound_ns else worse + 1
            best = min(best, found, key=lambda one: one.bound_ns)
            if worse >= PATIENCE:
                break
        return best

    def _after(self, name: str, passes: int, asked: Confidence) -> _Found | _None:
        assert self._influence is not None  # else it is not covered
        reach = self._influence.reaches(name, passes)
        runs = {operator: n for operator, n in self._influence.runs(reach).items() if n}
        if missing := [operator for operator in runs if operator not in self.costs]:
            return _None(f"no calls were measured of {', '.join(missing)}")
        late = float(asked.late)
        found = self._bounded(name, passes, self._single(name, runs, late))
        if not asked.independent:
            return found
        by_sums = self._bounded(name, passes, self._sums(name, runs, late))
        both = [one for one in (found, by_sums) if isinstance(one, _Found)]
        return min(both, key=lambda one: one.bound_ns) if both else by_sums

    def _bounded(self, name: str, passes: int, counted_on: _CountedOn | _None) -> _Found | _None:
        if isinstance(counted_on, _None):
            return counted_on
        system, late, costs = counted_on
        state = replace(self.certain.delays, reuse=Reuse())
        for _ in range(passes):
            state = lessened(system, state, self.certain.charges)
        bound_ns = self._bound_ns(system, state, name)
        return _Found(bound_ns, late, costs) if bound_ns is not None else _None("its bound is lost")

    def _single(self, name: str, runs: Mapping[str, int], late: float) -> _CountedOn | _None:
        """Costs that no instance may be above."""
        waited = self._waited(name)
        spenders = {each: Spender(n, waited.get(each, 0), self.costs[each].choices) for each, n in runs.items()}
        if late_budget.least_late(spenders) > late:
            return self._too_few(runs, late)
        limits = self.division(spenders, late)
        used = sum(runs[each] * limit.exceeded for each, limit in limits.items())
        costs = {
            each: _counted(limit.cost_ns, limit.exceeded, runs[each], self.costs[each])
            for each, limit in limits.items()
        }
        return with_costs(self.certain.system, {each: limit.cost_ns for each, limit in limits.items()}), used, costs

    def _too_few(self, runs: Mapping[str, int], late: float) -> _None:
        each = late / sum(runs.values())
        needed = samples_needed(each, float(1 - MEASURED_WITH) / len(self.costs))
        fewest = min(runs, key=lambda one: self.costs[one].limits.samples)
        return _None(
            f"{counted(self.costs[fewest].limits.samples, 'call')} of {fewest} were measured, and it takes {needed} of "
            f"each operator, since {counted(sum(runs.values()), 'instance')} can influence a result",
            needed,
        )

    def _sums(self, name: str, runs: Mapping[str, int], late: float) -> _CountedOn | _None:
        """What instances in a row may not be above in sum, by even shares: a tail falls so fast that it hardly matters
        which is whose. Half of what may be late goes to the longest calls, where samples say that these are so rare:
        then no row has one."""
        single = self._single(name, runs, late / 2)
        caps = {} if isinstance(single, _None) else single[2]
        rows, costs = {}, {}
        for each, n in runs.items():
            own, length = self.costs[each], min(n, cost_sums.MOST_IN_A_ROW)
            exceeded = (late / 2 if caps else late) / len(runs) / (n * length)
            most_ns = caps[each].cost_ns if caps else own.certain_ns
            below = [choice for choice in own.choices if choice.cost_ns < most_ns]
            rows[each] = cost_sums.sums(below, most_ns, length, exceeded)
            costs[each] = _counted(rows[each][0], exceeded, n, own)
        return operator_costs.with_sums(self.certain.system, rows), late, costs

    def _waited(self, name: str) -> dict[str, int]:
        """Of how many instances of each operator a tuple waits for the end, by the plan's own costs: on its way, and of
        what it may find running."""
        units = {unit.name: unit for unit in self.certain.system.units.values()}
        claim, jobs = bounds.deadline_claim(self.certain, name), dict[str, int]()
        nodes = {part.node for part in claim.parts if part.kind == "unit"}
        for unit in units.values():
            if unit.node in nodes:
                jobs[unit.name] = 1
        for _, before in claim.ahead.values():
            for what, n, _ in before:
                if what in units:
                    jobs[what] = jobs.get(what, 0) + n
        found = {}
        for what, runs in jobs.items():
            left = runs
            for stage in units[what].stages:
                found[stage.operator] = left
                left = stage.selectivity(left)
        return found

    def _bound_ns(self, system: System, state: Delays, name: str) -> int | None:
        streams = propagate(system, state, self.certain.charges)
        one = Analysis(system, self.certain.charges, state, streams, {}, {})
        return bounds.deadline_claim(one, name).bound_ns


def _counted(cost_ns: int, exceeded: float, runs: int, of: OperatorCost) -> CountedCost:
    return CountedCost(cost_ns=cost_ns, exceeded=exceeded, runs=runs, samples=of.limits.samples)


def _certain(analysis: Analysis, costs: Mapping[str, OperatorCost]) -> Analysis:
    """By costs that no call was seen to be above."""
    certain = with_costs(analysis.system, {name: one.certain_ns for name, one in costs.items()})
    return analysis if certain == analysis.system else analyse(certain, analysis.charges)


def _why(found: _Found, asked: Confidence, claim: Claim, in_time: bool, also: bool) -> str:
    rests = f"{counted(min(one.samples for one in found.costs.values()), 'call')} of each operator at least"
    if not in_time:
        over = show_ns(found.bound_ns - claim.deadline_ns)
        return f"the bound of {asked.said} exceeds the deadline by {over}; it rests on {rests}"
    if not also:
        return "the deadline holds, but not all that is asked beyond it"
    alone = " and independent of each other" if asked.independent else ""
    return f"holds for costs as they were measured{alone}, by {rests}"


def documents(
    plan: Facts,
    analysis: Analysis,
    measured: Mapping[str, Sequence[CostDistribution]],
    claims: Mapping[str, Claim],
) -> dict[str, Claim]:
    """The claims of a plan, with bounds of those outputs that ask for a confidence."""
    asked = {name: one.confidence for name, one in analysis.system.outputs.items() if one.confidence is not None}
    if not asked:
        return dict(claims)
    found = ConfidentBounds(plan, analysis, measured)
    return {
        name: replace(claim, confident=found.of_output(name, asked[name], claim)) if name in asked else claim
        for name, claim in claims.items()
    }


__all__ = ["ConfidentBounds", "documents"]
