"""When a value is due after the one before it: at a rate, by a time in the values, or by the times of a recording."""

import re
from typing import Any, Protocol

from node_agent.client.connection import SECOND


class Pacing(Protocol):
    """Gaps between values, in their order."""

    def gap_ns(self, value: Any) -> int:
        """From the value before. Raises ValueError."""

    def again(self) -> None:
        """The values begin anew."""


class Recorded:
    """The gaps of a recording: a time in each value, which never goes back."""

    def __init__(self, field: str, unit_ns: int) -> None:
        self._field, self._unit_ns = field, unit_ns
        self._last_ns: int | None = None
        self._gap_ns = 0

    def gap_ns(self, value: Any) -> int:
        """From the value before. Raises ValueError."""
        at_ns = self._time_ns(value)
        if self._last_ns is not None:
            gap_ns = at_ns - self._last_ns
            if gap_ns < 0:
                raise ValueError(f"{self._field!r} goes back by {-gap_ns / SECOND:g} s; sort the lines by it")
            self._gap_ns = gap_ns
        self._last_ns = at_ns
        return self._gap_ns

    def again(self) -> None:
        """The recording begins anew: its last gap stands before its first value."""
        self._last_ns = None

    def _time_ns(self, value: Any) -> int:
        time_ = value.get(self._field) if isinstance(value, dict) else None
        if isinstance(time_, str) and re.fullmatch(r"-?\d{1,19}", time_, re.ASCII):
            time_ = int(time_)  # 64-bit integers of protobuf messages are text in JSON
        if isinstance(time_, bool) or not isinstance(time_, int | float):
            raise ValueError(f"no number in {self._field!r}, which --by names; name a field that has the time")
        at_ns = time_ * self._unit_ns
        if not abs(at_ns) < 1 << 63:
            raise ValueError(f"{self._field!r} is too large for a time; name its unit with --unit")
        return round(at_ns)


class Rate:
    """Equal gaps of 1/N s; fractions of a ns are not lost."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._count = 0

    def gap_ns(self, value: Any) -> int:
        """From the value before."""
        self._count += 1
        return round(self._count * SECOND / self._per_second) - round((self._count - 1) * SECOND / self._per_second)

    def again(self) -> None:
        """Nothing changes."""
