"""Of `coordinator status`: where each query runs, what its plan claims of its outputs, and what came of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coordinator.monitoring.metrics import Frame, Plans, promise
from coordinator.monitoring.status_response import PlaceStatus
from coordinator.report.report_document import Share
from protos import json_shape
from protos.json_shape import Json
from protos.plan_document import Plan


@dataclass(frozen=True, slots=True)
class DeliveredStatus:
    """What came of an output since the runtime began."""

    met: int
    late: int
    undecidable: int
    miss_ratio: float | None
    missed_of_offered: Share
    between: Mapping[str, int]
    met_idle_at_most: int
    p99_ns: int | None
    worst_ns: int
    slack_ns: int | None
    shed_before: int | None


@dataclass(frozen=True, slots=True)
class ClaimStatus:
    """What the plan claims of an output. delivered: None where its node does not answer."""

    deadline_ns: int
    bound_ns: int | None
    from_admission_ns: int | None
    guaranteed: bool
    promise: str
    delivered: DeliveredStatus | None


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """A query in one plan. nodes: the plan's state on each; outputs: None where the plan is not known."""

    nodes: dict[str, str] = field(default_factory=dict)
    outputs: Mapping[str, ClaimStatus] | None = None


def queries(places: Mapping[str, PlaceStatus], frame: Frame, plans: Plans) -> dict[str, dict[str, QueryStatus]]:
    """By query, by hash of each plan of it that any node has."""
    found: dict[str, dict[str, QueryStatus]] = {}
    for node, place in places.items():
        for status in place.plans:
            for name in status.queries:
                by_hash = found.setdefault(name, {})
                if status.hash not in by_hash:
                    by_hash[status.hash] = QueryStatus(outputs=_outputs(plans.get(status.hash), name, frame))
                by_hash[status.hash].nodes[node] = status.state
    return found


def document(found: Mapping[str, Mapping[str, QueryStatus]]) -> Json:
    """For --json."""
    return json_shape.write(found)


def _outputs(plan: Plan | None, query: str, frame: Frame) -> dict[str, ClaimStatus] | None:
    if plan is None or query not in plan.queries:
        return None
    return {output: _claim(plan, output, frame) for output in plan.queries[query].outputs}


def _claim(plan: Plan, name: str, frame: Frame) -> ClaimStatus:
    claim = plan.guarantee[name]
    live = next((each for each in frame.outputs if each.name == name and not each.silent), None)
    delivered = None
    if live is not None:
        delivered = DeliveredStatus(
            live.met, live.late, live.undecidable, live.miss_ratio, live.missed_of_offered, live.between,
            live.met_idle, live.p99_ns, live.worst_ns, live.slack_ns, live.shed,
        )  # fmt: skip
    return ClaimStatus(
        claim.deadline_ns, claim.bound_ns, claim.from_admission_ns, claim.guaranteed,
        promise(claim), delivered,
    )  # fmt: skip
