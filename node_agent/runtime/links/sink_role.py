"""An accepted connection of a client that listens to an output."""

from collections import deque

from node_agent.host.trace_ring import Row
from node_agent.link.large_tuple import LargeTuple
from node_agent.link.limits import (
    BATCH_OVERHEAD_BYTES,
    CHUNK_BYTES,
    MAX_BATCH_TUPLES,
    MAX_FRAME_BYTES,
    TUPLE_OVERHEAD_BYTES,
    LinkError,
)
from node_agent.runtime.links import hello_refusals
from node_agent.runtime.links.roles import Context, answer
from node_agent.runtime.links.socket_connection import Connection
from node_agent.wire import frames

SINK_TUPLES, SINK_BYTES = 4096, 1 << 20  # kept for a slow sink; the oldest are dropped
SINK_WRITE_BYTES = 1 << 18
MOST_RESUMED = 1 << 62  # numbers of results go on from there, and fit 63 bits


class SinkRole:
    """A client that listens to one output. What it is too slow for is dropped, the oldest first; the facts stand."""

    def __init__(self, context: Context, connection: Connection, hello: frames.Hello) -> None:
        if hello.resume_after >= MOST_RESUMED:
            raise LinkError("hello_fields", f"a sink that has had {hello.resume_after} results")
        self.context, self.connection = context, connection
        self.name, self.boot = hello.peer, hello.boot
        self.output_name = hello.peer.partition(":")[2]
        found = context.plans.output(self.output_name)
        if found is None:
            deployed_here = context.plans.by_hash.values()
            why = hello_refusals.output(self.output_name, context.shared.name, deployed_here)
            raise LinkError("output_unknown", why)
        deployed, output = found
        self.clock = context.clock_of(hello)
        self.codec_name = deployed.codecs[output.stream].name
        self._waiting: deque[bytes | LargeTuple] = deque()
        self._offset = 0  # how much of the first one has left, where it is large
        self._most_bytes = hello.most_bytes  # of a payload that comes in chunks
        self._bytes = 0
        self._next = hello.resume_after + 1  # link_seq of the first that waits
        connection.write(answer(context.shared, plan=deployed.plan.hash, codec=self.codec_name))

    def takes(self, data: bytes | LargeTuple) -> bool:
        """Whether it can be sent there at all."""
        if isinstance(data, bytes) or data.size <= self._most_bytes:
            return True
        return not self._most_bytes and len(data) + TUPLE_OVERHEAD_BYTES <= MAX_FRAME_BYTES - BATCH_OVERHEAD_BYTES

    def deliver(self, data: bytes | LargeTuple) -> None:
        """An encoded tuple. One that is large may wait alone, however large it is."""
        self._waiting.append(data)
        self._hold(data)
        while self._holds_too_much():
            place = 1 if self._offset else 0  # what has begun is sent to its end
            dropped = self._waiting[place]
            del self._waiting[place]
            self._hold(dropped, -1)
            self._next += 1
            self.context.shared.counters["sink_tuples_dropped"] += 1

    def _holds_too_much(self) -> bool:
        """The latest one is kept where it is large, and what has begun to leave."""
        count, load = len(self._waiting), self.context.backpressure
        if not count or count <= (1 if self._offset else 0) + isinstance(self._waiting[-1], LargeTuple):
            return False
        return count > SINK_TUPLES or self._bytes > SINK_BYTES or load.sinks_full

    def _hold(self, data: bytes | LargeTuple, sign: int = 1) -> None:
        change, load = sign * len(data), self.context.backpressure
        self._bytes += change
        if isinstance(data, bytes):  # large ones are few, and counted elsewhere, each once
            load.held_bytes += change
            load.sink_bytes += change

    def close(self) -> None:
        """The reader has gone."""
        while self._waiting:
            self._hold(self._waiting.popleft(), -1)

    def flush(self, at_ns: int) -> bool:
        """Write what the socket takes, of a large tuple one chunk. True: flush again when others have had their
        turn."""
        while self._waiting and not self.connection.unwritten and not self.connection.closed:
            if isinstance(self._waiting[0], LargeTuple) and self._most_bytes:
                self._write_chunk(at_ns, self._waiting[0])
                return bool(self._waiting) and not self.connection.unwritten
            batch: list[bytes] = []
            size = 0
            while self._waiting and size < SINK_WRITE_BYTES and len(batch) < MAX_BATCH_TUPLES:
                first = self._waiting[0]
                if isinstance(first, LargeTuple) and (batch or self._most_bytes):
                    break
                size += len(first)
                self._hold(self._waiting.popleft(), -1)
                batch.append(first.whole() if isinstance(first, LargeTuple) else first)
            self.connection.write(frames.encode_batch(self._next, at_ns, batch))
            self._next += len(batch)
        return False

    def _write_chunk(self, at_ns: int, whole: LargeTuple) -> None:
        offset = self._offset
        if offset + CHUNK_BYTES < whole.size:
            self._offset = offset + CHUNK_BYTES
            self.connection.write(frames.encode_chunk(0, at_ns, whole, offset))
            return
        self._offset = 0
        self._waiting.popleft()
        self._hold(whole, -1)
        self.connection.write(frames.encode_chunk(self._next, at_ns, whole, offset))
        self._next += 1

    def on_batch(self, at_ns: int, batch: frames.Batch) -> None:
        """Not its business."""
        raise LinkError("frame_order", "a sink sends no tuples")

    def acknowledge(self, drained: bool) -> bool:
        """Nothing to acknowledge."""
        return True

    def taken_over(self) -> list[Row]:
        """Nothing."""
        return []

    @property
    def promised(self) -> bool:
        """Sinks are told of nothing that has to be promised."""
        return True
