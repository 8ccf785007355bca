"""Large payloads through real agents: arrays, pictures, tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from node_agent.client.client import Refused, Sink, Source
from protos import plan_pb2
from tests.node_agent.live import Agent, chain_plan, store


def carrying(codec: str, max_bytes: int, **changes: Any) -> plan_pb2.LocalPlan:
    plan = chain_plan(**changes)
    for stream in plan.streams:
        stream.codec, stream.max_bytes = codec, max_bytes
    return plan


VALUES = [
    ("bytes", b"\xff\xd8" * 1000),
    ("numpy", np.arange(60_000, dtype=np.float32).reshape(200, 300)),
    ("arrow", pa.table({"x": [1.0, 2.0], "label": ["a", "b"]})),
]


@pytest.mark.parametrize(("codec", "value"), VALUES)
def test_values_go_through_one_node_and_what_is_too_large_is_refused(tmp_path: Path, codec: str, value: Any) -> None:
    state = tmp_path / "a"
    store(state, carrying(codec, 300_000))
    with (
        Agent(state) as agent,
        Sink(agent.data, "out", timeout=10) as sink,
        Source(agent.data, "in") as source,
    ):
        assert not isinstance(source.send(value), Refused)
        found = next(sink).value
        assert type(found) is type(value)
        assert found.equals(value) if codec == "arrow" else np.array_equal(found, value)
        large = {"bytes": bytes(300_001), "numpy": np.zeros(300_001, np.uint8), "arrow": pa.table({"x": range(50_000)})}
        refused = source.send(large[codec])
        assert isinstance(refused, Refused) and "max_size" in refused.why
        assert not isinstance(source.send(value), Refused)
