"""JSON Schemas of query.yaml, cluster.yaml and costs.yaml, generated from the models that validate them.

Descriptions of keys stand in the docstrings of the models: a line `key: what it is` below the summary.
"""

from __future__ import annotations

import json
import re
from inspect import cleandoc
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from coordinator.spec.files.cluster_file import ClusterFile
from coordinator.spec.files.costs_file import CostsFile
from coordinator.spec.files.query_file import QueryFile

FOLDER = Path(__file__).parent / "schemas"
Kind = Literal["query", "cluster", "costs"]
LINE = re.compile(r"^(\w+): (.+(?:\n {2,}.+)*)$", re.MULTILINE)
MODELS: dict[Kind, type[BaseModel]] = {"query": QueryFile, "cluster": ClusterFile, "costs": CostsFile}


class _Described(GenerateJsonSchema):
    """Schemas with the descriptions of the models' keys."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        _describe(schema["cls"], made)
        return made


def schema_text(kind: Kind) -> str:
    """The schema as indented JSON."""
    document = MODELS[kind].model_json_schema(by_alias=True, schema_generator=_Described)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}
    schema["title"] = f"{kind}.yaml of Shimekiri"
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def path(kind: Kind) -> Path:
    """Where the generated schema is kept."""
    return FOLDER / f"{kind}.schema.json"


def summary_of(model: type) -> str:
    """What stands before the keys."""
    return " ".join(cleandoc(model.__doc__ or "").partition("\n\n")[0].split())


def keys_of(model: type) -> dict[str, str]:
    """By key as it is written in the file; of classes that it inherits from as well."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        keys = cleandoc(each.__dict__.get("__doc__") or "").partition("\n\n")[2]
        found |= {key: " ".join(about.split()) for key, about in LINE.findall(keys)}
    return found


def _describe(model: type, schema: dict[str, Any]) -> None:
    """Puts the descriptions into the JSON Schema of the model."""
    keys = keys_of(model)
    schema["description"] = summary_of(model)
    for key, value in schema.get("properties", {}).items():
        if key in keys:
            value["description"] = keys[key]
