"""Candidate plan: a placement laid out as units, hops and links, ready to be analysed.

The same code makes these parts of a plan, so that what the search judges and what the plan claims cannot
differ. Policies that the test does not cover are taken for edf, which it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from coordinator.guarantee.system import System, read
from coordinator.model.incumbent import Incumbent
from coordinator.model.routes import Hops
from coordinator.model.task_units import Units
from coordinator.plan import policy_choice
from coordinator.plan.assemble import laid
from coordinator.plan.layout import Layout
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Query


@dataclass(frozen=True)
class Setting:
    """What no placement changes. `incumbent`: what runs already and stays as it is."""

    query: Query
    cluster: Cluster
    types: Mapping[str, str]
    grouping: Units
    incumbent: Incumbent = field(default_factory=Incumbent)

    @cached_property
    def assumed(self) -> Cluster:
        """Every node with a policy that has bounds."""
        return policy_choice.assumed(self.cluster)


@dataclass(frozen=True)
class Candidate:
    """`place`: the node of every operator; `system`: units with sub-deadlines still to be chosen, but for those of
    operators in `held_ns`; `cuts`: operators that begin a unit wherever they are."""

    place: Mapping[str, str]
    hops: Hops
    system: System
    held_ns: Mapping[str, int] = field(default_factory=dict)
    cuts: frozenset[str] = frozenset()

    @cached_property
    def fixed_ns(self) -> dict[int, int]:
        """By unit; a unit is kept whole, or is new."""
        return {
            number: sum(self.held_ns[stage.operator] for stage in unit.stages)
            for number, unit in self.system.units.items()
            if unit.stages[0].operator in self.held_ns
        }

    def with_deadlines(self, due_ns: Mapping[int, int]) -> System:
        """The system with these sub-deadlines, by unit."""
        units = {number: replace(unit, sub_deadline_ns=due_ns[number]) for number, unit in self.system.units.items()}
        return replace(self.system, units=units)

    def per_operator(self, due_ns: Mapping[int, int]) -> dict[str, int]:
        """A unit's sub-deadline split among its operators in proportion to cost, rounded down, at least 1 ns each; the
        last takes the rest."""
        shares: dict[str, int] = dict(self.held_ns)
        for number, unit in self.system.units.items():
            if number in self.fixed_ns:
                continue
            left = due_ns[number]
            whole = sum(stage.cost_ns for stage in unit.stages)
            for position, stage in enumerate(unit.stages):
                after = len(unit.stages) - 1 - position
                share = min(left - after, max(1, due_ns[number] * stage.cost_ns // whole)) if after else left
                shares[stage.operator] = share
                left -= share
        return shares


def candidate(setting: Setting, place: Mapping[str, str], hops: Hops, cuts: frozenset[str] = frozenset()) -> Candidate:
    """The candidate of a placement with its routes; `cuts`: operators that begin a unit wherever they are."""
    every = dict.fromkeys(place, 1)
    query, cluster = setting.query, setting.assumed
    incumbent = setting.incumbent
    layout = Layout(
        query, cluster, setting.types, place, every, hops, policy_choice.SOUND, setting.grouping, incumbent.units, cuts
    )
    return Candidate(place, hops, read(laid(layout)), incumbent.due_ns, cuts)
