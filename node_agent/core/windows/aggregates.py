"""What is made of the tuples of a window. A result does not depend on the order in which sources interleave.

A field that is missing, or that is no finite number where one is needed, is an error of the tuple (`UnfitError`): the
windows that it is in are abandoned, as they would be if it had been lost on its way.
"""

from collections.abc import Callable, Mapping
from math import isfinite

from node_agent.core.windows.accumulator import Accumulator, Aggregate, Figure, Own, Reader
from node_agent.core.windows.open_windows import Cause, UnfitError

PPM = 1_000_000
_BITS = 1074  # every float is a multiple of 2 ** -1074

Number = int | float


def field(path: str) -> Reader:
    """A reader of `speed` or `car.speed`, by key in mappings, else by attribute; UnfitError where there is none."""
    names = path.split(".")
    if not all(names):
        raise ValueError(f"'{path}' names no field")

    def read(payload: object) -> object:
        for name in names:
            try:
                payload = payload[name] if isinstance(payload, Mapping) else getattr(payload, name)
            except (KeyError, AttributeError):
                raise UnfitError(Cause.VALUE, f"a tuple without {path}") from None
        return payload

    return read


def number(value: object) -> Number:
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

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def add(self, value: object) -> None:
        """One more."""
        self._count += 1

    def result(self) -> int:
        """0 of none."""
        return self._count


class Sum:
    """Of integers an integer, else the nearest float to the exact sum; 0 of none."""

    __slots__ = ("_sum",)

    def __init__(self) -> None:
        self._sum = _Sum()

    def add(self, value: object) -> None:
        """One more."""
        self._sum.add(number(value))

    def result(self) -> Number | None:
        """Rounded once."""
        return self._sum.total()


class Mean:
    """The nearest float to the exact mean; None of none."""

    __slots__ = ("_sum",)

    def __init__(self) -> None:
        self._sum = _Sum()

    def add(self, value: object) -> None:
        """One more."""
        self._sum.add(number(value))

    def result(self) -> float | None:
        """Rounded once."""
        return self._sum.over(self._sum.count) if self._sum.count else None


class Extreme:
    """The least value, or the greatest; None of none. Of equal ones the integer."""

    __slots__ = ("_found", "_greatest")

    def __init__(self, greatest: bool) -> None:
        self._greatest = greatest
        self._found: Number | None = None

    def add(self, value: object) -> None:
        """One more."""
        new, found = number(value), self._found
        if found is None or (new == found and isinstance(new, int)) or (new > found if self._greatest else new < found):
            self._found = new

    def result(self) -> Number | None:
        """The value itself, not a copy as a float."""
        return self._found


class Quantile:
    """The value of rank ceil(q n), exact: all values are kept, 8 bytes each and up to 32 for the number itself."""

    __slots__ = ("_most", "_ppm", "_values")

    def __init__(self, ppm: int, most: int = 65_536) -> None:
        if not 0 < ppm <= PPM:
            raise ValueError(f"a quantile of {ppm} ppm: above 0 and at most {PPM}")
        self._ppm, self._most = ppm, most
        self._values: list[Number] = []

    def add(self, value: object) -> None:
        """One more; UnfitError beyond `most`."""
        if len(self._values) >= self._most:
            raise UnfitError(Cause.MEMORY, f"more than {self._most} values for a quantile")
        self._values.append(number(value))

    def result(self) -> Number | None:
        """None of none; of equal values the integer comes first."""
        if not self._values:
            return None
        ranked = sorted(self._values, key=lambda value: (value, isinstance(value, float)))
        return ranked[-(-self._ppm * len(ranked) // PPM) - 1]


Figures = Mapping[str, tuple[Callable[[], Figure], Reader | None]]


class Together:
    """Several figures of a window side by side: {name: (what starts it, reader of its value or None for the tuple
    itself)}."""

    def __init__(self, figures: Figures) -> None:
        self._figures = [(name, start, read) for name, (start, read) in figures.items()]

    def start(self) -> Accumulator:
        """A figure of each."""
        return _Together([(name, start(), read) for name, start, read in self._figures])


class _Together:
    __slots__ = ("_figures",)

    def __init__(self, figures: list[tuple[str, Figure, Reader | None]]) -> None:
        self._figures = figures

    def add(self, source: int, payload: object) -> None:
        """To each of them."""
        for _, figure, read in self._figures:
            figure.add(payload if read is None else read(payload))

    def result(self) -> dict[str, object]:
        """By name."""
        return {name: figure.result() for name, figure, _ in self._figures}


class Grouped:
    """Another aggregate for each key: {"groups": {key: {...}}}, by key. Keys are text, integers or bools, and are text
    in the result, as JSON has it, so 1 and "1" are one group."""

    def __init__(self, by: Reader, inner: Aggregate, most: int = 4096) -> None:
        self._by, self._inner, self._most = by, inner, most

    def start(self) -> Accumulator:
        """No groups."""
        return _Grouped(self._by, self._inner, self._most)


class _Grouped:
    __slots__ = ("_by", "_groups", "_inner", "_most")

    def __init__(self, by: Reader, inner: Aggregate, most: int) -> None:
        self._by, self._inner, self._most = by, inner, most
        self._groups: dict[str, Accumulator] = {}

    def add(self, source: int, payload: object) -> None:
        """To its group; UnfitError where there would be more than `most` groups."""
        key = text(self._by(payload))
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= self._most:
                raise UnfitError(Cause.MEMORY, f"more than {self._most} groups")
            group = self._groups[key] = self._inner.start()
        group.add(source, payload)

    def result(self) -> dict[str, object]:
        """Groups in the order of their keys."""
        return {"groups": {key: self._groups[key].result() for key in sorted(self._groups)}}


def text(key: object) -> str:
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

    def start(self) -> Accumulator:
        """The user's state, or a list per source."""
        return _UsersState(self._own) if self._sources == 1 else _UsersTuples(self._own, self._sources, self._most)


class _UsersState:
    __slots__ = ("_own", "_state")

    def __init__(self, own: Own) -> None:
        self._own, self._state = own, own.start()

    def add(self, source: int, payload: object) -> None:
        """To the user's state."""
        self._state = self._own.add(self._state, payload)

    def result(self) -> dict[str, object]:
        """What the user's function makes of it."""
        return {"result": self._own.result(self._state)}


class _UsersTuples:
    __slots__ = ("_count", "_kept", "_most", "_own")

    def __init__(self, own: Own, sources: int, most: int) -> None:
        self._own, self._most, self._count = own, most, 0
        self._kept: list[list[object]] = [[] for _ in range(sources)]

    def add(self, source: int, payload: object) -> None:
        """Kept until the window closes."""
        if self._count >= self._most:
            raise UnfitError(Cause.MEMORY, f"more than {self._most} tuples are kept")
        self._count += 1
        self._kept[source].append(payload)

    def result(self) -> dict[str, object]:
        """What the user's functions make of them."""
        state = self._own.start()
        for kept in self._kept:
            for payload in kept:
                state = self._own.add(state, payload)
        return {"result": self._own.result(state)}


__all__ = [
    "Count", "Extreme", "Figures", "Grouped", "Mean", "Quantile", "Sum", "Together", "Users", "field", "number", "text",
]  # fmt: skip
