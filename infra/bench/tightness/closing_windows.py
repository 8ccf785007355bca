"""Which windows of a grid are complete: all numbers below a heartbeat's are settled, and it says nothing older comes.

As in the completed rule of [S]: a tuple that is settled says the same of what is older than it, but for lateness, which
is 0 here. Windows begin a hop apart at multiples of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

NEVER = -(1 << 62)


class _Feed:
    """One source: numbers below `next` are settled."""

    def __init__(self) -> None:
        self.next = 0
        self.watermark = NEVER
        self.early: dict[int, int] = {}
        self.beats: list[tuple[int, int]] = []

    def settled(self, number: int, origin_ns: int) -> None:
        self.early[number] = origin_ns
        self._go_on()

    def beat(self, number: int, origin_ns: int) -> None:
        self.beats.append((number, origin_ns))
        self._go_on()

    def _go_on(self) -> None:
        while self.next in self.early:
            self.watermark = max(self.watermark, self.early.pop(self.next))
            self.next += 1
        known = [origin for number, origin in self.beats if number <= self.next]
        self.beats = [each for each in self.beats if each[0] > self.next]
        self.watermark = max([self.watermark, *known])


class Collected:
    """Windows of one operator over some sources: i begins at i hops. `from_ns`: the first begins from then on."""

    def __init__(self, sources: Sequence[str], length: int, hop: int, from_ns: int) -> None:
        self.feeds = {name: _Feed() for name in sources}
        self.hop = hop
        self.window, self.length = -(-from_ns // hop), length

    def settle(self, source: str, number: int, origin_ns: int) -> None:
        """A tuple has come."""
        self.feeds[source].settled(number, origin_ns)

    def progress(self, source: str, number: int, origin_ns: int) -> None:
        """Numbers below this were admitted, and what comes is not older than that."""
        self.feeds[source].beat(number, origin_ns)

    def closed(self) -> Iterator[tuple[int, int]]:
        """Number and end of each window that has become complete."""
        watermark = min(feed.watermark for feed in self.feeds.values())
        while (end := self.window * self.hop + self.length) <= watermark:
            yield self.window, end
            self.window += 1


__all__ = ["NEVER", "Collected"]
