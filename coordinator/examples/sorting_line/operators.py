"""Operators of the sorting line. Each gets decoded JSON and returns JSON, or None to filter."""

from typing import Any

from node_agent.sdk import operator

Tray = dict[str, Any]
SMALL, MEDIUM = 200, 450  # longest edge in millimetres


@operator("sorting.parcel", inputs={"tray": "json"}, output="json")
class Parcel:
    """Passes trays that carry something."""

    def __init__(self, min_grams: int = 50) -> None:
        self.min_grams = min_grams

    def __call__(self, tray: Tray) -> Tray | None:
        return tray if tray["grams"] >= self.min_grams else None


@operator("sorting.size", inputs={"tray": "json"}, output="json")
def size(tray: Tray) -> Tray:
    """Size class from the longest edge."""
    edge = max(tray["edges_mm"])
    return {"tray": tray["tray"], "size": "S" if edge <= SMALL else "M" if edge <= MEDIUM else "L"}


@operator("sorting.label", inputs={"tray": "json"}, output="json")
def label(tray: Tray) -> Tray | None:
    """Destination from the label's code; an unreadable label is filtered, and its tray goes round again."""
    code = tray["code"]
    return {"tray": tray["tray"], "destination": code[:2]} if len(code) == 8 and code.isalnum() else None


@operator("sorting.closed", inputs={"key": "json"}, output="json")
class Closed:
    """Lanes that an operator has closed at the keypad."""

    def __init__(self) -> None:
        self.closed: set[str] = set()

    def __call__(self, key: dict[str, Any]) -> dict[str, Any]:
        (self.closed.discard if key["open"] else self.closed.add)(key["lane"])
        return {"closed": sorted(self.closed)}


@operator("sorting.lane", inputs={"item": "json"}, side={"closed": "json"}, output="json")
def lane(item: dict[str, Any], *, closed: dict[str, Any] | None) -> Tray:
    """The lane for a parcel: destination and size, or the overflow lane where that one is closed."""
    name = f"{item['label']['destination']}-{item['size']['size']}"
    shut = closed is not None and name in closed["closed"]
    return {"tray": item["label"]["tray"], "lane": "overflow" if shut else name}
