"""An accepted connection of a client that listens to an output."""

from collections import deque

from node_agent.host.trace_ring import TakenOver
from node_agent.link.limits import MAX_BATCH_TUPLES, LinkError
from node_agent.runtime.links import hello_refusals
from node_agent.runtime.links.roles import Context, answer
from node_agent.runtime.links.socket_connection import Connection
from node_agent.wire import frames

SINK_TUPLES, SINK_BYTES = 4096, 1 << 20  # kept for a slow sink; the oldest are dropped
SINK_WRITE_BYTES = 1 << 18


class SinkRole:
    """A client that listens to one output. What it is too slow for is dropped, the oldest first; the facts stand."""

    def __init__(self, context: Context, connection: Connection, hello: frames.Hello) -> None:
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
        self.codec = deployed.codecs[output.stream]
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._next = hello.resume_after + 1  # link_seq of the first that waits
        connection.write(answer(context.shared, plan=deployed.plan.hash, codec=self.codec.name))

    def deliver(self, data: bytes) -> None:
        """An encoded tuple."""
        self._waiting.append(data)
        self._hold(len(data))
        load = self.context.backpressure
        while len(self._waiting) > SINK_TUPLES or self._bytes > SINK_BYTES or (load.sinks_full and self._waiting):
            self._hold(-len(self._waiting.popleft()))
            self._next += 1
            self.context.shared.counters["sink_tuples_dropped"] += 1

    def _hold(self, more: int) -> None:
        self._bytes += more
        load = self.context.backpressure
        load.held_bytes += more
        load.sink_bytes += more

    def close(self) -> None:
        """The reader has gone."""
        self._hold(-self._bytes)
        self._waiting.clear()

    def flush(self, at_ns: int) -> None:
        """Write what the socket takes."""
        while self._waiting and not self.connection.unwritten and not self.connection.closed:
            batch: list[bytes] = []
            size = 0
            while self._waiting and size < SINK_WRITE_BYTES and len(batch) < MAX_BATCH_TUPLES:
                size += len(self._waiting[0])
                batch.append(self._waiting.popleft())
            self._hold(-size)
            self.connection.write(frames.encode_batch(self._next, at_ns, batch))
            self._next += len(batch)

    def on_batch(self, at_ns: int, batch: frames.Batch) -> None:
        """Not its business."""
        raise LinkError("frame_order", "a sink sends no tuples")

    def acknowledge(self, drained: bool) -> bool:
        """Nothing to acknowledge."""
        return True

    def taken_over(self) -> list[TakenOver]:
        """Nothing."""
        return []

    @property
    def promised(self) -> bool:
        """Sinks are told of nothing that has to be promised."""
        return True
