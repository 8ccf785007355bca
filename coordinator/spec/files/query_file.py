"""The shape of query.yaml, as pydantic models: what may be written, and nothing that the product does not honour."""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticKnownError

from coordinator.errors import MistakeError
from coordinator.spec.files.connector_file import FromFile, ToFile
from coordinator.spec.files.fusion_file import Side, Sync
from coordinator.spec.files.output_demands import FreshnessLimit, GuaranteeFile
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
from coordinator.spec.files.range_texts import MayChange
from coordinator.spec.files.window_file import OnLateFile, OverloadOfOperator, OverloadOfSource
from coordinator.units import show_ns

NOT_YET = {
    "within": "a fusion or a window says how far apart tuples may be; write 'sync: {within: 50 ms}' for one of each "
    "input, or 'window: {time: 50 ms}' with 'on:' for all pairs"
}


class JcpFile(Strict):
    """Arrivals with a period, jitter and a least gap: [Q]'s JCP stream.

    period: of the arrivals, T
    min_gap: the least time between two arrivals, D; below the period
    early: how much earlier than its period a tuple may come
    late: how much later than its period a tuple may come
    """

    period: Duration
    min_gap: DurationOrZero = 0
    early: DurationOrZero = 0
    late: DurationOrZero = 0

    @model_validator(mode="after")
    def _gap(self) -> Self:
        if self.min_gap >= self.period:
            raise MistakeError("gap_above_period", "has a 'min_gap' that is not below its 'period'", "make it shorter")
        return self


class ArrivalFile(Strict):
    """How tuples arrive. One of `{burst, period}`, `{jcp: {...}}`, `{rate, burst}` and `{trace: FILE}`.

    burst: the most tuples that come at once
    period: from one burst to the next
    jcp: a period with jitter and a least gap
    rate: tuples a second
    trace: a recording beside the query: an instant in ns per line, ascending; `.gz` is allowed
    """

    burst: Count | None = None
    period: Duration | None = None
    jcp: JcpFile | None = None
    rate: Annotated[float, Field(ge=1e-6, le=1e9)] | None = None  # instants are whole ns
    trace: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
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


LEAST_EVERY_NS, MOST_EVERY_NS = 10**6, 86_400 * 10**9
_EITHER: list[JsonValue] = [
    {"required": ["type", "arrival"]},
    {"required": ["every"]},
    {"required": ["run", "arrival"]},
]


class SourceFile(OverloadOfSource):
    """Where tuples enter. `every` or `run` or both: the node makes them itself, by a timer, by calls of a function, or
    by an iterator (`run` with `arrival`); else clients or connectors (`from`) bring them.

    at: the node, or the core, where tuples enter
    run: an installed source that the node calls; without it `every` is a timer
    every: how often the node makes a tuple, 1 ms to 24 h
    offset: the instants of the node's clock are so far beyond a multiple of `every`
    cost: CPU time of a call; without it guessed, and the plan says so
    with: parameters of the installed source
    type: the codec of its tuples: json, bytes, numpy, arrow, or a registered message
    max_size: the most that a payload may have; 1 MiB unless given, at most 8 MiB
    arrival: how tuples arrive at most; bounds hold for it
    max_age: older tuples are refused; without it any age is taken
    tolerance: how much later than its arrivals a tuple may come; of bursts a tenth of their period unless given, else 0
    forbid_streams: pairs of nodes, from and to, that its stream may not take
    from: a place outside that the node reads messages from
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": _EITHER})
    at: Place
    run: str | None = None
    every: Duration | None = None
    offset: DurationOrZero | None = None
    cost: Duration | None = None
    with_: dict[str, Any] = Field(default={}, alias="with")
    type: str | None = Field(default=None, validate_default=True)
    max_size: Payload | None = None
    arrival: ArrivalFile | None = Field(default=None, validate_default=True)
    max_age: Duration | None = None
    tolerance: DurationOrZero | None = None
    forbid_streams: list[Places] = Field(default=[])
    from_: FromFile | None = Field(default=None, alias="from")

    @field_validator("run")
    @classmethod
    def _named(cls, value: str | None) -> str | None:
        if value == "":
            mend = "name an installed source, or remove it: 'every:' alone is a timer"
            raise MistakeError("too_short", "is empty", mend)
        return value

    @field_validator("every")
    @classmethod
    def _within_limits(cls, value: int | None) -> int | None:
        if value is not None and not LEAST_EVERY_NS <= value <= MOST_EVERY_NS:
            raise MistakeError(
                "out_of_range", f"is {show_ns(value)}", "an agent ticks every 1 ms at most and every 24 h at least"
            )
        return value

    @field_validator("type")
    @classmethod
    def _typed(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Else it is what its timer or its function gives."""
        known = info.data.keys() >= {"run", "every"}  # else something is wrong with them, which is said
        if value is None and known and not (info.data["run"] or info.data["every"]):
            raise PydanticKnownError("missing")
        return value

    @field_validator("arrival")
    @classmethod
    def _paced(cls, value: ArrivalFile | None, info: ValidationInfo) -> ArrivalFile | None:
        if value is None and "every" in info.data and not info.data["every"]:
            if info.data.get("run"):
                raise MistakeError(
                    "no_pace",
                    f"is missing, and so is 'every': nothing says when '{info.data['run']}' runs",
                    "write 'every: 100 ms' for a function, or 'arrival:' for an iterator",
                )
            raise PydanticKnownError("missing")
        return value

    @model_validator(mode="after")
    def _own(self) -> Self:
        """What a source says that its node makes itself."""
        if self.every is not None and self.arrival is not None:
            raise MistakeError(
                "every_and_arrival",
                "has 'every' and 'arrival'",
                "leave 'arrival:' to iterators and to sources that clients feed",
            )
        if self.from_ is not None and (self.every is not None or self.run is not None):
            mend = "remove 'from:', or 'every:' and 'run:'"
            raise MistakeError("from_of_own", "has a 'from', and its node makes its tuples itself", mend)
        for name, needs, given in (
            ("offset", "every", self.every),
            ("cost", "run", self.run),
            ("with", "run", self.run),
        ):
            if getattr(self, "with_" if name == "with" else name) and not given:
                raise MistakeError("key_without_other", f"has '{name}' without '{needs}'", f"add '{needs}:'")
        if self.every is not None and (self.offset or 0) >= self.every:
            raise MistakeError(
                "offset_beyond_every",
                f"has an 'offset' of {show_ns(self.offset or 0)}, and ticks every {show_ns(self.every)}",
                "make it shorter than 'every'",
            )
        if self.every is not None and self.cost is not None and self.cost >= self.every:
            raise MistakeError(
                "cost_beyond_every",
                f"has a 'cost' of {show_ns(self.cost)} for each call, and ticks every {show_ns(self.every)}",
                "make 'every:' longer",
            )
        return self


class SelectivityFile(Strict):
    """How many results come of inputs.

    mean: results per input
    at_most: pairs `[k, m]`: of any k inputs in a row at most m pass
    """

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
    """An operator of a chain that differs from the others.

    run: the installed operator
    cost: worst CPU time of a call
    side: streams whose latest value it reads, by argument
    selectivity: how many results come of its inputs
    with: its parameters
    hang: a call that takes longer counts as hung; 1 s unless given, or ten times the cost where that is more
    """

    run: str
    cost: Duration | None = None
    side: dict[str, Side] = Field(default={})
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
    """An operator (`run`), or with a name like `O7..O21` a row of them (`chain`), each fed by the one before.

    run: the installed operator, or a built-in one like `filter`, `join`, `aggregate`
    chain: one operator for all of the row, or a list with an entry each
    in: the streams that it reads: a name, a list in the operator's order, or names by port
    side: streams whose latest value it reads, by argument
    cost: worst CPU time of a call at a node of speed 1; without it guessed, and the plan says so
    selectivity: how many results come of its inputs
    nodes: where it may run; any node unless given
    forbid_nodes: where it may not run
    memory: the state that it keeps
    max_size: the most that a result may have; 1 MiB unless given, or as its inputs where it passes them on
    with: its parameters
    hang: a call that takes longer counts as hung; 1 s unless given, or ten times the cost where that is more
    state: what becomes of its state where a new plan leaves it in its place: it goes on (`keep`), or starts anew
        (`fresh`)
    forbid_streams: pairs of nodes, from and to, that its results may not take
    sync: it runs on tuples of several inputs that need not be of one lineage
    """

    run: str | None = None
    chain: str | list[Member] | None = None
    in_: Streams = Field(alias="in")
    side: dict[str, Side] = Field(default={})
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
    sync: Sync | None = None

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
    def _run_or_chain(self) -> Self:
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
        if self.chain is not None and (self.window or self.on or self.on_late or self.queue or self.sync):
            raise MistakeError(
                "options_of_chain",
                "is a chain",
                "'window', 'on', 'on_late', 'queue' and 'sync' are of one operator: write it out of the chain",
            )
        if self.sync is not None and self.window is not None:
            raise MistakeError(
                "sync_of_window", "has a window and a sync", "put an operator with 'sync:' before or behind it"
            )
        return self

    @model_validator(mode="after")
    def _window_checked(self) -> Self:
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
    """Results that are delivered, with their deadline and what else is asked of them.

    from: the operator whose results these are
    at: the node, or the core, where they are delivered
    deadline: from the origin of a tuple to the delivery of its result
    wait: the longest from admission to the first result after a pause
    throughput: at least so many results a second, after `latency`
    latency: from admission until `throughput` holds
    queue: the most bytes of tuples that wait or run on the way
    age: the most that the oldest data behind a result may have, when the result is delivered
    reaction: the longest from a change at a source to the first result that reflects it
    guarantee: in place of the query's
    to: a place outside that the node writes results to
    """

    from_: Name = Field(alias="from")
    at: Place
    deadline: Duration
    wait: Duration | None = None
    throughput: Annotated[float, Field(ge=1e-6, le=1e9)] | None = None
    latency: DurationOrZero | None = None
    queue: Memory | None = None
    age: FreshnessLimit | None = None
    reaction: FreshnessLimit | None = None
    guarantee: GuaranteeFile | None = None
    to: ToFile | None = None

    @model_validator(mode="after")
    def _rate_and_latency(self) -> Self:
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
    """query.yaml.

    shimekiri: the version of the format: 1
    query: the query's name
    guarantee: of all outputs that have none of their own; without it a bound holds for every result
    sources: where tuples enter, by name
    operators: what is computed, by name
    outputs: what is delivered, by name
    may_change: ranges of its values, by `SECTION.NAME.KEY`, for `coordinator adapt`
    """

    shimekiri: Literal[1]
    query: Name
    guarantee: GuaranteeFile | None = None
    sources: dict[Name, SourceFile] = Field(min_length=1)
    operators: dict[str, OperatorFile] = Field(min_length=1)
    outputs: dict[Name, OutputFile] = Field(min_length=1)
    may_change: MayChange = Field(default={})

    @field_validator("operators")
    @classmethod
    def _names(cls, value: dict[str, OperatorFile]) -> dict[str, OperatorFile]:
        for name, operator in value.items():
            fits = CHAIN_NAME if operator.chain is not None else OPERATOR_NAME
            if not fits.fullmatch(name) or len(name) > 64:
                hint = "a range like 'O7..O21'" if operator.chain is not None else "letters, digits, '_' and '-'"
                raise MistakeError("bad_operator_name", f"has a badly named operator '{name}'", f"write {hint}")
        return value
