"""The shape of what query.yaml says about windows, limits and overload, as pydantic models."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from coordinator.errors import MistakeError
from coordinator.spec.files.quantities import DURATION_SCHEMA, Count, Duration, DurationOrZero, Memory, Strict
from coordinator.units import duration_ns, show_ns

MOST_OVERLAP = 1024  # windows that one tuple may be in
MOST_LIMITED = 65_536  # tuples per span of a limit
Shedder = Literal["window-aware", "front", "random", "drop-tail", "none"]
OnFull = Literal["drop-tail", "front"]


def _hop(value: object) -> int | str:
    """A count stays a number, a duration becomes `N ns`."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value <= 0:
            raise MistakeError(
                "not_above_zero", f"is {value}", "windows have to follow each other: write 1 or more, or leave it out"
            )
        return value
    found = duration_ns(value)
    if found <= 0:
        raise MistakeError(
            "not_above_zero",
            f"is '{value}'",
            "windows have to follow each other: make it longer than 0, or leave it out",
        )
    return f"{found} ns"


Hop = Annotated[
    int | str, BeforeValidator(_hop), WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, DURATION_SCHEMA]})
]
_PATH = re.compile(r"[^.\s]+(\.[^.\s]+)*")
_PATH_SCHEMA = {"type": "string", "examples": ["car.speed"]}


def _path(value: object) -> str:
    """A field of a tuple."""
    if not isinstance(value, str) or not _PATH.fullmatch(value):
        raise MistakeError(
            "names_no_field", f"is {value!r:.60}, which names no field", "write one like 'speed' or 'car.speed'"
        )
    return value


def _on(value: object) -> str | dict[str, str]:
    """One field for both inputs, or one of each."""
    return {str(name): _path(each) for name, each in value.items()} if isinstance(value, Mapping) else _path(value)


Path_ = Annotated[str, BeforeValidator(_path), WithJsonSchema(_PATH_SCHEMA)]
On = Annotated[
    str | dict[str, str],
    BeforeValidator(_on),
    WithJsonSchema({"anyOf": [_PATH_SCHEMA, {"type": "object", "additionalProperties": _PATH_SCHEMA}]}),
]


class WindowFile(Strict):
    """A window has one length: `time`, `count`, or `size` with `most`.

    time: its length
    count: its length in tuples
    size: an operator that says for the first tuple how many ns the window is long
    most: the longest that `size` may say; bounds count it in full
    hop: from the begin of a window to that of the next, a duration or a number of tuples; the length unless given
    by: a field; a result has a value per value of it
    lateness: how much older than a lower number of its source a tuple may be
    deadline: deadlines behind it count from the window's end, or from its first tuple
    close: worst CPU time of closing a window; `cost` unless given
    shed: what goes where not all windows can be had
    queue: tuples that wait before it at the latest when it sheds
    wait: how long it waits for a number that is missing; 1 s unless given
    """

    time: Duration | None = None
    count: Count | None = None
    size: str | None = None
    most: Duration | None = None
    hop: Hop | None = None
    by: Path_ | None = None
    lateness: DurationOrZero = 0
    deadline: Literal["end", "first"] = "end"
    close: Duration | None = None
    shed: Shedder = "window-aware"
    queue: Count = 3000
    wait: Duration | None = None

    @model_validator(mode="after")
    def _length(self) -> Self:
        given = [name for name in ("time", "count", "size") if getattr(self, name) is not None]
        if len(given) != 1:
            raise MistakeError(
                "window_length",
                f"has {' and '.join(given) or 'no length'}",
                "write one of {time: 5 s}, {count: 100} and {size: my.function, most: 20 s}",
            )
        if (self.size is None) != (self.most is None):
            raise MistakeError(
                "size_without_most", "needs both 'size' and 'most', or neither: {size: my.function, most: 20 s}"
            )
        if self.hop is not None and isinstance(self.hop, int) != (self.count is not None):
            right = "a number of tuples, like 'hop: 50'" if self.count is not None else "a duration, like 'hop: 4 s'"
            raise MistakeError("hop_of_another_kind", "has a hop of another kind than its length", f"write {right}")
        if self.count is not None and self.lateness:
            raise MistakeError(
                "lateness_of_count", "counts tuples, which are in order, so none is late", "remove 'lateness:'"
            )
        length, hop = self.length, self.hop_
        if hop > length:
            shown = [f"{one} tuples" if self.count is not None else show_ns(one) for one in (hop, length)]
            raise MistakeError(
                "hop_beyond_length",
                f"has a hop of {shown[0]} beyond its length of {shown[1]}, so tuples between two windows would be "
                "in none",
                f"make the hop at most {shown[1]}, or filter before it",
            )
        if length > MOST_OVERLAP * hop:
            raise MistakeError(
                "too_many_windows",
                f"puts a tuple into {length // hop} windows, at most {MOST_OVERLAP} are kept",
                "make 'hop:' longer",
            )
        return self

    @property
    def length(self) -> int:
        """In ns or tuples; of data-sized windows at most."""
        found = self.time or self.count or self.most
        assert found is not None  # checked above
        return found

    @property
    def hop_(self) -> int:
        """In ns or tuples."""
        if self.hop is None:
            return self.length
        return self.hop if isinstance(self.hop, int) else duration_ns(self.hop)


class MaxRateFile(Strict):
    """At most so many tuples in any span of that length.

    tuples: how many
    per: the length of the span
    """

    tuples: Annotated[int, Field(ge=1, le=MOST_LIMITED, strict=True)]
    per: Duration


def _rate(value: object) -> object:
    """`100` is 100 per second."""
    if isinstance(value, int) and not isinstance(value, bool):
        return {"tuples": value, "per": "1 s"}
    return value


MaxRate = Annotated[MaxRateFile, BeforeValidator(_rate)]


class VariantFile(Strict):
    """An operator that runs in place of another one for tuples that are late: cheaper, with the same streams.

    run: the installed operator
    cost: worst CPU time of a call
    with: its parameters
    """

    run: str
    cost: Duration
    with_: dict[str, Any] = Field(default={}, alias="with")


class OnLateFile(Strict):
    """`drop`, `deliver`, or `{degrade: {run: NAME, cost: 0.2 ms}}`.

    degrade: the cheaper operator that runs for late tuples
    """

    degrade: VariantFile


class QueueFile(Strict):
    """Bytes that may wait before an operator.

    most: the most that wait
    on_full: what goes beyond that: what comes (`drop-tail`), or what is oldest (`front`)
    """

    most: Memory
    on_full: OnFull = "drop-tail"


def _late(value: object, validate: ValidatorFunctionWrapHandler) -> str | OnLateFile:
    if isinstance(value, Mapping):
        found: OnLateFile = validate(value)
        return found
    if value not in ("drop", "deliver"):
        raise MistakeError(
            "bad_on_late", f"is {value!r:.60}", "write drop, deliver, or {degrade: {run: NAME, cost: 0.2 ms}}"
        )
    return str(value)


class _DropOr:
    """In the JSON Schema, a value may also be one of these words."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"enum": ["drop", "deliver"]}, handler(core)]}


OnLate = Annotated[OnLateFile, WrapValidator(_late), _DropOr()]


class OverloadOfOperator(Strict):
    """What an operator may say beside what it runs.

    window: it runs on the tuples of windows
    on: the field in which pairs of a join agree, or a field for each input
    on_late: a tuple that is too late for every output is run all the same (`deliver`), shed (`drop`), or run by a
        cheaper operator
    queue: what may wait before it; as the node's memory allows, unless given
    """

    window: WindowFile | None = None
    on: On | None = None
    on_late: OnLate | None = None
    queue: QueueFile | None = None

    @property
    def late(self) -> OnLateFile | str | None:
        """A word, or a cheaper operator."""
        return self.on_late


class OverloadOfSource(Strict):
    """What a source may say beside how its tuples arrive.

    max_rate: at most so many tuples go on: `{tuples, per}`, or a number a second
    value: an expression over fields: beyond `max_rate` what is worth least goes first; without it the latest
    on_full: while the node's queues are full the source refuses, or admits and sheds what comes (`drop-tail`) or what
        is oldest (`front`)
    """

    max_rate: MaxRate | None = None
    value: Any = None
    on_full: Literal["refuse", "drop-tail", "front"] = "refuse"

    @field_validator("max_rate", mode="before")
    @classmethod
    def _some(cls, value: object) -> object:
        if value == 0 and value is not False:
            raise MistakeError(
                "no_tuple_passes", f"is {value}", "no tuple could pass: write 1 or more, or {tuples: 100, per: 1 s}"
            )
        if value is not None and not isinstance(value, Mapping) and (type(value) is not int or value < 0):
            raise MistakeError(
                "bad_max_rate", f"is {value!r:.60}", "write how many a second, like 100, or {tuples: 100, per: 1 s}"
            )
        return value

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if self.value is not None and self.max_rate is None:
            raise MistakeError(
                "value_without_max_rate",
                "has a 'value' without a 'max_rate': nothing would go",
                "add 'max_rate: {tuples: 100, per: 1 s}', or remove 'value:'",
            )
        return self
