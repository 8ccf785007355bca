"""Queues punctuation per link until the link is up: ranges that it gave up, and the newest heartbeat of each source.

Pure. A tuple or punctuation that a link loses leaves a gap in its source's numbers. The receiver would notice it by a
later number or a heartbeat, and then wait for as long as a number may be missing: until then no window of that source
closes, and those whose deadline passes meanwhile are lost as well. So the link itself sends the removal of what it gave
up as soon as it is up again, and only the windows that lose a tuple have no result.

Numbers in a row are one range; others in between may be on their way, and must not be declared removed with bounds that
are not theirs.
"""

from collections.abc import Iterator
from typing import NamedTuple

from node_agent.core.lineage import Lineage
from node_agent.runtime.deployments.deployed_plan import Deployed
from node_agent.wire.punctuation_frames import Punctuation

MOST_RANGES = 64  # per source and stream; what is older is noticed as a gap

Tag = tuple[Deployed, Lineage, int, int, Punctuation | None]
"""plan, lineage, stream, the peer's number in that plan, punctuation: of what a link is given"""
Key = tuple[Deployed, int, int, int, int]  # plan, stream, the peer's number in that plan, source, epoch


class Heartbeat(NamedTuple):
    """A heartbeat, encoded."""

    data: bytes
    give_up_ns: int
    tag: Tag


class PendingPunctuation:
    """Pending punctuation of one link."""

    def __init__(self) -> None:
        self.ranges: dict[Key, list[Lineage]] = {}
        """The lowest number of each range is where a lineage has its ordinal."""
        self.heartbeats: dict[Key, Heartbeat] = {}
        """The newest one of each source that was not offered to the link yet."""
        self.queued: set[Key] = set()  # sources of which a heartbeat waits in the link

    def __bool__(self) -> bool:
        return bool(self.ranges or self.heartbeats)

    def lost(self, key: Key, first: int, lineage: Lineage) -> None:
        """Numbers first to the lineage's will not arrive; their origins are in the lineage's interval."""
        source, epoch, last, _, lo_ns, hi_ns = lineage
        ranges = self.ranges.setdefault(key, [])
        if ranges and ranges[-1][2] + 1 == first:
            _, _, _, first, least_ns, most_ns = ranges.pop()
            lo_ns, hi_ns = min(lo_ns, least_ns), max(hi_ns, most_ns)
        elif len(ranges) >= MOST_RANGES:
            del ranges[0]
        ranges.append((source, epoch, last, first, lo_ns, hi_ns))

    def take_ranges(self) -> Iterator[tuple[Key, int, Lineage]]:
        """Each with its lowest number, as `lost` is told; it is not owed any more."""
        while self.ranges:
            key, ranges = next(iter(self.ranges.items()))
            source, epoch, last, first, lo_ns, hi_ns = ranges.pop(0)
            if not ranges:
                del self.ranges[key]
            yield key, first, (source, epoch, last, 0, lo_ns, hi_ns)

    def take_heartbeats(self) -> Iterator[tuple[Key, Heartbeat]]:
        """Of the sources of which none waits in the link any more; they are not owed any more."""
        for key in [key for key in self.heartbeats if key not in self.queued]:
            yield key, self.heartbeats.pop(key)

    def forget(self, deployed: Deployed) -> None:
        """The plan was unloaded."""
        for key in [key for key in self.ranges if key[0] is deployed]:
            del self.ranges[key]
        for key in [key for key in self.heartbeats if key[0] is deployed]:
            del self.heartbeats[key]
        self.queued = {key for key in self.queued if key[0] is not deployed}
