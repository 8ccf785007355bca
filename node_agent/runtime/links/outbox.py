"""Carries out the engines' commands: sends tuples and punctuation to peers, delivers results.

A tuple is encoded once, however many peers and sinks it goes to. A link is made per peer and serves all plans.
"""

from itertools import islice
from typing import cast

from node_agent.core import plan as core
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan
from node_agent.core.punctuation import PUNCTUATION, Progress
from node_agent.link.large_tuple import LargeTuple
from node_agent.link.limits import CHUNK_BYTES
from node_agent.operators.codecs import Codec, CodecError
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments.deployed_plan import Deployed
from node_agent.runtime.links.acceptor import Acceptor
from node_agent.runtime.links.credit import Backpressure
from node_agent.runtime.links.delivery_counts import DeliveryCounts
from node_agent.runtime.links.peer_link import LEAST_NS, PeerLink
from node_agent.runtime.links.socket_connection import Security
from node_agent.wire import frames
from node_agent.wire.plain_frames import encode_plain
from node_agent.wire.punctuation_frames import Punctuation, encode_punctuation
from protos.records import CAUSE_ENCODE

MOST_LINK_STATES = 256  # links of which a status tells
_PUNCTUATION: frozenset[type] = frozenset(PUNCTUATION)


class Delivery:
    """What is looked up for each result of one output of one plan."""

    __slots__ = ("codec_name", "counts", "deadline_ns", "encode", "name", "parts", "stamp", "stream")

    def __init__(self, output: core.Output, codec: Codec, stamp: int, counts: DeliveryCounts) -> None:
        self.name, self.stream, self.deadline_ns = output.name, output.stream, output.deadline_ns
        self.codec_name, self.encode, self.parts = codec.name, codec.encode, codec.parts
        self.stamp, self.counts = stamp, counts


class Way:
    """What is looked up for each tuple of one stream of one plan to one peer."""

    __slots__ = ("deployed", "encode", "last_ns", "link", "parts", "stamp")

    def __init__(self, deployed: Deployed, link: PeerLink, codec: Codec, last_ns: int) -> None:
        self.deployed, self.link, self.last_ns, self.stamp = deployed, link, last_ns, deployed.plan.hash
        self.encode, self.parts = codec.encode, codec.parts


class Outbox:
    """The engines' commands."""

    def __init__(self, shared: Shared, security: Security | None = None) -> None:
        self.shared, self._security = shared, security
        self.links: dict[str, PeerLink] = {}  # by node name
        self.dirty: dict[PeerLink, None] = {}
        self._ways: dict[tuple[CompiledPlan, int, int], Way] = {}  # by plan, peer and stream
        self.by_loaded: dict[CompiledPlan, Deployed] = {}
        self.acceptor: Acceptor | None = None
        self.delivery_counts: dict[str, DeliveryCounts] = {}  # by output, as long as a plan with it is loaded
        self._deliveries: dict[tuple[CompiledPlan, int], Delivery] = {}
        self._last: tuple[CompiledPlan, int, Lineage, object] | None = None
        self._data: bytes | LargeTuple = b""

    def add(
        self, deployed: Deployed, routes: tuple[tuple[int, str, str], ...], routed: int, backpressure: Backpressure
    ) -> str:
        """A plan was loaded, or deployed again because peers have moved: links to the peers it sends to. Plans share
        their peers: of several deployments the one of the latest epoch (`routed`) says where these are.

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
                link = self.links[peer.name] = PeerLink(
                    self.shared, backpressure, peer.name, addresses[peer.name], self.dirty, self._security
                )
            link.move(addresses[peer.name], routed)
            link.index, link.flags = peer.index, loaded.flags
            for stream in deployed.plan.streams:
                way = Way(deployed, link, deployed.codecs[stream.id], stream.last_ns)
                self._ways[loaded, peer.index, stream.id] = way
        for output in deployed.plan.outputs:
            counts = self.delivery_counts.setdefault(output.name, DeliveryCounts())
            codec = deployed.codecs[output.stream]
            self._deliveries[loaded, output.id] = Delivery(output, codec, deployed.plan.hash, counts)
        self.by_loaded[loaded] = deployed
        return ""

    def remove(self, loaded: CompiledPlan) -> None:
        """A plan was unloaded. Links stay: they hold nothing of it any more, or are about to give it up."""
        for key in [key for key in self._ways if key[0] is loaded]:
            del self._ways[key]
        for result in [key for key in self._deliveries if key[0] is loaded]:
            del self._deliveries[result]
        deployed = self.by_loaded.pop(loaded, None)
        if deployed is not None:
            for link in self.links.values():
                link.pending.forget(deployed)
        named = {output.name for each in self.by_loaded.values() for output in each.plan.outputs}
        self.delivery_counts = {name: counts for name, counts in self.delivery_counts.items() if name in named}
        self._last = None

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: object) -> None:
        """Offer it to the peer's link; it leaves after this instance."""
        way = self._ways[loaded, peer, stream]
        link = way.link
        kind = type(payload)
        punctuation = cast(Punctuation, payload) if kind in _PUNCTUATION else None
        tag = (way.deployed, lineage, stream, peer, punctuation)
        try:
            data = self._encoded(way, loaded, stream, lineage, payload, punctuation)
        except CodecError as error:
            self.shared.note("payloads_unencodable", f"stream {stream}: {error}")
            self.shared.counters["lost.encode"] += 1
            link.lost(at_ns, tag, CAUSE_ENCODE)
            return
        due_ns = max(lineage[5] + way.last_ns, at_ns + LEAST_NS)
        if kind is Progress and isinstance(data, bytes):
            link.heartbeat(at_ns, data, due_ns, tag)
        else:
            link.offer(at_ns, data, due_ns, tag)
        self.dirty[link] = None

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: core.Output, lineage: Lineage, payload: object) -> None:
        """Count it, and give it to every sink that listens."""
        assert self.acceptor is not None
        delivery = self._deliveries[loaded, output.id]
        _, _, _, _, lo_ns, hi_ns = lineage
        delivery.counts.add(at_ns - lo_ns, at_ns - hi_ns, delivery.deadline_ns)  # as protos/latency.py has them
        sinks = self.acceptor.sinks.get(delivery.name)
        if not sinks:
            return
        try:
            if delivery.parts is None:
                data = self._tuple(lineage, delivery.stream, delivery.stamp, delivery.encode(payload), at_ns)
            else:
                parts = delivery.parts(payload)
                data = self._counted(frames.encode_large(lineage, delivery.stream, delivery.stamp, parts, at_ns=at_ns))
        except CodecError as error:
            self.shared.note("payloads_unencodable", f"output {output.name}: {error}")
            return
        for sink in sinks:
            if sink.codec_name == delivery.codec_name and sink.takes(data):
                sink.deliver(data)
            else:
                self.shared.counters["sink_tuples_dropped"] += 1

    def _tuple(self, lineage: Lineage, stream: int, stamp: int, body: bytes, at_ns: int = 0) -> bytes | LargeTuple:
        """An encoded tuple, to be sent in chunks where it is large."""
        if len(body) <= CHUNK_BYTES:
            return encode_plain(lineage, stream, stamp, body, at_ns)
        return self._counted(frames.encode_large(lineage, stream, stamp, (body,), at_ns=at_ns))

    def _encoded(
        self, way: Way, loaded: CompiledPlan, stream: int, lineage: Lineage, payload: object,
        punctuation: Punctuation | None,
    ) -> bytes | LargeTuple:  # fmt: skip
        last = self._last
        if last is not None and last[2] is lineage and last[3] is payload and last[1] == stream and last[0] is loaded:
            return self._data
        if punctuation is not None:
            self._data = encode_punctuation(lineage, stream, way.stamp, punctuation)
        elif way.parts is None:
            self._data = self._tuple(lineage, stream, way.stamp, way.encode(payload))
        else:
            self._data = self._counted(frames.encode_large(lineage, stream, way.stamp, way.parts(payload)))
        self._last = (loaded, stream, lineage, payload)
        return self._data

    def _counted(self, data: bytes | LargeTuple) -> bytes | LargeTuple:
        """Of what is large the memory counts once, however many links and sinks have it."""
        if isinstance(data, LargeTuple):
            for part in data.parts:
                self.shared.large.add(part)
        return data

    def link_states(self) -> tuple[tuple[str, bool, int, int, int, int], ...]:
        """The links, as in ipc.Status."""
        links = islice(self.links.items(), MOST_LINK_STATES)
        senders = ((name, link.sender) for name, link in links)
        return tuple((name, s.connected, len(s), s.held_bytes, s.unacknowledged, s.resent) for name, s in senders)

    def flush(self, at_ns: int) -> None:
        """Write what the last instances sent. Call when the facts have been published."""
        if self.dirty:
            self._last, self._data = None, b""  # every link has taken it
            dirty = list(self.dirty)
            self.dirty.clear()
            for link in dirty:
                if link.flush(at_ns):
                    self.dirty[link] = None

    def suspended(self, at_ns: int) -> None:
        """This machine was suspended: peers compare the clocks anew before they get anything more."""
        for link in self.links.values():
            link.suspended(at_ns)

    def tick(self, at_ns: int) -> int:
        """Connect, give up, notice silence; returns when to call again."""
        due_ns = at_ns + 1_000_000_000
        for link in self.links.values():
            link.tick(at_ns)
            due_ns = min(due_ns, link.due_ns(at_ns))
        return due_ns
