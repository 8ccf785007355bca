"""A client's blocking connection to an agent's data address: dial, greet, read frames, answer probes.

A peer that is cut off or without power sends no end of its connection. So where nothing comes for a while, a Probe
asks; any agent answers it, and a connection on which nothing comes back is lost.
"""

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, Self

from node_agent.client.burst_outcomes import Outcome
from node_agent.host.clock import now_ns
from node_agent.link.backoff import Backoff
from node_agent.link.limits import LinkError
from node_agent.problems import ProblemError, UnusableValueError
from node_agent.wire import frames

SECOND = 1_000_000_000
_ATTEMPT_S = 2.0  # for one attempt to connect
_CHUNK = 1 << 16
_PROBES = 4  # answered before an agent with another clock is sent anything: its first verdicts need them
_PROBES_S = 0.3
ASK_NS = 1 * SECOND  # of silence, until the agent is asked whether it is there
ANSWER_NS = 5 * SECOND  # for the answer: an operator that runs puts it off


class AgentError(ProblemError):
    """Something between this client and the agent went wrong; the message says what, where, and what to check."""


class UnreachableError(AgentError, ConnectionError):
    """No agent answers at the address."""


class NotAcceptedError(AgentError):
    """The agent answers and refuses this client: no such source or output, or no plan."""

    def within(self, what: str) -> Self:
        """The same mistake, told of the connection that it is about."""
        mistake = self.mistake.within(what)
        return type(self)(self.code, mistake.text, mistake.mend, subject=mistake.subject)


class NotTrustedError(NotAcceptedError):
    """One of both ends does not trust the other's certificate, or only one of them speaks TLS."""


class NoAnswerError(AgentError, TimeoutError):
    """The agent is connected and did not answer in time. `results`: what is known per value, None where nothing is."""

    def __init__(self, text: str, results: Sequence[Outcome | None], subject: str = "") -> None:
        super().__init__("no_answer", text, subject=subject)
        self.results = results

    def of(self, results: Sequence[Outcome | None]) -> Self:
        """The same of a part of the tuples."""
        return type(self)(self.mistake.text, results, self.mistake.subject)


class NoResultError(ProblemError, TimeoutError):
    """The agent is connected, and no result came in time."""


class LostError(Exception):
    """Internal: the connection ended. The handler reconnects."""


def parse_address(address: str) -> tuple[str, int]:
    """("host", port) from "host:port" or "[v6]:port". Raises UnusableValueError."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        text = f"address {address!r}: write host:port with the agent's data port, such as pi1:7701"
        raise UnusableValueError("not_an_address", text, subject=address)
    return host.removeprefix("[").removesuffix("]"), int(port)


class Transport(Protocol):
    """Carries bytes between a client and an agent. All sends and receives end by an instant of `now_ns`."""

    def send(self, data: bytes, until_ns: int) -> None:
        """Raises LostError."""

    def receive(self, until_ns: int) -> bytes:
        """What has come; empty: the time is over. Raises LostError, also at the end of the stream."""

    def close(self) -> None:
        """Close; twice is allowed."""


class PlainTransport:
    """A TCP socket."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)  # a timeout of the socket's own would cost two system calls per read and per write
        self._socket = sock
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def send(self, data: bytes, until_ns: int) -> None:
        """Raises LostError."""
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise LostError(str(error)) from error
        if sent < len(data):
            self._send_rest(data[sent:], until_ns)

    def _send_rest(self, data: bytes, until_ns: int) -> None:
        """The socket does not take everything at once."""
        try:
            self._socket.settimeout(_left_s(until_ns))
            self._socket.sendall(data)
            self._socket.setblocking(False)
        except OSError as error:
            raise LostError(str(error)) from error

    def receive(self, until_ns: int) -> bytes:
        """What has come; empty: the time is over. Raises LostError, also at the end of the stream."""
        try:
            if not self._poll.poll(_left_s(until_ns) * 1000):
                return b""
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise LostError(str(error)) from error
        if not data:
            raise LostError("the agent closed the connection")
        return data

    def close(self) -> None:
        """Close the socket; twice is allowed."""
        _close(self._socket)


class Connection:
    """A connection after the exchange of Hellos. All reads and writes end by an instant of `now_ns`."""

    def __init__(self, transport: Transport, hello: frames.Hello, until_ns: int) -> None:
        self._transport = transport
        self._reader = frames.FrameReader()
        self._reader.assembly.most_bytes = hello.most_bytes
        self._pending: list[frames.Frame] = []
        self._probes = 0
        self._asked_ns = 0  # when a heartbeat went out that nothing has come after; 0: none
        self._heard_ns = now_ns()
        self._beats = 0
        self._greeting = True
        self.write(frames.encode_hello(hello), until_ns)
        first = self.read(until_ns)
        while not first:
            if now_ns() >= until_ns:
                raise LostError("something accepts the connection there and says nothing")
            first = self.read(until_ns)
        self._greeting = False
        if isinstance(first[0], frames.Refused):
            raise NotAcceptedError("refused", first[0].why, subject=hello.peer)
        if not isinstance(first[0], frames.Hello):
            raise LostError("the agent did not greet")
        self.hello = first[0]
        self._pending = list(first[1:])
        if self.hello.clock != hello.clock:
            self._settle(min(until_ns, now_ns() + int(_PROBES_S * SECOND)))

    def write(self, data: bytes, until_ns: int) -> None:
        """Raises LostError."""
        self._transport.send(data, until_ns)

    def read(self, until_ns: int) -> list[frames.Frame]:
        """The next frames; probes are answered here. Empty: the time is over, or only probes came. Raises LostError."""
        if self._pending:
            pending, self._pending = self._pending, []
            return pending
        data = self._heard(until_ns)
        if not data:
            return []
        arrived_ns = now_ns()
        got: list[frames.Frame] = []
        try:
            for frame in self._reader.feed(data):
                if isinstance(frame, frames.Probe):
                    if not (frame.t1_ns or frame.t2_ns):  # else it answers a heartbeat, and has been heard
                        self._answer(frame, arrived_ns, until_ns)
                else:
                    got.append(frame)
        except LinkError as error:
            raise LostError(f"the agent sent what is no frame: {error}") from error
        return got

    def _heard(self, until_ns: int) -> bytes:
        """What has come, with heartbeats while nothing comes. Raises LostError where the agent answers none."""
        while True:
            due_ns = self._asked_ns + ANSWER_NS if self._asked_ns else self._heard_ns + ASK_NS
            data = self._transport.receive(until_ns if self._greeting else min(until_ns, due_ns))
            at_ns = now_ns()
            if data:
                self._heard_ns, self._asked_ns = at_ns, 0
                return data
            if at_ns >= due_ns and not self._greeting:
                self._beat(at_ns)
            if at_ns >= until_ns:
                return b""

    def _beat(self, at_ns: int) -> None:
        """Ask the agent whether it is there. Raises LostError where it was asked and has not answered."""
        if self._asked_ns:
            raise LostError(f"no answer to a heartbeat within {ANSWER_NS / SECOND:g} s")
        self._asked_ns, self._beats = at_ns, self._beats + 1
        self.write(frames.encode_probe(frames.Probe(self._beats, at_ns)), at_ns + SECOND)

    def close(self) -> None:
        """Close the transport; twice is allowed."""
        self._transport.close()

    def _answer(self, probe: frames.Probe, arrived_ns: int, until_ns: int) -> None:
        self._probes += 1
        self.write(frames.encode_probe(frames.Probe(probe.id, probe.t0_ns, arrived_ns, now_ns())), until_ns)

    def _settle(self, until_ns: int) -> None:
        """Let the agent measure this clock before it judges the first tuple by it."""
        got: list[frames.Frame] = []
        while self._probes < _PROBES and now_ns() < until_ns:
            got += self.read(until_ns)
        self._pending = got


Greet = Callable[[socket.socket, frames.Hello, int], Connection]


def greet_plainly(sock: socket.socket, hello: frames.Hello, until_ns: int) -> Connection:
    """Without TLS."""
    return Connection(PlainTransport(sock), hello, until_ns)


def dial(
    address: str, hello: frames.Hello, timeout_s: float, backoff: Backoff, greet: Greet = greet_plainly
) -> Connection:
    """Connect, trying again with growing pauses. Raises UnreachableError after timeout_s, NotAcceptedError at once."""
    host, port = parse_address(address)
    until_ns = now_ns() + int(timeout_s * SECOND)
    why = ""
    for _ in _attempts(until_ns, backoff):
        sock = None
        try:
            sock = socket.create_connection((host, port), timeout=min(_left_s(until_ns), _ATTEMPT_S))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return greet(sock, hello, min(until_ns, now_ns() + int(_ATTEMPT_S * SECOND)))
        except NotTrustedError as error:
            _close(sock)
            raise error.within(f"{hello.peer} at {address}") from None
        except NotAcceptedError as error:
            _close(sock)
            raise error.within(f"the agent at {address} refuses {hello.peer}") from None
        except (OSError, LostError) as error:
            _close(sock)
            why = str(error)
        except BaseException:  # Ctrl-C while waiting
            _close(sock)
            raise
    mend = (
        "check that it runs (`coordinator status`), that this is its data port (not the control port), and that no"
        " firewall is between"
    )
    raise UnreachableError("unreachable", f"no agent answers at {address} ({why})", mend, subject=address)


def _attempts(until_ns: int, backoff: Backoff) -> Iterator[None]:
    """Yields for each attempt that may be made, after its pause; at least once."""
    while True:
        yield
        pause_ns = backoff.failed(now_ns()) - now_ns()
        if now_ns() + pause_ns >= until_ns:
            return
        time.sleep(max(0, pause_ns) / SECOND)


def _close(sock: socket.socket | None) -> None:
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.close()


def _left_s(until_ns: int) -> float:
    """Seconds until that instant, for `settimeout`: never 0, which would mean non-blocking."""
    return max((until_ns - now_ns()) / SECOND, 0.001)
