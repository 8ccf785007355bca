"""A network that loses no byte, keeps order, and takes exactly as long as it is said to: streams in virtual time.

What one node writes at once is whole frames, so a wire carries frames. Where it has a bandwidth, or loses tuples, it
takes batches apart: tuples leave one after the other, and each arrives by itself. Everything else takes the latency
only. What has come is served in the order in which it came.
"""

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from node_agent.link.arrived import Arrived
from node_agent.ports import READABLE, WRITABLE, Handler
from node_agent.virtual import random_draws
from node_agent.virtual.cluster.loop_stack import LoopStack
from node_agent.virtual.event_queue import ARRIVED, DISPATCHED, TAKEN, Events
from node_agent.wire import frames

TUPLE_BYTES = 48  # of a tuple on the wire beside its payload, about
NS_BITS = 8 * 1_000_000_000

Reach = Callable[[str], "tuple[IdealListener, Cable, Cable]"]  # who listens there, the way to it, and the way back


class Cable(NamedTuple):
    """One way. bandwidth_bps 0: sending takes no time. loss: probability per tuple, drawn by loss_key and sender."""

    latency_ns: int = 0
    bandwidth_bps: int = 0
    loss: float = 0.0
    loss_key: int = 0
    sender: int = 0  # the node's number


class Traffic:
    """What all streams of a cluster share. under_way: pieces that have not arrived."""

    def __init__(self, events: Events) -> None:
        self.events, self.under_way = events, 0
        self.descriptors = count(3)


class _Wire:
    """Carries frames one way, in order."""

    __slots__ = ("_busy_until_ns", "_cable", "_deliver", "_plain", "_reader", "_traffic")

    def __init__(self, traffic: Traffic, cable: Cable, deliver: Callable[[int, bytes], None]) -> None:
        self._traffic, self._cable, self._deliver = traffic, cable, deliver
        self._plain = not (cable.bandwidth_bps or cable.loss)
        self._reader = frames.FrameReader()
        self._busy_until_ns = 0

    def carry(self, data: bytes) -> None:
        """Whole frames, or nothing: the end of the stream."""
        if self._plain or not data:
            self._put(data)
            return
        for frame in self._reader.feed(data):
            if isinstance(frame, frames.Batch):
                self._carry_batch(frame, data)
            else:
                self._put(data)

    def _carry_batch(self, batch: frames.Batch, data: bytes) -> None:
        alone = len(batch.tuples) == 1
        for number, arrived in enumerate(batch.tuples, batch.first):
            if not arrived.absent:
                now_ns = self._traffic.events.now_ns
                self._busy_until_ns = max(now_ns, self._busy_until_ns) + self._sending_ns(len(arrived.payload))
                if self._cable.loss and self._is_lost(arrived):
                    continue
            self._put(data if alone else frames.encode_batch(number, batch.sent_ns, [_encoded(arrived)]))

    def _put(self, data: bytes) -> None:
        traffic = self._traffic
        traffic.under_way += 1
        at_ns = max(traffic.events.now_ns, self._busy_until_ns) + self._cable.latency_ns
        traffic.events.at(at_ns, ARRIVED, self._deliver, data)

    def _sending_ns(self, payload_bytes: int) -> int:
        bandwidth_bps = self._cable.bandwidth_bps
        return -(-(TUPLE_BYTES + payload_bytes) * NS_BITS // bandwidth_bps) if bandwidth_bps else 0

    def _is_lost(self, arrived: Arrived) -> bool:
        source, epoch, seq, ordinal, _, _ = arrived.lineage
        key = random_draws.key(self._cable.loss_key, self._cable.sender, arrived.stream, source, epoch, seq, ordinal)
        return random_draws.uniform(key) < self._cable.loss


def _encoded(arrived: Arrived) -> bytes:
    return frames.encode_tuple(
        arrived.lineage, arrived.stream, arrived.plan, arrived.payload,
        absent=arrived.absent, mark=arrived.mark, first=arrived.first,
    )  # fmt: skip


class IdealStream:
    """`ports.Stream`. arrived: called when something has come."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic, self._descriptor = traffic, next(traffic.descriptors)
        self._wire: _Wire | None = None
        self._unread: deque[bytes] = deque()
        self._closed = False
        self.arrived: Callable[[], None] = _nothing

    @classmethod
    def pair(cls, traffic: Traffic, there: Cable, back: Cable) -> "tuple[IdealStream, IdealStream]":
        """The two ends of a connection, the one that dials first."""
        near, far = cls(traffic), cls(traffic)
        near._wire, far._wire = _Wire(traffic, there, far._arrive), _Wire(traffic, back, near._arrive)
        return near, far

    def fileno(self) -> int:
        """Its number."""
        return self._descriptor

    @property
    def pieces(self) -> int:
        """That have come and were not read."""
        return len(self._unread)

    def recv(self, most: int, /) -> bytes:
        """What came at once; at the end of the stream nothing."""
        if not self._unread:
            raise BlockingIOError
        return self._unread.popleft()

    def send(self, data: bytes | bytearray, /) -> int:
        """All of it."""
        assert self._wire is not None
        if not self._closed:
            self._wire.carry(bytes(data))
        return len(data)

    def shutdown(self, how: int, /) -> None:
        """Nothing more is written."""

    def close(self) -> None:
        """The other end reads what was sent, then the end."""
        if not self._closed:
            self._closed = True
            assert self._wire is not None
            self._wire.carry(b"")

    def _arrive(self, at_ns: int, data: bytes) -> None:
        self._traffic.under_way -= 1
        if not self._closed:
            self._unread.append(data)
            self.arrived()


class IdealListener:
    """`ports.Listener`."""

    def __init__(self, traffic: Traffic, name: str) -> None:
        self._name, self._descriptor = name, next(traffic.descriptors)
        self._backlog: deque[IdealStream] = deque()
        self.network: IdealNetwork | None = None

    def fileno(self) -> int:
        """As of a stream."""
        return self._descriptor

    @property
    def address(self) -> tuple[str, int]:
        """The node's name."""
        return self._name, 0

    def queue(self, stream: IdealStream) -> None:
        """It is connected."""
        self._backlog.append(stream)
        assert self.network is not None
        self.network.notify(self._descriptor, READABLE)

    def accept(self) -> tuple[IdealStream, tuple[str, int]]:
        """The one that came first. Raises BlockingIOError."""
        if not self._backlog:
            raise BlockingIOError
        stream = self._backlog.popleft()
        assert self.network is not None
        self.network.adopt(stream)
        return stream, (self._name, 0)


class IdealNetwork:
    """`ports.Network` of a node's loop. reach: by the name of a node. before: called before every wait. after: when
    what has come was served. idle: when nothing has come and the loop begins to wait."""

    def __init__(
        self,
        traffic: Traffic,
        reach: Reach,
        before: Callable[[], None],
        after: Callable[[], None],
        idle: Callable[[], None],
    ) -> None:
        self._traffic, self._events, self._reach = traffic, traffic.events, reach
        self._before, self._after, self._idle = before, after, idle
        self.stack: LoopStack | None = None
        self._handlers: dict[int, Handler] = {}
        self._streams: dict[int, IdealStream] = {}
        self._came: deque[tuple[int, int]] = deque()  # descriptor and what for, in this order

    @property
    def unserved(self) -> int:
        """What has come and was not served."""
        return len(self._came)

    def dial(self, host: str, port: int) -> IdealStream:
        """A stream to that node."""
        listener, there, back = self._reach(host)
        near, far = IdealStream.pair(self._traffic, there, back)
        self.adopt(near)
        listener.queue(far)
        return near

    def adopt(self, stream: IdealStream) -> None:
        """It is this node's end."""
        descriptor = stream.fileno()
        self._streams[descriptor] = stream
        stream.arrived = lambda: self.notify(descriptor, READABLE)

    def notify(self, descriptor: int, mask: int) -> None:
        """Something has come."""
        self._came.append((descriptor, mask))
        if self.stack is not None:
            self.stack.wake()

    def add(self, descriptor: int, handler: Handler, mask: int = READABLE) -> None:
        """Begin to wait for it; it can be written to at once, and what came before is not lost."""
        self._handlers[descriptor] = handler
        if mask & WRITABLE:
            self.notify(descriptor, WRITABLE)
        stream = self._streams.get(descriptor)
        for _ in range(stream.pieces if stream is not None else 0):
            self.notify(descriptor, READABLE)

    def give(self, descriptor: int, handler: Handler) -> None:
        """Another handler is told."""
        self._handlers[descriptor] = handler

    def change(self, descriptor: int, mask: int) -> None:
        """A stream takes all that is written, so nobody waits for that."""

    def remove(self, descriptor: int) -> None:
        """It is closed."""
        self._handlers.pop(descriptor, None)
        self._streams.pop(descriptor, None)

    def wait(self, seconds: float) -> int:
        """Serve what has come by this instant; if it is nothing, and there is time, what comes first."""
        stack = self.stack
        assert stack is not None
        self._before()
        stack.settle(TAKEN)
        if seconds and not self._came:
            until_ns = self._events.now_ns + round(seconds * 1e9)
            self._idle()
            stack.wait_until(until_ns)
        self.serve()
        stack.settle(DISPATCHED)
        while self._came:  # over links that take no time
            self.serve()
            stack.settle(DISPATCHED)
        return self._events.now_ns

    def serve(self) -> None:
        """What has come."""
        came = self._came
        if not came:
            return
        while came:
            descriptor, mask = came.popleft()
            handler = self._handlers.get(descriptor)
            if handler is not None:
                handler.on_ready(self._events.now_ns, mask)
        self._after()


def _nothing() -> None:
    """Nobody listens."""


__all__ = ["Cable", "IdealListener", "IdealNetwork", "IdealStream", "Traffic"]
