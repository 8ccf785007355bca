"""How the planner came to a plan: the solver, what it reached, and what else there was to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from protos.json_shape import omitted

SubDeadlines = Literal["model", "deadline", "proportional", "sound", "kept"]  # where they come from


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """How placement and sub-deadlines were found. outcome to cuts: of model `sound`. over_caps: what is used on average
    of nodes beyond their caps. served: the share of each output that gives way which can at most be served."""

    name: Literal["highs", "gscip"]
    seed: int
    contracted: str
    outcome: str = omitted("")
    why: tuple[str, ...] | None = omitted()
    tighten: str | None = omitted("")
    placements: int | None = omitted()
    analyses: int | None = omitted()
    cuts: int | None = omitted()
    over_caps: Mapping[str, float] | None = omitted()
    served: Mapping[str, float] | None = omitted()
    gap: float = 0.0
    sub_deadlines: SubDeadlines = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """nlr: the greatest normalised load ratio, and what it is at least (bound); traffic: tuples per second on links,
    and what they are at least where that is not proven."""

    nlr: float
    bound: float
    traffic: float
    traffic_bound: float | None = omitted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task unit: operators that run as one instance on a node."""

    id: int
    operators: tuple[str, ...]
    sub_deadline_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperChoice:
    """What model `paper` would have chosen. elsewhere: operators that it places on other nodes, and where."""

    elsewhere: Mapping[str, str]
    nlr: float | None
    traffic: float
    nlr_here: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundAlternative:
    """What another node would bring, under model `sound`; nlr None: the `paper` model has no solution there."""

    traffic: float
    guaranteed: bool
    nlr: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperAlternative:
    """What another node would bring, under model `paper`."""

    nlr: float
    traffic: float


Alternative = SoundAlternative | PaperAlternative


@dataclass(frozen=True, slots=True, kw_only=True)
class IncumbentPart:
    """Operators of plan `of` that stay as they were. spared: outputs that may become worse."""

    of: str
    operators: tuple[str, ...]
    spared: tuple[str, ...] = omitted(())
