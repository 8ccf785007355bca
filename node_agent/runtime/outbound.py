"""Links to peers, and what the engines ask for: ship a tuple, deliver a result.

A tuple is encoded once, however many peers and sinks it goes to. A link is made per peer and serves all plans.
"""

import select
import socket
from typing import Any

from node_agent.clock_domain import now_ns
from node_agent.codecs import CodecError
from node_agent.core import plan as core
from node_agent.core.parts import ABSENT, Lineage, Loaded
from node_agent.link.limits import LinkError
from node_agent.link.sender import Sender
from node_agent.runtime.connection import Connection
from node_agent.runtime.deployed import Deployed
from node_agent.runtime.inbound import Inbound
from node_agent.runtime.load import Load
from node_agent.runtime.roles import answer
from node_agent.runtime.shared import Shared
from node_agent.wire import frames
from protos.records import (
    ACKED,
    CAUSE_ENCODE,
    CAUSE_LINK_FULL,
    CAUSE_NO_ROUTE,
    FLAG,
    GAVE_UP,
    LOST,
    SENT,
)

CONNECT_NS = 2_000_000_000  # until the peer's hello
LEAST_NS = 200_000_000  # a tuple that is late already is sent all the same: its lateness is a result, too
Tag = tuple[Deployed, Lineage, int, int, bool]  # plan, lineage, stream, the peer's number in that plan, absence mark


class PeerLink:
    """The connection to one peer, driven by a Sender."""

    def __init__(self, shared: Shared, load: Load, name: str, address: str, dirty: "dict[PeerLink, None]") -> None:
        self.shared, self.load, self.name, self.address = shared, load, name, address
        self._dirty = dirty  # links to flush
        self.sender = Sender(self)
        self.index = 0  # the peer's number in the newest plan, for ACKED
        self.flags = 0
        self._connection: Connection | None = None
        self._since_ns = 0
        self._flight: dict[int, Tag] = {}  # by link_seq, in order
        self._held_bytes = 0

    # -- what the Sender tells

    def sent(self, at_ns: int, link_seq: int, tag: Tag) -> None:
        """SENT, once per tuple."""
        self._flight[link_seq] = tag
        deployed, (source, epoch, seq, ordinal, _, _), stream, index, absent = tag
        if not absent:
            self.shared.facts.write(
                SENT, deployed.loaded.flags, index, source, epoch, seq, at_ns, link_seq, stream, ordinal
            )

    def acked(self, at_ns: int, upto: int) -> None:
        """ACKED."""
        flight = self._flight
        while flight and (link_seq := next(iter(flight))) <= upto:
            flight.pop(link_seq)[0].held -= 1
        self.shared.facts.write(ACKED, self.flags, self.index, 0, 0, 0, at_ns, upto)

    def gave_up(self, at_ns: int, link_seq: int, tag: Tag) -> None:
        """GAVE_UP, or LOST for what never left."""
        self._flight.pop(link_seq, None)
        tag[0].held -= 1
        self.shared.counters["tuples_given_up"] += 1
        if not link_seq:
            self.lost(at_ns, tag, CAUSE_LINK_FULL if self.sender.connected else CAUSE_NO_ROUTE)
            return
        deployed, (source, epoch, seq, ordinal, _, _), stream, index, absent = tag
        if not absent:
            self.shared.facts.write(
                GAVE_UP, deployed.loaded.flags, index, source, epoch, seq, at_ns, link_seq, stream, ordinal
            )

    def lost(self, at_ns: int, tag: Tag, cause: int) -> None:
        """LOST: the tuple never left for the peer."""
        deployed, (source, epoch, seq, ordinal, _, _), stream, index, absent = tag
        if not absent:
            flags = deployed.loaded.flags | FLAG
            self.shared.facts.write(LOST, flags, index, source, epoch, seq, at_ns, cause, ordinal, stream)

    # -- what the runtime tells

    def offer(self, at_ns: int, data: bytes, give_up_ns: int, tag: Tag) -> None:
        """Queue a tuple; a link that is full loses it."""
        if self.sender.offer(at_ns, data, give_up_ns, tag):
            tag[0].held += 1
        else:
            self.shared.counters["link_full"] += 1
            self.lost(at_ns, tag, CAUSE_LINK_FULL)

    def flush(self, at_ns: int) -> None:
        """Write what may be written now."""
        connection, sender = self._connection, self.sender
        if connection is None or not connection.unwritten:
            while (batch := sender.poll(at_ns)) is not None:
                assert connection is not None
                self.shared.facts.publish()  # SENT is in the ring before the tuple is on the wire
                connection.write(frames.encode_batch(batch.first, now_ns, batch.tuples))
                if connection.unwritten or connection.closed:
                    break
        self.load.held_bytes += sender.held_bytes - self._held_bytes
        self._held_bytes = sender.held_bytes
        self._close_if_gone(at_ns)

    def tick(self, at_ns: int) -> None:
        """Connect when it is time; close what does not answer."""
        sender = self.sender
        if self._connection is None:
            due_ns = sender.connect_at_ns
            if due_ns is not None and at_ns >= due_ns:
                self._connect(at_ns)
        elif (not sender.connected and at_ns - self._since_ns > CONNECT_NS) or sender.stalled(at_ns):
            self.shared.note("links_stalled", f"{self.name} at {self.address} does not answer; connecting again")
            self._connection.close()
        self.flush(at_ns)

    def move(self, address: str) -> None:
        """The peer is served there from now on; what it has not taken over follows."""
        if address != self.address:
            self.address = address
            self.sender.moved()
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
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        end = socket.socket(family, socket.SOCK_STREAM)
        end.setblocking(False)
        try:
            end.connect((host.strip("[]"), int(port)))
        except BlockingIOError:
            pass
        except OSError:
            end.close()
            self.sender.on_connect_failed(at_ns)
            return
        self._since_ns = at_ns
        self._connection = Connection(self.shared, end, self, connecting=True)

    def on_ready(self, at_ns: int, mask: int) -> None:
        """The connection stands, or has failed, or brings acknowledgements."""
        connection = self._connection
        assert connection is not None
        self._dirty[self] = None
        if self._since_ns and mask & select.EPOLLOUT and not mask & (select.EPOLLERR | select.EPOLLHUP):
            if not self.sender.connected and not connection.unwritten:
                self.shared.poller.change(connection.descriptor, select.EPOLLIN)
                connection.write(answer(self.shared))
            else:
                connection.flush()
        if mask & ~select.EPOLLOUT:
            try:
                arrived = connection.read()
                at_ns = now_ns()  # after it was read: stamped earlier it could be younger than its own arrival
                for frame in arrived:
                    self._on_frame(at_ns, frame)
            except LinkError as error:
                connection.refuse(error)
        self._close_if_gone(at_ns)

    def _on_frame(self, at_ns: int, frame: frames.Frame) -> None:
        sender = self.sender
        if isinstance(frame, frames.Ack):
            sender.on_ack(at_ns, frame.upto, frame.credit_bytes)
        elif isinstance(frame, frames.Hello):
            if frame.peer != f"node:{self.name}":
                raise LinkError("wrong_peer", f"{frame.peer} answers at {self.address}, not node:{self.name}")
            sender.on_connected(at_ns, frame.boot, frame.resume_after, frame.credit_bytes)
        elif isinstance(frame, frames.Probe) and self._connection is not None:
            if not (frame.t1_ns or frame.t2_ns):
                self._connection.write(frames.encode_probe(frame._replace(t1_ns=at_ns, t2_ns=at_ns)))
        elif isinstance(frame, frames.Refused):
            self.shared.note("links_refused", f"{self.name} at {self.address} refused this node: {frame.why}")

    def _close_if_gone(self, at_ns: int) -> None:
        connection = self._connection
        if connection is not None and connection.closed:
            self._connection = None
            if self.sender.connected:
                self.sender.on_disconnected(at_ns)
            else:
                self.sender.on_connect_failed(at_ns)


class Outbox:
    """The engines' commands."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.links: dict[str, PeerLink] = {}  # by node name
        self.dirty: dict[PeerLink, None] = {}
        self._routes: dict[tuple[Loaded, int], PeerLink] = {}
        self._deadlines: dict[tuple[Loaded, int], int] = {}
        self._codecs: dict[tuple[Loaded, int], Any] = {}
        self.by_loaded: dict[Loaded, Deployed] = {}
        self.inbound: Inbound | None = None
        self._last: tuple[Loaded, int, Lineage, Any] | None = None
        self._data = b""

    def add(self, deployed: Deployed, routes: tuple[tuple[int, str, str], ...], load: Load) -> str:
        """A plan was loaded, or deployed again because peers have moved: links to the peers it sends to.

        Returns what is missing, or nothing.
        """
        addresses = {name: address for _, name, address in routes}
        loaded, targets = deployed.loaded, {peer for _, peer in deployed.plan.sends}
        peers = [peer for peer in deployed.plan.peers if peer.index in targets]
        for peer in peers:
            if peer.name not in addresses:
                return f"no route to node {peer.name}: deploy with its address"
        for peer in peers:
            link = self.links.get(peer.name)
            if link is None:
                link = self.links[peer.name] = PeerLink(self.shared, load, peer.name, addresses[peer.name], self.dirty)
            link.move(addresses[peer.name])
            link.index, link.flags = peer.index, loaded.flags
            self._routes[loaded, peer.index] = link
        for stream in deployed.plan.streams:
            self._deadlines[loaded, stream.id] = stream.last_ns
            self._codecs[loaded, stream.id] = deployed.codecs[stream.id]
        self.by_loaded[loaded] = deployed
        return ""

    def remove(self, loaded: Loaded) -> None:
        """A plan was unloaded. Links stay: they hold nothing of it any more, or are about to give it up."""
        for table in (self._routes, self._deadlines, self._codecs):
            for key in [key for key in table if key[0] is loaded]:
                del table[key]
        self.by_loaded.pop(loaded, None)
        self._last = None

    def send(self, at_ns: int, loaded: Loaded, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        """Offer it to the peer's link; it leaves after this instance."""
        link = self._routes[loaded, peer]
        absent = payload is ABSENT
        tag = (self.by_loaded[loaded], lineage, stream, peer, absent)
        try:
            data = self._encoded(loaded, stream, lineage, payload)
        except CodecError as error:
            self.shared.note("payloads_unencodable", f"stream {stream}: {error}")
            link.lost(at_ns, tag, CAUSE_ENCODE)
            return
        due_ns = lineage[5] + self._deadlines[loaded, stream]
        link.offer(at_ns, data, max(due_ns, at_ns + LEAST_NS), tag)
        self.dirty[link] = None

    def deliver(self, at_ns: int, loaded: Loaded, output: core.Output, lineage: Lineage, payload: Any) -> None:
        """To every sink that listens."""
        assert self.inbound is not None
        sinks = self.inbound.sinks.get(output.name)
        if not sinks:
            return
        codec = self._codecs[loaded, output.stream]
        try:
            body = codec.encode(payload)
        except CodecError as error:
            self.shared.note("payloads_unencodable", f"output {output.name}: {error}")
            return
        data = frames.encode_tuple(lineage, output.stream, loaded.plan.hash, body, at_ns=at_ns)
        for sink in sinks:
            if sink.codec.name == codec.name:
                sink.deliver(data)
            else:
                self.shared.counters["sink_tuples_dropped"] += 1

    def _encoded(self, loaded: Loaded, stream: int, lineage: Lineage, payload: Any) -> bytes:
        last = self._last
        if last is not None and last[2] is lineage and last[3] is payload and last[1] == stream and last[0] is loaded:
            return self._data
        if payload is ABSENT:
            self._data = frames.encode_tuple(lineage, stream, loaded.plan.hash, b"", absent=True)
        else:
            body = self._codecs[loaded, stream].encode(payload)
            self._data = frames.encode_tuple(lineage, stream, loaded.plan.hash, body)
        self._last = (loaded, stream, lineage, payload)
        return self._data

    def flush(self, at_ns: int) -> None:
        """Write what the last instances sent. Call when the facts have been published."""
        if self.dirty:
            self._last, self._data = None, b""  # every link has taken it
            for link in self.dirty:
                link.flush(at_ns)
            self.dirty.clear()

    def tick(self, at_ns: int) -> int:
        """Connect, give up, notice silence; returns when to call again."""
        due_ns = at_ns + 1_000_000_000
        for link in self.links.values():
            link.tick(at_ns)
            due_ns = min(due_ns, link.due_ns(at_ns))
        return due_ns
