"""The shapes of what an output in query.yaml asks beside a deadline, as pydantic models: freshness, a confidence."""

import re
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from coordinator.errors import MistakeError
from coordinator.spec.files.quantities import DURATION_SCHEMA, Duration, Name, Strict

MOST_DIGITS = 9  # of a percentage: the least share that may be late is far above what floats confuse
_PERCENT = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*%\s*")


class FreshnessFile(Strict):
    """A limit of an age or a reaction.

    limit: the longest
    without: sources that do not count, like a map that is published once
    """

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


def _percent(text: object) -> Fraction:
    """`99.9 %` as 999/1000, exactly."""
    match = _PERCENT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise MistakeError("no_percentage", f"is '{text}', not a percentage", "write it like '99.9 %'")
    value = Fraction(Decimal(match[1])) / 100
    if value >= 1:
        mend = "write one below 100 %, or remove 'guarantee:': without it bounds hold for every result"
        raise MistakeError("confidence_of_all", f"is '{text}': measurements say nothing about every result", mend)
    if value <= 0:
        raise MistakeError("no_confidence", f"is '{text}', which promises nothing", "write one like '99.9 %'")
    if len(match[1].replace(".", "").lstrip("0")) > MOST_DIGITS:
        raise MistakeError("too_fine", f"'{text}' has more than {MOST_DIGITS} digits", "round it")
    return value


PERCENT_SCHEMA = {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*%\s*$", "examples": ["99.9 %"]}
Confidence = Annotated[Fraction, BeforeValidator(_percent), WithJsonSchema(PERCENT_SCHEMA)]


class GuaranteeFile(Strict):
    """A bound that holds for a share of results.

    confidence: the share of an output's results that is to be within the bound, given that costs keep the distribution
        that they were measured with (`plan --costs`)
    independent: the costs of two instances have nothing to do with each other, so bounds may count on sums of them
    """

    confidence: Confidence
    independent: bool = False
