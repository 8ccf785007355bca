"""Which tuples a fusion of kind `all` runs together: the latest of each input, when all have come, or a while later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Token = tuple[str, int]


@dataclass(frozen=True)
class Fired:
    """`lead`: the oldest tuple of a set, which the result is of; `absent`: tuples of which there is no result."""

    lead: Token | None
    absent: tuple[Token, ...] = ()


@dataclass
class Fusion:
    """Of one unit with so many inputs. `begun`: how many sets have been begun, so that a timer knows its own."""

    ports: int
    waiting: dict[int, Token] = field(default_factory=dict)
    begun: int = 0

    def come(self, port: int, token: Token, origin_ns: Mapping[Token, int]) -> Fired:
        """A tuple of an input; the one before it that still waits is replaced."""
        self.begun += not self.waiting
        replaced = (self.waiting[port],) if port in self.waiting else ()
        self.waiting[port] = token
        if len(self.waiting) < self.ports:
            return Fired(None, replaced)
        fired = self.fire(origin_ns)
        return Fired(fired.lead, (*replaced, *fired.absent))

    def fire(self, origin_ns: Mapping[Token, int]) -> Fired:
        """With what is there."""
        lead = min(self.waiting.items(), key=lambda one: (origin_ns[one[1]], one[0]))[1]
        absent = tuple(token for token in self.waiting.values() if token != lead)
        self.waiting.clear()
        return Fired(lead, absent)


__all__ = ["Fired", "Fusion"]
