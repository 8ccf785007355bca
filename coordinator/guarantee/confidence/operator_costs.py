"""What operators of a plan cost on their nodes: certainly, and as far as measurements say how likely it is more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from coordinator.guarantee.confidence import quantile_limits
from coordinator.guarantee.confidence.quantile_limits import Limit, TailLimits
from coordinator.guarantee.facts import Facts
from coordinator.guarantee.system import Stage, System, variant_ns
from protos.plan.costs import CostDistribution

MEASURED_WITH = Fraction(99, 100)  # the confidence in all limits of a plan's costs together


@dataclass(frozen=True)
class OperatorCost:
    """On its node, in ns of it. `certain_ns`: what no instance is above; `least_ns`: what plans count at least, as of
    emulated nodes; `speed`: of the node."""

    certain_ns: int
    least_ns: int
    speed: Fraction
    limits: TailLimits

    def on_node(self, cost_ns: int) -> int:
        """Of a cost at speed 1."""
        return min(self.certain_ns, max(self.least_ns, ceil(cost_ns / self.speed)))

    @property
    def choices(self) -> list[Limit]:
        """Costs on its node that can be counted on, the largest first, each the least for its probability."""
        found: list[Limit] = []
        for step in self.limits.steps:
            one = Limit(self.on_node(step.cost_ns), step.exceeded)
            if found and found[-1].cost_ns == one.cost_ns:
                continue  # of a dearer one that is less likely exceeded
            found.append(one)
        return found


def read(plan: Facts, system: System, measured: Mapping[str, Sequence[CostDistribution]]) -> Mapping[str, OperatorCost]:
    """Of every operator that was measured. The largest call seen is certain not to be above the plan's cost, unless
    that was taken of another figure: then it is the certain one."""
    limits = quantile_limits.of_operators(measured, float(1 - MEASURED_WITH)) if measured else {}
    found = {}
    for unit in system.units.values():
        speed = Fraction(str(plan.cluster.nodes[unit.node].speed))
        for stage in unit.stages:
            if stage.operator in limits:
                own = limits[stage.operator]
                least_ns = max(stage.best_ns, 1, ceil(variant_ns(plan, unit.node, stage.operator) / speed))
                certain_ns = max(stage.cost_ns, least_ns, ceil(own.largest_ns / speed))
                found[stage.operator] = OperatorCost(certain_ns, least_ns, speed, own)
    return found


def with_costs(system: System, costs_ns: Mapping[str, int]) -> System:
    """With other costs of some operators, in ns of their nodes."""
    return _changed(system, lambda stage: replace(stage, cost_ns=costs_ns.get(stage.operator, stage.cost_ns)))


def with_sums(system: System, sums_ns: Mapping[str, Sequence[int]]) -> System:
    """With what some operators take 1, 2, ... times in a row, in ns of their nodes."""

    def change(stage: Stage) -> Stage:
        sums = sums_ns.get(stage.operator)
        return stage if sums is None else replace(stage, cost_ns=sums[0], sums_ns=tuple(sums))

    return _changed(system, change)


def _changed(system: System, change: Callable[[Stage], Stage]) -> System:
    units = {number: replace(unit, stages=tuple(map(change, unit.stages))) for number, unit in system.units.items()}
    return replace(system, units=units)


__all__ = ["MEASURED_WITH", "OperatorCost", "read", "with_costs", "with_sums"]
