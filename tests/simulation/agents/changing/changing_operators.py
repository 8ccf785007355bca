"""The operator with state of the changing queries."""

from typing import Any

from node_agent.sdk import operator


@operator("changing.count", inputs={"value": "json"}, output="json")
class Count:
    """Says how many tuples it has had, from 1 on."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, value: Any) -> Any:
        self.count += 1
        return {"n": value["n"], "count": self.count}
