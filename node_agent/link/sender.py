"""The sending end of a link: one per peer and per sending incarnation. Pure.

The driver owns the socket and does four things: it offers tuples, tells what happened to the connection and which
acknowledgements came, and asks `poll` for the next batch whenever it may write. Everything else happens here: order,
credit, what is resent, what is given up. Nothing blocks; `offer` says no when the link holds too much.

A tuple's life: offered -> waiting -> in flight -> acknowledged. When the connection ends, what was in flight is resent
over the next one, in the old order and under the old link_seq, while `give_up_ns` is not past. link_seq is assigned at
the first transmission, so tuples that never leave take no number.

A large tuple leaves in chunks, at most one between two batches, and has its number with the last one: until then it has
not left. What else waits goes first, but what belongs to the same flow as a large tuple that waits: it stays behind it.
"""

from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, Never, Protocol

from node_agent.link.backoff import Backoff
from node_agent.link.large_tuple import LargeTuple
from node_agent.link.limits import (
    BATCH_OVERHEAD_BYTES,
    CHUNK_BYTES,
    MAX_BATCH_TUPLES,
    MAX_FRAME_BYTES,
    TUPLE_OVERHEAD_BYTES,
    LinkError,
)

Tag = object  # what a driver gives with a tuple, and gets with what is told of it
Encoded = bytes | LargeTuple

MOST_TUPLE_BYTES = MAX_FRAME_BYTES - BATCH_OVERHEAD_BYTES - TUPLE_OVERHEAD_BYTES  # of one that goes in a batch
MOST_LARGE_BYTES = 32 << 20  # of large tuples, waiting and in flight
NEVER_NS = (1 << 63) - 1
MOST_CREDIT = 1 << 62  # bytes: what a peer grants beyond them is as good
SWEEP_NS_PER_TUPLE = 1_000  # a sweep over n waiting tuples at most every n microseconds: it costs a few per cent


class SenderFacts(Protocol):
    """What the link tells its driver, at the instant it happens. `tag` is what the driver gave with the offer."""

    def sent(self, at_ns: int, link_seq: int, tag: Never) -> None:
        """The tuple goes into a batch for the first time (once per tuple): SENT."""

    def acked(self, at_ns: int, upto: int) -> None:
        """The peer has taken over every tuple up to this link_seq: ACKED."""

    def gave_up(self, at_ns: int, link_seq: int, tag: Never) -> None:
        """No longer in time. link_seq 0: it never left (LOST with FLAG); else the peer may have it (GAVE_UP)."""


class Outgoing(NamedTuple):
    """One batch to write now: `frames.encode_batch(first, the clock, tuples)`. sent_ns: the instant of the poll."""

    first: int
    sent_ns: int
    tuples: Sequence[bytes]


class OutgoingChunk(NamedTuple):
    """One part of a large tuple to write now. first: its link_seq with the last part, before it 0."""

    first: int
    sent_ns: int
    whole: LargeTuple
    offset: int


def _one_flow(tag: object) -> Hashable:
    return None


class Sender:
    """All that is sent to one peer. See the module's head for the rules.

    max_bytes, max_tuples: what the link holds at most (waiting and in flight); beyond it `offer` returns False.
    stall_ns: with tuples in flight and no acknowledgement for so long, or with nothing heard for so long from a peer
    that asks, `stalled` says so. flow_of: of a tuple, by its tag: within a flow the order of the offers stays.
    """

    def __init__(
        self,
        facts: SenderFacts,
        *,
        max_bytes: int = 4 << 20,
        max_tuples: int = 16_384,
        stall_ns: int = 3_000_000_000,
        backoff: Backoff | None = None,
        flow_of: Callable[[Never], Hashable] = _one_flow,
    ) -> None:
        self._facts = facts
        self._flow_of = flow_of
        self._max_bytes = max_bytes
        self._max_tuples = max_tuples
        self._stall_ns = stall_ns
        self._backoff = backoff or Backoff()
        self._waiting: deque[tuple[Encoded, int, Tag]] = deque()  # never sent: data, give_up_ns, tag
        self._large: deque[tuple[Encoded, int, Tag]] = deque()  # the same, large ones and what stays behind them
        self._large_flows: dict[Hashable, int] = {}  # how many of each flow are there
        self._offset = 0  # how much has left of the large tuple that is under way
        self._takes_chunks = False
        self._most_bytes = 0
        self.large_bytes = 0
        """The part of `held_bytes` that is of large tuples."""
        self._again: deque[tuple[int, Encoded, int, Tag]] = deque()  # sent over an earlier connection: link_seq, ...
        self._flight: deque[tuple[int, Encoded, int, Tag]] = deque()  # sent over this connection
        self._flight_bytes = 0
        self._next_seq = 1
        self._soonest_ns = NEVER_NS  # no tuple outside the flight is to be given up before this instant
        self._swept_ns = 0
        self._progress_ns = 0
        self._heard_ns: int | None = None  # None: over this connection the peer asks nothing
        self._credit = 0
        self.connected = False
        self.resent = 0  # tuples that were sent again over another connection
        self.peer_boot = 0
        self.held_bytes = 0
        """Bytes of encoded tuples that are waiting or unacknowledged."""

    def __len__(self) -> int:
        """Tuples that are waiting or unacknowledged."""
        return len(self._waiting) + len(self._large) + len(self._again) + len(self._flight)

    @property
    def unacknowledged(self) -> int:
        """Tuples that have left and that the peer has not yet taken over."""
        return len(self._again) + len(self._flight)

    @property
    def next_seq(self) -> int:
        """The number of the next tuple that leaves for the first time."""
        return self._next_seq

    @property
    def connect_at_ns(self) -> int | None:
        """When to try to connect next; None while connected."""
        return None if self.connected else self._backoff.next_ns

    def offer(self, at_ns: int, data: Encoded, give_up_ns: int, tag: Tag) -> bool:
        """Queue one encoded tuple (`frames.encode_tuple`). False: not kept, the link is full or it fits no frame.

        give_up_ns: the last instant at which sending it is worth anything (its latest origin plus the last deadline).
        """
        size, plain = len(data), type(data) is bytes
        if plain and size > MOST_TUPLE_BYTES:
            return False
        if self._full(size, plain):
            if at_ns <= self._soonest_ns:
                return False
            self.sweep(at_ns)
            if self._full(size, plain):
                return False
        if not self.held_bytes:
            self._progress_ns = at_ns  # before, there was nothing to wait for
        if plain and not self._large:
            self._waiting.append((data, give_up_ns, tag))
        elif not plain or self._flow_of(tag) in self._large_flows:  # type: ignore[arg-type]
            flow = self._flow_of(tag)  # type: ignore[arg-type]
            self._large_flows[flow] = self._large_flows.get(flow, 0) + 1
            self._large.append((data, give_up_ns, tag))
            self.large_bytes += 0 if plain else size
        else:
            self._waiting.append((data, give_up_ns, tag))
        self.held_bytes += size
        if give_up_ns < self._soonest_ns:  # noqa: PLR1730 - a call costs more
            self._soonest_ns = give_up_ns
        return True

    def offer_many(self, at_ns: int, offered: Sequence[tuple[Encoded, Tag]], give_up_ns: int) -> int:
        """As `offer` of each of these, with its tag, in order. How many are queued: those before the first that the
        link has no room for."""
        count = bytes_ = 0
        waiting = self._waiting
        room = tuples = -1  # looked up once for as many as fit
        for data, tag in offered:
            size = len(data)
            if room < 0 and not self._large:
                waiting = self._waiting  # a sweep makes it anew
                room = self._max_bytes - self.held_bytes + self.large_bytes
                tuples = self._max_tuples - len(self)
            plain = type(data) is bytes and size <= MOST_TUPLE_BYTES
            if plain and size <= room and tuples > 0 and (bytes_ or self.held_bytes):
                waiting.append((data, give_up_ns, tag))
                room -= size
                tuples -= 1
                bytes_ += size
            else:
                self._queued(bytes_, give_up_ns)
                bytes_, room = 0, -1
                if not self.offer(at_ns, data, give_up_ns, tag):
                    return count
            count += 1
        self._queued(bytes_, give_up_ns)
        return count

    def _queued(self, bytes_: int, give_up_ns: int) -> None:
        """So many more bytes wait."""
        if bytes_:
            self.held_bytes += bytes_
            if give_up_ns < self._soonest_ns:  # noqa: PLR1730 - a call costs more
                self._soonest_ns = give_up_ns

    def _full(self, size: int, plain: bool) -> bool:
        if len(self._waiting) + len(self._large) + len(self._again) + len(self._flight) >= self._max_tuples:
            return True
        if plain:
            return self.held_bytes - self.large_bytes + size > self._max_bytes
        return self.large_bytes + size > MOST_LARGE_BYTES

    def on_connected(
        self, at_ns: int, boot: int, resume_after: int, credit: int, asks: bool = False, takes_chunks: bool = False,
        most_bytes: int = 0,
    ) -> None:  # fmt: skip
        """The peer's Hello came. What it has not taken over by then is resent by the following polls. asks: it asks for
        this clock once a second, so that its silence means something. takes_chunks: large tuples may come to it.
        most_bytes: of a payload; what is larger it refuses; 0: not told.

        Raises LinkError where it claims tuples that were never sent.
        """
        if self.connected:
            self.on_disconnected(at_ns)
        if resume_after >= self._next_seq:
            raise LinkError("resume_ahead", f"the peer resumes after {resume_after} of {self._next_seq - 1} sent")
        self.connected = True
        self._takes_chunks, self._most_bytes = takes_chunks, most_bytes
        self.peer_boot = boot
        self._credit = min(credit, MOST_CREDIT)
        self._progress_ns = at_ns
        self._heard_ns = at_ns if asks else None
        taken = 0
        while self._again and self._again[0][0] <= resume_after:
            taken, data, _, _ = self._again.popleft()
            self._let_go(data)
        if taken:
            self._facts.acked(at_ns, resume_after)

    def number_from(self, link_seq: int) -> None:
        """The first tuple has that number: an earlier sender's, of the same incarnation, went before."""
        assert not len(self), "a number is not given twice"
        self._next_seq = link_seq

    def moved(self) -> None:
        """The peer has another address: no reason to wait as long as for one that does not answer."""
        self._backoff.succeeded()
        self._backoff.next_ns = 0

    def on_connect_failed(self, at_ns: int) -> None:
        """An attempt to connect failed (no answer, refused): `connect_at_ns` says when to try again."""
        self._backoff.failed(at_ns)

    def heard(self, at_ns: int) -> None:
        """The peer has asked for this clock."""
        self._heard_ns = at_ns

    def on_ack(self, at_ns: int, upto: int, credit: int) -> None:
        """An Ack came. Raises LinkError where it acknowledges what was never sent."""
        if not self.connected:
            return
        if upto >= self._next_seq:
            raise LinkError("ack_ahead", f"the peer acknowledges {upto}, only {self._next_seq - 1} were sent")
        self._credit = min(credit, MOST_CREDIT)
        flight = self._flight
        freed = 0
        while flight and flight[0][0] <= upto:
            data = flight.popleft()[1]
            freed += len(data)
            if type(data) is not bytes:
                self.large_bytes -= len(data)
        if freed:
            self.held_bytes -= freed
            self._flight_bytes -= freed
            self._progress_ns = at_ns
            self._backoff.succeeded()
            self._facts.acked(at_ns, upto)

    def on_disconnected(self, at_ns: int) -> None:
        """The connection ended, for any reason. What was in flight will be resent."""
        self.connected = False
        self._credit = 0
        for entry in self._flight:
            self._soonest_ns = min(self._soonest_ns, entry[2])
        self._again.extendleft(reversed(self._flight))
        self._flight.clear()
        self._flight_bytes = self._offset = 0  # of what was under way nothing has left
        self._backoff.failed(at_ns)

    def stalled(self, at_ns: int) -> bool:
        """Close the connection: tuples are in flight and the peer has not acknowledged any for too long, or the peer
        says nothing at all, whether tuples wait or not. One without power would never grant any credit, and what a
        firewall has forgotten would be found out only when tuples come again."""
        if self._flight and at_ns - self._progress_ns > self._stall_ns:
            return True
        silent_since_ns = self._heard_ns if self.connected else None
        return silent_since_ns is not None and at_ns - silent_since_ns > self._stall_ns

    def due_ns(self) -> int | None:
        """The instant at which `poll` has something to do although nothing happens; None: never."""
        if self._soonest_ns == NEVER_NS or not (self._waiting or self._large or self._again):
            return None
        return max(self._soonest_ns + 1, self._swept_ns + SWEEP_NS_PER_TUPLE * len(self))

    def poll(self, at_ns: int) -> Outgoing | OutgoingChunk | None:
        """The next to write, or None: nothing to send, no credit, or not connected. Call again until None.

        Also gives up what is too late. A peer that grants any credit at all is sent at least one tuple at a time.
        """
        if self._waiting or self._again or self._large:
            if self.connected and (self._credit > 0 or self._offset):
                found: Outgoing | OutgoingChunk | None = self._next_batch(at_ns)
                if found is None and (self._large or self._again):
                    found = self._next_large(at_ns)
                if found is not None:
                    return found
            due = self.due_ns()
            if due is not None and at_ns >= due:
                self.sweep(at_ns)
        return None

    def _next_batch(self, at_ns: int) -> Outgoing | None:  # noqa: PLR0912 - the hot path: no calls
        flight = self._flight
        room = self._credit - self._flight_bytes
        if room <= 0 and flight:
            return None
        if not flight:
            self._progress_ns = at_ns
        out: list[bytes] = []
        facts, again, waiting = self._facts, self._again, self._waiting
        frame_room = MAX_FRAME_BYTES - BATCH_OVERHEAD_BYTES
        first, used = 0, 0
        while len(out) < MAX_BATCH_TUPLES:
            fresh = not again
            if not fresh:
                seq, encoded, give_up_ns, tag = again[0]
                if isinstance(encoded, LargeTuple):
                    break  # in chunks, before all that has a later number
                data = encoded
            elif waiting:
                seq = self._next_seq
                data, give_up_ns, tag = waiting[0]  # type: ignore[assignment]  # only bytes wait there
            else:
                break
            if out and seq != first + len(out):
                break  # a batch has no gaps
            size = len(data)
            if give_up_ns < at_ns:
                (waiting if fresh else again).popleft()
                self.held_bytes -= size
                facts.gave_up(at_ns, 0 if fresh else seq, tag)  # type: ignore[arg-type]
                again, waiting = self._again, self._waiting  # what it offers may sweep, which makes them anew
                continue
            if (used + size > room and (flight or out)) or size + TUPLE_OVERHEAD_BYTES > frame_room:
                break
            if fresh:
                waiting.popleft()
                self._next_seq = seq + 1
                facts.sent(at_ns, seq, tag)  # type: ignore[arg-type]
            else:
                again.popleft()
                self.resent += 1
            if not out:
                first = seq
            out.append(data)
            flight.append((seq, data, give_up_ns, tag))
            used += size
            frame_room -= size + TUPLE_OVERHEAD_BYTES
        self._flight_bytes += used
        return Outgoing(first, at_ns, out) if out else None

    def _next_large(self, at_ns: int) -> Outgoing | OutgoingChunk | None:
        """The next chunk; of what stays behind a large tuple, and for a peer that takes no chunks, a batch of one."""
        while self._again or self._large:
            again = bool(self._again)
            if again:
                seq, data, give_up_ns, tag = self._again[0]
                if not isinstance(data, LargeTuple):
                    return None  # the batch before had no room for it
            else:
                seq = 0
                data, give_up_ns, tag = self._large[0]
            chunked = self._takes_chunks and isinstance(data, LargeTuple)
            if not self._offset:
                fits = chunked or len(data) + TUPLE_OVERHEAD_BYTES <= MAX_FRAME_BYTES - BATCH_OVERHEAD_BYTES
                if give_up_ns < at_ns or not fits:
                    self._take_large()
                    self._let_go(data)
                    self._facts.gave_up(at_ns, seq, tag)  # type: ignore[arg-type]
                    continue
                if not self._has_credit(data):
                    return None
                self._flight_bytes += len(data)
            offset = self._offset
            if chunked and isinstance(data, LargeTuple) and offset + CHUNK_BYTES < data.size:
                self._offset = offset + CHUNK_BYTES
                return OutgoingChunk(0, at_ns, data, offset)
            self._take_large()
            self._offset = 0
            if again:
                self.resent += 1
            else:
                seq = self._next_seq
                self._next_seq = seq + 1
                self._facts.sent(at_ns, seq, tag)  # type: ignore[arg-type]
            if not self._flight:
                self._progress_ns = at_ns
            self._flight.append((seq, data, give_up_ns, tag))
            if isinstance(data, LargeTuple):
                return OutgoingChunk(seq, at_ns, data, offset) if chunked else Outgoing(seq, at_ns, [data.whole()])
            return Outgoing(seq, at_ns, [data])
        return None

    def _has_credit(self, data: Encoded) -> bool:
        """What fits a frame may go where nothing is in flight; what is larger waits for as much credit, unless it is
        larger than all that the peer takes: that is refused as it comes, and would wait in vain."""
        size = len(data)
        if size <= self._credit - self._flight_bytes:
            return True
        if self._flight or self._credit <= 0:
            return False
        refused = isinstance(data, LargeTuple) and 0 < self._most_bytes < data.size
        return size <= MAX_FRAME_BYTES or refused

    def _take_large(self) -> None:
        """The first one leaves the line."""
        if self._again:
            self._again.popleft()
            return
        _, _, tag = self._large.popleft()
        flow = self._flow_of(tag)  # type: ignore[arg-type]
        self._large_flows[flow] -= 1
        if not self._large_flows[flow]:
            del self._large_flows[flow]

    def _let_go(self, data: Encoded) -> None:
        """It is held no more."""
        self.held_bytes -= len(data)
        if isinstance(data, LargeTuple):
            self.large_bytes -= len(data)

    def give_up_all(self, at_ns: int) -> None:
        """The link ends for good (plan stopped, shutdown): every tuple still held is given up."""
        for seq, _, _, tag in (*self._again, *self._flight):
            self._facts.gave_up(at_ns, seq, tag)  # type: ignore[arg-type]
        for _, _, tag in (*self._waiting, *self._large):
            self._facts.gave_up(at_ns, 0, tag)  # type: ignore[arg-type]
        for line in (self._again, self._flight, self._waiting, self._large, self._large_flows):
            line.clear()
        self._flight_bytes = self.held_bytes = self.large_bytes = self._offset = 0
        self._soonest_ns = NEVER_NS

    def sweep(self, at_ns: int) -> None:
        """Give up everything outside the flight whose time is over. `poll` does it when `due_ns` has come."""
        soonest = NEVER_NS
        again: deque[tuple[int, Encoded, int, Tag]] = deque()
        waiting: deque[tuple[Encoded, int, Tag]] = deque()
        large: deque[tuple[Encoded, int, Tag]] = deque()
        gone: list[tuple[int, Tag]] = []
        under_way = self._again[0] if self._again and self._offset else None
        for entry in self._again:
            if entry[2] < at_ns and entry is not under_way:
                self._let_go(entry[1])
                gone.append((entry[0], entry[3]))
            else:
                again.append(entry)
                soonest = min(soonest, entry[2])
        for new in self._waiting:
            if new[1] < at_ns:
                self.held_bytes -= len(new[0])
                gone.append((0, new[2]))
            else:
                waiting.append(new)
                soonest = min(soonest, new[1])
        begun = self._large[0] if self._offset and under_way is None else None
        for each in self._large:
            if each[1] < at_ns and each is not begun:
                self._let_go(each[0])
                gone.append((0, each[2]))
            else:
                large.append(each)
                soonest = min(soonest, each[1])
        if len(large) < len(self._large):
            self._large, self._large_flows = large, dict(Counter([self._flow_of(tag) for _, _, tag in large]))  # type: ignore[arg-type]
        self._again, self._waiting, self._soonest_ns, self._swept_ns = again, waiting, soonest, at_ns
        for seq, tag in gone:
            self._facts.gave_up(at_ns, seq, tag)  # type: ignore[arg-type]
