"""A tuple as it came over the wire."""

from __future__ import annotations

from typing import NamedTuple

Lineage = tuple[int, int, int, int, int, int]
"""source, epoch, seq, ordinal, origin_lo_ns, origin_hi_ns"""


class Withheld(NamedTuple):
    """Why the payload of a tuple that comes is not taken: for counting, and in a sentence."""

    code: str
    why: str


class Arrived:
    """One tuple from the wire, its fields checked for range, its origin still in the sender's clock.

    at_ns: to sinks only, the instant of delivery, else 0. mark: of what is absent, FILTERED, REMOVED, EXACT or QUIET
    (wire/frames.py). first: the lowest number that punctuation is about. withheld: why its payload, which was large,
    was not taken in.
    """

    __slots__ = ("absent", "at_ns", "first", "lineage", "mark", "payload", "plan", "stream", "withheld")

    def __init__(
        self, lineage: Lineage, stream: int, plan: int, payload: bytes, absent: bool = False, at_ns: int = 0,
        mark: int = 0, first: int = 0, withheld: Withheld | None = None,
    ) -> None:  # fmt: skip
        self.lineage, self.stream, self.plan, self.payload = lineage, stream, plan, payload
        self.absent, self.at_ns, self.mark, self.first, self.withheld = absent, at_ns, mark, first, withheld

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arrived) and self._fields() == other._fields()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Arrived{self._fields()}"

    def _fields(self) -> tuple[object, ...]:
        return (
            self.lineage, self.stream, self.plan, self.payload, self.absent, self.at_ns, self.mark, self.first,
            self.withheld,
        )  # fmt: skip


__all__ = ["Arrived", "Lineage", "Withheld"]
