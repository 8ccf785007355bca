"""Source and Sink: how programs outside the cluster put tuples in and take results out. Blocking, one thread each.

    with Source("pi1:7701", "camera") as camera:
        camera.send(tray, age_ms=100)             # Admitted(seq, epoch) or Refused(why)
    for result in Sink("pi2:7701", "gate"):
        print(result.value, result.latency_ns)    # an interval (lo, hi)

The address is the agent's data address. Both reconnect: a Source resends what has not been taken over, and the agent
recognises what it has already seen, so nothing is admitted twice; a Sink goes on after the last result that it got.
A peer that is gone without a word is noticed by heartbeats, in six seconds.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import count, islice, repeat
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from node_agent.client.burst import Burst, Encoded, encoded
from node_agent.client.burst_outcomes import Admitted, Outcome, Outcomes, Refused
from node_agent.client.connection import (
    SECOND,
    AgentError,
    Connection,
    Greet,
    LostError,
    NoAnswerError,
    NoResultError,
    NotAcceptedError,
    NotTrustedError,
    UnreachableError,
    dial,
    greet_plainly,
    parse_address,
)
from node_agent.client.origins import Origin, interval, origin, origins
from node_agent.client.payloads import payloads
from node_agent.host.clock import clock_domain, new_boot, now_ns
from node_agent.link.arrived import Arrived
from node_agent.link.backoff import Backoff
from node_agent.link.limits import MAX_MESSAGE_BYTES, MOST_PAYLOAD_BYTES, LinkError
from node_agent.link.receiver import Inbox, Receiver
from node_agent.link.sender import Sender
from node_agent.operators import api
from node_agent.operators.codecs import Codec, Codecs
from node_agent.problems import UnusableValueError
from node_agent.tls.names import TlsError
from node_agent.wire import frames

__all__ = [
    "Admitted", "AgentError", "NoAnswerError", "NoResultError", "NotAcceptedError", "NotTrustedError", "Outcomes",
    "Refused", "Result", "Sink", "Source", "TlsError", "UnreachableError",
]  # fmt: skip

SINK_CREDIT = 1 << 20
LATEST_NS = 1 << 62  # as good as for ever
WRITTEN_EVERY = 512  # tuples of a burst, so that a long one does not wait for its own end


class Result(NamedTuple):
    """One result. Instants are on the clock of the node that delivers it."""

    value: Any
    at_ns: int
    """When it was delivered."""
    origin: tuple[int, int]
    """The interval (lo, hi) that holds the origin, in ns."""
    lineage: tuple[int, int, int, int]
    """source, epoch, seq, ordinal: which input it comes from."""

    @property
    def latency_ns(self) -> tuple[int, int]:
        """(lo, hi): from the origin to the delivery."""
        return self.at_ns - self.origin[1], self.at_ns - self.origin[0]


class _Unanswered:
    """What is known of the tuples of one `send`."""

    __slots__ = ("results", "unanswered")

    def __init__(self, size: int) -> None:
        self.results: list[Outcome | None] = [None] * size
        self.unanswered = size

    def settle(self, place: int, outcome: Outcome) -> None:
        """That is what became of the tuple at that place."""
        self.unanswered -= self.results[place] is None
        self.results[place] = outcome

    def outcomes(self) -> Outcomes:
        """Of all, where each is known."""
        return Outcomes([result for result in self.results if result is not None])


Waiting = tuple[_Unanswered, int]  # and the place of a tuple in it


class _Client:
    """What Source and Sink share: address, incarnation, connection, context management."""

    def __init__(
        self,
        address: str,
        peer: str,
        timeout_s: float,
        codecs: Codecs | None,
        drift_ppm: int,
        tls: str | Path | None,
        outage_s: float,
        on_outage: Callable[[str], object] | None,
    ) -> None:
        parse_address(address)
        self._greet: Greet = greet_plainly
        if tls is not None:
            from node_agent.client.tls import greeter  # loads OpenSSL

            self._greet = greeter(Path(tls))
        self._address = address
        self._peer = peer
        self._timeout_s = timeout_s
        self._outage_s, self._on_outage = outage_s, on_outage
        self._lost_ns = 0  # when the connection was lost that is not there again; 0: it is
        self._codecs = codecs or Codecs({each.name: each.message for each in api.declared_codecs})
        self._drift_ppm = drift_ppm
        self._clock = clock_domain()
        self._boot = new_boot()
        self._connection: Connection | None = None
        self._closed = False
        self._connects = 0
        self._codec: Codec | None = None

    @property
    def codec(self) -> Codec:
        """Of the stream, as the agent said when it was last connected."""
        assert self._codec is not None  # there is one from the first connection on
        return self._codec

    @property
    def reconnects(self) -> int:
        """How often the connection was lost and made again."""
        return max(0, self._connects - 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; twice is allowed."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _lose(self, why: str) -> None:
        """The connection ended by itself."""
        self._drop()
        if not self._lost_ns:
            self._lost_ns = now_ns()
            self._tell(f"the connection to the agent at {self._address} is lost ({why})")
            if self._outage_s:
                self._tell(f"connecting again, for {self._outage_s:g} s at most")

    def _tell(self, text: str) -> None:
        if self._on_outage is not None:
            self._on_outage(text)

    @property
    def _over_ns(self) -> int:
        """When the outage has lasted for as long as it may."""
        return (self._lost_ns or now_ns()) + int(self._outage_s * SECOND)

    def _dial(self, hello: frames.Hello, timeout_s: float, backoff: Backoff) -> Connection:
        if self._closed:
            raise UnusableValueError("closed", f"{self._peer} is closed", subject=self._peer)
        self._connection = dial(self._address, hello, timeout_s, backoff, self._greet)
        self._connects += 1
        if self._lost_ns:
            self._tell(f"connected again after {(now_ns() - self._lost_ns) / SECOND:.1f} s")
            self._lost_ns = 0
        return self._connection

    def _hello(self, resume_after: int, credit_bytes: int = 0, peer_boot: int = 0) -> frames.Hello:
        return frames.Hello(
            self._peer, self._clock, self._boot, 0, resume_after, self._drift_ppm, credit_bytes, "", peer_boot
        )


class Source(_Client):
    """Puts tuples into the source `name` of the plan that runs at `address` (host:data port).

    timeout: seconds that connecting, and then each `send`, may take. outage: seconds for which a `send` also waits for
    a connection that was lost, its tuples growing older meanwhile; on_outage: is told in a sentence when one begins and
    ends. drift_ppm: how far this machine's clock may be off; it matters where the agent has another clock. tls: folder
    of an identity, for agents that speak TLS. Raises UnreachableError and NotAcceptedError, TlsError (a ValueError) for
    an identity that cannot be used. Not thread-safe.
    """

    def __init__(
        self,
        address: str,
        name: str,
        *,
        timeout: float = 5.0,
        outage: float = 0.0,
        on_outage: Callable[[str], object] | None = None,
        codecs: Codecs | None = None,
        drift_ppm: int = 100,
        tls: str | Path | None = None,
    ) -> None:
        super().__init__(address, f"source:{name}", timeout, codecs, drift_ppm, tls, outage, on_outage)
        self._backoff = Backoff()
        self._sender = Sender(self, backoff=self._backoff)
        self._open: dict[int, Waiting] = {}  # by link_seq: no outcome known yet
        self._last_seq = 0
        self._until_ns = 0  # of the `send` that runs
        self._connect(timeout)

    def send(self, value: Any, *, age_ms: float | tuple[float, float] = 0.0) -> Admitted | Refused:
        """Put one value in and wait for what became of it.

        age_ms: how long ago it originated, or (least, most) where that is uncertain. Raises CodecError (not of the
        source's type), UnreachableError, and NoAnswerError: then it is not known whether it was admitted.
        """
        return self.send_many([value], age_ms=age_ms)[0]

    def send_many(self, values: Any, *, age_ms: Any = 0.0, origin_ns: Any = None) -> Outcomes:
        """Put a burst in without waiting in between; what became of each, in order.

        values: an iterable with a value per tuple; or an array of NumPy, Arrow or pandas with one per item of its first
        axis; or a table of Arrow, a frame of pandas or Polars, an array of records or a mapping of columns: a tuple per
        row, with a field per column. Columns are refused, and nothing is sent, where their lengths differ, or where
        they have nulls, NaN, or a type that JSON has not (UnusableValueError), as is a value of another type than the
        source's (CodecError). What stands in lists is JSON: its None is sent as null, also in lists that are columns or
        items of them. age_ms: of all, as of `send`, or a column with an age per tuple. origin_ns: instead of
        it, an int64 column of instants of CLOCK_MONOTONIC_RAW, or (lo, hi), two of them.
        """
        at_ns = now_ns()
        encoded = payloads(values, self._ready_codec())
        return self._send(encoded, origins(at_ns, len(encoded), age_ms, origin_ns))

    def send_bursts(self, bursts: Sequence[Burst]) -> list[Outcomes | Exception]:
        """Several as one, of which each has what `send_many` would have given or raised. One that cannot be encoded
        costs no other. Raises UnreachableError and NotAcceptedError."""
        codec = self._ready_codec()
        found = [encoded(each, codec) for each in bursts]
        whole = [each for each in found if isinstance(each, Encoded)]
        every = [payload for each in whole for payload in each.payloads]
        results: Sequence[Outcome | None]
        try:
            results, unanswered = self._send(every, (each for one in whole for each in one.origins)), None
        except NoAnswerError as error:
            results, unanswered = error.results, error
        begin, answers = 0, list[Outcomes | Exception]()
        for each in found:
            if isinstance(each, Exception):
                answers.append(each)
                continue
            own = results[begin : begin + len(each.payloads)]
            begin += len(each.payloads)
            known = [result for result in own if result is not None]
            if unanswered is None or len(known) == len(own):
                answers.append(Outcomes(known))
            else:
                answers.append(unanswered.of(own))
        return answers

    def send_aged(self, aged: Iterable[tuple[Any, float | tuple[float, float]]]) -> Outcomes:
        """As `send_many`, each value with an age of its own: (value, age_ms)."""
        at_ns = now_ns()
        encode = self._ready_codec().encode
        found = [(encode(value), origin(at_ns, age_ms)) for value, age_ms in aged]
        return self._send([payload for payload, _ in found], [each for _, each in found])

    def send_at(self, value: Any, origin: tuple[int, int]) -> Admitted | Refused:
        """As `send`; origin: the interval (lo, hi) of instants of this machine's clock, in ns, that holds the one at
        which the value originated. Raises UnusableValueError where it is none."""
        return self._send([self._ready_codec().encode(value)], [interval(origin)])[0]

    def _ready_codec(self) -> Codec:
        """Of the stream, once there is a connection for the `send` that begins."""
        self._until_ns = now_ns() + int(self._timeout_s * SECOND)
        if self._connection is None:
            self._again()
        return self.codec

    def _send(self, payloads: Sequence[bytes], origins: Iterable[Origin]) -> Outcomes:
        """Payloads with their origins. The first ones leave while the last ones are still on their way to the link."""
        worth_ns = min(self._until_ns + int(self._outage_s * SECOND), LATEST_NS)
        burst = _Unanswered(len(payloads))
        every = zip(frames.encode_offered(payloads, origins), zip(repeat(burst), count()))  # noqa: B905 - endless
        while part := list(islice(every, WRITTEN_EVERY)):
            while (taken := self._sender.offer_many(now_ns(), part, worth_ns)) < len(part):
                part = part[taken:]
                self._pump(worth_ns, burst)
            if len(part) == WRITTEN_EVERY and self._connection is not None:
                self._exchange(self._connection, None)
        while burst.unanswered:
            self._pump(worth_ns, burst)
        return burst.outcomes()

    # What the link tells (link.sender.SenderFacts).

    def sent(self, at_ns: int, link_seq: int, tag: Waiting) -> None:
        """A tuple leaves for the first time."""
        self._last_seq = link_seq
        self._open[link_seq] = tag

    def acked(self, at_ns: int, upto: int) -> None:
        """Tuples were taken over; their outcomes come by themselves."""

    def gave_up(self, at_ns: int, link_seq: int, tag: Waiting) -> None:
        """The time of a `send` is over while its tuple waits."""
        if not link_seq:
            burst, place = tag
            why = f"not sent within {self._timeout_s:g} s: the agent at {self._address} takes nothing"
            burst.settle(place, Refused(why))

    def _again(self) -> Connection:
        """Connected once more; the time of an outage counts for no `send`."""
        over_ns = max(self._until_ns, self._over_ns if self._outage_s else 0)
        try:
            connection = self._connect((over_ns - now_ns()) / SECOND)
        except UnreachableError:
            self._lost_ns = 0  # the next `send` may wait as long
            raise
        if self._outage_s:
            self._until_ns = max(self._until_ns, now_ns() + int(self._timeout_s * SECOND))
        return connection

    def _pump(self, worth_ns: int, burst: _Unanswered) -> None:
        """Write what may be written, wait for one answer. worth_ns: until when tuples of this `send` are sent."""
        if now_ns() >= self._until_ns and not (self._connection is None and self._outage_s):
            self._sender.sweep(max(now_ns(), worth_ns + 1))
            missing = burst.unanswered
            if not missing:
                return
            raise NoAnswerError(
                f"{self._peer}: within {self._timeout_s:g} s the agent at {self._address} did not answer {missing} of"
                f" {len(burst.results)} tuples; it is not known whether they were admitted",
                list(burst.results),
                self._peer,
            )
        self._exchange(self._connection, burst)

    def _exchange(self, connection: Connection | None, burst: _Unanswered | None) -> None:
        """Write what may be written; burst: wait for an answer while one of it is missing."""
        try:
            connection = connection or self._again()
            until_ns = self._until_ns
            while (out := self._sender.poll(now_ns())) is not None:
                connection.write(frames.encode_outgoing(out, now_ns), until_ns)
            if burst is not None and burst.unanswered:
                for frame in connection.read(until_ns):
                    self._on_frame(frame)
            if self._sender.stalled(now_ns()):
                raise LostError("no acknowledgement for too long")
        except (LostError, LinkError) as error:
            self._lose(str(error))
            self._sender.on_disconnected(now_ns())

    def _on_frame(self, frame: frames.Frame) -> None:
        if isinstance(frame, frames.Ack):
            for answer in frame.admitted:
                self._settle(answer.link_seq, Admitted(answer.seq, answer.epoch))
            self._sender.on_ack(now_ns(), frame.upto, frame.credit_bytes)
        elif isinstance(frame, frames.Refused):
            if not frame.link_seq:
                self._drop()
                self._sender.on_disconnected(now_ns())
                text = f"the agent at {self._address} ends {self._peer}: {frame.why}"
                raise NotAcceptedError("refused", text, subject=self._peer)
            self._settle(frame.link_seq, Refused(frame.why))

    def _settle(self, link_seq: int, outcome: Outcome) -> None:
        waiting = self._open.pop(link_seq, None)
        if waiting is not None:
            burst, place = waiting
            burst.settle(place, outcome)

    def _connect(self, timeout_s: float) -> Connection:
        known = next(iter(self._open)) - 1 if self._open else self._last_seq
        connection = self._dial(self._hello(known), timeout_s, self._backoff)
        hello = connection.hello
        chunks = hello.most_bytes > 0
        self._codec = self._codecs.get(hello.codec, MAX_MESSAGE_BYTES if chunks else 0)  # the agent knows the query's
        self._sender.on_connected(
            now_ns(), hello.boot, hello.resume_after, hello.credit_bytes, False, chunks, hello.most_bytes
        )
        return connection


class Sink(_Client):
    """Iterates over the results of output `name` of the plan that runs at `address` (host:data port).

    Results from the connection on; none is given twice. timeout: seconds without a result after which the iteration
    ends; None: never. connect_timeout: seconds that connecting may take. outage: seconds for which a connection that
    was lost is waited for, as long as that unless given; results meanwhile are not kept. Ctrl-C ends the iteration.
    on_outage, tls, and what is raised: as with Source. Not thread-safe.
    """

    def __init__(
        self,
        address: str,
        name: str,
        *,
        timeout: float | None = None,
        connect_timeout: float = 5.0,
        outage: float | None = None,
        on_outage: Callable[[str], object] | None = None,
        codecs: Codecs | None = None,
        drift_ppm: int = 100,
        tls: str | Path | None = None,
    ) -> None:
        outage_s = connect_timeout if outage is None else outage
        super().__init__(address, f"sink:{name}", connect_timeout, codecs, drift_ppm, tls, outage_s, on_outage)
        self._patience_s = timeout
        self._inbox = Inbox(most_receivers=4)
        self._receiver: Receiver | None = None
        self._agent_boot = 0
        self._ready: deque[Arrived] = deque()
        self._connect(connect_timeout)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Result:
        if self._closed:
            raise StopIteration
        try:
            return self.get(self._patience_s)
        except TimeoutError:
            raise StopIteration from None
        except KeyboardInterrupt:
            self.close()
            raise StopIteration from None

    def get(self, timeout: float | None = None) -> Result:
        """The next result. Raises NoResultError (a TimeoutError) after that many seconds, CodecError for one that
        cannot be read."""
        until_ns = None if timeout is None else now_ns() + int(timeout * SECOND)
        while not self._ready:
            if until_ns is not None and now_ns() >= until_ns:
                text = f"no result of {self._peer} from {self._address} within {timeout} s"
                raise NoResultError("no_result", text, subject=self._peer)
            if self._connection is None:
                self._again(until_ns)
            else:
                step_ns = now_ns() + SECOND
                self._read(self._connection, step_ns if until_ns is None else min(step_ns, until_ns))
        assert self._codec is not None
        item = self._ready.popleft()
        lineage = item.lineage
        return Result(self._codec.decode(item.payload), item.at_ns, lineage[4:], lineage[:4])

    def _again(self, until_ns: int | None) -> None:
        """Connected once more, or the time is over. Raises UnreachableError after the longest outage."""
        over_ns = self._over_ns
        try:
            self._connect(((over_ns if until_ns is None else min(over_ns, until_ns)) - now_ns()) / SECOND)
        except UnreachableError:
            if until_ns is None or over_ns <= until_ns:
                self._lost_ns = 0  # the next `get` may wait as long
                raise

    def _read(self, connection: Connection, until_ns: int) -> None:
        assert self._receiver is not None
        try:
            for frame in connection.read(until_ns):
                if isinstance(frame, frames.Batch):
                    self._ready.extend(self._receiver.on_batch(frame.first, frame.tuples))
                elif isinstance(frame, frames.Refused):
                    self._drop()
                    text = f"the agent at {self._address} ends {self._peer}: {frame.why}"
                    raise NotAcceptedError("refused", text, subject=self._peer)
            ack = self._receiver.ack(SINK_CREDIT, drained=True)
            if ack is not None:
                connection.write(frames.encode_ack(ack.upto, ack.credit_bytes), until_ns + SECOND)
        except (LostError, LinkError) as error:
            self._lose(str(error))

    def _connect(self, timeout_s: float) -> Connection:
        last = self._receiver.last if self._receiver else 0
        greeting = self._hello(last, SINK_CREDIT, self._agent_boot)._replace(most_bytes=MOST_PAYLOAD_BYTES)
        connection = self._dial(greeting, timeout_s, Backoff())
        hello = connection.hello
        self._codec = self._codecs.get(hello.codec, MAX_MESSAGE_BYTES)
        self._receiver = self._inbox.hello(hello.peer, hello.boot, alone=True)
        self._receiver.on_hello(SINK_CREDIT)
        self._agent_boot = hello.boot
        return connection
