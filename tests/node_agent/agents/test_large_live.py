"""Large payloads through real agents: arrays, pictures, tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from node_agent.client.client import Admitted, Refused, Sink, Source
from protos import plan_pb2
from tests.node_agent.live import Agent, chain_plan, free_ports, kinds, spooled, store

LONG_NS = 60 * 10**9


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


def two_nodes(max_bytes: int, memory_b: int = 64 << 20) -> tuple[plan_pb2.LocalPlan, plan_pb2.LocalPlan]:
    """Arrays: in@a -> O1@a -> O2@b -> out@b. Beside them, over the same link: small@a -> O3@b -> told@b."""

    def stream(id_: int, name: str, codec: str, producers: tuple[int, ...] = ()) -> dict[str, Any]:
        most = max_bytes if codec == "numpy" else 0
        return {
            "id": id_, "name": name, "codec": codec, "deadline_ns": LONG_NS, "producers": producers, "max_bytes": most
        }  # fmt: skip

    def part(node: str, index: int, **parts: Any) -> plan_pb2.LocalPlan:
        peer = {"index": 1 - index, "name": "b" if node == "a" else "a", "latency_ns": 10**6}
        policy = {"name": "edf", "largest_batch": 1}
        return plan_pb2.LocalPlan(
            version=1, query="q", node=node, index=index, policy=policy, peers=[peer], cpu=-1, **parts
        )  # fmt: skip

    def unit(number: int, exit_: int) -> dict[str, Any]:
        return {
            "id": number, "operators": [number], "sub_deadline_ns": 10**8, "deadline_ns": LONG_NS, "exits": [exit_]
        }  # fmt: skip

    def operator(number: int, stream_in: int, out: int) -> dict[str, Any]:
        return {"id": number, "name": f"O{number}", "run": "pass", "inputs": [stream_in], "output": out}

    a = part(
        "a", 0,
        streams=[stream(1, "in", "numpy"), stream(2, "O1", "numpy"), stream(4, "small", "json")],
        sources=[{"id": 1, "name": "in", "stream": 1}, {"id": 2, "name": "small", "stream": 4}],
        operators=[operator(1, 1, 2)], units=[unit(1, 2)],
        sends=[{"stream": 2, "peer": 1}, {"stream": 4, "peer": 1}],
    )  # fmt: skip
    b = part(
        "b", 1,
        streams=[
            stream(2, "O1", "numpy", (0,)), stream(3, "O2", "numpy"),
            stream(4, "small", "json", (0,)), stream(5, "O3", "json"),
        ],
        operators=[operator(2, 2, 3), operator(3, 4, 5)], units=[unit(2, 3), unit(3, 5)],
        outputs=[
            {"id": 1, "name": "out", "stream": 3, "deadline_ns": LONG_NS},
            {"id": 2, "name": "told", "stream": 5, "deadline_ns": LONG_NS},
        ],
        memory_bytes=memory_b,
    )  # fmt: skip
    return a, b


def test_an_array_of_8_mib_crosses_two_agents_while_small_tuples_go_between(tmp_path: Path) -> None:
    ports = free_ports(2)
    routes = ((0, "a", f"127.0.0.1:{ports[0]}"), (1, "b", f"127.0.0.1:{ports[1]}"))
    for plan in two_nodes(8 << 20):
        store(tmp_path / plan.node, plan, routes)
    a, b = (
        Agent(tmp_path / name, "--data", f"127.0.0.1:{port}", name=name) for name, port in zip("ab", ports, strict=True)
    )  # fmt: skip
    image = np.random.default_rng(1).integers(0, 255, (2048, 4096), np.uint8)
    assert image.nbytes == 8 << 20
    with (
        a, b,
        Sink(b.data, "out", timeout=30) as sink, Sink(b.data, "told", timeout=30) as small_sink,
        Source(a.data, "in", timeout=30) as source, Source(a.data, "small", timeout=30) as small,
    ):  # fmt: skip
        for number in range(3):
            image[0, 0] = number
            assert isinstance(source.send(image), Admitted)
            for value in range(20):
                assert isinstance(small.send(value), Admitted)
            assert np.array_equal(next(sink).value, image)
            assert [next(small_sink).value for _ in range(20)] == list(range(20))
        assert isinstance(source.send(image[::-1]), Admitted)
        assert np.array_equal(next(sink).value, image[::-1])
        assert a.stop() == 0 and b.stop() == 0
    at_a, at_b = kinds(spooled(tmp_path / "a")), kinds(spooled(tmp_path / "b"))
    assert at_a["SENT"] == at_b["RECEIVED"] == at_b["OUTPUT"] == 64
    assert at_a["GAVE_UP"] == at_a["LOST"] == at_b["LOST"] == 0
