"""One non-blocking TCP connection that carries frames. Bytes that the socket does not take are kept, within a limit."""

import contextlib
from collections.abc import Container, Iterator
from typing import Protocol

from node_agent.link.limits import LinkError
from node_agent.ports import FINISHED, READABLE, WRITABLE, Handler, Stream
from node_agent.runtime.context import Shared
from node_agent.wire import frames

READ_BYTES = 1 << 16  # of one connection in one drain; a larger buffer is mapped anew for each read
MOST_DISCARDED = 1 << 20  # read and thrown away of a connection that is refused
MOST_UNWRITTEN = 4 << 20  # a peer that asks for answers and does not read them is closed
ALL_UNWRITTEN = 32 << 20  # and so is any, where all of them together have so much


class Connection:
    """A connected, or connecting, socket. `owner` is told when it is ready."""

    silent = True  # nothing has come that waits for its turn
    __slots__ = ("closed", "descriptor", "reader", "shared", "stream", "unwritten")

    def __init__(self, shared: Shared, end: Stream, owner: Handler, connecting: bool = False) -> None:
        self.shared, self.stream, self.descriptor = shared, end, end.fileno()
        self.reader = frames.FrameReader()
        self.unwritten = bytearray()
        self.closed = False
        shared.network.add(self.descriptor, owner, WRITABLE if connecting else READABLE)

    def read(self) -> Iterator[frames.Frame]:
        """The frames that have arrived. Closes at the end of the stream; raises LinkError on what is no frame."""
        try:
            data = self.stream.recv(READ_BYTES)
        except BlockingIOError:
            return iter(())
        except OSError:
            data = b""
        if not data:
            self.close()
            return iter(())
        return self.reader.feed(data)

    def write(self, data: bytes) -> None:
        """Send, or keep what the socket does not take. Closes where too much has been kept."""
        if self.closed:
            return
        if self.unwritten:
            self.unwritten += data
            self.shared.unwritten_bytes += len(data)
        else:
            sent = self._send(data)
            if sent == len(data) or self.closed:
                return
            self.unwritten += data[sent:]
            self.shared.unwritten_bytes += len(self.unwritten)
            self.shared.network.change(self.descriptor, READABLE | WRITABLE)
        if len(self.unwritten) > MOST_UNWRITTEN or self.shared.unwritten_bytes > ALL_UNWRITTEN:
            self.shared.note("connections_unread", "a connection was closed because its peer does not read")
            self.close()

    def flush(self) -> None:
        """The socket takes data again."""
        if self.closed or not self.unwritten:
            return
        sent = self._send(self.unwritten)
        del self.unwritten[:sent]
        self.shared.unwritten_bytes -= sent
        if not self.unwritten and not self.closed:
            self.shared.network.change(self.descriptor, READABLE)

    def _send(self, data: bytes | bytearray) -> int:
        try:
            return self.stream.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.close()
            return 0

    def give_to(self, owner: Handler) -> None:
        """Tell that handler from now on when the connection is ready."""
        self.shared.network.give(self.descriptor, owner)

    def authorise(self, peer: str) -> None:
        """Raise LinkError if the other end may not say Hello as that peer. On loopback every peer may."""

    def refuse(self, error: LinkError) -> None:
        """Say why, count it, close."""
        self.shared.note(error.counter, f"a connection was closed: {error}")
        self.shared.counters["connections_refused"] += 1
        self.write(frames.encode_refused(str(error), code=error.counter))
        self.finish()
        self.close()

    def finish(self) -> None:
        """Nothing more is written: what has not been read would make the kernel discard what was written last."""
        if not self.closed:
            with contextlib.suppress(OSError):
                self.stream.shutdown(FINISHED)
                left = MOST_DISCARDED
                while left > 0 and (data := self.stream.recv(READ_BYTES)):
                    left -= len(data)

    def close(self) -> None:
        """Close; once."""
        if not self.closed:
            self.closed = True
            self.shared.unwritten_bytes -= len(self.unwritten)
            self.unwritten.clear()
            self.shared.network.remove(self.descriptor)
            with contextlib.suppress(OSError):
                self.stream.close()


class Security(Protocol):
    """Secures connections. Its handshakes take turns: `tick` is due at due_ns. known: addresses from which a peer was
    let in."""

    @property
    def due_ns(self) -> int:
        """The instant at which the handshake or the reopening is next looked at."""

    @property
    def known(self) -> Container[str]:
        """The hosts of the known peers."""

    def accepted(self, end: Stream, host: str) -> Connection:
        """A peer has connected from that host."""

    def dialled(self, end: Stream, host: str, place: str, owner: Handler) -> Connection:
        """This node connects to that place. Raises ValueError for a name that no certificate can have."""

    def tick(self, at_ns: int) -> None:
        """The next handshake may go on."""
