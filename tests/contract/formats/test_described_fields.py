"""What an agent says of the fields of protobuf messages is what the coordinator takes them for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2

from coordinator.spec.catalog import load
from coordinator.spec.expressions import MessageFields
from node_agent.operators.codecs import DESCRIBED, Codecs, described

QUERIES = Path(__file__).parents[3] / "sim_vehicles" / "queries"


def _plain(kind: Any, depth: int) -> Any:
    if not isinstance(kind, Mapping):
        return kind
    return {name: _plain(kind[name], depth - 1) for name in kind} if depth else None


def test_fields_are_told_alike() -> None:
    """Of every installed message, and of one that contains itself."""
    codecs = Codecs()
    known = codecs.fields()
    assert known and "json" not in known
    catalog = load(QUERIES / "operators.json", Path("cluster.yaml"), 1)
    assert catalog.fields == known
    file = descriptor_pb2.DescriptorProto.DESCRIPTOR
    assert described(file) == _plain(MessageFields(file), DESCRIBED)
    for one in (descriptor_pb2.FieldOptions, descriptor_pb2.UninterpretedOption):
        assert described(one.DESCRIPTOR) == _plain(MessageFields(one.DESCRIPTOR), DESCRIBED)


def test_a_message_in_itself_ends() -> None:
    deep: Any = descriptor_pb2.FileOptions.DESCRIPTOR
    found = described(deep, 1)
    assert found is not None and found["java_package"] == "text" and found["features"] is None
