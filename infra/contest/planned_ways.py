"""The ways to plan and to run the contest's query, fixed before anything is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from coordinator.model.choices import Allocator, Choices, Model
from coordinator.solve import planner
from infra.contest.contest_query import CHAIN, OTHERS, SPAN_MS, Traffic, bytes_within_deadline, cluster, query
from protos.plan_document import Plan

MOST_LOAD = 0.8  # of both nodes, of what is planned without shedding


@dataclass(frozen=True)
class Way:
    """How the query is planned and run. shed: which V2V tuples go, by their value, before anything is worked on: those
    beyond what is guaranteed, or beyond `MOST_LOAD`; drop_tail: what comes while queues are full; place: of all
    operators. every: of so many encounters of a load the first is run this way."""

    name: str
    allocator: Allocator = "deadline"
    model: Model = "sound"
    policy: str | None = None
    shed: Literal["", "guaranteed", "overload"] = ""
    drop_tail: bool = False
    place: str | None = None
    every: int = 1


OURS = Way("ours, guaranteed", shed="guaranteed")
SQPR = Way("SQPR + FIFO", allocator="sqpr", policy="fifo")
WAYS = (
    OURS,
    Way("ours, not guaranteed", model="paper", policy="slack", shed="overload", every=5),
    SQPR,
    Way("SQPR + FIFO, drop-tail", allocator="sqpr", policy="fifo", drop_tail=True),
    Way("SQPR + FIFO, shed by value", allocator="sqpr", policy="fifo", shed="overload", every=5),
    Way("EDF on one node", policy="edf", place="a"),
)


@dataclass(frozen=True)
class PlannedWay:
    """A way's plan, and what its costs are multiplied by as it runs. per_span: V2V tuples that are let in within
    `SPAN_MS`, None: all."""

    way: Way
    plan: Plan
    cost_scale: float
    per_span: int | None


def planned(way: Way, traffic: Traffic, load: float) -> PlannedWay:
    """The plan of a way at a load. Where more than `MOST_LOAD` is to be worked on no plan fits: it is planned for that,
    which gives the same proportions, and meets the load as it runs."""
    if way.shed == "guaranteed":
        per_span = most_guaranteed(traffic, load)
        return PlannedWay(way, _plan(way, traffic, load, per_span), 1.0, per_span)
    most = min(load, MOST_LOAD / (2 if way.place else 1))
    kept = None
    if way.shed == "overload":
        kept = max(1, int(traffic.v2v_per_s * SPAN_MS / 1000 * MOST_LOAD / load))
    queued = bytes_within_deadline(traffic, load) if way.drop_tail else None
    return PlannedWay(way, _plan(way, traffic, most, kept, queued), load / most, kept)


def most_guaranteed(traffic: Traffic, load: float) -> int:
    """How many tuples of V2V may come in at once with every output still guaranteed: a power of two."""
    most = 1
    while _guaranteed(traffic, load, 2 * most):
        most *= 2
    return most


def _guaranteed(traffic: Traffic, load: float, per_span: int) -> bool:
    plan = _plan(OURS, traffic, load, per_span)
    return all(claim.guaranteed for claim in plan.guarantee.values())


def _plan(way: Way, traffic: Traffic, load: float, per_span: int | None, queue_bytes: float | None = None) -> Plan:
    with TemporaryDirectory() as name:
        folder = Path(name)
        text = query(traffic, load, per_span, way.shed == "guaranteed", way.drop_tail)
        (folder / "query.yaml").write_text(text, encoding="utf-8")
        (folder / "cluster.yaml").write_text(cluster(queue_bytes), encoding="utf-8")
        place = {} if way.place is None else dict.fromkeys((*CHAIN, *OTHERS), way.place)
        choices = Choices(way.allocator, way.model, policy=way.policy, place=place, best_effort=True, quick=True)
        return planner.make_plan(folder / "query.yaml", folder / "cluster.yaml", choices)


__all__ = ["OURS", "SQPR", "WAYS", "PlannedWay", "Way", "most_guaranteed", "planned"]
