"""What one drain of the sockets brings is stamped after it was read: no tuple is younger than its own arrival."""

import os
import socket
import time
from pathlib import Path
from typing import Any

from node_agent.host.clock import clock_domain, new_boot, now_ns
from node_agent.runtime.in_process import in_process
from node_agent.wire import frames
from protos import records
from tests.node_agent.runtime.test_runtime_loop import _plan


def _batch(first: int) -> bytes:
    at_ns = now_ns()
    return frames.encode_batch(first, at_ns, [frames.encode_tuple((0, 0, 0, 0, at_ns, at_ns), 0, 0, b"1")])


class Slow:
    """What is served first in a drain; in the meantime the source sends another tuple."""

    def __init__(self, descriptor: int, source: socket.socket) -> None:
        self.descriptor, self.source = descriptor, source

    def on_ready(self, at_ns: int, mask: int) -> None:
        os.read(self.descriptor, 1)
        self.source.sendall(_batch(2))
        time.sleep(0.01)  # until the kernel has it; without, the test says nothing, but does not fail


class First:
    """An epoll that names one descriptor before the others."""

    def __init__(self, epoll: Any, descriptor: int) -> None:
        self.epoll, self.descriptor = epoll, descriptor

    def poll(self, seconds: float, most: int) -> list[tuple[int, int]]:
        return sorted(self.epoll.poll(seconds, most), key=lambda ready: ready[0] != self.descriptor)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.epoll, name)


def test_a_tuple_that_comes_while_other_sockets_are_read_does_not_come_from_the_future(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with in_process(_plan(), tmp_path) as runtime, os.fdopen(reader), os.fdopen(writer, "wb", 0) as waker:
        assert runtime.acceptor is not None
        network: Any = runtime.shared.network
        with socket.create_connection(runtime.acceptor.address) as source:
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            source.sendall(frames.encode_hello(frames.Hello("source:in", clock_domain(), new_boot())))
            for _ in range(20):
                runtime.step(wait=False)
            network._epoll = First(network._epoll, reader)
            network.add(reader, Slow(reader, source))
            source.sendall(_batch(1))
            waker.write(b"x")
            time.sleep(0.01)
            for _ in range(20):
                runtime.step(wait=False)
            runtime.facts.publish()
            found = records.unpack_records(runtime.facts.ring.take(1 << 24))
            admitted = [record for record in found if isinstance(record, records.Admitted)]
            network.remove(reader)
    assert runtime.shared.counters["tuples_refused"] == 0
    assert [record.seq for record in admitted] == [1, 2]
    assert all(record.at_ns >= record.origin_hi_ns for record in admitted)
