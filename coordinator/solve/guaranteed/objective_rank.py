"""Objective rank of a candidate with its sub-deadlines: every output's bound against its deadline, to compare.

A source without `max_age` counts with age 0, as do windows of which nothing says when they are complete: its outputs
are planned for from admission on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from coordinator.guarantee.analysis import Analysis, never, shortened, unit_by_unit
from coordinator.guarantee.propagate import age
from coordinator.guarantee.quality_checks import checks
from coordinator.guarantee.streams import Reuse
from coordinator.guarantee.system import System
from coordinator.spec.runtime_charges import RuntimeOverhead

SCALE = 10**9  # relative figures are integers in billionths: exact to compare, and the same on any machine
NO_BOUND = 10**15
NEAR = SCALE  # twice the deadline: limits of whole ways seldom halve a bound
WORTH_HAVING = 3  # times the longest deadline: a search learns nothing from what is later
Rank = tuple[int, ...]  # the least is the best


@dataclass(frozen=True)
class ObjectiveRank:
    """An analysed candidate. `due_ns`: sub-deadlines by unit; `spared`: outputs that need not hold."""

    due_ns: Mapping[int, int]
    analysis: Analysis
    spared: frozenset[str] = frozenset()

    @cached_property
    def bounds_ns(self) -> dict[str, int | None]:
        """From origin to result, per output; None: no bound."""
        return {name: _bound_ns(self.analysis, name) for name in self.analysis.system.outputs}

    @cached_property
    def excess(self) -> dict[str, int]:
        """By how much each output that is late goes beyond its deadline, relative, in billionths."""
        found = {}
        for name, bound_ns in self.bounds_ns.items():
            deadline_ns = self.analysis.system.outputs[name].deadline_ns
            if bound_ns is None:
                found[name] = NO_BOUND
            elif bound_ns > deadline_ns:
                found[name] = max(1, (bound_ns - deadline_ns) * SCALE // deadline_ns)
            if beyond := self._bound_violation(name):
                found[name] = max(found.get(name, 0), beyond)
        return found

    def _bound_violation(self, name: str) -> int:
        """By how much the worst of what an output asks beyond its deadline is exceeded, relative, in billionths."""
        worst = 0
        for check in checks(self.analysis, name) if self.analysis.system.outputs[name].qos else ():
            if check.found is None:
                return NO_BOUND
            if not check.holds:
                worst = max(worst, 1, (check.found - check.limit) * SCALE // check.limit)
        return worst

    @property
    def holds(self) -> bool:
        """Whether every output's bound is within its deadline, but for those that need not hold."""
        return not self.late

    @cached_property
    def late(self) -> dict[str, int]:
        """The excess of the outputs that have to hold."""
        return {name: excess for name, excess in self.excess.items() if name not in self.spared}

    @cached_property
    def slack(self) -> dict[str, int]:
        """(deadline - bound) / deadline per output, in billionths; below 0 where it is late."""
        outputs = self.analysis.system.outputs
        return {
            name: -NO_BOUND
            if bound_ns is None
            else (outputs[name].deadline_ns - bound_ns) * SCALE // outputs[name].deadline_ns
            for name, bound_ns in self.bounds_ns.items()
        }

    @cached_property
    def late_units(self) -> int:
        """Units whose response bound is beyond their sub-deadline: it does no harm to the outputs' bounds, but a
        sub-deadline that holds says more."""
        units = self.analysis.system.units
        return sum(each.end > units[number].sub_deadline_ns for number, each in self.analysis.delays.units.items())

    def rank(self, tighten: str | None = None) -> Rank:
        """What is late first; then, of `tighten`, the bound; then sub-deadlines that do not hold; then the least
        slack, and all of it."""
        late = (len(self.late), sum(self.late.values()))
        wish = (self.bounds_ns[tighten] or 0,) if tighten is not None and tighten not in self.excess else ()
        return (*late, *wish, self.late_units, -min(self.slack.values()), -sum(self.slack.values()))

    @property
    def tightest(self) -> str:
        """The output with the least relative slack; ties by name. Among those that have to hold, if any is late."""
        return min(self.late or self.slack, key=lambda name: (self.slack[name], name))


def objective_rank(
    system: System,
    charges: RuntimeOverhead,
    spared: frozenset[str] = frozenset(),
    reuse: Reuse | None = None,
    stop: Callable[[], bool] = never,
    thorough: bool = True,
) -> ObjectiveRank:
    """Analyses a system with the sub-deadlines that it has; `spared`: outputs that need not hold; `reuse`, `stop`: as
    of `analyse`. `thorough`: with limits of whole ways in any case; else where they decide whether outputs hold, that
    is not where all do anyway, or one is very late."""
    due_ns = {number: unit.sub_deadline_ns for number, unit in system.units.items()}
    found = ObjectiveRank(due_ns, unit_by_unit(system, charges, WORTH_HAVING, reuse, stop), spared)
    if not thorough and (found.holds or max(found.late.values()) > NEAR):
        return found
    return ObjectiveRank(due_ns, shortened(found.analysis, stop), spared)


def _bound_ns(analysis: Analysis, name: str) -> int | None:
    output = analysis.system.outputs[name]
    flow = analysis.streams.flows.get((output.stream, output.node))
    if flow is None:
        return None
    ages = {source: age(analysis.system, analysis.streams, source) for source in flow.late}
    oldest_ns = {source: found.most_ns if found else 0 for source, found in ages.items()}
    return max((late.most_ns + oldest_ns[source] for source, late in flow.late.items()), default=0)
