"""A plan that is only thought of: a placement, laid out as units, hops and links, ready to be analysed.

The same code writes these parts into plan.json, so that what the search judges and what the plan claims cannot
differ. Policies are taken for edf, the one that the test covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coordinator import plan_file
from coordinator.cluster import Cluster
from coordinator.guarantee.system import System, read
from coordinator.local_plan import Layout
from coordinator.placement.routes import Hops
from coordinator.placement.units import Units
from coordinator.query import Query


@dataclass(frozen=True)
class Setting:
    """What no placement changes."""

    query: Query
    cluster: Cluster
    types: Mapping[str, str]
    grouping: Units


@dataclass(frozen=True)
class Draft:
    """`place`: the node of every operator; `system`: units with sub-deadlines still to be chosen."""

    place: Mapping[str, str]
    hops: Hops
    system: System

    def with_deadlines(self, due_ns: Mapping[int, int]) -> System:
        """The system with these sub-deadlines, by unit."""
        units = {number: replace(unit, deadline_ns=due_ns[number]) for number, unit in self.system.units.items()}
        return replace(self.system, units=units)

    def per_operator(self, due_ns: Mapping[int, int]) -> dict[str, int]:
        """A unit's sub-deadline split among its operators in proportion to cost, rounded down, at least 1 ns each; the
        last takes the rest."""
        shares: dict[str, int] = {}
        for number, unit in self.system.units.items():
            left = due_ns[number]
            whole = sum(stage.cost_ns for stage in unit.stages)
            for position, stage in enumerate(unit.stages):
                after = len(unit.stages) - 1 - position
                share = min(left - after, max(1, due_ns[number] * stage.cost_ns // whole)) if after else left
                shares[stage.operator] = share
                left -= share
        return shares


def draft(setting: Setting, place: Mapping[str, str], hops: Hops) -> Draft:
    """The draft of a placement with its routes."""
    every = dict.fromkeys(place, 1)
    query, cluster = setting.query, setting.cluster
    layout = Layout(query, cluster, setting.types, place, every, hops, "edf", setting.grouping)
    return Draft(place, hops, read(plan_file.facts(layout)))
