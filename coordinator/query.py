"""query.yaml as the planner uses it: checked, every chain written out, every quantity an integer (durations in ns)."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from coordinator import yaml_file
from coordinator.guarantee.charges import MEASURED
from coordinator.guarantee.curves import recorded_spans
from coordinator.guarantee.qos import NOTHING, Qos
from coordinator.query_file import (
    CHAIN_NAME,
    NOT_YET,
    ArrivalFile,
    MemberFile,
    OperatorFile,
    OutputFile,
    QueryFile,
    SelectivityFile,
)
from coordinator.units_of_measure import LARGEST

DEFAULT_HANG_NS = 10**9
KEEP = "keep"


@dataclass(frozen=True)
class Arrival:
    """How tuples enter: `burst` of them at one instant at worst, `rate` tuples per ns on average; `written`: for
    plan.json."""

    burst: int
    rate: Fraction
    written: Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """Tuples enter at node `at`; `max_age_ns` 0: any age."""

    name: str
    at: str
    type: str
    arrival: Arrival
    max_age_ns: int
    forbidden: tuple[tuple[str, str], ...]
    keys: tuple[object, ...]


@dataclass(frozen=True)
class Operator:
    """One operator; `inputs` are stream names, `ports` their ports where the query names them; `nodes`: where it may
    run, None: anywhere, less `barred`; `keys`: where it stands; `memory_bytes`: of the state it keeps; `state`: `keep`
    or `fresh`, of one that stays where it is when the plan changes; `called`: what its own query calls its inputs,
    None: as they are."""

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
class Member:
    """What belongs to one of the queries that a query is composed of: names there, in its own file's order. `called`:
    what the file calls an operator, by its name there, where the two differ."""

    sources: tuple[str, ...]
    operators: tuple[str, ...]
    outputs: tuple[str, ...]
    sha256: str
    called: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Query:
    """A query; sources, operators and outputs in the file's order; `sha256` of the file's bytes. `members`: the queries
    that it is composed of, by name; empty: it is one."""

    name: str
    sources: tuple[Source, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[Output, ...]
    sha256: str
    file: yaml_file.Source
    members: Mapping[str, Member] = field(default_factory=dict)

    @property
    def producers(self) -> list[Source | Operator]:
        """What streams are named after: sources, then operators, each in the file's order."""
        return [*self.sources, *self.operators]

    @property
    def parts(self) -> dict[str, Member]:
        """What of it belongs to which query; all to itself where it is not composed."""
        sources = {one.name: None for one in self.sources}
        operators = {one.name: None for one in self.operators}
        outputs = {one.name: None for one in self.outputs}
        if not self.members:
            return {self.name: Member(tuple(sources), tuple(operators), tuple(outputs), self.sha256)}
        return {
            name: Member(
                tuple(one for one in member.sources if one in sources),
                tuple(one for one in member.operators if one in operators),
                tuple(one for one in member.outputs if one in outputs),
                member.sha256,
                {one: own for one, own in member.called.items() if one in operators},
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


def load(path: Path, edit: yaml_file.Edit | None = None) -> Query:
    """Reads and checks the file's shape, changed by `edit` before; the graph is checked by `graph.check`. Raises
    BadInputError with every problem."""
    file = yaml_file.load(path)
    if edit is not None:
        edit(file)
    shape = yaml_file.validate(file, QueryFile, NOT_YET)
    sources = []
    for name, given in shape.sources.items():
        keys = ("sources", name)
        arrival = _tolerated(_arrival(given.arrival, file, keys), given.tolerance)
        forbidden = tuple(given.forbid_streams)
        sources.append(Source(name, given.at, given.type, arrival, given.max_age or 0, forbidden, keys))
    operators = [one for name, given in shape.operators.items() for one in _operators(name, given, file)]
    outputs = [_output(name, given, file) for name, given in shape.outputs.items()]
    _unique(file, [*sources, *operators])
    file.check()
    sha256 = hashlib.sha256(file.raw).hexdigest()
    return Query(shape.query, tuple(sources), tuple(operators), tuple(outputs), sha256, file)


def _output(name: str, given: OutputFile, file: yaml_file.Source) -> Output:
    keys = ("outputs", name)
    if given.queue is not None and given.queue < MEASURED.tuple_bytes:
        text = f"outputs.{name}.queue holds no tuple: each counts {MEASURED.tuple_bytes} bytes; make it larger"
        file.wrong((*keys, "queue"), text)
    qos = Qos(given.wait, given.throughput, given.latency, given.queue)
    return Output(name, given.from_, given.at, given.deadline, keys, qos)


def _unique(file: yaml_file.Source, named: list[Source | Operator]) -> None:
    """Streams are named after sources and operators, so these share one space of names."""
    seen: dict[str, Source | Operator] = {}
    for one in named:
        if one.name in seen:
            first = file.line(*seen[one.name].keys)
            file.wrong(one.keys, f"'{one.name}' is also the name of what stands on line {first}; rename one of the two")
        seen.setdefault(one.name, one)


def _operators(name: str, given: OperatorFile, file: yaml_file.Source) -> list[Operator]:
    keys = ("operators", name)
    inputs = tuple(given.in_.values() if isinstance(given.in_, dict) else given.in_)
    ports = tuple(given.in_) if isinstance(given.in_, dict) else None
    if given.chain is None:
        member = MemberFile.model_construct(
            run=given.run or "", cost=None, side=given.side, selectivity=given.selectivity, with_=given.with_, hang=None
        )
        return [_operator(name, member, given, inputs, ports, keys, file)]
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
    file: yaml_file.Source,
) -> Operator:
    cost_ns = member.cost or given.cost
    if cost_ns is None:
        file.wrong(keys, f"operator '{name}' has no cost; add 'cost:', its worst CPU time per tuple, like 'cost: 1 ms'")
        cost_ns = 1
    hang_ns = member.hang or given.hang or max(DEFAULT_HANG_NS, min(10 * cost_ns, LARGEST))
    if hang_ns <= cost_ns:
        file.wrong(keys, f"operator '{name}' would be killed within its cost; make 'hang:' longer than 'cost:'")
    return Operator(
        name,
        member.run,
        inputs,
        ports,
        member.side,
        cost_ns,
        member.selectivity,
        tuple(dict.fromkeys(given.nodes)) if given.nodes else None,
        _plain(member.with_),
        hang_ns,
        tuple(given.forbid_streams),
        keys,
        tuple(dict.fromkeys(given.forbid_nodes)),
        given.memory or 0,
        given.state,
    )


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters without ruamel's own types, where they are JSON; what is not is refused later, by name."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(parameters))
    except (TypeError, ValueError):
        return dict(parameters)
    return plain


def _arrival(given: ArrivalFile, file: yaml_file.Source, keys: tuple[object, ...]) -> Arrival:
    """Burst and rate of each kind of arrival, for the costs per burst of [P] 5.2.2 (the input volume is fixed there).

    burst: as declared. jcp: L = floor(J / (T - D)) + 1 tuples, the longest run at the least gap ([Q] theorem 1).
    rate: its burst, 1 if none. trace: the largest count at one instant of the recording.
    """
    if given.jcp is not None:
        jcp = given.jcp
        burst = (jcp.early + jcp.late) // (jcp.period - jcp.min_gap) + 1
        written = {"period_ns": jcp.period, "min_gap_ns": jcp.min_gap, "early_ns": jcp.early, "late_ns": jcp.late}
        return Arrival(burst, Fraction(1, jcp.period), {"kind": "jcp", "burst": burst, **written})
    if given.rate is not None:
        burst = given.burst or 1
        rate = Fraction(str(given.rate)) / 10**9
        return Arrival(burst, rate, {"kind": "rate", "rate_per_s": given.rate, "burst": burst})
    if given.trace is not None:
        return _recorded(given.trace, file, (*keys, "arrival", "trace"))
    assert given.period is not None  # the file's model has checked it
    burst = given.burst or 1
    return Arrival(burst, Fraction(burst, given.period), {"kind": "burst", "burst": burst, "period_ns": given.period})


def _tolerated(arrival: Arrival, tolerance_ns: int | None) -> Arrival:
    """With how late its tuples may be. Bursts are an ideal that no source keeps to the nanosecond; the other kinds say
    what they allow."""
    if tolerance_ns is None:
        tolerance_ns = arrival.written["period_ns"] // 10 if arrival.written.get("kind") == "burst" else 0
    if not tolerance_ns:
        return arrival
    return replace(arrival, written={**arrival.written, "tolerance_ns": tolerance_ns})


def _recorded(name: str, file: yaml_file.Source, keys: tuple[object, ...]) -> Arrival:
    """A recording: one arrival instant in ns per line, not decreasing, `#` for comments; .gz is unpacked."""
    path = file.path.parent / name
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("ascii")
        instants = [int(line) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    except (OSError, ValueError, EOFError) as error:
        file.wrong(keys, f"recording '{name}' cannot be read: {error}; give a file with one instant in ns per line")
        return Arrival(1, Fraction(0), {})
    if len(instants) < 2 or instants != sorted(instants) or instants[0] == instants[-1]:
        file.wrong(keys, f"recording '{name}' needs at least two instants, in ascending order; correct the file")
        return Arrival(1, Fraction(0), {})
    burst, span_ns = max(Counter(instants).values()), instants[-1] - instants[0]
    counts, spans_ns = recorded_spans(instants)
    written = {
        "kind": "trace",
        "file": name,
        "sha256": hashlib.sha256(raw).hexdigest(),
        "burst": burst,
        "tuples": len(instants),
        "span_ns": span_ns,
        "counts": counts,
        "spans_ns": spans_ns,
    }
    return Arrival(burst, Fraction(len(instants), span_ns), written)
