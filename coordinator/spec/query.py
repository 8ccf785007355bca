"""A query as the planner uses it: every chain written out, every quantity an integer (durations in ns)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from coordinator.spec.arrivals import Arrival
from coordinator.spec.files import yaml_source
from coordinator.spec.files.declared_ranges import Range
from coordinator.spec.files.query_file import SelectivityFile
from coordinator.spec.quality import NOTHING, Confidence, Freshness, Qos
from protos.plan.costs import CostOrigin
from protos.plan.operators import ADD, OnLate, Queue, SideRule, Sync, Window
from protos.plan.queries import QueryPart
from protos.plan.sources import Connector, Limit, Pull

KEEP = "keep"
GIVEN = ""  # a type that a source leaves to the function or the timer that it runs
GUESSED = "guessed"  # a cost that its query does not give: GUESS_NS
GUESS_NS = 10**6


@dataclass(frozen=True)
class Source:
    """Tuples enter at node `at`; `max_age_ns` 0: any age; `on_full`: what happens while the node's queues are full;
    `pull`: how the node makes them itself, None: clients feed them; `max_bytes`: of a payload, 0: not declared;
    `cost_from`: where the cost of a call comes from, None: as declared;
    `connector`: a client that the node runs, which feeds it."""

    name: str
    at: str
    type: str
    arrival: Arrival
    max_age_ns: int
    forbidden: tuple[tuple[str, str], ...]
    keys: tuple[object, ...]
    limit: Limit | None = None
    on_full: str = "refuse"
    pull: Pull | None = None
    max_bytes: int = 0
    cost_from: CostOrigin | None = None
    connector: Connector | None = None

    @property
    def burst(self) -> int:
        """Tuples that go on at one instant, at worst."""
        return min(self.arrival.burst, self.limit.tuples) if self.limit else self.arrival.burst

    @property
    def rate(self) -> Fraction:
        """Tuples that go on per ns, on average."""
        most = Fraction(self.limit.tuples, self.limit.span_ns) if self.limit else self.arrival.rate
        return min(self.arrival.rate, most)

    @property
    def calls(self) -> Fraction:
        """The part of its node's time that the calls take which make its tuples, at speed 1."""
        return self.arrival.rate * self.pull.cost_ns if self.pull else Fraction(0)


@dataclass(frozen=True)
class Operator:
    """One operator; `inputs` are stream names, `ports` their ports where the query names them; `nodes`: where it may
    run, None: anywhere, less `barred`; `keys`: where it stands; `memory_bytes`: of the state it keeps; `state`: `keep`
    or `fresh`, of one that stays where it is when the plan changes; `called`: what its own query calls its inputs,
    None: as they are. A window operator is two: one with a `window` that collects tuples, and the one that `closes` it,
    under the user's name. `cost_from`: None: the cost is as declared. `max_bytes`: of a result, 0: not declared."""

    name: str
    run: str
    inputs: tuple[str, ...]
    ports: tuple[str, ...] | None
    side: Mapping[str, str]
    cost_ns: int
    selectivity: SelectivityFile | None
    nodes: tuple[str, ...] | None
    parameters: Mapping[str, Any]
    hang_ns: int
    forbidden: tuple[tuple[str, str], ...]
    keys: tuple[object, ...]
    barred: tuple[str, ...] = ()
    memory_bytes: int = 0
    state: str = KEEP
    called: tuple[str, ...] | None = None
    window: Window | None = None
    closes: str = ""
    on_late: OnLate | None = None
    queue: Queue | None = None
    cost_from: CostOrigin | None = None
    sync: Sync | None = None
    side_rules: Mapping[str, SideRule] = field(default_factory=dict)
    max_bytes: int = 0

    @property
    def is_windowed(self) -> bool:
        """Whether it is a half of a window operator."""
        return self.window is not None or bool(self.closes)

    @property
    def said(self) -> str:
        """What its user calls it."""
        return self.name.removesuffix(ADD) if self.window else self.name

    @property
    def entry(self) -> str:
        """What it stands under in its file: its name, or the range of its chain."""
        return str(self.keys[self.keys.index("operators") + 1])

    @property
    def mean(self) -> Fraction:
        """Mean outputs per input, exactly as written."""
        return Fraction(str(self.selectivity.mean)) if self.selectivity else Fraction(1)


@dataclass(frozen=True)
class Output:
    """What operator `origin` produces, delivered at node `at` within `deadline_ns` of the tuple's origin; `qos`: what
    is asked beyond that; `age`: how old the data behind a result may be; `reaction`: how soon a change at a source has
    to show; `connector`: where the node puts results; `confidence`: None: the bound is to hold for every result."""

    name: str
    origin: str
    at: str
    deadline_ns: int
    keys: tuple[object, ...]
    qos: Qos = NOTHING
    age: Freshness | None = None
    reaction: Freshness | None = None
    connector: Connector | None = None
    confidence: Confidence | None = None


@dataclass(frozen=True)
class Query:
    """A query; sources, operators and outputs in the file's order; `sha256` of the file's bytes. `members`: the queries
    that it is composed of, by name; empty: it is one; `ranges`: within which values may change."""

    name: str
    sources: tuple[Source, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[Output, ...]
    sha256: str
    file: yaml_source.Source
    members: Mapping[str, QueryPart] = field(default_factory=dict)
    ranges: tuple[Range, ...] = ()

    @property
    def producers(self) -> list[Source | Operator]:
        """What streams are named after: sources, then operators, each in the file's order."""
        return [*self.sources, *self.operators]

    @property
    def parts(self) -> dict[str, QueryPart]:
        """What of it belongs to which query; all to itself where it is not composed."""
        sources = {one.name: None for one in self.sources}
        operators = {one.name: None for one in self.operators}
        outputs = {one.name: None for one in self.outputs}
        if not self.members:
            return {
                self.name: QueryPart(
                    sources=tuple(sources), operators=tuple(operators), outputs=tuple(outputs), sha256=self.sha256
                )
            }
        return {
            name: QueryPart(
                sources=tuple(one for one in member.sources if one in sources),
                operators=tuple(one for one in member.operators if one in operators),
                outputs=tuple(one for one in member.outputs if one in outputs),
                sha256=member.sha256,
                called={one: own for one, own in member.called.items() if one in operators},
            )
            for name, member in self.members.items()
        }

    @property
    def users(self) -> dict[str, tuple[str, ...]]:
        """The queries that need each operator."""
        found: dict[str, tuple[str, ...]] = {}
        for name, member in self.parts.items():
            for one in member.operators:
                found[one] = (*found.get(one, ()), name)
        return found
