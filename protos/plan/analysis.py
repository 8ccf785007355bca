"""What the analysis found of nodes, task units and sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protos.json_shape import omitted
from protos.plan.charges import ChargedOverhead, NodeCharged
from protos.plan.guarantee import Ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """The work with a later deadline that is started just before: its name and its length in ns."""

    what: str
    ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tightest:
    """The demand test with the least room: demand_ns of work due within u_ns, and what it is made of."""

    u_ns: int
    demand_ns: int
    of: tuple[Ahead, ...]
    blocker: Blocker | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnalysis:
    """bounded: its units have response bounds."""

    bounded: bool
    utilisation: float | None = omitted()
    sub_deadlines_hold: bool | None = omitted()
    why: str
    tightest: Tightest | None = omitted()
    charges: NodeCharged


@dataclass(frozen=True, slots=True, kw_only=True)
class Policed:
    """What a source is held to, beyond its arrivals."""

    jitter_ns: int
    horizon_ns: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedAges:
    """By source that declares no `max_age`: the largest ones with which those outputs, which are not guaranteed without
    them, are guaranteed under this plan."""

    max_age_ns: Mapping[str, int]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """units_ns: response bound of each task unit, by its number."""

    charges: ChargedOverhead
    nodes: Mapping[str, NodeAnalysis]
    units_ns: Mapping[str, int]
    policing: Mapping[str, Policed] | None = omitted()
    ages: ProposedAges | None = omitted()
