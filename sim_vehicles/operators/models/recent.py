"""A bounded memory of what happened within the last second of ITS time: the state of an operator."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from sim_vehicles.operators.models.its_time import MODULUS, since_ms

KEEP_MS = 1000
MOST = 256
_MOST_NOTED = 4 * MOST

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Values by key, each with its ITS time; in order of insertion.

    At most `MOST`: the oldest insertion goes first. What lies more than a second from the present is forgotten, in
    either direction: ITS time wraps and a recording starts again, so "later than now by more" is old as well.

    Forgetting costs what is forgotten, not what is there: instants are noted in their order. They do not wrap. Where
    the present is so far from one of them that ITS time has wrapped between, all are reckoned anew.
    """

    def __init__(self) -> None:
        self._held: dict[Key, tuple[int, Value]] = {}  # instant, value
        self._noted: list[tuple[int, int, Key]] = []  # a heap of instants, also of what has gone since
        self._numbers = count()
        self.now = 0  # an instant; modulo what ITS time wraps at it is ITS time
        self._latest = 0  # of all instants noted

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: Key) -> Value | None:
        held = self._held.get(key)
        return None if held is None else held[1]

    def put(self, key: Key, at_ms: int, value: Value) -> None:
        self._held.pop(key, None)
        if len(self._held) >= MOST:
            del self._held[next(iter(self._held))]
        at = self._instant(at_ms)
        self._held[key] = (at, value)
        if len(self._noted) >= _MOST_NOTED:
            self._note_anew()
        else:
            heappush(self._noted, (at, next(self._numbers), key))
        self._latest = max(self._latest, at)

    def forget(self, now_ms: int) -> None:
        self.now = now = self._instant(now_ms)
        noted = self._noted
        if self._latest - now > KEEP_MS or (noted and now - noted[0][0] >= MODULUS - KEEP_MS):
            anew = {key: (self._instant(at % MODULUS), value) for key, (at, value) in self._held.items()}
            self._held = {key: held for key, held in anew.items() if abs(now - held[0]) <= KEEP_MS}
            self._note_anew()
            return
        while noted and now - noted[0][0] > KEEP_MS:
            at, _, key = heappop(noted)
            if key in self._held and self._held[key][0] == at:
                del self._held[key]

    def _instant(self, at_ms: int) -> int:
        return self.now + since_ms(at_ms, self.now)

    def _note_anew(self) -> None:
        """Of what is there alone."""
        self._noted = sorted((at, next(self._numbers), key) for key, (at, _) in self._held.items())
        self._latest = self._noted[-1][0] if self._noted else self.now

    def instants(self) -> Iterable[tuple[int, Value]]:
        """Each one's instant [ms], to be compared with `now`, and its value."""
        return self._held.values()
