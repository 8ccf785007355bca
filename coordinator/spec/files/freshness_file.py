"""The shape of what query.yaml asks of the data behind a result, as pydantic models."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from coordinator.spec.files.quantities import DURATION_SCHEMA, Duration, Name, Strict


class FreshnessFile(Strict):
    """`limit`: of an age or a reaction. `without`: sources that do not count, like a map that is published once."""

    limit: Duration
    without: Annotated[list[Name], Field(min_length=1)] | None = None


def _limit(value: object) -> object:
    """`age: 300 ms` is short for `age: {limit: 300 ms}`."""
    return value if isinstance(value, dict) else {"limit": value}


class _DurationOr:
    """In the JSON Schema, a value may also be a duration."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [DURATION_SCHEMA, handler(core)]}


FreshnessLimit = Annotated[FreshnessFile, BeforeValidator(_limit), _DurationOr()]
