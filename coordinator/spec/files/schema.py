"""JSON Schemas of query.yaml, cluster.yaml and costs.yaml, generated from the models that validate them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from coordinator.spec.files.cluster_file import ClusterFile
from coordinator.spec.files.costs_file import CostsFile
from coordinator.spec.files.query_file import QueryFile

FOLDER = Path(__file__).parent / "schemas"
Kind = Literal["query", "cluster", "costs"]
MODELS: dict[Kind, type[BaseModel]] = {"query": QueryFile, "cluster": ClusterFile, "costs": CostsFile}


def schema_text(kind: Kind) -> str:
    """The schema as indented JSON."""
    document = MODELS[kind].model_json_schema(by_alias=True)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}
    schema["title"] = f"{kind}.yaml of Shimekiri"
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def path(kind: Kind) -> Path:
    """Where the generated schema is kept."""
    return FOLDER / f"{kind}.schema.json"
