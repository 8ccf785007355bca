"""Streams at places, and what is known of delays: what one pass works on, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar, cast

from coordinator.calculus.curves import Curve
from coordinator.calculus.demand import Load
from coordinator.calculus.flow import Known, jittered
from coordinator.calculus.response import Response

MOST_RESULTS = 20_000  # in memory; more are seldom asked for again
T = TypeVar("T")
N = TypeVar("N", str, int)
Trail = tuple[tuple[str, int], ...]
Kind = Literal["age", "unit", "socket", "link", "beat", "window", "partner", "gap"]


@dataclass(frozen=True)
class Part:
    """One stretch of the way. `ns`: at most; of these `work_ns` the tuple's own work (on a link: being sent and
    travelling), `blocking_ns` behind an instance that cannot be stopped, and the rest waiting behind others. `node`:
    where, of a link its start. `unit`, `stage`: of a unit, for who is waited for. `sooner_ns`: how much less that is
    than at worst there, since it was waited for before."""

    kind: Kind
    what: str
    ns: int
    node: str
    work_ns: int = 0
    blocking_ns: int = 0
    unit: int = 0
    stage: int = 0
    sooner_ns: int = 0

    @property
    def alone(self) -> Part:
        """Of a tuple of which nothing is known from before."""
        return replace(self, ns=self.ns + self.sooner_ns, sooner_ns=0)

    @property
    def waiting_ns(self) -> int:
        """Behind others: of the same node, socket or link."""
        return self.ns - self.work_ns - self.blocking_ns


@dataclass(frozen=True)
class Late:
    """How long after its admission a tuple may be there, and at least is; `parts`: where the time goes, summing up.
    `absent_ns`: how much longer it may take until a tuple is known not to come, which windows wait for."""

    most_ns: int
    least_ns: int
    parts: tuple[Part, ...]
    absent_ns: int = 0

    @property
    def spread_ns(self) -> int:
        """Between the soonest and the latest."""
        return self.most_ns - self.least_ns

    @property
    def trail(self) -> Trail:
        """What and how long, of each part."""
        return tuple((part.what, part.ns) for part in self.parts)

    def after(self, part: Part, least_ns: int = 0) -> Late:
        """One more thing on the way."""
        if not part.ns:
            return self
        return Late(self.most_ns + part.ns, self.least_ns + least_ns, (*self.parts, part), self.absent_ns)


@dataclass(frozen=True)
class Closing:
    """`age`: from the instant that a window's deadlines count from until it is released, None: not bounded, for `why`;
    `unsure`: why a window may be given up though nothing was lost; `spread_ns`: between its end and then, lost numbers
    being given up, None: not bounded."""

    age: Late | None
    why: str = ""
    unsure: str = ""
    spread_ns: int | None = None


@dataclass(frozen=True, eq=False)
class Flow:
    """A stream at a place. `events`: with absence punctuation; `late`: by source of the lineage; `max_bytes`: of a
    payload where it is sent or read, 0: not declared. Two are the same if they are one object."""

    curve: Curve
    events: Curve
    late: Mapping[str, Late]
    max_bytes: int = 0

    @classmethod
    def of(cls, curve: Curve, events: Curve, late: Mapping[str, Late], max_bytes: int = 0) -> Flow:
        """With curves that remember their steps."""
        known = Known(curve)
        return cls(known, known if events is curve else Known(events), late, max_bytes)

    def delayed(self, part: Part) -> Flow:
        """Anything from 0 to the part's ns later."""
        late = {name: each.after(part) for name, each in self.late.items()}
        curve = jittered(self.curve, part.ns)
        events = curve if self.events is self.curve else jittered(self.events, part.ns)
        return Flow.of(curve, events, late, self.max_bytes)


class Reuse:
    """What passes of an analysis have made, by what they made it of, so that a pass makes anew only what has changed.

    Exact: a key holds everything that the result depends on and that differs between passes, streams by identity and
    the rest by value. It serves one system with any sub-deadlines and ages, so a search for these starts from what it
    has made already.
    """

    __slots__ = ("results",)

    def __init__(self) -> None:
        self.results: dict[Hashable, object] = {}

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was made of the key before, else made now. An error is raised and not remembered."""
        if key in self.results:
            return cast(T, self.results[key])
        made = make()
        if len(self.results) >= MOST_RESULTS:
            self.results.clear()
        self.results[key] = made
        return made


@dataclass(frozen=True)
class Limits:
    """Of a stream at a place, in ns: `sources`: from admission on, by source; `units`: since the release of a unit that
    all its tuples come through; `once`: sources of which each tuple is there once at most, in their order. Of windows
    also `collected`: from the admission of a tuple of a source until what collects has run on it."""

    sources: Mapping[str, int]
    units: Mapping[int, int]
    once: frozenset[str]
    collected: Mapping[str, int] = field(default_factory=dict)

    def lesser(self, other: Limits) -> Limits:
        """Both hold."""
        return Limits(
            _lesser(self.sources, other.sources),
            _lesser(self.units, other.units),
            self.once | other.once,
            _lesser(self.collected, other.collected),
        )


@dataclass(frozen=True)
class WholeWays:
    """Limits of streams at places, by (stream, node), and of what releases joins, by unit."""

    places: Mapping[tuple[str, str], Limits] = field(default_factory=dict)
    releases: Mapping[int, Limits] = field(default_factory=dict)

    def lesser(self, other: WholeWays) -> WholeWays:
        """Both hold."""
        return WholeWays(
            {place: each.lesser(other.places.get(place, each)) for place, each in self.places.items()},
            {unit: each.lesser(other.releases.get(unit, each)) for unit, each in self.releases.items()},
        )


def _lesser(one: Mapping[N, int], other: Mapping[N, int]) -> dict[N, int]:
    return {**other, **{name: min(ns, other.get(name, ns)) for name, ns in one.items()}}


@dataclass
class Delays:
    """What is known so far. `links`, `large_links`: of what is small, and of what goes in chunks; `broken`: nodes
    without a bound, `cut`: links without one, and why; `looks`: what it has cost to find; `loads`: of nodes, as last
    looked at; `paths`: limits of whole ways; `reuse`: what was made on the way, of this system."""

    units: dict[int, Response] = field(default_factory=dict)
    links: dict[tuple[str, str], int] = field(default_factory=dict)
    large_links: dict[tuple[str, str], int] = field(default_factory=dict)
    drains: dict[str, int] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    looks: int = 0
    cut: dict[tuple[str, str], str] = field(default_factory=dict)
    reuse: Reuse = field(default_factory=Reuse)
    loads: dict[str, Load] = field(default_factory=dict)
    paths: WholeWays = field(default_factory=WholeWays)

    def copy(self) -> Delays:
        """One that changes by itself; what is reused is the same."""
        return replace(
            self,
            units=dict(self.units),
            links=dict(self.links),
            large_links=dict(self.large_links),
            drains=dict(self.drains),
            broken=dict(self.broken),
            cut=dict(self.cut),
            loads=dict(self.loads),
        )


@dataclass
class Streams:
    """The result of a pass, by (stream, node); `arriving`: what each node's sockets bring; `sent`: on each link.

    `triggers`: what releases a unit. Where there is no flow, `why` has the reason; `unknown`, `unread`: why a link or a
    node's sockets carry something that nothing bounds. `window_closings`: by the operator that collects windows.
    `ticks_ns`: by timer, how much later than its instant a tick is admitted at most.
    """

    flows: dict[tuple[str, str], Flow] = field(default_factory=dict)
    triggers: dict[int, Flow] = field(default_factory=dict)
    arriving: dict[str, list[Flow]] = field(default_factory=dict)
    sent: dict[tuple[str, str], list[Flow]] = field(default_factory=dict)
    why: dict[tuple[str, str], str] = field(default_factory=dict)
    unreleased: dict[int, str] = field(default_factory=dict)
    window_closings: dict[str, Closing] = field(default_factory=dict)
    ticks_ns: dict[str, int] = field(default_factory=dict)
    unknown: dict[tuple[str, str], str] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
