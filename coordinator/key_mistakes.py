"""Keys that stand in the wrong place, and values beyond what they may be: what people write, and what to write instead.

The words of other tools (`delay`, `params`) are listed by hand: they are too far from ours for a likeness of letters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from coordinator.errors import Mistake

INSTEAD: Mapping[tuple[str, str], str] = {
    ("sources", "node"): "write 'at: NODE'",
    ("sources", "nodes"): "write 'at: NODE'",
    ("sources", "burst"): "write it within 'arrival: {burst: 10, period: 500 ms}'",
    ("sources", "period"): "write it within 'arrival: {burst: 10, period: 500 ms}'",
    ("sources", "rate"): "write it within 'arrival: {rate: 50, burst: 5}'",
    ("sources", "deadline"): "deadlines are of outputs: write it under 'outputs:'",
    ("operators", "at"): "write 'nodes: [NODE]', or nothing where the planner may choose",
    ("operators", "node"): "write 'nodes: [NODE]', or nothing where the planner may choose",
    ("operators", "deadline"): "deadlines are of outputs: write it under 'outputs:'",
    ("operators", "from"): "write 'in: STREAM'",
    ("operators", "input"): "write 'in: STREAM'",
    ("operators", "inputs"): "write 'in: STREAM', or 'in: [STREAM, STREAM]'",
    ("operators", "output"): "remove it: its results have the operator's own name",
    ("operators", "out"): "remove it: its results have the operator's own name",
    ("operators", "params"): "write 'with: {NAME: VALUE}'",
    ("operators", "parameters"): "write 'with: {NAME: VALUE}'",
    ("operators", "args"): "write 'with: {NAME: VALUE}'",
    ("outputs", "in"): "write 'from: OPERATOR'",
    ("outputs", "node"): "write 'at: NODE'",
    ("outputs", "nodes"): "write 'at: NODE'",
    ("nodes", "host"): "write 'address: \"HOST:PORT\"'",
    ("nodes", "ip"): "write 'address: \"HOST:PORT\"'",
    ("nodes", "port"): "write 'address: \"HOST:PORT\"'",
    ("links", "from"): "write 'between: [NODE, NODE]'",
    ("links", "to"): "write 'between: [NODE, NODE]'",
    ("links", "nodes"): "write 'between: [NODE, NODE]'",
    ("links", "delay"): "write it as 'latency:'",
}  # by section and key
BOUNDS = {
    "greater_than": ("gt", "a number above {}"),
    "greater_than_equal": ("ge", "{} or more"),
    "less_than": ("lt", "a number below {}"),
    "less_than_equal": ("le", "{} at most"),
}  # pydantic's names of a number out of range: where it has the bound


def instead(keys: Sequence[object]) -> str:
    """What to write in place of an unknown key; empty where nothing is known of it."""
    name = str(keys[-1])
    key, colon, value = name.partition(":")
    if colon and key.strip():
        return f"write a blank after the colon: '{key.strip()}: {value.strip() or 'VALUE'}'"
    return INSTEAD.get((str(keys[0]), name), "") if len(keys) == 3 else ""


def glued(keys: Sequence[object]) -> str:
    """The key that was meant where its value stands right behind the colon, and YAML takes both for a key; else
    empty."""
    key, colon, _ = str(keys[-1]).partition(":")
    return key.strip() if colon else ""


def indented_section(data: Mapping[str, Any], sections: Collection[str]) -> tuple[tuple[str, str], Mistake] | None:
    """A section of the file that stands below another one and not at the top, with its keys there."""
    for outer in sections:
        below = data.get(outer)
        found = set(below) - set(data) if isinstance(below, Mapping) else frozenset[str]()
        for inner in (each for each in sections if each in found):
            if isinstance(data[outer][inner], Mapping | Sequence):
                mend = f"write '{inner}:' at the beginning of its line, as '{outer}:' is"
                return (outer, inner), Mistake("unknown_key", f"'{inner}' stands below '{outer}'", mend)
    return None


def out_of_range(item: Any, where: str, got: str) -> Mistake | None:
    """A number beyond its bounds, as pydantic found it."""
    if item["type"] not in BOUNDS:
        return None
    bound, wanted = BOUNDS[item["type"]]
    value = item["ctx"][bound]
    range_ = wanted.format(value if isinstance(value, int) else f"{value:g}")
    return Mistake("out_of_range", f"{where} is {got}", f"write {range_}")


def of_no_choice(item: Any, where: str, got: str) -> Mistake | None:
    """A word that is none of those that may stand there, or nothing where something has to stand."""
    if item["type"] == "literal_error":
        words = item["ctx"]["expected"]
        return Mistake("unknown_word", f"{where} is {got}", f"write {words}")
    if item["type"] in ("too_short", "string_too_short"):
        return Mistake("too_short", f"{where} has nothing in it", "write at least one")
    if item["type"] == "string_too_long":
        most = item["ctx"]["max_length"]
        return Mistake("too_long", f"{where} is too long", f"write at most {most} characters")
    return None
