"""The shape of what query.yaml says about guarantees with a confidence, as pydantic models."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from coordinator.errors import MistakeError
from coordinator.spec.files.quantities import Strict

MOST_DIGITS = 9  # of a percentage: the least share that may be late is far above what floats confuse
_PERCENT = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*%\s*")


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
    """`confidence`: the share of an output's results that is to be within the bound, given that costs keep the
    distribution that they were measured with (`plan --costs`). `independent`: the costs of two instances have nothing
    to do with each other, so bounds may count on sums of them."""

    confidence: Confidence
    independent: bool = False
