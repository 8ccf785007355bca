"""Operators of the street: each result says of which output it is and of which tuples it was made."""

from typing import Any

from node_agent.sdk import aggregate, operator


@operator("street.keep", inputs={"value": "json"}, output="json")
def keep(value: Any) -> Any:
    """A filter: every third number goes."""
    return value if value["n"] % 3 else None


@operator("street.mark", inputs={"value": "json"}, output="json")
class Mark:
    """Says where it was."""

    def __init__(self, by: str) -> None:
        self.by = by

    def __call__(self, value: Any) -> Any:
        return {"of": self.by, "n": value["n"]}


@operator("street.attach", inputs={"value": "json"}, side={"beside": "json"}, output="json")
def attach(value: Any, *, beside: Any) -> Any:
    """With the number of the side input's newest value, or -1."""
    return {"of": "near", "n": value["n"], "beside": -1 if beside is None else beside["n"]}


@operator("street.pair", inputs={"left": "json", "right": "json"}, output="json")
def pair(left: Any, right: Any) -> Any:
    """Both."""
    return {"of": "pair", "n": left["n"], "left": [left["of"], left["n"]], "right": [right["of"], right["n"]]}


@aggregate("street.numbers")
class Numbers:
    """The numbers of a window's tuples, in the order in which they came."""

    def start(self) -> list[int]:
        return []

    def add(self, state: list[int], value: Any) -> list[int]:
        return [*state, value["n"]]

    def result(self, state: list[int]) -> list[int]:
        return state
