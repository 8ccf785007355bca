"""The operators that a plan may name: the built-in ones, and those that operators.json says the nodes have installed.

operators.json is written by the agent (`node-agent operators --json`). The planner never imports an operator: it
reads this list. builtin_operators.json is what agents of this release have built in. A plan names each operator with
its version and the hash of its code, and an agent that has another one refuses it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coordinator.error_codes import Code
from coordinator.errors import BadInputError, Mistake, Problem
from coordinator.spec.files.yaml_source import LARGEST_FILE, nearest
from protos import digests, json_shape
from protos.plan.catalog import Catalog as PlanCatalog
from protos.plan.catalog import Installed as PlanInstalled

AGAIN = "node-agent operators --operators FILE.py --json > operators.json"
Kind = Literal["map", "join", "union", "aggregate", "source", "iterator"]


class Parameter(BaseModel):
    """One parameter of `with:`."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, defer_build=True)
    type: Literal["number", "integer", "string", "boolean", "any"] = "any"
    default: Any = None
    required: bool = False


class Installed(BaseModel):
    """An operator's face, or that of a source: what nodes call (`source`) or iterate over (`iterator`), which has no
    inputs. `inputs`: port to type, in order; with `variadic` any number from two, of an aggregate any
    number of streams, all of them of the type of the one that is named."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, defer_build=True)
    version: str = "1"
    code: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    kind: Kind
    inputs: dict[str, str]
    side: dict[str, str] = {}
    output: str
    parameters: dict[str, Parameter] = Field(default={}, alias="with")
    variadic: bool = False
    open: bool = False  # takes any parameters; who reads them checks them


class OperatorsFile(BaseModel):
    """operators.json."""

    model_config = ConfigDict(extra="ignore", defer_build=True)
    shimekiri: Annotated[int, Field(ge=1, le=1)]
    codecs: list[str] = []
    fields: dict[str, dict[str, Any]] = {}
    operators: dict[str, Installed] = {}


AGGREGATE, SOURCE, ITERATOR = "aggregate", "source", "iterator"
_LISTED = json.loads(Path(__file__).with_name("builtin_operators.json").read_bytes())  # infra/generate.py writes it
BUILTIN: Mapping[str, Installed] = OperatorsFile.model_validate({"shimekiri": 1, "operators": _LISTED}).operators


@dataclass(frozen=True)
class Catalog:
    """What can be named in `run:` and `type:`; `complete` is false where no list was given, so that unknown names may
    pass. `fields`: of codecs of which they are known, by name: number, condition, text, list, bytes, or the fields of a
    message in it; null: not told."""

    operators: Mapping[str, Installed] = field(default_factory=lambda: dict(BUILTIN))
    codecs: frozenset[str] = frozenset({"json"})
    complete: bool = False
    sha256: str = ""
    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def document(self) -> PlanCatalog:
        """For plan.json, without the built-in ones."""
        listed = {name: one for name, one in sorted(self.operators.items()) if name not in BUILTIN}
        return PlanCatalog(
            complete=self.complete,
            codecs=tuple(sorted(self.codecs)),
            fields=self.fields,
            operators={
                name: json_shape.read(PlanInstalled, one.model_dump(mode="json", by_alias=True))
                for name, one in listed.items()
            },
        )

    def unknown(self, name: str) -> str:
        """The end of a sentence about an operator that is not listed: the nearest, or how the list is brought up to
        date."""
        told = nearest(name, self.operators)
        return told if told.endswith("?") else f"{told}; if it is new: {AGAIN}"

    def wrong_parameters(self, name: str, given: Mapping[str, Any]) -> list[Mistake]:
        """What is wrong with `with:` of operator `name`."""
        known = self.operators[name].parameters
        if self.operators[name].open:
            return []
        wrong = [
            Mistake("unknown_parameter", f"parameter '{key}' of {name} is unknown", nearest(key, known))
            for key in given
            if key not in known
        ]
        wrong += [
            Mistake("missing_parameter", f"parameter '{key}' of {name} is missing", "add it under 'with:'")
            for key, parameter in known.items()
            if parameter.required and key not in given
        ]
        for key, value in given.items():
            if key in known and not _fits(value, known[key].type):
                text = f"parameter '{key}' of {name} is {value!r}"
                wrong.append(Mistake("parameter_type", text, f"write one of type {known[key].type}"))
        if name == "filter" and not wrong:
            keep, of = given.get("keep", 1), given.get("of", 2)
            if not 0 <= keep <= of or of < 1:
                text = f"filter cannot keep {keep} of {of}"
                wrong.append(Mistake("bad_filter", text, "write 0 <= keep <= of with of >= 1"))
        if name == "busy" and not wrong and given["cpu_us"] < 0:
            wrong.append(Mistake("negative_time", "busy cannot use a negative time", "write cpu_us >= 0"))
        return wrong


def _fits(value: Any, wanted: str) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return False
    fits = {
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, (int, float)) and not isinstance(value, bool),
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "any": _is_json(value),
    }
    return fits[wanted]


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def load(path: Path, file: Path, line: int) -> Catalog:
    """Reads operators.json. Raises BadInputError at the line of the cluster file that names it."""

    def refuse(code: Code, text: str) -> BadInputError:
        mistake = Mistake(code, f"operators: '{path}' {text}", f"write it with '{AGAIN}'")
        return BadInputError([Problem(replace(mistake, subject="operators"), str(file), line)])

    try:
        raw = path.read_bytes()
        if len(raw) > LARGEST_FILE:
            raise refuse("too_large", f"has {len(raw)} bytes, more than {LARGEST_FILE}")
        parsed = OperatorsFile.model_validate(json.loads(raw))
    except OSError as error:
        raise refuse("unreadable", f"cannot be read ({error.strerror or error})") from error
    except ValidationError as error:
        first = error.errors()[0]
        if first["loc"] == ("shimekiri",) and isinstance(first["input"], int):
            raise refuse("other_version", f"is of version {first['input']}, this release reads version 1") from error
        raise refuse(
            "wrong_shape", f"has a wrong {'.'.join(str(part) for part in first['loc'])} ({first['msg']})"
        ) from error
    except (ValueError, RecursionError) as error:
        raise refuse("not_json", f"is not JSON ({error})") from error
    unknown = sorted(name for name, one in parsed.operators.items() if not one.code)
    if unknown:
        raise refuse("no_code_hash", f"does not say which code {unknown[0]} has, as an earlier release wrote it")
    operators = {**parsed.operators, **BUILTIN}
    codecs = frozenset({"json", *parsed.codecs})
    return Catalog(operators, codecs, complete=True, sha256=digests.sha256(raw).hexdigest(), fields=parsed.fields)
