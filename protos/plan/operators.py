"""What runs: the operators of a plan's graph, with their windows and what they do under overload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protos.json_shape import Json, empty, key, omitted

ADD = ".add"  # behind the name of a window operator: the part that collects tuples; no user's name has a dot


@dataclass(frozen=True, slots=True, kw_only=True)
class Selectivity:
    """Results per input: in the mean, and at most so many of so many inputs in a row (inputs, results)."""

    mean: float
    at_most: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What an operator collects. kind: time, count or sized; length and hop in ns, or in tuples by count; first:
    deadlines count from the oldest tuple; wait_ns 0: as the cluster's links ask; shed: a policy, or none; most: tuples
    that may wait; on: of a join, the field of each input; keep: results that are too late are given."""

    kind: str
    length: int
    hop: int
    lateness_ns: int = 0
    first: bool = False
    wait_ns: int = 0
    by: str = ""
    on: tuple[str, ...] = ()
    size: str = ""
    shed: str = "window-aware"
    most: int = 3000
    keep: bool = False

    @property
    def policy(self) -> str | None:
        """The shedder; None: there is none."""
        return None if self.shed == "none" else self.shed


@dataclass(frozen=True, slots=True, kw_only=True)
class OnLate:
    """Of an operator: tuples that can be in time for no output are dropped, or `run` runs in its place."""

    run: str = ""
    cost_ns: int = 0
    parameters: Mapping[str, Json] = key("with", default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The most bytes that wait before an operator, and what goes beyond them."""

    most_bytes: int
    on_full: str = "drop-tail"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRule:
    """Of a side input. max_age_ns: a value that may be older counts as none, 0: any age; shed: a tuple without one is
    shed, else the operator gets none."""

    max_age_ns: int = 0
    shed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """How an operator's inputs are fused. within_ns: how far apart the origins of a set may be; None: every input has
    come since the last set. timeout_ns: so long after its first tuple came a set runs without the others; 0: never.
    keep: tuples of each input that may wait. each: no sets, but every tuple as it comes with all within_ns from it."""

    within_ns: int | None
    timeout_ns: int = 0
    keep: int = 1
    each: bool = omitted(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """kind: map, join, fusion or union: what triggers it. inputs trigger it; side inputs do not. nodes: those it may be
    on; None: all. hang_ns: an instance that runs longer ends its runtime. max_bytes: of a result as declared, 0:
    not."""

    id: int
    run: str
    inputs: tuple[str, ...] = key("in")
    ports: tuple[str, ...] | None
    side: Mapping[str, str]
    cost_ns: int
    selectivity: Selectivity | None
    nodes: tuple[str, ...] | None
    forbid_nodes: tuple[str, ...]
    memory_bytes: int
    parameters: Mapping[str, Json] = key("with")
    kind: str
    join: bool
    stream: int
    hang_ns: int
    state: str
    forbid_streams: tuple[tuple[str, str], ...]
    called: tuple[str, ...] | None = omitted()
    window: Window | None = omitted()
    on_late: OnLate | None = omitted()
    queue: Queue | None = omitted()
    closes: str = omitted("")
    sync: Sync | None = omitted()
    side_rules: Mapping[str, SideRule] = empty()
    max_bytes: int = omitted(0)

    @property
    def declared(self) -> Selectivity:
        """Its selectivity; where it says none, one result per input in the mean, and nothing bounds them."""
        return self.selectivity or Selectivity(mean=1, at_most=())
