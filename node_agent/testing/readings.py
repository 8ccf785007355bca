"""A source as an agent calls it, tick after tick, or as far as its iterator goes."""

from collections.abc import Mapping
from typing import Any

from node_agent.operators.source_call import EndedError
from node_agent.operators.source_functions import Tick
from node_agent.testing.loaded import Operator, as_json, loaded

EVERY_NS = 100_000_000


def readings(source: Operator, calls: int = 1, every_ns: int = EVERY_NS, with_: Mapping[str, Any] = {}) -> list[Any]:
    """What that source gives at each of so many calls, as its stream carries it: None where there is nothing; fewer
    where an iterator ends.

    source: a class or function under `@source`, or the name of an installed one. every_ns: between two ticks, which are
    numbered from 1. with_: its parameters, as `with:` of a query. Raises what the source raises, OperatorError as an
    agent refuses it, UnencodableError for a value that its stream cannot carry.
    """
    registry, name = loaded(source)
    declared = registry.signature(name).declaration
    codec = registry.codecs.get("json" if declared.inputs else declared.output)  # an operator is refused below
    call = registry.source_call(name, as_json(name, with_), codec)
    found: list[Any] = []
    for number in range(1, calls + 1):
        try:
            made = call(Tick(number, number * every_ns))
        except EndedError:
            break
        found.append(None if made is None else made.payload)
    return found


__all__ = ["readings"]
