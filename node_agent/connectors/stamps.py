"""The age of a message: from the stamp that it has, to now.

A stamp is an instant on some other machine's wall clock, so its age is as good as the two clocks agree.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

SECOND = 1_000_000_000
TRANSPORT = "transport"  # in place of a path: the stamp is the transport's
MOST_NS = 2**63 - 1  # in the year 2262; what agents count with has no more
FUTURE_NS = SECOND  # so far ahead is a clock that is off a little; beyond it, a wrong one
_SECONDS = ("sec", "secs", "seconds")
_NANOSECONDS = ("nanosec", "nsec", "nsecs", "nanos", "nanoseconds")
_UNITS = ((10**11, SECOND), (10**14, 10**6), (10**17, 10**3))  # a number below the first since 1970 has this unit


class StampError(Exception):
    """A message without a stamp that can be used; the text says why."""


class Stamps:
    """The ages of one connector's messages. ahead, back: how many stamps were in the future, or earlier than one that
    came before."""

    def __init__(self, stamp: str) -> None:
        """stamp: a path into the value, such as header.stamp; TRANSPORT; or "": each originates as it arrives."""
        self._path = stamp.split(".") if stamp and stamp != TRANSPORT else []
        self._stamp = stamp
        self._latest_ns = 0
        self.ahead = self.back = 0

    def age_ns(self, value: Any, transport_ns: int | None, wall_ns: int) -> int:
        """How long before wall_ns, which is now, a message originated, at least 0. Raises StampError."""
        if not self._stamp:
            return 0
        if self._path:
            stamp_ns = self._read(value)
        elif transport_ns is None:
            raise StampError("it came without a stamp of its transport")
        else:
            stamp_ns = transport_ns
        if not 0 <= stamp_ns <= MOST_NS or wall_ns - stamp_ns > MOST_NS:
            raise StampError("its stamp is not between 1970 and 2262, or as long ago")
        age_ns = wall_ns - stamp_ns
        if age_ns < -FUTURE_NS:
            raise StampError(f"its stamp is {-age_ns / SECOND:.1f} s in the future: set the clocks of both machines")
        self.ahead += age_ns < 0
        self.back += stamp_ns < self._latest_ns
        self._latest_ns = max(self._latest_ns, stamp_ns)
        return max(age_ns, 0)

    def _read(self, value: Any) -> int:
        for name in self._path:
            found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
            if found is None:
                raise StampError(f"it has no {self._stamp}")
            value = found
        try:
            return instant_ns(value)
        except ValueError as error:
            raise StampError(f"{self._stamp} is {error}") from None


def instant_ns(value: Any) -> int:
    """Nanoseconds since 1970, of a number of seconds, ms, µs or ns (told apart by its size), of a date and time in
    ISO 8601 with its offset, or of seconds and nanoseconds as ROS and protobuf have them. Raises ValueError."""
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _of_number(value)
    seconds, rest = _part(value, _SECONDS), _part(value, _NANOSECONDS)
    if seconds is None:
        raise ValueError(f"a {type(value).__name__}, and no instant")
    return seconds * SECOND + (rest or 0)


def _of_number(value: float) -> int:
    if not 1 <= value < 10**20:
        raise ValueError(f"{value!r:.40}, and no instant since 1970")
    unit = next((unit for below, unit in _UNITS if value < below), 1)
    return value * unit if isinstance(value, int) else round(value * unit)


def _of_text(value: str) -> int:
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value!r:.40}, and no date and time in ISO 8601") from None
    if at.tzinfo is None:
        raise ValueError(f"{value!r:.40}, without its offset from UTC")
    since = at - datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return (since.days * 86_400 + since.seconds) * SECOND + since.microseconds * 1000


def _part(value: Any, names: tuple[str, ...]) -> int | None:
    for name in names:
        found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if isinstance(found, int) and not isinstance(found, bool):
            return found
    return None
