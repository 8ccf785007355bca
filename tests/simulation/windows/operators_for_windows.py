"""Operators for queries with windows: a filter that looks at its tuple only, how long a window is, an aggregate."""

from typing import Any

from node_agent.sdk import aggregate, operator


@operator("test.some", inputs={"value": "json"}, output="json")
class Some:
    """Hands on what does not leave `but` of `of`."""

    def __init__(self, of: int = 3, but: int = 0) -> None:
        self.of, self.but = of, but

    def __call__(self, value: Any) -> Any:
        return value if value["v"] % self.of != self.but else None


@operator("test.size", inputs={"value": "json"}, output="json")
def size(value: Any) -> Any:
    return value["size"]


@aggregate("test.names")
class Names:
    """The numbers of a window's tuples, in their order."""

    def start(self) -> list[int]:
        return []

    def add(self, state: list[int], value: Any) -> list[int]:
        return [*state, value["n"]]

    def result(self, state: list[int]) -> list[int]:
        return state
