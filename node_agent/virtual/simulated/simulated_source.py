"""A client that feeds a source, in virtual time: it sends until each tuple is admitted, refused, or of unknown fate."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from node_agent.link.limits import LinkError
from node_agent.link.sender import Sender
from node_agent.ports import GONE, READABLE, WRITABLE
from node_agent.virtual.simulated.simulated_clock import SimulatedClock
from node_agent.virtual.simulated.simulated_network import SimulatedHost, SimulatedNetwork, SimulatedStream
from node_agent.virtual.simulated.virtual_time import Process, VirtualTime
from node_agent.wire import frames

SECOND_NS = 1_000_000_000
PATIENCE_NS = 2 * SECOND_NS  # for a connection to stand
GIVE_UP_NS = 3600 * SECOND_NS  # clients send on as long as they live


class Fate(Enum):
    """What a client knows of a tuple."""

    UNKNOWN = "unknown"
    ADMITTED = "admitted"
    REFUSED = "refused"
    UNANSWERED = "unanswered"  # its node had taken it over, and does not know any more what became of it


class Fed(NamedTuple):
    """A tuple and what became of it: its lineage if it was admitted, the reason if not."""

    number: int
    fate: Fate
    epoch: int = 0
    seq: int = 0
    why: str = ""


class SimulatedSource:
    """Sends payloads at given true instants. fed: by number, from 0 on; what is not there has not been offered.
    offered_ns: true instants, by number: what the client's stamps are of."""

    def __init__(
        self, time: VirtualTime, host: SimulatedHost, clock: SimulatedClock, name: str, address: str, boot: int,
        stream: int, tuples: Sequence[tuple[int, bytes]], ages: Mapping[int, int] | None = None,
    ) -> None:  # fmt: skip
        """address: of the node's data port. tuples: when, and an encoded payload, in that order. ages: how old some of
        them are by then [ns], by number."""
        self._time, self._clock, self._name, self._boot, self._stream = time, clock, name, boot, stream
        self._host_name, _, port = address.rpartition(":")
        self._port = int(port)
        self._tuples, self._offered, self._ages = tuples, 0, ages or {}
        self.fed: dict[int, Fed] = {}
        self.offered_ns: list[int] = []
        self._numbers: list[int] = []  # by link_seq, from 1 on
        self._known = 0  # outcomes are known up to this link_seq
        self._taken = 0  # a node has said that it took over what is up to this link_seq
        self._acknowledged = 0  # as it has said since
        self._sender = Sender(self, stall_ns=3 * SECOND_NS)
        self._full = False  # the next tuple has no room yet
        self._network = SimulatedNetwork(host, clock.now_ns, self._wait_until)
        self._end: SimulatedStream | None = None
        self._since_ns = 0
        self._reader = frames.FrameReader()
        self._unwritten = bytearray()
        self._process = self._network.process = Process(time, self._run)

    @property
    def settled(self) -> bool:
        """Whether everything was offered, and an outcome of each tuple is known."""
        return self._offered == len(self._tuples) and all(each.fate is not Fate.UNKNOWN for each in self.fed.values())

    @property
    def unanswered(self) -> int:
        """How many tuples its node had taken over, and does not know any more what became of them."""
        return sum(each.fate is Fate.UNANSWERED for each in self.fed.values())

    # -- the Sender's facts

    def sent(self, at_ns: int, link_seq: int, tag: int) -> None:
        """A tuple has its number on the link."""
        self._numbers.append(tag)

    def acked(self, at_ns: int, upto: int) -> None:
        """Outcomes say more."""

    def gave_up(self, at_ns: int, link_seq: int, tag: int) -> None:
        """A client gives up nothing."""

    # -- the process

    def _run(self) -> None:
        while True:
            self._offer()
            self._connect()
            self._flush()
            self._network.wait(max(0, self._due_ns() - self._clock.now_ns()) / 1e9)

    def _wait_until(self, shown_ns: int) -> None:
        self._process.sleep_until(max(self._clock.true_ns(shown_ns), self._time.now_ns + 1), wakeable=True)

    def _due_ns(self) -> int:
        now_ns = self._clock.now_ns()
        dues = [now_ns + SECOND_NS // 4]
        if self._offered < len(self._tuples) and not self._full:
            dues.append(now_ns + max(0, self._tuples[self._offered][0] - self._time.now_ns))
        if self._end is None:
            dues.append(max(now_ns, self._sender.connect_at_ns or 0))
        return min(dues)

    def _offer(self) -> None:
        self._full = False
        while self._offered < len(self._tuples) and self._tuples[self._offered][0] <= self._time.now_ns:
            at_ns, payload = self._clock.now_ns(), self._tuples[self._offered][1]
            origin_ns = at_ns - self._ages.get(self._offered, 0)
            data = frames.encode_tuple((0, 0, 0, 0, origin_ns, origin_ns), self._stream, 0, payload)
            if not self._sender.offer(at_ns, data, at_ns + GIVE_UP_NS, self._offered):
                self._full = True  # until something has left, or is given up
                return
            self.fed[self._offered] = Fed(self._offered, Fate.UNKNOWN)
            self.offered_ns.append(self._time.now_ns)
            self._offered += 1

    def _connect(self) -> None:
        now_ns = self._clock.now_ns()
        if self._end is not None:
            late = not self._sender.connected and now_ns - self._since_ns > PATIENCE_NS
            if late or self._sender.stalled(now_ns):
                self._drop()
        elif now_ns >= (self._sender.connect_at_ns or 0):
            self._end, self._since_ns = self._network.dial(self._host_name, self._port), now_ns
            self._reader = frames.FrameReader()
            self._unwritten.clear()
            self._network.add(self._end.fileno(), self, WRITABLE)

    def _drop(self) -> None:
        if self._end is not None:
            self._network.remove(self._end.fileno())
            self._end.close()
            self._end = None
            if self._sender.connected:
                self._sender.on_disconnected(self._clock.now_ns())
            else:
                self._sender.on_connect_failed(self._clock.now_ns())

    def on_ready(self, at_ns: int, mask: int) -> None:
        """The connection stands, or has failed, or brings outcomes."""
        end = self._end
        assert end is not None
        if mask & WRITABLE and not mask & GONE:
            if not self._sender.connected and not self._unwritten:
                self._network.change(end.fileno(), READABLE)
                hello = frames.Hello(
                    f"source:{self._name}", self._clock.domain, self._boot, 0, self._known, self._clock.drift_ppm
                )
                self._write(frames.encode_hello(hello))
            elif self._unwritten:
                self._write(b"")
        if mask & ~WRITABLE:
            self._read(at_ns)

    def _read(self, at_ns: int) -> None:
        assert self._end is not None
        try:
            data = self._end.recv(1 << 16)
            if not data:
                self._drop()
                return
            for frame in self._reader.feed(data):
                self._on_frame(at_ns, frame)
        except BlockingIOError:
            return
        except (OSError, LinkError):
            self._drop()

    def _on_frame(self, at_ns: int, frame: frames.Frame) -> None:
        if isinstance(frame, frames.Hello):
            self._expect_no_answer(frame.resume_after, self._taken)
            self._taken = max(self._taken, frame.resume_after)
            self._sender.on_connected(at_ns, frame.boot, frame.resume_after, frame.credit_bytes, asks=True)
        elif isinstance(frame, frames.Ack):
            for answer in frame.admitted:
                self._settle(answer.link_seq, Fate.ADMITTED, answer.epoch, answer.seq)
            self._expect_no_answer(self._acknowledged, frame.upto)
            self._acknowledged = max(self._acknowledged, frame.upto)
            self._sender.on_ack(at_ns, frame.upto, frame.credit_bytes)
        elif isinstance(frame, frames.Refused):
            if frame.link_seq:
                self._settle(frame.link_seq, Fate.REFUSED, why=frame.why)
            else:
                raise LinkError("refused", frame.why)
        elif isinstance(frame, frames.Probe) and not (frame.t1_ns or frame.t2_ns):
            self._sender.heard(at_ns)
            self._write(frames.encode_probe(frame._replace(t1_ns=at_ns, t2_ns=at_ns)))

    def _expect_no_answer(self, after: int, upto: int) -> None:
        """What a node had taken over and has lost is not sent again, since it may have run; nor is what it has
        acknowledged and does not answer."""
        for link_seq in range(after + 1, upto + 1):
            if self.fed[self._numbers[link_seq - 1]].fate is Fate.UNKNOWN:
                self._settle(link_seq, Fate.UNANSWERED)

    def _settle(self, link_seq: int, fate: Fate, epoch: int = 0, seq: int = 0, why: str = "") -> None:
        number = self._numbers[link_seq - 1]
        self.fed[number] = Fed(number, fate, epoch, seq, why)
        self._known = max(self._known, link_seq)

    def _flush(self) -> None:
        while self._end is not None and not self._unwritten:
            batch = self._sender.poll(self._clock.now_ns())
            if batch is None:
                return
            self._write(frames.encode_outgoing(batch, self._clock.now_ns))

    def _write(self, data: bytes) -> None:
        assert self._end is not None
        self._unwritten += data
        try:
            taken = self._end.send(self._unwritten)
        except BlockingIOError:
            taken = 0
        except OSError:
            return  # the next look at the stream says so
        del self._unwritten[:taken]
        self._network.change(self._end.fileno(), READABLE | (WRITABLE if self._unwritten else 0))
