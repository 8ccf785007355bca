"""A judgement: what the judge found of one run, and the same as replay.json has it."""

from __future__ import annotations

from dataclasses import dataclass

from protos import json_shape
from protos.json_shape import Json, omitted
from sim_vehicles.encounter.brake import Brake

CRASH, AVOIDED = "CRASH", "AVOIDED"


@dataclass(frozen=True)
class Sight:
    """The first that perceived the crossing vehicle, when, and how far the ego was from its strip then."""

    by: str
    at_s: float
    left_m: float | None


@dataclass(frozen=True)
class Knowledge:
    """When the first warning about the crossing vehicle was delivered, and how far the ego was from its strip then."""

    at_s: float
    left_m: float | None


@dataclass(frozen=True)
class Braking:
    """A braking that was commanded. by: the brake, with the reaction that its driver had; begins_s: when it bites;
    stopped_s: when the ego stood; None: it hit before, or the recording ends before."""

    by: Brake
    commanded_s: float
    begins_s: float
    stopped_s: float | None


@dataclass(frozen=True)
class Stop:
    """Where the ego came to stand: how far before the strip its front is, and whether its box is in it."""

    left_m: float | None
    in_way: bool


@dataclass(frozen=True)
class WarningCounts:
    """Warnings of level 1 or more. missed: the two collide as recorded, and none came before."""

    about_crossing: int
    false: int
    others: int
    missed: bool


@dataclass(frozen=True)
class ClosedForm:
    """For the deciding measurement and its latency: the way needed to stand, the way left, the impact speed."""

    needed_m: float
    left_m: float
    impact_kmh: float


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage. node: where (a link: where it ends, from_node where it begins); operators: whose time it was.
    shared_out: in proportion to what the plan says they cost."""

    stage: str
    node: str | None
    operators: tuple[str, ...]
    ns: int
    from_node: str | None = omitted()
    shared_out: bool = omitted(False)


@dataclass(frozen=True)
class Deciding:
    """The tuple whose warning came first: its lineage, what it was about, and how long it took. split: its stages, once
    a trace has been read; split_missing: why there are none."""

    source: int
    epoch: int
    seq: int
    ordinal: int
    station: str
    object: str
    measured_s: float
    delivered_s: float
    latency_ns: tuple[int, int]
    split: tuple[Stage, ...] | None = None
    split_missing: str | None = omitted()


@dataclass(frozen=True)
class Judgement:
    """What came of one run, however it was made. note: where no crossing vehicle is named, what was nearest."""

    outcome: str
    gap_m: float | None
    impact_kmh: float | None
    impact_s: float | None
    speed_kmh: float | None
    crossing: str | None
    note: str | None
    first_perceivable: Sight | None
    knew: Knowledge | None
    brake: Braking | None
    stood: Stop | None
    warnings: WarningCounts
    closed_form: ClosedForm | None
    deciding: Deciding | None

    def document(self) -> Json:
        """As replay.json has it."""
        return json_shape.write(self)
