"""query.yaml read: its shape checked, chains and windows written out. The graph is checked in `checks`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from coordinator.spec import arrivals, overload_given
from coordinator.spec.files import declared_ranges, validation, yaml_source
from coordinator.spec.files.output_demands import FreshnessFile, GuaranteeFile
from coordinator.spec.files.query_file import (
    CHAIN_NAME,
    NOT_YET,
    MemberFile,
    OperatorFile,
    OutputFile,
    QueryFile,
)
from coordinator.spec.quality import Confidence, Freshness, Qos
from coordinator.spec.query import GIVEN, GUESS_NS, GUESSED, Operator, Output, Query, Source
from coordinator.spec.runtime_charges import MEASURED
from coordinator.units import show_ns
from protos import digests
from protos.plan.costs import CostOrigin


def load(path: Path, edit: yaml_source.Edit | None = None) -> Query:
    """Reads and checks the file's shape, changed by `edit` before; the graph is checked by `query_checks.check`. Raises
    BadInputError with every problem."""
    file = yaml_source.load(path)
    if edit is not None:
        edit(file)
    shape = validation.validate(file, QueryFile, NOT_YET)
    sources = []
    for name, given in shape.sources.items():
        keys = ("sources", name)
        arrival = arrivals.of_source(given, file, keys)
        forbidden, limit = tuple(given.forbid_streams), overload_given.limit(given, file, keys)
        max_age_ns, pull, type_ = given.max_age or 0, overload_given.pull(given), given.type or GIVEN
        size, full = given.max_size or 0, given.on_full
        place = given.from_.connector if given.from_ else None
        sources.append(
            Source(name, given.at, type_, arrival, max_age_ns, forbidden, keys, limit, full, pull, size, None, place)
        )
    operators = [one for name, given in shape.operators.items() for one in _operators(name, given, file)]
    outputs = [_output(name, given, shape.guarantee, file) for name, given in shape.outputs.items()]
    _unique(file, [*sources, *operators])
    ranges = declared_ranges.read(shape.may_change, file, shape.query)
    file.check()
    sha256 = digests.sha256(file.raw).hexdigest()
    return Query(shape.query, tuple(sources), tuple(operators), tuple(outputs), sha256, file, ranges=ranges)


def _output(name: str, given: OutputFile, of_query: GuaranteeFile | None, file: yaml_source.Source) -> Output:
    keys = ("outputs", name)
    if given.queue is not None and given.queue < MEASURED.tuple_bytes:
        text = f"outputs.{name}.queue holds no tuple: each counts {MEASURED.tuple_bytes} bytes"
        file.wrong("queue_holds_no_tuple", (*keys, "queue"), text, "make it larger")
    qos = Qos(given.wait, given.throughput, given.latency, given.queue)
    age, reaction = _freshness(given.age), _freshness(given.reaction)
    place = given.to.connector if given.to else None
    asked = given.guarantee or of_query
    confidence = Confidence(asked.confidence, asked.independent) if asked else None
    return Output(name, given.from_, given.at, given.deadline, keys, qos, age, reaction, place, confidence)


def _freshness(given: FreshnessFile | None) -> Freshness | None:
    return None if given is None else Freshness(given.limit, tuple(dict.fromkeys(given.without or ())))


def _unique(file: yaml_source.Source, named: list[Source | Operator]) -> None:
    """Streams are named after sources and operators, so these share one space of names."""
    seen: dict[str, Source | Operator] = {}
    for one in named:
        if one.name in seen:
            first = file.line(*seen[one.name].keys)
            file.wrong(
                "name_twice",
                one.keys,
                f"'{one.name}' is also the name of what stands on line {first}",
                "rename one of the two",
            )
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
        operator = replace(
            operator,
            on_late=overload_given.on_late(given),
            queue=overload_given.queue(given),
            sync=overload_given.sync(given),
        )
        return (
            [operator] if given.window is None else overload_given.window_operators(operator, given, given.window, file)
        )
    match = CHAIN_NAME.fullmatch(name)
    assert match is not None  # the file's model has checked it
    prefix, first, last = match[1], int(match[2]), int(match[3])
    names = [f"{prefix}{number}" for number in range(first, min(last, first + 10_000) + 1)]
    members = given.chain if isinstance(given.chain, list) else [MemberFile(run=given.chain)] * len(names)
    if len(members) != len(names) or not names:
        file.wrong(
            "chain_length",
            (*keys, "chain"),
            f"{name} names {len(names)} operators but lists {len(members)}",
            "make them equal",
        )
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
        file.wrong(
            "hang_too_short",
            keys,
            f"operator '{name}' would be killed within {which}",
            "make 'hang:' longer than 'cost:'",
        )
    return Operator(
        name,
        member.run,
        inputs,
        ports,
        {port: one.from_ for port, one in member.side.items()},
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
        side_rules=overload_given.side_rules(member),
        max_bytes=given.max_size or 0,
    )
