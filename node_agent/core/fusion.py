"""Fusion of streams: which tuples of several inputs make one result, and what becomes of the others.

Of kind `all` a set is complete as soon as every input has a tuple since the last firing; an input that comes again
before that replaces its tuple. Of kind `within` a set is complete as soon as one tuple of every input waits whose
stamps lie within a tolerance. A stamp is the middle of the interval in which a tuple's origin lies.

Every tuple ends once: fired as part of one set, replaced, or unmatched. Nothing here depends on what a tuple holds.

Of kind `each` (an interval join) a tuple ends as it comes, with all tuples within the tolerance that came before; what
is kept for later ones has ended.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from node_agent.core import plan as plans
from node_agent.core.lineage import Lineage
from protos.records import POLICY_REPLACED, POLICY_UNMATCHED


class Held(NamedTuple):
    """A tuple that waits, in the order of stamps. number: of its arrival here."""

    stamp_ns: int
    number: int
    port: int
    at_ns: int
    lineage: Lineage
    payload: object


class Fired(NamedTuple):
    """A set, by port; None: nothing of that input is in it."""

    parts: tuple[Held | None, ...]

    @property
    def present(self) -> list[Held]:
        """Its tuples, by port."""
        return [held for held in self.parts if held is not None]

    @property
    def lead(self) -> Held:
        """The tuple whose lineage and origin the result has: the oldest, of several the one that came first."""
        return min(self.present)

    @property
    def values(self) -> tuple[object, ...]:
        """By port; None where nothing of that input is in it."""
        return tuple(None if held is None else held.payload for held in self.parts)


class Met(NamedTuple):
    """A tuple and all that are near it. values: by port, the payloads by stamp; of its own input its own alone."""

    held: Held
    values: tuple[list[object], ...]


class Unfused(NamedTuple):
    """A tuple that becomes part of no set. policy: of SHED."""

    lineage: Lineage
    policy: int


FusionEnd = Fired | Met | Unfused


class Fusion:
    """wait_ns: after so long a tuple is unmatched, where nothing fires on timeout. At most `keep` tuples of each input
    wait, one of kind `all`."""

    __slots__ = ("_came", "_held", "_keep", "_number", "_ports", "_since_ns", "_sync", "_wait_ns")

    def __init__(self, sync: plans.Sync, ports: int, wait_ns: int) -> None:
        self._sync, self._wait_ns = sync, wait_ns
        self._keep = sync.keep if sync.by_stamp else 1
        self._ports: list[list[Held]] = [[] for _ in range(ports)]  # what waits, by stamp
        self._came: dict[int, Held] = {}  # the same by number, the first first
        self._number = 0
        self._since_ns = 0  # of kind `all`: when the first tuple since the last firing came

    @property
    def times_out(self) -> bool:
        """Whether what waits fires before long in any case."""
        return self._sync.timeout_ns > 0

    def __len__(self) -> int:
        """Tuples that have not ended."""
        return 0 if self._sync.each else len(self._came)

    @property
    def due_ns(self) -> int | None:
        """When `expire` has something to do, if nothing comes before; None: never."""
        if not len(self):
            return None
        first = next(iter(self._came.values()))
        if not self._sync.timeout_ns:
            return first.at_ns + self._wait_ns
        return (first.at_ns if self._sync.by_stamp else self._since_ns) + self._sync.timeout_ns

    def numbers(self, source: int, epoch: int) -> Iterator[int]:
        """Of a source and incarnation: the numbers that wait."""
        waiting = () if self._sync.each else self._came.values()
        return (held.lineage[2] for held in waiting if held.lineage[:2] == (source, epoch))

    def arrive(self, at_ns: int, port: int, lineage: Lineage, payload: object) -> Sequence[FusionEnd]:
        """A tuple comes. What is due by then ends before it. Returns the ends, in order."""
        ends = self.expire(at_ns)
        if not self._came:
            self._since_ns = at_ns
        self._number += 1
        held = Held((lineage[4] + lineage[5]) // 2, self._number, port, at_ns, lineage, payload)
        if self._sync.each:
            ends.append(self._meet(held))
        insort(self._ports[port], held)
        self._came[held.number] = held
        if self._sync.each:
            if len(self._ports[port]) > self._keep:
                self._remove(min(self._ports[port], key=lambda each: each.number))
            return ends
        if len(self._ports[port]) > self._keep and not self._sync.by_stamp:
            ends += self._dropped([each for each in self._ports[port] if each is not held], POLICY_REPLACED)
        if (parts := self._complete(held)) is not None:
            ends += self._fire(parts)
        elif len(self._ports[port]) > self._keep:
            ends += self._dropped([min(self._ports[port], key=lambda each: each.number)], POLICY_REPLACED)
        return ends

    def expire(self, at_ns: int) -> list[FusionEnd]:
        """Time has passed: what has waited for long enough fires with what is there, or is unmatched."""
        ends: list[FusionEnd] = []
        while (due_ns := self.due_ns) is not None and due_ns <= at_ns:
            first = next(iter(self._came.values()))
            if self._sync.timeout_ns:
                ends += self._fire(self._partial(first))
            else:
                ends += self._dropped([first], POLICY_UNMATCHED)
        return ends

    def stop(self) -> list[FusionEnd]:
        """The plan is unloaded: nothing that waits is matched any more."""
        gone = self._dropped(list(self._came.values()), POLICY_UNMATCHED)
        return [] if self._sync.each else gone

    def _meet(self, held: Held) -> Met | Unfused:
        """What is kept of all other inputs and near to a tuple; of an input without any, the tuple is unmatched."""
        near: list[list[object]] = []
        for port, waiting in enumerate(self._ports):
            if port == held.port:
                near.append([held.payload])
                continue
            first = bisect_left(waiting, held.stamp_ns - self._sync.within_ns, key=_stamp)
            last = bisect_right(waiting, held.stamp_ns + self._sync.within_ns, key=_stamp)
            near.append([each.payload for each in waiting[first:last]])
        return Met(held, tuple(near)) if all(near) else Unfused(held.lineage, POLICY_UNMATCHED)

    # -- sets

    def _complete(self, held: Held) -> tuple[Held, ...] | None:
        """The set that a tuple has made complete: it is in each, since there was none before it came.

        Of several the one that spans least, then the one with the oldest stamp, then with the oldest tuple of the first
        input, of the second, and so on. So, from each oldest stamp on, the oldest tuple of every input that is not
        older.
        """
        if not all(self._ports):
            return None
        if not self._sync.by_stamp:
            return tuple(waiting[0] for waiting in self._ports)
        best: tuple[int, tuple[Held, ...]] | None = None
        for oldest_ns in self._oldest(held):
            parts = [self._from(port, oldest_ns) if port != held.port else held for port in range(len(self._ports))]
            found = tuple(each for each in parts if each is not None)
            if len(found) < len(parts):
                break
            span_ns = max(found).stamp_ns - oldest_ns
            if span_ns <= self._sync.within_ns and (best is None or span_ns < best[0]):
                best = span_ns, found
        return None if best is None else best[1]

    def _oldest(self, held: Held) -> list[int]:
        """The oldest stamps that a set with this tuple may have, ascending."""
        since_ns = held.stamp_ns - self._sync.within_ns
        stamps = {each.stamp_ns for waiting in self._ports for each in waiting if each.port != held.port}
        return sorted([each for each in stamps if since_ns <= each < held.stamp_ns] + [held.stamp_ns])

    def _from(self, port: int, stamp_ns: int) -> Held | None:
        """The oldest tuple of an input that is not older than that, of several the first."""
        waiting = self._ports[port]
        place = bisect_left(waiting, stamp_ns, key=_stamp)
        return waiting[place] if place < len(waiting) else None

    def _partial(self, first: Held) -> tuple[Held | None, ...]:
        """The set that fires on timeout, with the tuple that came first. Of each other input, in their order, it has
        the tuple next to that one in time that leaves it within the tolerance, of two the older; of kind `all` any."""
        if not self._sync.by_stamp:
            return tuple(waiting[0] if waiting else None for waiting in self._ports)
        least_ns = most_ns = first.stamp_ns
        parts: list[Held | None] = []
        for port, waiting in enumerate(self._ports):
            fits = [
                each
                for each in waiting
                if max(most_ns, each.stamp_ns) - min(least_ns, each.stamp_ns) <= self._sync.within_ns
            ]
            near = min(fits, key=lambda each: (abs(each.stamp_ns - first.stamp_ns), each), default=None)
            part = first if port == first.port else near
            if part is not None:
                least_ns, most_ns = min(least_ns, part.stamp_ns), max(most_ns, part.stamp_ns)
            parts.append(part)
        return tuple(parts)

    def _fire(self, parts: tuple[Held | None, ...]) -> list[FusionEnd]:
        """A set fires. Of its inputs what is older than their part of it is replaced, before."""
        older = [
            each
            for part in parts
            if part is not None
            for each in self._ports[part.port]
            if each.stamp_ns < part.stamp_ns
        ]
        ends = self._dropped(older, POLICY_REPLACED)
        for part in parts:
            if part is not None:
                self._remove(part)
        return [*ends, Fired(parts)]

    def _dropped(self, gone: list[Held], policy: int) -> list[FusionEnd]:
        for held in gone:
            self._remove(held)
        return [Unfused(held.lineage, policy) for held in gone]

    def _remove(self, held: Held) -> None:
        del self._came[held.number]
        waiting = self._ports[held.port]
        del waiting[bisect_left(waiting, held)]


def _stamp(held: Held) -> int:
    return held.stamp_ns


__all__ = ["Fired", "Fusion", "FusionEnd", "Held", "Met", "Unfused"]
