"""The link to one peer: its connection, what it owes, and the facts about what it sends."""

from collections.abc import Hashable

from node_agent.core.punctuation import Progress, Removal
from node_agent.host.log import WARNING
from node_agent.link.clock_offset import FAR_NS
from node_agent.link.large_tuple import LargeTuple
from node_agent.link.limits import LinkError
from node_agent.link.sender import OutgoingChunk, Sender
from node_agent.ports import GONE, READABLE, WRITABLE, Stream
from node_agent.runtime.context import Shared
from node_agent.runtime.links.credit import Backpressure
from node_agent.runtime.links.pending_punctuation import Heartbeat, Key, PendingPunctuation, Tag
from node_agent.runtime.links.roles import answer
from node_agent.runtime.links.socket_connection import Connection, Security
from node_agent.wire import frames
from node_agent.wire.frames import Ack, encode_outgoing
from node_agent.wire.punctuation_frames import encode_punctuation
from protos.records import ACKED, CAUSE_LINK_FULL, CAUSE_NO_ROUTE, FLAG, GAVE_UP, LOST, SENT

CONNECT_NS = 2_000_000_000  # until the peer's hello
CONNECT_TLS_NS = 5_000_000_000  # the same where handshakes may have to wait for their turn, on both sides
TUPLE_BYTES = 430  # what is kept of a tuple in a link beside its encoding: measured, with CPython 3.11 on 64 bits
UNREACHABLE_NS = 3_000_000_000  # without a connection, until that is said
PROBED_NS = 2_000_000_000  # after a suspension: until the peer has asked for the clock, that nothing is sent
LEAST_NS = 200_000_000  # a tuple that is late already is sent all the same: its lateness is a result, too


def _stream_of(tag: Tag) -> Hashable:
    return tag[0], tag[2]


class PeerLink:
    """The connection to one peer, driven by a Sender."""

    def __init__(
        self, shared: Shared, backpressure: Backpressure, name: str, address: str, dirty: "dict[PeerLink, None]",
        security: Security | None = None,
    ) -> None:  # fmt: skip
        self._security = security
        self.shared, self.backpressure, self.name, self.address = shared, backpressure, name, address
        self._dirty = dirty  # links to flush
        self.sender = Sender(self, flow_of=_stream_of)
        self._routed = 0
        self.index = 0  # the peer's number in the newest plan, for ACKED
        self.flags = 0
        self._connection: Connection | None = None
        self._since_ns = 0
        self._away_ns = 0  # since when there has been no connection; 0: there is one; FAR_NS: that has been said
        self._patience_ns = CONNECT_NS if security is None else CONNECT_TLS_NS
        self._unprobed_ns = 0  # until when tuples wait for the peer to ask for this clock; 0: they do not
        self._flight: dict[int, Tag] = {}  # by link_seq, in order
        self._held_bytes = 0
        self.pending = PendingPunctuation()

    # -- what the Sender tells

    def sent(self, at_ns: int, link_seq: int, tag: Tag) -> None:
        """SENT, once per tuple."""
        self._flight[link_seq] = tag
        deployed, (source, epoch, seq, ordinal, _, _), stream, index, punctuation = tag
        if punctuation is None:
            loaded = deployed.loaded
            self.shared.facts.write(SENT, loaded.flags, index, source, epoch, seq, at_ns, link_seq, stream, ordinal)
        elif punctuation.__class__ is Progress:
            self.pending.queued.discard((deployed, stream, index, source, epoch))

    def acked(self, at_ns: int, upto: int) -> None:
        """ACKED."""
        flight = self._flight
        taken: list[int] = []
        for link_seq in flight:
            if link_seq > upto:
                break
            taken.append(link_seq)
        for link_seq in taken:
            flight.pop(link_seq)[0].held -= 1
        self.shared.facts.write(ACKED, self.flags, self.index, 0, 0, 0, at_ns, upto)

    def gave_up(self, at_ns: int, link_seq: int, tag: Tag) -> None:
        """GAVE_UP, or LOST for what never left."""
        if link_seq and self._flight.pop(link_seq, None) is None:
            return  # the peer has refused it, and the acknowledgement was lost: it was given up then
        tag[0].held -= 1
        self.shared.counters["tuples_given_up"] += tag[4] is None  # punctuation is no tuple, and no record tells of it
        if not link_seq:
            self.lost(at_ns, tag, CAUSE_LINK_FULL if self.sender.connected else CAUSE_NO_ROUTE)
            return
        deployed, (source, epoch, seq, ordinal, _, _), stream, index, punctuation = tag
        if punctuation is None:
            self.shared.facts.write(
                GAVE_UP, deployed.loaded.flags, index, source, epoch, seq, at_ns, link_seq, stream, ordinal
            )
        self._owe(tag)

    def lost(self, at_ns: int, tag: Tag, cause: int) -> None:
        """LOST: the tuple never left for the peer."""
        deployed, (source, epoch, seq, ordinal, _, _), stream, index, punctuation = tag
        if punctuation is None:
            flags = deployed.loaded.flags | FLAG
            self.shared.facts.write(LOST, flags, index, source, epoch, seq, at_ns, cause, ordinal, stream)
        self._owe(tag)

    def _owe(self, tag: Tag) -> None:
        """The peer does not get it, or may not: where numbers are counted, it is to be told."""
        deployed, lineage, stream, index, punctuation = tag
        key = (deployed, stream, index, lineage[0], lineage[1])
        if isinstance(punctuation, Progress):
            self.pending.queued.discard(key)  # the next one says more
        elif stream in deployed.counted:
            self.pending.lost(key, punctuation.first if isinstance(punctuation, Removal) else lineage[2], lineage)

    # -- what the runtime tells

    def offer(self, at_ns: int, data: bytes | LargeTuple, give_up_ns: int, tag: Tag) -> None:
        """Queue a tuple, or punctuation; a link that is full loses it."""
        if self.sender.offer(at_ns, data, give_up_ns, tag):
            tag[0].held += 1
        else:
            self.shared.counters["link_full"] += tag[4] is None
            self.lost(at_ns, tag, CAUSE_LINK_FULL)

    def heartbeat(self, at_ns: int, data: bytes, give_up_ns: int, tag: Tag) -> None:
        """Queue a heartbeat; while an earlier one of its source waits here, the newest one is kept for later."""
        deployed, lineage, stream, index, _ = tag
        key = (deployed, stream, index, lineage[0], lineage[1])
        self._offer_heartbeat(at_ns, key, Heartbeat(data, give_up_ns, tag))

    def _offer_heartbeat(self, at_ns: int, key: Key, heartbeat: Heartbeat) -> bool:
        pending = self.pending
        data, give_up_ns, tag = heartbeat
        if key not in pending.queued and self.sender.offer(at_ns, data, give_up_ns, tag):
            pending.queued.add(key)
            pending.heartbeats.pop(key, None)
            key[0].held += 1
            return True
        pending.heartbeats[key] = heartbeat
        return False

    def _pay(self, at_ns: int) -> None:
        """Queue what is owed, as far as the link can take it."""
        pending = self.pending
        for key, first, lineage in pending.take_ranges():
            deployed, stream, index, _, _ = key
            tag = (deployed, lineage, stream, index, Removal(first))
            data = encode_punctuation(lineage, stream, deployed.plan.hash, tag[4])
            due_ns = lineage[5] + deployed.last_ns(stream)
            if not self.sender.offer(at_ns, data, max(due_ns, at_ns + LEAST_NS), tag):
                pending.lost(key, first, lineage)
                return
            deployed.held += 1
        for key, heartbeat in pending.take_heartbeats():
            if not self._offer_heartbeat(at_ns, key, heartbeat):
                return

    def flush(self, at_ns: int) -> bool:
        """Write what may be written now, of a large tuple one chunk. True: flush again when others have had their
        turn."""
        connection, sender, more = self._connection, self.sender, False
        if at_ns >= self._unprobed_ns and (connection is None or not connection.unwritten):
            more = self._write(at_ns)
            if sender.connected and self.pending:
                self._pay(at_ns)
                more = more or self._write(at_ns)
        held_bytes = sender.held_bytes - sender.large_bytes + len(sender) * TUPLE_BYTES  # large ones count elsewhere
        self.backpressure.held_bytes += held_bytes - self._held_bytes
        self._held_bytes = held_bytes
        self._close_if_gone(at_ns)
        return more

    def _write(self, at_ns: int) -> bool:
        connection = self._connection
        while (out := self.sender.poll(at_ns)) is not None:
            assert connection is not None
            self.shared.facts.publish()  # SENT is in the ring before the tuple is on the wire
            connection.write(encode_outgoing(out, self.shared.now_ns))
            if connection.unwritten or connection.closed:
                break
            if out.__class__ is OutgoingChunk:
                return True
        return False

    def tick(self, at_ns: int) -> None:
        """Connect when it is time; close what does not answer."""
        sender = self.sender
        if self._connection is None:
            due_ns = sender.connect_at_ns
            if due_ns is not None and at_ns >= due_ns:
                self._connect(at_ns)
        elif (not sender.connected and at_ns - self._since_ns > self._patience_ns) or sender.stalled(at_ns):
            self.shared.note("links_stalled", f"{self.name} at {self.address} does not answer; connecting again")
            self._connection.close()
        if self.flush(at_ns):
            self._dirty[self] = None

    def move(self, address: str, routed: int) -> None:
        """The peer is served there from now on; what it has not taken over follows. routed: the epoch of the deployment
        that says so; one of a later epoch knows better."""
        if routed < self._routed:
            return
        self._routed = routed
        if address != self.address:
            self.address = address
            self.sender.moved()
            if self._connection is not None:
                self._connection.close()
                self._dirty[self] = None

    def suspended(self, at_ns: int) -> None:
        """This machine was suspended: the peer is not to read an instant of this clock before it has asked for it anew.

        It asks at the beginning of each connection. What is in the socket of the one before is of no use to it.
        """
        self._unprobed_ns = at_ns + PROBED_NS
        if self._connection is not None:
            self._connection.close()
            self._dirty[self] = None

    def due_ns(self, at_ns: int) -> int:
        """When tick has something to do."""
        sender = self.sender
        dues = [at_ns + 1_000_000_000, sender.due_ns(), sender.connect_at_ns if self._connection is None else None]
        return min(due for due in dues if due is not None)

    def close(self, at_ns: int) -> None:
        """The runtime ends: one last try to write, then nothing is held any more."""
        self.flush(at_ns)
        self.sender.give_up_all(at_ns)
        if self._connection is not None:
            self._connection.close()

    # -- the connection

    def _connect(self, at_ns: int) -> None:
        host, _, port = self.address.rpartition(":")
        try:
            end = self.shared.network.dial(host.strip("[]"), int(port))
        except OSError:
            self.sender.on_connect_failed(at_ns)
            self._unreachable(at_ns)
            return
        self._since_ns = at_ns
        if self._security is None:
            self._connection = Connection(self.shared, end, self, connecting=True)
        else:
            self._connection = self._secured(self._security, end, host)

    def _secured(self, security: Security, end: Stream, host: str) -> Connection | None:
        try:
            return security.dialled(end, host, self.name, self)
        except ValueError as error:
            end.close()
            self.shared.note("links_refused", f"no certificate can be of a node named {self.name!r}: {error}")
            self.sender.on_connect_failed(self._since_ns)
            return None

    def on_ready(self, at_ns: int, mask: int) -> None:
        """The connection stands, or has failed, or brings acknowledgements."""
        connection = self._connection
        assert connection is not None
        self._dirty[self] = None
        if self._since_ns and mask & WRITABLE and not mask & GONE:
            if not self.sender.connected and not connection.unwritten:
                self.shared.network.change(connection.descriptor, READABLE)
                connection.write(answer(self.shared))
            else:
                connection.flush()
        if mask & ~WRITABLE:
            try:
                arrived = connection.read()
                at_ns = (
                    self.shared.now_ns()
                )  # after it was read: stamped earlier it could be younger than its own arrival
                for frame in arrived:
                    self._on_frame(at_ns, frame)
            except LinkError as error:
                connection.refuse(error)
        self._close_if_gone(at_ns)

    def _on_frame(self, at_ns: int, frame: frames.Frame) -> None:
        sender = self.sender
        if isinstance(frame, Ack):
            sender.on_ack(at_ns, frame.upto, frame.credit_bytes)
        elif isinstance(frame, frames.Hello):
            if frame.peer != f"node:{self.name}":
                raise LinkError("wrong_peer", f"{frame.peer} answers at {self.address}, not node:{self.name}")
            same_clock = frame.clock == self.shared.clock.domain
            chunks = frame.most_bytes > 0
            sender.on_connected(at_ns, frame.boot, frame.resume_after, frame.credit_bytes, not same_clock, chunks)
            self._away_ns = 0
            if same_clock:
                self._unprobed_ns = 0
            elif self._unprobed_ns:
                self._unprobed_ns = at_ns + PROBED_NS
            message = f"connected to {self.name} at {self.address}"
            self.shared.log.say("peer_connected", message, kind=f"connected.{self.name}", peer=self.name)
        elif isinstance(frame, frames.Probe) and self._connection is not None:
            if not (frame.t1_ns or frame.t2_ns):
                sender.heard(at_ns)
                self._connection.write(frames.encode_probe(frame._replace(t1_ns=at_ns, t2_ns=at_ns)))
                self._unprobed_ns = 0
        elif isinstance(frame, frames.Refused) and frame.link_seq:
            self._refused(at_ns, frame)
        elif isinstance(frame, frames.Refused):
            counter = "links_fenced" if frame.code == "fenced" else "links_refused"
            self.shared.note(counter, f"{self.name} at {self.address} refused this node: {frame.why}")

    def _refused(self, at_ns: int, refused: frames.Refused) -> None:
        """The peer has not taken these over, and never will: GAVE_UP. Where their plan is not there, it has no windows
        to be told."""
        for link_seq in range(refused.link_seq, refused.link_seq + refused.tuples):
            tag = self._flight.pop(link_seq, None)
            if tag is None:
                continue
            deployed, (source, epoch, seq, ordinal, _, _), stream, index, punctuation = tag
            deployed.held -= 1
            if punctuation is not None:
                continue
            self.shared.note("tuples_refused_by_peer", f"{self.name} at {self.address} refused tuples: {refused.why}")
            self.shared.facts.write(
                GAVE_UP, deployed.loaded.flags, index, source, epoch, seq, at_ns, link_seq, stream, ordinal
            )
            if refused.code != "plan_unknown":
                self._owe(tag)

    def _close_if_gone(self, at_ns: int) -> None:
        connection = self._connection
        if connection is not None and connection.closed:
            self._connection = None
            if self.sender.connected:
                self.sender.on_disconnected(at_ns)
                message = f"the connection to {self.name} at {self.address} has ended; connecting again"
                self.shared.log.say("peer_lost", message, WARNING, f"lost.{self.name}", peer=self.name)
                self._away_ns = at_ns
            else:
                self.sender.on_connect_failed(at_ns)
                self._unreachable(at_ns)

    def _unreachable(self, at_ns: int) -> None:
        """Say so once, after a while: nodes start one after the other."""
        self._away_ns = self._away_ns or at_ns
        if at_ns - self._away_ns >= UNREACHABLE_NS:
            self._away_ns = FAR_NS
            message = f"{self.name} at {self.address} cannot be reached; trying on"
            self.shared.log.say("peer_unreachable", message, WARNING, f"unreachable.{self.name}", peer=self.name)
