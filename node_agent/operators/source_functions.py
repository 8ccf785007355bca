"""How the author of a source declares what an agent calls for its tuples; `node_agent.sdk` is the face of this.

Kept apart from `api`, which is part of the code that the built-in operators are identified by.
`node_agent/OPERATORS.md` is the manual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from node_agent.operators.api import DECLARATION, Declaration, Implementation, operator


class Tick(NamedTuple):
    """One call. number: of the instants of this source, on this machine, since its clock began; planned_ns: the instant
    on the node's clock that the call was planned for."""

    number: int
    planned_ns: int


class Aged:
    """A value, and how long before it is given it became true: `return Aged(frame, age_ms=12)`. Its age counts from
    then, in place of from the tick."""

    __slots__ = ("age_ms", "value")

    def __init__(self, value: Any, age_ms: float) -> None:
        self.value, self.age_ms = value, age_ms

    def __repr__(self) -> str:
        return f"Aged({self.value!r}, age_ms={self.age_ms!r})"


def source(name: str, version: str = "1", output: str = "json") -> Callable[[Implementation], Implementation]:
    """Declare what an agent calls for the tuples of a source that says `run: name`.

    A function, or a class with `__call__`, is called at each tick: a value, None where there is none this time, or
    `Aged`. A generator function, or a class with `__iter__`, is iterated over at its own pace. output: "json" or the
    name of a codec. Parameters (`with:` of a query) are those of `__init__`, of a function its own, but for `tick`:
    one that takes it is told its Tick. Raises ValueError on a declaration that cannot be meant.
    """
    operator(name, version, output=output)  # raises where a name or a type can be nobody's
    if output == "same":
        raise ValueError(f"source {name!r}: 'same' is for an operator, which has an input")
    declaration = Declaration(name, version, {}, {}, output)

    def mark(implementation: Implementation) -> Implementation:
        if not callable(implementation):
            raise TypeError(f"source {name!r} must be a class or a function, not {type(implementation).__name__}")
        setattr(implementation, DECLARATION, declaration)
        return implementation

    return mark


__all__ = ["Aged", "Tick", "source"]
