"""A client that feeds one source in virtual time: what it is given it sends as far as the node lets it, and it is told
what became of each tuple."""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from node_agent.link.large_tuple import LargeTuple
from node_agent.link.limits import LinkError
from node_agent.link.sender import Sender
from node_agent.operators.codecs import Codec, CodecError
from node_agent.virtual.cluster.ideal_network import Cable, IdealListener, IdealStream, Traffic
from node_agent.virtual.errors import bad_input
from node_agent.wire import frames

NEVER_NS = 1 << 61  # clients send on as long as they live


class Outcomes(Protocol):
    """Who is told what became of tuples."""

    def admitted(self, tuples: int) -> None:
        """So many more were admitted."""

    def refused(self, tuples: int) -> None:
        """So many more were not."""


class ClientSettings(NamedTuple):
    """name, codec: the source's. boot: the incarnation. domain, drift_ppm: of the clock."""

    name: str
    codec: Codec
    boot: int
    domain: str
    drift_ppm: int


class SourceClient:
    """Sends over a connection that takes no time. It is also the Sender's facts."""

    def __init__(self, traffic: Traffic, settings: ClientSettings, outcomes: Outcomes) -> None:
        self._traffic, self._settings, self._outcomes = traffic, settings, outcomes
        self._sender = Sender(self)
        self._backlog: deque[tuple[bytes | LargeTuple, int]] = deque()  # that the sender has no room for
        self._end: IdealStream | None = None
        self._reader = frames.FrameReader()
        self.offered = 0
        self.refused: list[int] = []  # numbers of what was, counted from 1 as it was offered
        self._before = 0  # offered before this connection

    @property
    def denied(self) -> int:
        """How many were not admitted."""
        return len(self.refused)

    @property
    def settled(self) -> bool:
        """Whether the outcome of everything is known."""
        return not (self._backlog or len(self._sender))

    def connect(self, listener: IdealListener) -> None:
        """To the source's node, whose plan has that source."""
        self._reader = frames.FrameReader()
        near, far = IdealStream.pair(self._traffic, Cable(), Cable())
        self._end, self._before = near, self.offered
        near.arrived = self._on_arrival
        listener.queue(far)
        settings = self._settings
        hello = frames.Hello(f"source:{settings.name}", settings.domain, settings.boot, drift_ppm=settings.drift_ppm)
        near.send(frames.encode_hello(hello))

    @property
    def connected(self) -> bool:
        """Whether the node has not ended the connection."""
        return self._end is not None

    def offer(self, origin_ns: int, payload: Any) -> None:
        """One tuple. `flush` sends it. Raises BadInputError where it is none of the source's type."""
        try:
            body = self._settings.codec.encode(payload)
        except CodecError as error:
            name = self._settings.name
            raise bad_input(error.code, f"source {name}: {error}", subject=name) from None
        self.offered += 1
        if self._end is None:
            self._deny([self.offered])
            return
        lineage = (0, 0, 0, 0, origin_ns, origin_ns)
        self._backlog.append((frames.encode_large(lineage, 0, 0, (body,)), origin_ns))

    def flush(self) -> None:
        """Send what may be sent."""
        now, sender, backlog = self._traffic.events.now_ns, self._sender, self._backlog
        while backlog and sender.offer(now, backlog[0][0], NEVER_NS, None):
            backlog.popleft()
        while (batch := sender.poll(now)) is not None:
            assert self._end is not None
            self._end.send(frames.encode_outgoing(batch, batch.sent_ns))

    def _deny(self, numbers: Sequence[int]) -> None:
        self.refused.extend(numbers)
        self._outcomes.refused(len(numbers))

    # -- what comes back

    def _on_arrival(self) -> None:
        end = self._end
        if end is None:
            return
        data = end.recv(0)
        if not data:
            self._lost()
            return
        try:
            for frame in self._reader.feed(data):
                self._on_frame(frame)
        except LinkError:
            self._lost()
            return
        self.flush()

    def _lost(self) -> None:
        """The node has closed the connection: what was not answered is refused."""
        self._end = None
        last = self.offered - len(self._backlog)
        self._backlog.clear()
        left = len(self._sender)
        self._sender = Sender(self)
        if left:
            self._deny(range(last - left + 1, last + 1))

    def _on_frame(self, frame: frames.Frame) -> None:
        now_ns, sender = self._traffic.events.now_ns, self._sender
        if isinstance(frame, frames.Hello):
            chunks = frame.most_bytes > 0
            sender.on_connected(now_ns, frame.boot, frame.resume_after, frame.credit_bytes, takes_chunks=chunks)
        elif isinstance(frame, frames.Ack):
            if frame.admitted:
                self._outcomes.admitted(len(frame.admitted))
            sender.on_ack(now_ns, frame.upto, frame.credit_bytes)
        elif isinstance(frame, frames.Refused):
            if not frame.link_seq:
                raise LinkError("refused", frame.why)
            self._deny([self._before + frame.link_seq])

    # -- the Sender's facts

    def sent(self, at_ns: int, link_seq: int, tag: None) -> None:
        """A tuple has its number on the link."""

    def acked(self, at_ns: int, upto: int) -> None:
        """Outcomes say more."""

    def gave_up(self, at_ns: int, link_seq: int, tag: None) -> None:
        """A client gives up nothing."""


__all__ = ["ClientSettings", "Outcomes", "SourceClient"]
