"""The receiving end of a link: what is fresh, what to acknowledge, how much credit to grant. Pure.

One `Receiver` per sending incarnation (peer name and boot). Within an incarnation link_seq tells what is new. A new
incarnation of a node may compute and send again what the old one sent: that is recognised by lineage and stream
against a bounded memory. `Inbox` holds the receivers of one listening process and fences: of a node one incarnation
lives, and the others are refused (fence.py).
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from node_agent.link.arrived import Arrived
from node_agent.link.fence import AWAY_NS, refusal, superseded, supersedes
from node_agent.link.limits import LinkError

Key = tuple[int, int, int, int, int, int]  # source, epoch, seq, ordinal, stream, plan
REFUSED_KEPT = 256  # stretches of refused numbers


class Memory:
    """Which tuples one peer's incarnations have sent: at least the latest `keep`, at most twice that.

    It counts, since a union may rightly put one lineage twice on its stream.
    """

    def __init__(self, keep: int = 8192) -> None:
        self._keep = keep
        self._young: dict[Key, int] = {}
        self._elder: dict[Key, int] = {}
        self._before: dict[Key, int] = {}  # sent by earlier incarnations and not yet sent again by this one

    def new_incarnation(self) -> None:
        """From now on tuples come from a new incarnation of the peer."""
        merged = self._before
        for generation in (self._elder, self._young):
            for key, count in generation.items():
                merged[key] = merged.pop(key, 0) + count
        excess = len(merged) - 2 * self._keep
        self._before = dict(list(merged.items())[excess:]) if excess > 0 else merged
        self._young, self._elder = {}, {}

    def is_fresh(self, key: Key) -> bool:
        """Remember this tuple; False where an earlier incarnation has already sent it."""
        young = self._young
        young[key] = young.get(key, 0) + 1
        if len(young) >= self._keep:
            self._elder, self._young = young, {}
        if self._before:
            left = self._before.get(key, 0)
            if left == 1:
                del self._before[key]
            elif left:
                self._before[key] = left - 1
            return not left
        return True


class Acknowledgement:
    """An Ack to write now."""

    __slots__ = ("credit_bytes", "upto")

    def __init__(self, upto: int, credit_bytes: int) -> None:
        self.upto, self.credit_bytes = upto, credit_bytes


class Receiver:
    """What one incarnation of one peer sends. Make it through `Inbox.hello`."""

    def __init__(self, memory: Memory | None = None, ack_every: int = 64) -> None:
        self._memory = memory
        self._ack_every = ack_every
        self._acked = 0
        self._granted = 0
        self.last = 0
        """Largest link_seq that was taken over: `resume_after` in a Hello."""
        self.duplicates = 0
        self.superseded = False
        self.began_anew = False
        """Whether this incarnation took the place of a later one that had gone: its count of starts began anew."""
        self.refused: deque[range] = deque(maxlen=REFUSED_KEPT)
        """Numbers that were taken over and refused, the latest ones. What told the sender may have been lost with its
        connection, and the acknowledgement that covers them comes again as it connects: so does this, before it."""

    def on_hello(self, credit_bytes: int) -> Acknowledgement:
        """A connection begins: resume_after and credit_bytes for the Hello that goes to the sender."""
        self._acked = self.last
        self._granted = credit_bytes
        return Acknowledgement(self.last, credit_bytes)

    def resume(self, upto: int) -> None:
        """An earlier incarnation of this side had taken over so much of the same sender."""
        self.last = max(self.last, upto)

    def on_batch(self, first: int, tuples: Sequence[Arrived]) -> Sequence[Arrived]:
        """The tuples of a Batch that are new, in order. Hand them over before asking for the acknowledgement.

        Raises LinkError (`fenced`) where a newer incarnation of the peer has come meanwhile.
        """
        if self.superseded:
            raise LinkError("fenced", "a newer incarnation of this peer is connected")
        old = self.last + 1 - first
        if old > 0:  # resent although taken over: an acknowledgement was lost
            self.duplicates += min(old, len(tuples))
            tuples = tuples[old:]
            first += old
        if not tuples:
            return tuples
        self.last = first + len(tuples) - 1
        memory = self._memory
        if memory is None:
            return tuples
        fresh = []
        for each in tuples:
            source, epoch, seq, ordinal, _, _ = each.lineage
            # Punctuation of a range and a heartbeat have the lineage of another tuple's number; twice told is no harm.
            if each.mark or memory.is_fresh((source, epoch, seq, ordinal, each.stream, each.plan)):
                fresh.append(each)
        self.duplicates += len(tuples) - len(fresh)
        return fresh

    def refuse(self, link_seqs: Sequence[int]) -> list[range]:
        """These numbers are refused, in order: the stretches to tell the sender."""
        found: list[range] = []
        for link_seq in link_seqs:
            if found and found[-1].stop == link_seq:
                found[-1] = range(found[-1].start, link_seq + 1)
            else:
                found.append(range(link_seq, link_seq + 1))
        self.refused.extend(found)
        return found

    def ack(self, credit_bytes: int, drained: bool, large_bytes: int = 0) -> Acknowledgement | None:
        """The Ack to write now, or None. `drained`: the socket has nothing more to read.

        Due after `ack_every` tuples, at the end of a drain, and when the credit has changed by a factor of two or
        has been or becomes 0, or has become enough for a tuple of large_bytes. Call it as well when queue space has
        become free.
        """
        behind = self.last - self._acked
        granted = self._granted
        moved = credit_bytes != granted and (
            not granted
            or not credit_bytes
            or credit_bytes >= 2 * granted
            or 2 * credit_bytes <= granted
            or granted < large_bytes <= credit_bytes
        )
        if not moved and not (behind >= self._ack_every or (drained and behind)):
            return None
        self._acked = self.last
        self._granted = credit_bytes
        return Acknowledgement(self.last, credit_bytes)


def share_credit(free_bytes: int, all_bytes: int, senders: int, most: int = 1 << 20, least: int = 4096) -> int:
    """Credit for one sender: its share of the free queue bytes. It comes in useful pieces: 0 below `least`, or below
    half of its share of `all_bytes`, what may be queued, where that is less. Where all is free it has some."""
    share, useful = free_bytes // max(1, senders), all_bytes // max(2, 2 * senders)
    if free_bytes >= all_bytes:
        return max(1, min(share, most))
    return 0 if share < max(1, min(least, useful)) else min(share, most)


@dataclass(slots=True)
class _Living:
    """The incarnation of a node that is let in. seen_ns: the latest instant at which it is known to have been there."""

    boot: int
    incarnation: int
    receiver: Receiver
    memory: Memory
    seen_ns: int


class Inbox:
    """The receivers of one listening process, by peer name and boot."""

    def __init__(self, ack_every: int = 64, keep: int = 8192, most_receivers: int = 256) -> None:
        self._ack_every = ack_every
        self._keep = keep
        self._most = most_receivers
        self._sources: OrderedDict[tuple[str, int], Receiver] = OrderedDict()
        self._nodes: OrderedDict[str, _Living] = OrderedDict()
        self._fenced: OrderedDict[tuple[str, int], None] = OrderedDict()

    def hello(
        self, peer: str, boot: int, alone: bool, incarnation: int = 0, at_ns: int = 0, present: bool = False
    ) -> Receiver:
        """The receiver for this incarnation; the driver closes an earlier connection of the same one.

        alone: at most one incarnation of that name lives (nodes): a greater one supersedes and fences the one before.
        Otherwise (sources) any number may send at the same time. present: the one that lives is connected, and not
        silent. Raises LinkError (`fenced`) for an incarnation that may not take the place of the one that lives.
        """
        if alone:
            return self._node(peer, boot, incarnation, at_ns, present)
        receiver = self._sources.get((peer, boot)) or Receiver(None, self._ack_every)
        self.keep(peer, boot, receiver)
        return receiver

    def keep(self, peer: str, boot: int, receiver: Receiver) -> None:
        """Remember a source's receiver as the latest; call it as well when its connection ends."""
        self._sources[peer, boot] = receiver
        self._sources.move_to_end((peer, boot))
        while len(self._sources) > self._most:
            self._sources.popitem(last=False)

    def gone(self, peer: str, boot: int, at_ns: int) -> None:
        """A connection of that incarnation of a node has ended."""
        living = self._nodes.get(peer)
        if living is not None and living.boot == boot:
            living.seen_ns = at_ns

    def _node(self, peer: str, boot: int, incarnation: int, at_ns: int, present: bool) -> Receiver:
        if (peer, boot) in self._fenced:
            raise superseded(peer, boot)
        living = self._nodes.get(peer)
        if living is None:
            memory = Memory(self._keep)
            living = _Living(boot, incarnation, Receiver(memory, self._ack_every), memory, at_ns)
        elif (living.boot, living.incarnation) != (boot, incarnation):
            living = self._successor(peer, living, boot, incarnation, at_ns, present)
        living.seen_ns = at_ns
        self._nodes[peer] = living
        self._nodes.move_to_end(peer)
        while len(self._nodes) > self._most:
            self._nodes.popitem(last=False)
        return living.receiver

    def _successor(
        self, peer: str, before: _Living, boot: int, incarnation: int, at_ns: int, present: bool
    ) -> _Living:  # fmt: skip
        """Another incarnation in the place of the one before. Raises LinkError where it may not take it."""
        later = supersedes(incarnation, before.incarnation)
        if before.boot == boot or not (later or (not present and at_ns - before.seen_ns >= AWAY_NS)):
            raise refusal(peer, boot, incarnation, before.boot, before.incarnation)
        before.receiver.superseded = True
        before.memory.new_incarnation()
        if later:  # else the one before is let in again if it comes back: its count is greater
            self._fenced[peer, before.boot] = None
            while len(self._fenced) > self._most:
                self._fenced.popitem(last=False)
        receiver = Receiver(before.memory, self._ack_every)
        receiver.began_anew = not later
        return _Living(boot, incarnation, receiver, before.memory, at_ns)
