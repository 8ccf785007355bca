"""What large payloads occupy: each counts once, however many queues, joins, links and sinks have it.

Nobody tells when a payload is of no use any more, and a hook wherever one is let go would cost every small tuple. So
the count has a reference of its own, and what nothing else refers to is let go when the count is asked for.
"""

from collections.abc import Callable
from sys import getrefcount, getsizeof

from node_agent.core.shedding.memory_limit import size_estimate

LARGE_BYTES = 1 << 16  # encoded: what is smaller is estimated, with all else that is queued
OWN_REFERENCES = 3  # of the count: its own, the variable of its loop, the argument
LOOK_NS = 200_000  # so often at most many of them are looked at
FEW = 32


def is_large(payload: object) -> bool:
    """Whether it is counted here: bytes, arrays and tables that are large in memory."""
    if isinstance(payload, bytes):
        return len(payload) >= LARGE_BYTES
    return getattr(payload, "nbytes", 0) >= LARGE_BYTES


def owner(value: object) -> object:
    """Whose memory it is: arrays and memoryviews may show a part of something else."""
    while hasattr(value, "nbytes"):
        under = value.obj if isinstance(value, memoryview) else getattr(value, "base", None)
        if under is None:
            break
        value = under
    return value


class LargePayloads:
    """The large payloads of one runtime, by whose memory they are."""

    __slots__ = ("_bytes", "_held", "_looked_ns", "_now")

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._held: dict[int, tuple[object, int]] = {}
        self._bytes = self._looked_ns = 0

    def add(self, value: object) -> None:
        """A large payload is there, or a part of what is sent; again and again, if it likes."""
        mine = owner(value)
        if id(mine) not in self._held:
            size = max(getsizeof(mine), getattr(mine, "nbytes", 0)) if is_large(mine) else size_estimate(mine)
            self._held[id(mine)] = mine, size
            self._bytes += size

    @property
    def bytes(self) -> int:
        """All of them together."""
        if self._held:
            now_ns = self._now()
            if len(self._held) <= FEW or now_ns - self._looked_ns >= LOOK_NS:
                self._looked_ns = now_ns
                self._let_go()
        return self._bytes

    def _let_go(self) -> None:
        gone = []
        for key, entry in self._held.items():
            mine = entry[0]
            if getrefcount(mine) <= OWN_REFERENCES:
                gone.append(key)
                self._bytes -= entry[1]
        for key in gone:
            del self._held[key]


__all__ = ["LARGE_BYTES", "LargePayloads", "is_large", "owner"]
