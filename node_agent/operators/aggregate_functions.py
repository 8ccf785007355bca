"""The built-in aggregate: its parameters are the figures of a window, each under the name that it has in the result.

    with: {speed: mean, n: count, p95: {quantile: 0.95, of: speed}, total: {sum: car.weight}}

A bare word is made of the field of the figure's own name; `{mean: FIELD}` names another field.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import isfinite
from typing import Any

from node_agent.core.windows.accumulator import Figure, Reader
from node_agent.core.windows.aggregates import PPM, Count, Extreme, Mean, Quantile, Sum, Together, field
from node_agent.operators.api import DECLARATION, Declaration

NAMES = ("window", "start_ns", "end_ns", "first", "last")  # of what a result says of its window
KINDS = ("count", "sum", "mean", "min", "max", "quantile")

_FIGURES: Mapping[str, Callable[[], Figure]] = {
    "sum": Sum,
    "mean": Mean,
    "min": partial(Extreme, greatest=False),
    "max": partial(Extreme, greatest=True),
}


class Aggregate(Together):
    """Figures of a window side by side. given: {name: what}. Raises ValueError that says how to write it."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        if not given:
            raise ValueError("no figure is asked for; write one, such as 'with: {n: count}'")
        super().__init__({name: _figure(name, what) for name, what in given.items()})


setattr(Aggregate, DECLARATION, Declaration("aggregate", "1", {"value": "any"}, {}, "json", aggregate=True, open=True))


def _figure(name: str, what: Any) -> tuple[Callable[[], Figure], Reader | None]:
    if name in NAMES or (name == "count" and what != "count"):
        raise ValueError(f"a figure cannot be called {name!r}, which says something else of the window; rename it")
    kind, path = what, name
    rest: dict[str, Any] = {}
    if isinstance(what, Mapping):
        kind, path, rest = _written(name, what)
    if kind == "count":
        if isinstance(what, Mapping):
            raise ValueError(f"{name}: count has no field; write '{name}: count'")
        return Count, None
    if kind == "quantile":
        return _quantile(name, path, rest)
    if not isinstance(kind, str) or kind not in _FIGURES:
        raise ValueError(
            f"{name}: there is no figure {kind!r}; there are {', '.join(KINDS)}, as '{name}: {{mean: FIELD}}'"
        )
    return _FIGURES[kind], _field(name, path)


def _written(name: str, what: Mapping[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """The kind, its field, and what else stands there."""
    if "quantile" in what:
        return "quantile", what.get("of", name), {key: value for key, value in what.items() if key != "of"}
    if len(what) != 1:
        raise ValueError(f"{name}: {dict(what)!r} is no figure; write one, as '{name}: {{mean: FIELD}}'")
    ((kind, path),) = what.items()
    return kind, path, {}


def _quantile(name: str, path: Any, given: Mapping[str, Any]) -> tuple[Callable[[], Figure], Reader]:
    share = given.get("quantile")
    number = isinstance(share, int | float) and not isinstance(share, bool) and isfinite(share)
    if len(given) != 1 or not number or not 0 < share <= 1 or not round(share * PPM):  # type: ignore[operator]
        raise ValueError(f"{name}: a quantile is above 0 and at most 1, as '{name}: {{quantile: 0.95, of: FIELD}}'")
    return partial(Quantile, round(share * PPM)), _field(name, path)  # type: ignore[operator]


def _field(name: str, path: Any) -> Reader:
    if not isinstance(path, str):
        raise ValueError(f"{name}: {path!r} names no field; write it as 'speed' or 'car.speed'")
    return field(path)


__all__ = ["KINDS", "NAMES", "Aggregate"]
