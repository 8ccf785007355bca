"""Large payloads through real agents: arrays, pictures, tables."""

import socket
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, Self

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
        if codec == "bytes":  # also where it is larger than anything that the plan takes
            refused = source.send(bytes(8 << 20))
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


class Cutter:
    """Stands between two agents, and cuts the connection after so many bytes of one direction; each cut once."""

    def __init__(self, port: int, cuts: list[int]) -> None:
        self._port, self._cuts = port, cuts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:{1}".format(*self._listener.getsockname())
        self.carried: list[int] = []  # of each connection
        self._threads = [Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                try:
                    far = socket.create_connection(("127.0.0.1", self._port))
                except OSError:  # it has not started yet
                    near.close()
                    continue
                number = len(self.carried)
                self.carried.append(0)
                most = self._cuts[number] if number < len(self._cuts) else 1 << 62
                for one, other, limit in ((near, far, most), (far, near, 1 << 62)):
                    Thread(target=self._carry, args=(one, other, limit, number), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket, limit: int, number: int) -> None:
        with suppress(OSError):
            while limit > 0 and (data := one.recv(min(limit, 1 << 14))):
                other.sendall(data)
                limit -= len(data)
                self.carried[number] += len(data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def test_an_array_that_is_cut_off_comes_again_whole_and_once(tmp_path: Path) -> None:
    port_a, port_b = free_ports(2)
    with Cutter(port_b, [3_000_000, 8_000_000, 40_000]) as cutter:
        routes = ((0, "a", f"127.0.0.1:{port_a}"), (1, "b", cutter.address))
        for plan in two_nodes(8 << 20):
            store(tmp_path / plan.node, plan, routes)
        image = np.random.default_rng(2).integers(0, 255, 8 << 20, np.uint8)
        with (
            Agent(tmp_path / "a", "--data", f"127.0.0.1:{port_a}", name="a") as a,
            Agent(tmp_path / "b", "--data", f"127.0.0.1:{port_b}", name="b") as b,
            Sink(b.data, "out", timeout=30) as sink,
            Sink(b.data, "told", timeout=30) as small_sink,
            Source(a.data, "in", timeout=30) as source,
            Source(a.data, "small", timeout=30) as small,
        ):
            assert isinstance(source.send(image), Admitted)
            for value in range(20):
                assert isinstance(small.send(value), Admitted)
            assert np.array_equal(next(sink).value, image)
            assert sorted(next(small_sink).value for _ in range(20)) == list(range(20))
            assert a.stop() == 0 and b.stop() == 0
        assert len(cutter.carried) == 4 and cutter.carried[0] >= 3_000_000
    at_a, at_b = kinds(spooled(tmp_path / "a")), kinds(spooled(tmp_path / "b"))
    assert at_a["SENT"] == at_b["RECEIVED"] == at_b["OUTPUT"] == 21
    assert at_a["GAVE_UP"] == at_a["LOST"] == at_b["LOST"] == 0
