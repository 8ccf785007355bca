"""What an aggregate makes of the tuples of a window."""

from collections.abc import Iterable, Mapping
from typing import Any

from node_agent.core.plan import Window
from node_agent.operators.codecs import JSON
from node_agent.operators.registry import Registry
from node_agent.operators.signature import OperatorError
from node_agent.testing.loaded import Operator, as_json, check_type, loaded


def window(
    aggregate: Operator, tuples: Iterable[Any], with_: Mapping[str, Any] | None = None, by: str | None = None
) -> Any:
    """The `result` of a window with these tuples; of the built-in `aggregate` its figures: {name: value}.

        assert window(Trend, [{"kg": 2.0}, {"kg": 3.5}]) == 1.5

    aggregate: a class under `@aggregate`, or an installed one's name. with_: its parameters. by: a field of the tuples,
    as of a query's window; then {key: result}. Two windows are filled in turn with the same tuples, since windows
    overlap.

    Raises what the aggregate raises (in an agent that costs the window), ChangedError where it changes a tuple,
    OperatorError where it is none, where its parameters do not fit, or where what it keeps in `self` mixes two windows;
    UnfitError for a tuple without the field of `by` or of a figure; CodecError for values not of their types.
    """
    registry, name = loaded(aggregate)
    given = as_json(name, with_ or {})
    values = list(tuples)
    if registry.signature(name).kind == "aggregate":
        ((port, type_),) = registry.signature(name).declaration.inputs.items()
        for value in values:
            check_type(registry, type_, value, f"{name}: input {port!r}")
    alone, first = (_filled(registry, name, given, values, by, windows) for windows in (1, 2))
    if repr(alone) != repr(first):
        raise OperatorError(
            "windows_mixed",
            f"{name} gives something else when two windows are open: "
            "keep what belongs to a window in its state, not in self",
            subject=name,
        )
    check_type(registry, JSON.name, alone, f"{name}: its result")
    figures = registry.signature(name).declaration.open
    if by is not None:
        return {key: each if figures else each["result"] for key, each in alone["groups"].items()}
    return alone if figures else alone["result"]


def _filled(registry: Registry, name: str, given: str, values: list[Any], by: str | None, windows: int) -> Any:
    """Of a fresh aggregate with so many windows open, which get each tuple in turn: the result of the first."""
    made = registry.aggregate(name, given, Window("count", 1, 1, 1, ((1, 0),), by=by or ""))
    states = [made.start() for _ in range(windows)]
    for value in values:
        for state in states:
            state.add(0, value)
    return states[0].result()


__all__ = ["window"]
