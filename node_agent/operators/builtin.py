"""The operators that every agent has: pass, filter, join, union, busy, aggregate."""

import time
from collections.abc import Callable
from typing import Any

from node_agent.operators.aggregate_functions import Aggregate
from node_agent.operators.api import DECLARATION, Declaration, Implementation


def _builtin(
    name: str, inputs: dict[str, str], output: str, *, variadic: bool = False, union: bool = False
) -> Callable[[Implementation], Implementation]:
    def mark(implementation: Implementation) -> Implementation:
        setattr(implementation, DECLARATION, Declaration(name, "1", inputs, {}, output, variadic, union))
        return implementation

    return mark


@_builtin("pass", {"in": "any"}, "same")
def pass_(value: Any) -> Any:
    """Hands on every tuple."""
    return value


@_builtin("filter", {"in": "any"}, "same")
class Filter:
    """Hands on `keep` of every `of` tuples, evenly spread, beginning with one that it drops (of 15, 1 of 2 keeps 7)."""

    def __init__(self, keep: int = 1, of: int = 2) -> None:
        if not 0 <= keep <= of or of < 1:
            raise ValueError(f"cannot keep {keep} of {of}; write 0 <= keep <= of with of >= 1")
        self._keep, self._of, self._seen = keep, of, 0

    def __call__(self, value: Any) -> Any:
        before = self._seen * self._keep // self._of
        self._seen += 1
        return value if self._seen * self._keep // self._of > before else None


@_builtin("join", {"*": "json"}, "json", variadic=True)
class Join:
    """Puts the values of one lineage side by side: {name of the input stream: value}."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def __call__(self, *values: Any) -> Any:
        return dict(zip(self._names, values, strict=True))


@_builtin("union", {"*": "any"}, "same", variadic=True, union=True)
class Union:
    """Hands on every tuple of every input."""

    def __init__(self, names: tuple[str, ...]) -> None:
        del names

    def __call__(self, value: Any) -> Any:
        return value


@_builtin("busy", {"in": "any"}, "same")
class Busy:
    """Hands on every tuple after spinning for `cpu_us` microseconds of CPU time."""

    def __init__(self, cpu_us: int) -> None:
        if cpu_us < 0:
            raise ValueError(f"cannot use {cpu_us} us of CPU; write cpu_us >= 0")
        self._cpu_ns = cpu_us * 1000

    def __call__(self, value: Any) -> Any:
        end_ns = time.thread_time_ns() + self._cpu_ns
        while time.thread_time_ns() < end_ns:
            pass
        return value


BUILTIN: tuple[Callable[..., Any], ...] = (pass_, Filter, Join, Union, Busy, Aggregate)
HANDS_ON: tuple[Callable[..., Any], ...] = (pass_, Filter, Union, Busy)  # their results are values that they got
