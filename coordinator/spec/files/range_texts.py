"""The shape of `may_change:` in both files: ranges within which `coordinator adapt` may change declared values."""

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from coordinator.errors import MistakeError

BETWEEN = ".."
EXAMPLE = "write it like '300..400 ms' or '1..8'"


def _range(value: object) -> str:
    if not isinstance(value, str) or value.count(BETWEEN) != 1:
        shown = f"'{value}'" if isinstance(value, (str, int, float)) else "no text"
        raise MistakeError("no_range", f"is {shown}, which is no range", EXAMPLE)
    return value


RangeText = Annotated[
    str,
    BeforeValidator(_range),
    WithJsonSchema({"type": "string", "pattern": r"^\s*\S.*\.\..*\S\s*$", "examples": ["300..400 ms", "1..8"]}),
]
MayChange = dict[str, RangeText]  # by SECTION.NAME.KEY

__all__ = ["BETWEEN", "EXAMPLE", "MayChange"]
