"""The ways to plan and to run the contest's query, fixed before anything is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from coordinator.model.choices import Allocator, Choices
from coordinator.solve import planner
from infra.contest.contest_query import Traffic, cluster, query
from protos.plan_document import Plan


MOST_LOAD = 0.8  # of both nodes, of what has to fit without shedding


@dataclass(frozen=True)
class Way:
    """How the query is planned and run. limited: V2V is policed by value, so that a guarantee is possible; place: one
    node for all; drop_tail: so many bytes may wait before an operator, and what comes then is shed."""

    name: str
    limited: bool = False
    allocator: Allocator = "deadline"
    policy: str | None = None
    place: str | None = None
    drop_tail: bool = False


OURS = Way("ours: guaranteed, policed by value", limited=True)
WAYS = (
    OURS,
    Way("SQPR + FIFO", allocator="sqpr", policy="fifo"),
    Way("SQPR + FIFO, drop-tail", allocator="sqpr", policy="fifo", drop_tail=True),
    Way("EDF on one node", policy="edf", place="a"),
    Way("SQPR + FIFO, policed by value", limited=True, allocator="sqpr", policy="fifo"),
)


@dataclass(frozen=True)
class PlannedWay:
    """A way's plan, and what its costs are multiplied by as it runs."""

    way: Way
    plan: Plan
    cost_scale: float


def planned(way: Way, traffic: Traffic, load: float) -> PlannedWay:
    """The plan of a way at a load. A limited way lets in as many tuples as are still guaranteed. A way without a limit
    has no plan beyond the caps of its nodes: there it is planned for the most that they allow, which gives the same
    proportions, and meets the load as it runs."""
    if way.limited:
        return PlannedWay(way, _plan(way, traffic, load, most_guaranteed(traffic, load)), 1.0)
    most = min(load, MOST_LOAD / (2 if way.place else 1))
    return PlannedWay(way, _plan(way, traffic, most), load / most)


def most_guaranteed(traffic: Traffic, load: float) -> int:
    """How many tuples of V2V may come in at once with every output still guaranteed: a power of two, or halfway."""
    few, many = 1, 2
    while _guaranteed(traffic, load, many):
        few, many = many, 2 * many
    middle = (few + many) // 2
    return middle if middle > few and _guaranteed(traffic, load, middle) else few


def _guaranteed(traffic: Traffic, load: float, per_span: int) -> bool:
    plan = _plan(OURS, traffic, load, per_span)
    return all(claim.guaranteed for claim in plan.guarantee.values())


def _plan(way: Way, traffic: Traffic, load: float, per_span: int | None = None) -> Plan:
    with TemporaryDirectory() as name:
        folder = Path(name)
        text = query(traffic, load, per_span, way.drop_tail)
        (folder / "query.yaml").write_text(text, encoding="utf-8")
        (folder / "cluster.yaml").write_text(cluster(way.drop_tail), encoding="utf-8")
        place = {} if way.place is None else dict.fromkeys(traffic.passed, way.place)
        choices = Choices(way.allocator, policy=way.policy, place=place, best_effort=True, quick=True)
        return planner.make_plan(folder / "query.yaml", folder / "cluster.yaml", choices)
