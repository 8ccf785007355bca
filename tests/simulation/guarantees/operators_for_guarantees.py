"""Operators that do nothing but pass tuples on, as each tuple says: selectivity as the worst case has it."""

from typing import Any

from node_agent.sdk import operator


@operator("guaranteed.through", inputs={"value": "any"}, side={"ego": "any"}, output="same")
def through(value: Any, *, ego: Any = None) -> Any:
    del ego
    return value


@operator("guaranteed.pick", inputs={"value": "any"}, side={"ego": "any"}, output="same")
def pick(value: Any, *, ego: Any = None) -> Any:
    del ego
    return value if value["passes"] else None
