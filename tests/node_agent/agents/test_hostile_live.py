"""A real runtime against hostile bytes: frames that are none, valid ones that make no sense, storms of connections.

The same process serves at the end, its descriptors do not leak, and tuples that came in between are accounted for.
"""

import contextlib
import os
import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import grpc
import pytest

from node_agent.client.client import Admitted, Sink, Source
from node_agent.wire.frames import HEAD, VERSION
from protos import agent_pb2, agent_pb2_grpc, plan_pb2
from protos import tuple_pb2 as pb
from tests.node_agent.live import HASH, Agent, chain_plan, kinds, spooled, store, until, written
from tests.tls_identities import Authority

LEAST, ROUNDS = 5, 10  # records of a kind; and so many times as many connections as mostly do
FAR = 1 << 62  # the limit of instants on the wire
STAMP = int(HASH[:16], 16)
ODD = [0, 1, 255, 65535, 65536, (1 << 31) - 1, (1 << 32) - 1, FAR, (1 << 63) - 1, (1 << 64) - 1]
RESET = struct.pack("ii", 1, 0)
PAYLOADS = [
    b"1", b'{"a":[1,2]}', b"", b"\xff\xfe", b"[" * 5000, b"[" * 70 + b"]" * 70, b"1e999", b"NaN", b"9" * 5000,
    b'"\\ud800"', b'"' + b"x" * 50_000 + b'"',
]  # fmt: skip


def _plan() -> plan_pb2.LocalPlan:
    """The chain, and a stream that comes from node b: into a join with the chain's result."""
    plan = chain_plan(peers=[{"index": 1, "name": "b", "latency_ns": 1}])
    for id_, name in ((3, "far"), (4, "O2"), (5, "J")):
        plan.streams.add(id=id_, name=name, codec="json", deadline_ns=10**9, marked=id_ == 3)
    plan.streams[2].producers.append(1)
    plan.operators.add(id=2, name="O2", run="pass", inputs=[3], output=4, hang_ns=10**9)
    plan.operators.add(id=3, name="J", run="join", inputs=[2, 4], output=5, join=True, hang_ns=10**9)
    plan.units.add(id=2, operators=[2], sub_deadline_ns=10**8, deadline_ns=10**9, exits=[4])
    plan.units.add(id=3, operators=[3], sub_deadline_ns=10**8, deadline_ns=10**9, exits=[5])
    plan.outputs.add(id=2, name="joined", stream=5, deadline_ns=10**9)
    return plan


class Fuzz:
    """Hostile connections from one seed."""

    def __init__(self, seed: int, agent: Agent) -> None:
        self.random = random.Random(seed)
        self.address = ("127.0.0.1", agent.ready["data"])
        self.clocks = ["clock", agent.ready["clock"]]
        self.first = 1

    def instant(self) -> int:
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        if self.random.random() < 0.7:
            return now - 10**6
        return self.random.choice([0, -FAR, FAR, FAR - self.random.getrandbits(61), FAR + 1])

    def tuple(self, stream: int) -> pb.Tuple:
        odd, choose = self.random.randrange(40), self.random.choice
        lo_ns = self.instant()
        absent = stream == 3 and self.random.random() < 0.1
        return pb.Tuple(
            source=choose(ODD) % (1 << 32) if odd == 1 else choose([0, 1, 65535]),
            epoch=choose(ODD) % (1 << 32) if odd == 2 else choose([0, 1, 65535]),
            seq=choose(ODD),
            plan=choose(ODD) if odd == 3 else STAMP,
            stream=choose([0, 1, 2, 65535]) if odd == 4 else stream,
            ordinal=choose([0, 0, 1, 1 << 24, (1 << 32) - 1]),
            origin_lo_ns=lo_ns,
            origin_hi_ns=self.instant() if odd == 5 else lo_ns,
            payload=b"" if absent else choose([b"2", choose(PAYLOADS)]),
            absent=absent,
        )

    def frame(self, stream: int) -> pb.Frame:
        kind, choose = self.random.random(), self.random.choice
        if kind < 0.7:
            count = choose([1, 1, 1, 2, 5, 50])
            first = self.first if self.random.random() < 0.97 else choose(ODD)
            self.first += count
            tuples = [self.tuple(stream) for _ in range(count)]
            return pb.Frame(batch=pb.Batch(first=first, sent_ns=self.instant(), tuples=tuples))
        if kind < 0.9:
            instants = {"t0_ns": self.instant(), "t1_ns": self.instant(), "t2_ns": self.instant()}
            return pb.Frame(probe=pb.Probe(id=choose([1, 2, 3]), **instants))
        if kind < 0.95:
            return pb.Frame(ack=pb.Ack(upto=choose(ODD)))
        return choose(
            [pb.Frame(), pb.Frame(refused=pb.Refused(why="x" * 3000)), pb.Frame(hello=pb.Hello(version=VERSION))]
        )

    def bytes(self) -> Iterator[bytes]:
        """What one connection sends, piece by piece."""
        kind, choose = self.random.random(), self.random.choice
        if kind < 0.1:
            yield self.random.randbytes(self.random.randrange(1, 2000))
            return
        peer = choose(["source:in", "source:in", "node:b", "node:b", "sink:out", "node:" + "x" * 300, "sink:", "\n:"])
        stream, self.first = 3 if peer == "node:b" else 0, 1
        boot, drift = choose([1, 2, self.random.getrandbits(64)]), choose([50, 50, 100_000, 100_001])
        hello = pb.Hello(
            version=VERSION, peer=peer, clock=choose(self.clocks), boot=boot, drift_ppm=drift, resume_after=choose(ODD)
        )  # fmt: skip
        for frame in (pb.Frame(hello=hello), *(self.frame(stream) for _ in range(self.random.randrange(8)))):
            data = bytearray(frame.SerializeToString())
            check = crc32(data) if self.random.random() < 0.5 else None  # else what is damaged gets further
            if self.random.random() < 0.03 and data:
                data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
            yield HEAD.pack(len(data), crc32(data) if check is None else check) + data

    def connect(self) -> socket.socket:
        """One hostile connection, still open."""
        end = socket.create_connection(self.address, 10)
        try:
            for data in self.bytes():
                end.sendall(data)
        except OSError:  # refused meanwhile
            pass
        if self.random.random() < 0.3:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        return end


def _descriptors(pid: int) -> int:
    """How many the process keeps open. It opens files for an instant as well, so the least of several looks counts."""
    counts = []
    for _ in range(5):
        counts.append(len(os.listdir(f"/proc/{pid}/fd")))
        time.sleep(0.005)
    return min(counts)


def _least(state: Path) -> int:
    """Of the kinds of records that show how far frames get, the rarest one's count. How many get there depends on which
    connections are reset before they were read."""
    count = kinds(written(state))
    return min(count[kind] for kind in ("ADMITTED", "RECEIVED", "LOST", "RAN"))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_runtime_survives_hostile_frames(tmp_path: Path, seed: int) -> None:
    store(tmp_path / "s", _plan())
    with Agent(tmp_path / "s") as agent:
        runtime, fuzz, kept = agent.runtime(), Fuzz(seed, agent), list[Any]()
        before = _descriptors(runtime)
        for _ in range(ROUNDS):
            for _ in range(1200):
                kept.append(fuzz.connect())
                if len(kept) > 20:
                    kept.pop(fuzz.random.randrange(len(kept))).close()
            if _least(tmp_path / "s") > LEAST:
                break
        for end in kept:
            end.close()
        until(lambda: _descriptors(runtime) == before)
        with Source(agent.data, "in") as source, Sink(agent.data, "out") as sink:
            assert isinstance(source.send("alive"), Admitted), f"seed {seed}"
            assert sink.get(10).value == "alive"
        assert agent.runtime() == runtime, f"seed {seed}"
        assert agent.stop() == 0
        assert "Traceback" not in agent.log.read_text()
    found = kinds(spooled(tmp_path / "s"))
    assert _least(tmp_path / "s") > LEAST, (seed, found)


def test_a_storm_of_connections_leaks_nothing(tmp_path: Path) -> None:
    """Sinks with results under way, sources and nodes that come, reset and come again; descriptors are reused."""
    store(tmp_path / "s", _plan())
    with Agent(tmp_path / "s") as agent, Source(agent.data, "in") as source:
        runtime = agent.runtime()
        before = _descriptors(runtime)
        for n in range(100):
            ends = [socket.create_connection(("127.0.0.1", agent.ready["data"]), 10) for _ in range(3)]
            for end, peer in zip(ends, ("sink:out", "source:in", "node:b"), strict=True):
                hello = pb.Frame(hello=pb.Hello(version=VERSION, peer=peer, boot=n + 1)).SerializeToString()
                end.sendall(HEAD.pack(len(hello), crc32(hello)) + hello)
                end.settimeout(10)
                assert end.recv(65536)
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            assert isinstance(source.send(n), Admitted)
            for end in ends:
                end.close()
        until(lambda: _descriptors(runtime) == before)
        assert agent.runtime() == runtime and isinstance(source.send("x"), Admitted)
        agent.stop()


@pytest.mark.parametrize("tls", [False, True])
def test_silent_ones_from_an_address_each_lock_nobody_out(tmp_path: Path, tls: bool) -> None:
    client, options = None, list[str]()
    if tls:
        authority = Authority(tmp_path / "certs")
        client, options = authority.client(), ["--tls", str(authority.node("a"))]
    store(tmp_path / "s", chain_plan())
    with Agent(tmp_path / "s", *options) as agent, contextlib.ExitStack() as stack:
        for n in range(80):
            end = socket.create_connection(("127.0.0.1", agent.ready["data"]), 20, (f"127.0.1.{n + 1}", 0))
            stack.callback(end.close)
        with Source(agent.data, "in", tls=client, timeout=20) as source:
            assert isinstance(source.send(1), Admitted)
        assert agent.stop() == 0
    assert "Traceback" not in agent.log.read_text()


def test_silent_connections_do_not_keep_control(tmp_path: Path) -> None:
    """More than there are descriptors: the trace goes on, and calls are answered when the silent ones' time is over."""
    store(tmp_path / "s", chain_plan())
    agent = Agent(tmp_path / "s", under=("sh", "-c", 'ulimit -S -n 320; exec "$@"', "sh"))  # a service has 1024
    silent = []
    with agent, Source(agent.data, "in") as source:
        try:
            for _ in range(400):
                end = socket.socket()
                end.setblocking(False)
                end.connect_ex(("127.0.0.1", agent.ready["control"]))
                silent.append(end)
            (control,) = (pid for pid in agent.children() if pid != agent.runtime())
            until(lambda: _descriptors(control) > 200)
            assert isinstance(source.send(1), Admitted)
            with grpc.insecure_channel(f"127.0.0.1:{agent.ready['control']}") as channel:
                stub = agent_pb2_grpc.AgentStub(channel)  # type: ignore[no-untyped-call]
                assert stub.Health(agent_pb2.HealthRequest(), wait_for_ready=True, timeout=60).serving
        finally:
            for end in silent:
                end.close()
        assert agent.stop() == 0
    assert "Traceback" not in agent.log.read_text() and kinds(spooled(tmp_path / "s"))["ADMITTED"] == 1
