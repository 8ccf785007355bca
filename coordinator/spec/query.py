"""query.yaml as the planner uses it: checked, every chain written out, every quantity an integer (durations in ns)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from coordinator.spec import arrivals, overload_given
from coordinator.spec.arrivals import Arrival
from coordinator.spec.cost_source import GUESS_NS, GUESSED
from coordinator.spec.files import yaml_source
from coordinator.spec.files.query_file import (
    CHAIN_NAME,
    NOT_YET,
    MemberFile,
    OperatorFile,
    OutputFile,
    QueryFile,
    SelectivityFile,
)
from coordinator.spec.overload import ADD
from coordinator.spec.quality import NOTHING, Qos
from coordinator.spec.runtime_charges import MEASURED
from coordinator.units import show_ns
from protos.plan_document import CostOrigin, Limit, OnLate, QueryPart, Queue, Window

KEEP = "keep"


@dataclass(frozen=True)
class Source:
    """Tuples enter at node `at`; `max_age_ns` 0: any age; `on_full`: what happens while the node's queues are full."""

    name: str
    at: str
    type: str
    arrival: Arrival
    max_age_ns: int
    forbidden: tuple[tuple[str, str], ...]
    keys: tuple[object, ...]
    limit: Limit | None = None
    on_full: str = "refuse"

    @property
    def burst(self) -> int:
        """Tuples that go on at one instant, at worst."""
        return min(self.arrival.burst, self.limit.tuples) if self.limit else self.arrival.burst

    @property
    def rate(self) -> Fraction:
        """Tuples that go on per ns, on average."""
        most = Fraction(self.limit.tuples, self.limit.span_ns) if self.limit else self.arrival.rate
        return min(self.arrival.rate, most)


@dataclass(frozen=True)
class Operator:
    """One operator; `inputs` are stream names, `ports` their ports where the query names them; `nodes`: where it may
    run, None: anywhere, less `barred`; `keys`: where it stands; `memory_bytes`: of the state it keeps; `state`: `keep`
    or `fresh`, of one that stays where it is when the plan changes; `called`: what its own query calls its inputs,
    None: as they are. A window operator is two: one with a `window` that collects tuples, and the one that `closes` it,
    under the user's name. `cost_from`: None: the cost is as declared."""

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

    @property
    def windowed(self) -> bool:
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
    is asked beyond that."""

    name: str
    origin: str
    at: str
    deadline_ns: int
    keys: tuple[object, ...]
    qos: Qos = NOTHING


@dataclass(frozen=True)
class Query:
    """A query; sources, operators and outputs in the file's order; `sha256` of the file's bytes. `members`: the queries
    that it is composed of, by name; empty: it is one."""

    name: str
    sources: tuple[Source, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[Output, ...]
    sha256: str
    file: yaml_source.Source
    members: Mapping[str, QueryPart] = field(default_factory=dict)

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


def load(path: Path, edit: yaml_source.Edit | None = None) -> Query:
    """Reads and checks the file's shape, changed by `edit` before; the graph is checked by `query_checks.check`. Raises
    BadInputError with every problem."""
    file = yaml_source.load(path)
    if edit is not None:
        edit(file)
    shape = yaml_source.validate(file, QueryFile, NOT_YET)
    sources = []
    for name, given in shape.sources.items():
        keys = ("sources", name)
        arrival = arrivals.tolerated(arrivals.read(given.arrival, file, keys), given.tolerance)
        forbidden, limit = tuple(given.forbid_streams), overload_given.limit(given, file, keys)
        max_age_ns = given.max_age or 0
        sources.append(Source(name, given.at, given.type, arrival, max_age_ns, forbidden, keys, limit, given.on_full))
    operators = [one for name, given in shape.operators.items() for one in _operators(name, given, file)]
    outputs = [_output(name, given, file) for name, given in shape.outputs.items()]
    _unique(file, [*sources, *operators])
    file.check()
    sha256 = hashlib.sha256(file.raw).hexdigest()
    return Query(shape.query, tuple(sources), tuple(operators), tuple(outputs), sha256, file)


def _output(name: str, given: OutputFile, file: yaml_source.Source) -> Output:
    keys = ("outputs", name)
    if given.queue is not None and given.queue < MEASURED.tuple_bytes:
        text = f"outputs.{name}.queue holds no tuple: each counts {MEASURED.tuple_bytes} bytes; make it larger"
        file.wrong((*keys, "queue"), text)
    qos = Qos(given.wait, given.throughput, given.latency, given.queue)
    return Output(name, given.from_, given.at, given.deadline, keys, qos)


def _unique(file: yaml_source.Source, named: list[Source | Operator]) -> None:
    """Streams are named after sources and operators, so these share one space of names."""
    seen: dict[str, Source | Operator] = {}
    for one in named:
        if one.name in seen:
            first = file.line(*seen[one.name].keys)
            file.wrong(one.keys, f"'{one.name}' is also the name of what stands on line {first}; rename one of the two")
        seen.setdefault(one.name, one)


def _operators(name: str, given: OperatorFile, file: yaml_source.Source) -> list[Operator]:
    keys = ("operators", name)
    inputs = tuple(given.in_.values() if isinstance(given.in_, dict) else given.in_)
    ports = tuple(given.in_) if isinstance(given.in_, dict) else None
    if given.chain is None:
        member = MemberFile.model_construct(
            run=given.run or "", cost=None, side=given.side, selectivity=given.selectivity, with_=given.with_, hang=None
        )
        operator = _operator(name, member, given, inputs, ports, keys, file)
        operator = replace(operator, on_late=overload_given.on_late(given), queue=overload_given.queue(given))
        return [operator] if given.window is None else overload_given.windowed(operator, given, given.window, file)
    match = CHAIN_NAME.fullmatch(name)
    assert match is not None  # the file's model has checked it
    prefix, first, last = match[1], int(match[2]), int(match[3])
    names = [f"{prefix}{number}" for number in range(first, min(last, first + 10_000) + 1)]
    members = given.chain if isinstance(given.chain, list) else [MemberFile(run=given.chain)] * len(names)
    if len(members) != len(names) or not names:
        file.wrong((*keys, "chain"), f"{name} names {len(names)} operators but lists {len(members)}; make them equal")
        return []
    chain = []
    for position, (one, member) in enumerate(zip(names, members, strict=True)):
        where = (*keys, "chain", position) if isinstance(given.chain, list) else keys
        fed_by = inputs if position == 0 else (names[position - 1],)
        chain.append(_operator(one, member, given, fed_by, ports if position == 0 else None, where, file))
    return chain


def _operator(
    name: str,
    member: MemberFile,
    given: OperatorFile,
    inputs: tuple[str, ...],
    ports: tuple[str, ...] | None,
    keys: tuple[object, ...],
    file: yaml_source.Source,
) -> Operator:
    cost_ns = member.cost or given.cost
    origin = CostOrigin(kind=GUESSED) if cost_ns is None else None
    cost_ns = cost_ns or GUESS_NS
    hang_ns = member.hang or given.hang or overload_given.hang_ns(cost_ns)
    if hang_ns <= cost_ns:
        which = "its cost" if origin is None else f"its cost, guessed as {show_ns(cost_ns)}, since it has no 'cost:'"
        file.wrong(keys, f"operator '{name}' would be killed within {which}; make 'hang:' longer than 'cost:'")
    return Operator(
        name,
        member.run,
        inputs,
        ports,
        member.side,
        cost_ns,
        member.selectivity,
        tuple(dict.fromkeys(given.nodes)) if given.nodes else None,
        overload_given.plain(member.with_),
        hang_ns,
        tuple(given.forbid_streams),
        keys,
        tuple(dict.fromkeys(given.forbid_nodes)),
        given.memory or 0,
        given.state,
        cost_from=origin,
    )
