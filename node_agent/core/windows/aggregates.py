"""What is made of the tuples of a window. A result does not depend on the order in which sources interleave.

A field that is missing, or that is no finite number where one is needed, is an error of the tuple (`UnfitError`): the
windows that it is in are abandoned, as they would be if it had been lost on its way.
"""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Protocol

from node_agent.core.windows.open_windows import Cause, UnfitError

PPM = 1_000_000
_BITS = 1074  # every float is a multiple of 2 ** -1074

Number = int | float


class Aggregate(Protocol):
    """Of a window. `source`: from 0, which of the window's sources the tuple is from."""

    def start(self) -> Any:
        """The state of an empty window."""

    def add(self, state: Any, source: int, payload: Any) -> None:
        """Change the state by a tuple, in the order of its source's numbers."""

    def result(self, state: Any) -> dict[str, Any]:
        """Of a complete window."""


class Own(Protocol):
    """A user's aggregate."""

    def start(self) -> Any:
        """The state of an empty window."""

    def add(self, state: Any, payload: Any) -> Any:
        """The state with that tuple; may be the same object."""

    def result(self, state: Any) -> Any:
        """Of a complete window."""


class Part(Protocol):
    """One figure of a window, of values that were read already."""

    def start(self) -> Any:
        """Of no values."""

    def add(self, state: Any, value: Any) -> None:
        """One more."""

    def result(self, state: Any) -> Any:
        """None where there is none of no values."""


def field(path: str) -> Callable[[Any], Any]:
    """A reader of `speed` or `car.speed`, by key in mappings, else by attribute; UnfitError where there is none."""
    names = path.split(".")
    if not all(names):
        raise ValueError(f"'{path}' names no field")

    def read(payload: Any) -> Any:
        for name in names:
            try:
                payload = payload[name] if isinstance(payload, Mapping) else getattr(payload, name)
            except (KeyError, AttributeError):
                raise UnfitError(Cause.VALUE, f"a tuple without {path}") from None
        return payload

    return read


def number(value: Any) -> Number:
    """An integer or a finite float; -0.0 is 0.0. Else UnfitError; a bool is no number."""
    if type(value) is int:
        return value
    if isinstance(value, float) and isfinite(value):
        return float(value) + 0.0
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise UnfitError(Cause.VALUE, f"{value!r:.60} is no finite number")


class _Sum:
    """Exact: of integers, and of floats as multiples of 2 ** -1074. Some 300 bytes at most."""

    __slots__ = ("count", "floats", "integers", "scaled")

    def __init__(self) -> None:
        self.count = self.floats = self.integers = self.scaled = 0

    def add(self, value: Number) -> None:
        """One more."""
        self.count += 1
        if isinstance(value, int):
            self.integers += value
        else:
            numerator, denominator = value.as_integer_ratio()
            self.scaled += numerator << (_BITS + 1 - denominator.bit_length())
            self.floats += 1

    def total(self) -> Number:
        """An integer where all values are, else rounded once."""
        return self.over(1) if self.floats else self.integers

    def over(self, divisor: int) -> float:
        """The sum over the divisor, rounded once."""
        try:
            return (self.scaled + (self.integers << _BITS)) / (divisor << _BITS)
        except OverflowError:
            raise UnfitError(Cause.VALUE, "a sum beyond what a float holds") from None


class Count:
    """How many tuples."""

    def start(self) -> list[int]:
        """A cell."""
        return [0]

    def add(self, state: list[int], value: Any) -> None:
        """One more."""
        state[0] += 1

    def result(self, state: list[int]) -> int:
        """0 of none."""
        return state[0]


class Sum:
    """Of integers an integer, else the nearest float to the exact sum; 0 of none."""

    def start(self) -> _Sum:
        """Of nothing."""
        return _Sum()

    def add(self, state: _Sum, value: Any) -> None:
        """One more."""
        state.add(number(value))

    def result(self, state: _Sum) -> Number | None:
        """Rounded once."""
        return state.total()


class Mean(Sum):
    """The nearest float to the exact mean; None of none."""

    def result(self, state: _Sum) -> Number | None:
        """Rounded once."""
        return state.over(state.count) if state.count else None


class Extreme:
    """The least value, or the greatest; None of none. Of equal ones the integer."""

    def __init__(self, greatest: bool) -> None:
        self._greatest = greatest

    def start(self) -> list[Number]:
        """None yet."""
        return []

    def add(self, state: list[Number], value: Any) -> None:
        """One more."""
        new = number(value)
        if not state:
            state.append(new)
        elif (new > state[0] if self._greatest else new < state[0]) or (new == state[0] and isinstance(new, int)):
            state[0] = new

    def result(self, state: list[Number]) -> Number | None:
        """The value itself, not a copy as a float."""
        return state[0] if state else None


class Quantile:
    """The value of rank ceil(q n), exact: all values are kept, 8 bytes each and up to 32 for the number itself."""

    def __init__(self, ppm: int, most: int = 65_536) -> None:
        if not 0 < ppm <= PPM:
            raise ValueError(f"a quantile of {ppm} ppm: above 0 and at most {PPM}")
        self._ppm, self._most = ppm, most

    def start(self) -> list[Number]:
        """No values."""
        return []

    def add(self, state: list[Number], value: Any) -> None:
        """One more; UnfitError beyond `most`."""
        if len(state) >= self._most:
            raise UnfitError(Cause.MEMORY, f"more than {self._most} values for a quantile")
        state.append(number(value))

    def result(self, state: list[Number]) -> Number | None:
        """None of none; of equal values the integer comes first."""
        if not state:
            return None
        ranked = sorted(state, key=lambda value: (value, isinstance(value, float)))
        return ranked[-(-self._ppm * len(ranked) // PPM) - 1]


Figures = Mapping[str, tuple[Part, Callable[[Any], Any] | None]]


class Together:
    """Several figures of a window side by side: {name: (part, reader of its value or None for the tuple itself)}."""

    def __init__(self, figures: Figures) -> None:
        self._parts = [(name, part, read) for name, (part, read) in figures.items()]

    def start(self) -> list[Any]:
        """A state per figure."""
        return [part.start() for _, part, _ in self._parts]

    def add(self, state: list[Any], source: int, payload: Any) -> None:
        """To each of them."""
        for mine, (_, part, read) in zip(state, self._parts, strict=True):
            part.add(mine, payload if read is None else read(payload))

    def result(self, state: list[Any]) -> dict[str, Any]:
        """By name."""
        return {name: part.result(mine) for mine, (name, part, _) in zip(state, self._parts, strict=True)}


class Grouped:
    """Another aggregate for each key: {"groups": {key: {...}}}, by key. Keys are text, integers or bools, and are text
    in the result, as JSON has it, so 1 and "1" are one group."""

    def __init__(self, by: Callable[[Any], Any], inner: Aggregate, most: int = 4096) -> None:
        self._by, self._inner, self._most = by, inner, most

    def start(self) -> dict[str, Any]:
        """No groups."""
        return {}

    def add(self, state: dict[str, Any], source: int, payload: Any) -> None:
        """To its group; UnfitError where there would be more than `most` groups."""
        key = text(self._by(payload))
        if key not in state:
            if len(state) >= self._most:
                raise UnfitError(Cause.MEMORY, f"more than {self._most} groups")
            state[key] = self._inner.start()
        self._inner.add(state[key], source, payload)

    def result(self, state: dict[str, Any]) -> dict[str, Any]:
        """Groups in the order of their keys."""
        return {"groups": {key: self._inner.result(state[key]) for key in sorted(state)}}


def text(key: Any) -> str:
    """A key as JSON writes it; UnfitError for what is no key."""
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return str(key)
    raise UnfitError(Cause.VALUE, f"{key!r:.60} is no key: a text or an integer is")


class Users:
    """A user's aggregate: {"result": ...}. With one source it gets the tuples as they are settled. With several they
    are kept, and given to it when the window closes, source by source, so that the result is the same for every
    interleaving; UnfitError beyond `most` of them."""

    def __init__(self, own: Own, sources: int = 1, most: int = 65_536) -> None:
        self._own, self._sources, self._most = own, sources, most

    def start(self) -> list[Any]:
        """The user's state, or a list per source and how many there are."""
        return [self._own.start()] if self._sources == 1 else [0, *([] for _ in range(self._sources))]

    def add(self, state: list[Any], source: int, payload: Any) -> None:
        """To the user's state, or kept."""
        if self._sources == 1:
            state[0] = self._own.add(state[0], payload)
            return
        if state[0] >= self._most:
            raise UnfitError(Cause.MEMORY, f"more than {self._most} tuples are kept")
        state[0] += 1
        state[source + 1].append(payload)

    def result(self, state: list[Any]) -> dict[str, Any]:
        """What the user's function says."""
        mine = state[0] if self._sources == 1 else self._own.start()
        for kept in state[1:]:
            for payload in kept:
                mine = self._own.add(mine, payload)
        return {"result": self._own.result(mine)}


__all__ = [
    "Aggregate", "Count", "Extreme", "Grouped", "Mean", "Own", "Part", "Quantile", "Sum", "Together", "Users", "field",
    "number", "text",
]  # fmt: skip
