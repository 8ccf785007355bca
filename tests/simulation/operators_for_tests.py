"""Operators for random plans: a side input, several results, and one that raises now and then."""

from typing import Any

from node_agent.sdk import Many, operator


@operator("test.attach", inputs={"value": "json"}, side={"ref": "json"}, output="json")
def attach(value: Any, *, ref: Any) -> Any:
    return {"value": value, "known": ref is not None}


@operator("test.twice", inputs={"value": "json"}, output="json")
def twice(value: Any) -> Any:
    return Many(value, value)


@operator("test.fragile", inputs={"value": "json"}, output="json")
class Fragile:
    """Raises on every `every`th tuple, each second time as `exit()` does."""

    def __init__(self, every: int = 3) -> None:
        self.every, self.seen = every, 0

    def __call__(self, value: Any) -> Any:
        self.seen += 1
        if self.seen % self.every == 0:
            raise SystemExit if self.seen % (2 * self.every) == 0 else ValueError("not this one")
        return value
