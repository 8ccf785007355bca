"""The shape of query.yaml, as pydantic models: what may be written, and nothing that the product does not honour."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from coordinator.errors import MistakeError
from coordinator.spec.files.quantities import (
    NAME,
    Count,
    Duration,
    DurationOrZero,
    Memory,
    Name,
    Payload,
    Place,
    Places,
    Strict,
)
from coordinator.spec.files.window_file import OnLateFile, OverloadOfOperator, OverloadOfSource

NOT_YET = {"within": "a window says how far apart tuples may be; write 'window: {time: 50 ms}' with 'on:' instead"}


class JcpFile(Strict):
    """Period T, least gap D, earliness and lateness (jitter J is their sum): [Q]'s JCP stream."""

    period: Duration
    min_gap: DurationOrZero = 0
    early: DurationOrZero = 0
    late: DurationOrZero = 0

    @model_validator(mode="after")
    def _gap(self) -> JcpFile:
        if self.min_gap >= self.period:
            raise MistakeError("gap_above_period", "has a 'min_gap' that is not below its 'period'", "make it shorter")
        return self


class ArrivalFile(Strict):
    """One of `{burst, period}`, `{jcp: {...}}`, `{rate, burst}` and `{trace: FILE}`."""

    burst: Count | None = None
    period: Duration | None = None
    jcp: JcpFile | None = None
    rate: Annotated[float, Field(ge=1e-6, le=1e9)] | None = None  # instants are whole ns
    trace: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> ArrivalFile:
        given = frozenset(name for name in type(self).model_fields if getattr(self, name) is not None)
        allowed = ({"burst", "period"}, {"period"}, {"jcp"}, {"rate"}, {"rate", "burst"}, {"trace"})
        if given not in [frozenset(keys) for keys in allowed]:
            raise MistakeError(
                "arrival_keys",
                f"has the keys {', '.join(sorted(given)) or 'none'}",
                "write one of {burst: 10, period: 500 ms}, "
                "{jcp: {period: 100 ms}}, {rate: 50, burst: 5} and {trace: FILE}",
            )
        return self


class SourceFile(OverloadOfSource):
    """`at`: the node where tuples enter; `type`: codec (json, bytes, numpy, arrow, or a registered message);
    `max_size`: the most that a payload may have, 1 MiB unless given; `tolerance`: how much later than its arrivals say
    a tuple may come (of bursts a tenth of their period, unless given); `forbid_streams`: pairs of nodes, from and to,
    that it may not take."""

    at: Place
    type: str
    max_size: Payload | None = None
    arrival: ArrivalFile
    max_age: Duration | None = None
    tolerance: DurationOrZero | None = None
    forbid_streams: list[Places] = Field(default=[])


class SelectivityFile(Strict):
    """`mean` outputs per input; `at_most: [[k, m], ...]`: of any k inputs in a row at most m pass ([inputs,
    outputs])."""

    mean: Annotated[float, Field(ge=0, le=255)] = 1.0
    at_most: list[tuple[Count, Annotated[int, Field(ge=0, le=10**9, strict=True)]]] = Field(default=[])


def _streams(value: object) -> object:
    """`in: a`, `in: [a, b]` and `in: {port: a}` all become a mapping or a list."""
    return [value] if isinstance(value, str) else value


Streams = Annotated[
    dict[str, str] | list[str],
    BeforeValidator(_streams),
    WithJsonSchema(
        {
            "oneOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
                {"type": "object", "additionalProperties": {"type": "string"}},
            ]
        }
    ),
]


class MemberFile(Strict):
    """An operator of a chain that differs from the others."""

    run: str
    cost: Duration | None = None
    side: dict[str, Name] = Field(default={})
    selectivity: SelectivityFile | None = None
    with_: dict[str, Any] = Field(default={}, alias="with")
    hang: Duration | None = None


def _member(value: object) -> object:
    return {"run": value} if isinstance(value, str) else value


class _StringOr:
    """In the JSON Schema, a value may also be written as a string."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(core)]}


Member = Annotated[MemberFile, BeforeValidator(_member), _StringOr()]


class OperatorFile(OverloadOfOperator):
    """One operator (`run`), or with a name like `O7..O21` a run of them (`chain`). `nodes`: where it may run, less
    `forbid_nodes`; `memory`: the state that each of them keeps; `max_size`: the most that a result may have; `state`:
    what becomes of it where a new plan leaves the
    operator in its place."""

    run: str | None = None
    chain: str | list[Member] | None = None
    in_: Streams = Field(alias="in")
    side: dict[str, Name] = Field(default={})
    cost: Duration | None = None
    selectivity: SelectivityFile | None = None
    nodes: list[Place] | None = None
    forbid_nodes: list[Place] = Field(default=[])
    memory: Memory | None = None
    max_size: Payload | None = None
    with_: dict[str, Any] = Field(default={}, alias="with")
    hang: Duration | None = None
    state: Literal["keep", "fresh"] = "keep"
    forbid_streams: list[Places] = Field(default=[])

    @field_validator("state", mode="before")
    @classmethod
    def _no_migration(cls, value: object) -> object:
        if value == "migrate":
            raise MistakeError(
                "migrate",
                "'migrate' is not available yet: where a new plan moves an operator it starts fresh, where it stays it "
                "keeps its state",
                "write 'fresh' or 'keep', or remove it",
            )
        return value

    @field_validator("nodes")
    @classmethod
    def _some_node(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and not value:
            raise MistakeError(
                "no_node", "is empty", "name a node, or remove 'nodes:' to leave the choice to the planner"
            )
        return value

    @model_validator(mode="after")
    def _run_or_chain(self) -> OperatorFile:
        if (self.run is None) == (self.chain is None):
            raise MistakeError(
                "run_or_chain",
                "needs one of 'run:' (an operator) and 'chain:' (a run of operators named like 'O7..O21')",
            )
        if self.chain is not None and (self.side or self.selectivity or self.with_):
            raise MistakeError(
                "options_of_chain_member",
                "is a chain",
                "give 'side', 'selectivity' and 'with' to a member: chain: [{run: NAME, with: {...}}, ...]",
            )
        if self.chain is not None and (self.window or self.on or self.on_late or self.queue):
            raise MistakeError(
                "options_of_chain",
                "is a chain",
                "'window', 'on', 'on_late' and 'queue' are of one operator: write it out of the chain",
            )
        return self

    @model_validator(mode="after")
    def _window_checked(self) -> OperatorFile:
        if self.window is None:
            if self.on is not None:
                raise MistakeError(
                    "on_without_window",
                    "has 'on' without a 'window': a join takes all inputs of one lineage",
                    "add 'window:'",
                )
            return self
        if self.side:
            raise MistakeError(
                "side_of_window", "has a window and side inputs", "put an operator with 'side:' before or behind it"
            )
        if self.selectivity is not None:
            raise MistakeError(
                "selectivity_of_window", "has a window, and each window one result", "remove 'selectivity:'"
            )
        if isinstance(self.on_late, OnLateFile):
            raise MistakeError(
                "degraded_window", "has a window, which cannot be made cheaper when it is late", "write drop or deliver"
            )
        if self.run == "join" and self.on is None:
            mend = "say which field has to be equal: 'on: FIELD', or 'on: {left: FIELD, right: FIELD}'"
            raise MistakeError("join_without_on", "joins in a window", mend)
        if self.run != "join" and self.on is not None:
            mend = "write 'run: join' with two inputs, or 'by:' in the window"
            raise MistakeError("on_without_join", "has 'on', which joins have", mend)
        return self


class OutputFile(Strict):
    """`from` an operator, delivered `at` a node, with its end-to-end deadline. Beyond it ([Q] 2.3), from admission on:
    `wait`: the first result after a pause; `throughput`: at least so many a second, after `latency`; `queue`: bytes of
    tuples that wait or run."""

    from_: Name = Field(alias="from")
    at: Place
    deadline: Duration
    wait: Duration | None = None
    throughput: Annotated[float, Field(ge=1e-6, le=1e9)] | None = None
    latency: DurationOrZero | None = None
    queue: Memory | None = None

    @model_validator(mode="after")
    def _rate_and_latency(self) -> OutputFile:
        if self.latency is not None and self.throughput is None:
            raise MistakeError(
                "latency_without_throughput",
                "has a 'latency' without a 'throughput'",
                "add it, or write 'deadline:' or 'wait:'",
            )
        if self.throughput is not None and self.latency is None:
            raise MistakeError(
                "throughput_without_latency",
                "has a 'throughput' without a 'latency'",
                "add after how long, like 'latency: 0 s'",
            )
        return self


OPERATOR_NAME = re.compile(rf"{NAME}")
CHAIN_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*?)(\d+)\.\.\1(\d+)")


class QueryFile(Strict):
    """query.yaml."""

    shimekiri: Literal[1]
    query: Name
    sources: dict[Name, SourceFile] = Field(min_length=1)
    operators: dict[str, OperatorFile] = Field(min_length=1)
    outputs: dict[Name, OutputFile] = Field(min_length=1)

    @field_validator("operators")
    @classmethod
    def _names(cls, value: dict[str, OperatorFile]) -> dict[str, OperatorFile]:
        for name, operator in value.items():
            fits = CHAIN_NAME if operator.chain is not None else OPERATOR_NAME
            if not fits.fullmatch(name) or len(name) > 64:
                hint = "a range like 'O7..O21'" if operator.chain is not None else "letters, digits, '_' and '-'"
                raise MistakeError("bad_operator_name", f"has a badly named operator '{name}'", f"write {hint}")
        return value
