"""Every key of the three files has a description, which stands in the docstring of its model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coordinator.spec.files import schema
from coordinator.spec.files.connector_file import FromFile
from coordinator.spec.files.query_file import OperatorFile
from coordinator.spec.files.schema import keys_of, summary_of


def _models(kind: schema.Kind) -> dict[str, Any]:
    document = json.loads(schema.schema_text(kind))
    return {**document.get("$defs", {}), kind: document}


@pytest.mark.parametrize("kind", schema.MODELS)
def test_every_key_has_a_description(kind: schema.Kind) -> None:
    models = _models(kind)
    assert all(model["description"] and "\n" not in model["description"] for model in models.values())
    keys = [(name, key, each) for name, model in models.items() for key, each in model.get("properties", {}).items()]
    assert len(keys) > 10
    assert [(name, key) for name, key, each in keys if not each.get("description")] == []


def test_a_docstring_describes_its_keys_and_those_of_what_it_inherits_from() -> None:
    assert summary_of(FromFile) == "A place that messages come from."
    assert keys_of(FromFile)["stamp"].endswith("without it, a message originates as it arrives")
    assert keys_of(FromFile)["qos"] == "of MQTT; 0 unless given"
    assert {"window", "in", "with", "cost"} <= keys_of(OperatorFile).keys()


@pytest.mark.parametrize("kind", schema.MODELS)
def test_a_description_is_of_a_key_that_is_there(kind: schema.Kind) -> None:
    model = schema.MODELS[kind]
    names = {each.alias or name for name, each in model.model_fields.items()}
    assert keys_of(model).keys() == names
