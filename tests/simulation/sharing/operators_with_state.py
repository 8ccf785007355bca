"""Operators that remember what they saw: losing or repeating a tuple, or beginning anew, changes their results."""

from typing import Any

from node_agent.sdk import operator


@operator("state.count", inputs={"value": "any"}, output="json")
class Count:
    """Numbers what it gets."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, value: Any) -> Any:
        self.seen += 1
        return {"value": value, "count": self.seen}


@operator("state.last", inputs={"value": "any"}, output="json")
class Last:
    """Says what it got before."""

    def __init__(self) -> None:
        self.last: Any = None

    def __call__(self, value: Any) -> Any:
        before, self.last = self.last, value
        return {"value": value, "before": _seq(before)}


def _seq(value: Any) -> Any:
    """Of the tuple that a value was made of: short, where values hold values."""
    while isinstance(value, dict) and "seq" not in value:
        value = next(iter(value.values()))
    return value["seq"] if isinstance(value, dict) else None
