"""A bounded memory of what happened within the last second of ITS time: the state of an operator."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from sim_vehicles.operators.models.its_time import since_ms

KEEP_MS = 1000
MOST = 256

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Values by key, each with its ITS time; in order of insertion.

    At most `MOST`: the oldest insertion goes first. What lies more than a second from the present is forgotten, in
    either direction: ITS time wraps and a recording starts again, so "later than now by more" is old as well.
    """

    def __init__(self) -> None:
        self._held: dict[Key, tuple[int, Value]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: Key) -> Value | None:
        held = self._held.get(key)
        return None if held is None else held[1]

    def put(self, key: Key, at_ms: int, value: Value) -> None:
        self._held.pop(key, None)
        if len(self._held) >= MOST:
            del self._held[next(iter(self._held))]
        self._held[key] = (at_ms, value)

    def forget(self, now_ms: int) -> None:
        old = [key for key, (at_ms, _) in self._held.items() if abs(since_ms(now_ms, at_ms)) > KEEP_MS]
        for key in old:
            del self._held[key]

    def __iter__(self) -> Iterator[tuple[Key, int, Value]]:
        """Key, its ITS time, value."""
        return ((key, at_ms, value) for key, (at_ms, value) in self._held.items())
