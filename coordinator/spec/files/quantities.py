"""Single values in the two files: durations, sizes, names; pydantic types that check and convert."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from coordinator.errors import MistakeError
from coordinator.units import duration_ns, show_bytes, size_bytes

LARGEST_PAYLOAD = 8 << 20
NAME = r"[A-Za-z_][A-Za-z0-9_-]*"


def _above_zero(text: object) -> int:
    value = duration_ns(text)
    if value <= 0:
        raise MistakeError("not_above_zero", f"is '{text}'", "it has to be longer than 0, like '30 ms'")
    return value


def _not_negative(text: object) -> int:
    value = duration_ns(text)
    if value < 0:
        raise MistakeError("negative", f"is '{text}'", "it cannot be negative")
    return value


def _memory(text: object) -> int:
    value = size_bytes(text)
    if value <= 0:
        raise MistakeError("not_above_zero", f"is '{text}'", "it has to be above 0, like '256 MiB'")
    return value


def _payload(text: object) -> int:
    value = _memory(text)
    if value > LARGEST_PAYLOAD:
        raise MistakeError("payload_too_large", f"is '{text}'", f"payloads have at most {show_bytes(LARGEST_PAYLOAD)}")
    return value


DURATION_SCHEMA = {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(ns|us|µs|ms|s|min|h)\s*$", "examples": ["30 ms"]}
Duration = Annotated[int, BeforeValidator(_above_zero), WithJsonSchema(DURATION_SCHEMA)]
DurationOrZero = Annotated[int, BeforeValidator(_not_negative), WithJsonSchema(DURATION_SCHEMA)]
Name = Annotated[str, Field(pattern=rf"^{NAME}$", max_length=64)]
Place = Annotated[str, Field(pattern=rf"^{NAME}(\.[0-9]+)?$", max_length=68)]  # a node, or one of its cores: a.1
Memory = Annotated[int, BeforeValidator(_memory), WithJsonSchema({"type": "string", "examples": ["256 MiB"]})]
Payload = Annotated[int, BeforeValidator(_payload), WithJsonSchema({"type": "string", "examples": ["2 MiB"]})]
Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
Pair = tuple[Name, Name]
Places = tuple[Place, Place]


class Strict(BaseModel):
    """Unknown keys, NaN and infinity are refused. Validators are built for the files that a command reads alone.
    Docstrings of models describe their keys, a line each (schema.py)."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)
