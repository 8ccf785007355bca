"""The shape of what query.yaml says about fusing inputs, and about how old side inputs may be, as pydantic models."""

from typing import Annotated, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from coordinator.errors import MistakeError
from coordinator.spec.files.quantities import Duration, DurationOrZero, Name, Strict

ALL = "all"


class SyncFile(Strict):
    """When an operator runs on tuples of several inputs, which need not be of one lineage. One of `on`, `within` and
    `each`.

    on: `all`: every input has come since the last time, the latest of each counts
    within: of every input there is a tuple, and their origins are at most so far apart
    each: every tuple as it comes, with lists of all others that are at most so far from it
    timeout: so long after the first of a set came it runs on what is there, and None for the others
    keep: tuples of each input that may wait for `within` and `each`; 16 unless given
    """

    on: Literal["all"] | None = None
    within: DurationOrZero | None = None
    each: DurationOrZero | None = None
    timeout: Duration | None = None
    keep: Annotated[int, Field(ge=1, le=1024, strict=True)] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(given is not None for given in (self.on, self.within, self.each)) != 1:
            raise MistakeError(
                "sync_kind",
                "needs one of 'on: all', 'within:' and 'each:'",
                "write {on: all, timeout: 50 ms}, {within: 20 ms, timeout: 50 ms} or {each: 20 ms}",
            )
        if self.each is not None and self.timeout is not None:
            raise MistakeError(
                "timeout_of_each", "has a 'timeout', but with 'each' nothing waits for others", "remove 'timeout:'"
            )
        if self.keep is not None and self.on is not None:
            raise MistakeError(
                "keep_without_within", "has a 'keep', but of each input only the latest waits", "remove 'keep:'"
            )
        return self


class SideFile(Strict):
    """A stream whose latest value an operator reads.

    from: the stream
    max_age: a value that may be older as the operator starts counts as absent
    absent: without a value the operator gets None (`none`), or the tuple is shed (`shed`)
    """

    from_: Name = Field(alias="from")
    max_age: Duration | None = None
    absent: Literal["none", "shed"] = "none"


def _stream(value: object) -> object:
    """`ego: O1` is short for `ego: {from: O1}`."""
    return {"from": value} if isinstance(value, str) else value


class _NameOr:
    """In the JSON Schema, a value may also be a name."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(core)]}


Side = Annotated[SideFile, BeforeValidator(_stream), _NameOr()]


def _word(value: object) -> object:
    """`all` is short for `{on: all}`."""
    return {"on": ALL} if value == ALL else value


class _AllOr:
    """In the JSON Schema, a value may also be that word."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"const": ALL}, handler(core)]}


Sync = Annotated[SyncFile, BeforeValidator(_word), _AllOr()]
