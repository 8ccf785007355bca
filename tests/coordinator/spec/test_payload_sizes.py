"""`max_size:` of sources and operators: what may be said, and where it is too much."""

from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.spec import graph
from coordinator.spec.catalog import Catalog
from coordinator.spec.checks import payload_checks, query_checks
from coordinator.spec.files.quantities import LARGEST_PAYLOAD
from coordinator.spec.query_reader import load
from node_agent.link import limits
from node_agent.operators.codecs import LARGE

QUERY = """shimekiri: 1
query: camera
sources:
  image: {{at: a, type: {type}, {size} arrival: {{burst: 1, period: 100 ms}}}}
operators:
  O1: {{run: pass, in: image, cost: 1 ms}}
outputs:
  seen: {{from: O1, at: a, deadline: 50 ms}}
"""


def written(folder: Path, type_: str, size: str) -> Path:
    path = folder / "query.yaml"
    path.write_text(QUERY.format(type=type_, size=size))
    return path


def test_what_passes_a_payload_on_is_as_large(tmp_path: Path) -> None:
    query = load(written(tmp_path, "numpy", "max_size: 8 MiB,"))
    query_checks.check(query, None)
    assert graph.payload_bytes(query, Catalog()) == {"image": 8 << 20, "O1": 8 << 20}


def test_without_a_size_nothing_is_declared(tmp_path: Path) -> None:
    query = load(written(tmp_path, "bytes", ""))
    assert graph.payload_bytes(query, Catalog()) == {"image": 0, "O1": 0}


@pytest.mark.parametrize(("type_", "size"), [("numpy", "9 MiB"), ("json", "2 MiB")])
def test_a_size_that_is_too_large_is_refused(tmp_path: Path, type_: str, size: str) -> None:
    with pytest.raises(BadInputError) as refused:
        query_checks.check(load(written(tmp_path, type_, f"max_size: {size},")), None)
    assert [each.mistake.code for each in refused.value.problems] == ["payload_too_large"]


def test_both_sides_know_the_same_limits() -> None:
    assert LARGEST_PAYLOAD == limits.MAX_MESSAGE_BYTES
    assert payload_checks.LARGEST_PARSED == limits.MAX_PAYLOAD_BYTES
    assert set(payload_checks.LARGE_TYPES) == set(LARGE)
