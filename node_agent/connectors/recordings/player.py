"""A recording as a source: each message when it is due, at the pace at which it was recorded.

The age of a message is the one that it had when it was recorded, and how much later than due it is given.
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from node_agent.connectors.connector_ports import Message

_SECOND = 1_000_000_000
_LONGEST_NS = 3600 * _SECOND  # of one wait; a file may claim centuries


class Recorded(NamedTuple):
    """One message of a recording. logged_ns: when it was recorded; stamp_ns: when it was published, where that is
    known."""

    payload: bytes
    logged_ns: int
    stamp_ns: int | None


class Player:
    """From its first message on. close_files: what it is read from is closed."""

    resumed = True  # nothing of a recording is lost

    def __init__(self, topic: str, recorded: Iterator[Recorded], close_files: Callable[[], None]) -> None:
        self._topic, self._recorded, self._close_files = topic, recorded, close_files
        self._ended = threading.Event()
        self._reading = threading.Lock()

    def messages(self) -> Iterator[Message]:
        """Messages that are not in order of time are due at once."""
        due_ns = first_ns = 0
        began_ns = time.monotonic_ns()
        while (found := self._next()) is not None:
            first_ns = first_ns or found.logged_ns
            due_ns = max(due_ns, began_ns + found.logged_ns - first_ns)
            if self._ended_before(due_ns):
                return
            seen_ns = found.logged_ns + max(0, time.monotonic_ns() - due_ns)
            yield Message(found.payload, self._topic, found.stamp_ns, seen_ns)

    def close(self) -> None:
        """From any thread; twice is allowed. While a message is read, whose search may take long, the files are left to
        the thread that reads, which closes as well."""
        self._ended.set()
        if self._reading.acquire(blocking=False):
            try:
                self._close_files()
            finally:
                self._reading.release()

    def _ended_before(self, due_ns: int) -> bool:
        while not self._ended.wait(min(max(0, due_ns - time.monotonic_ns()), _LONGEST_NS) / _SECOND):
            if time.monotonic_ns() >= due_ns:
                return False
        return True

    def _next(self) -> Recorded | None:
        with self._reading:
            return None if self._ended.is_set() else next(self._recorded, None)


__all__ = ["Player", "Recorded"]
