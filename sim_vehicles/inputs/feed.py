"""The sources of a plan that a scenario can feed, and how much each of them is to get."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from protos.plan.arrivals import BurstArrival
from protos.plan.sources import Source
from protos.plan_document import Plan
from sim_vehicles.errors import bad_input

# In the order in which they are sent at one instant ([P] 6.1): the centre's tuples are at their node before anything
# comes there from another node, sensor tuples come directly after the V2V ones.
TYPES = ("vehicle.Hazard", "vehicle.Cpm", "vehicle.Sensor")


@dataclass(frozen=True)
class Feed:
    """A source of the plan that the scenario can feed: n tuples of a type every period, at a node."""

    name: str
    node: str
    type: str
    n: int
    period_ns: int

    @property
    def order(self) -> int:
        """The position of the source's type among those that are sent at one instant."""
        return TYPES.index(self.type)


def feeds(plan: Plan, path: Path, v2v: int | None) -> list[Feed]:
    """The plan's sources in sending order. Burst sizes are the plan's; `v2v` overrides that of the vehicle.Cpm ones.
    path: of the plan. Raises BadInputError."""
    found = [_feed(path, v2v, name, source) for name, source in plan.graph.sources.items()]
    return sorted(found, key=lambda feed: (feed.order, feed.name))


def _feed(path: Path, v2v: int | None, name: str, source: Source) -> Feed:
    type_, arrival = source.type, source.arrival
    if type_ not in TYPES:
        raise bad_input(
            "type_not_fed",
            f"source {name} takes {type_}",
            f"a scenario can feed only {', '.join(sorted(TYPES))}",
            subject=name,
            file=path,
        )
    if not isinstance(arrival, BurstArrival):
        raise bad_input(
            "arrival_not_replayed",
            f"source {name} arrives as {arrival.kind!r}",
            "a replay needs burst and period",
            subject=name,
            file=path,
        )
    n, period_ns = arrival.burst, arrival.period_ns
    if n < 1 or period_ns < 1:
        raise bad_input(
            "out_of_range",
            f"source {name} needs a positive burst and period, not {n} every {period_ns} ns",
            subject=name,
            file=path,
        )
    return Feed(name, source.at, type_, v2v if v2v is not None and type_ == "vehicle.Cpm" else n, period_ns)
