"""Operators of the robot. One that fuses gets None for an input that did not come in time."""

from typing import Any

from node_agent.sdk import operator

Json = dict[str, Any]
CLOSE_M = 1.5


@operator("robot.people", inputs={"image": "json"}, output="json")
def people(image: Json) -> Json:
    """Where people are in an image: the middle of each box, in degrees from straight ahead."""
    return {"image": image["image"], "at_deg": [(left + right) / 2 for left, right in image["boxes"]]}


@operator("robot.seen", inputs={"people": "json", "scan": "json"}, output="json")
def seen(people: Json | None, scan: Json | None) -> Json:
    """How far the nearest person, or thing, is; without a scan a person counts as close."""
    if scan is None:
        return {"nearest_m": CLOSE_M if people and people["at_deg"] else None, "sure": False}
    return {"nearest_m": min(scan["metres"]), "sure": people is not None}


@operator("robot.steer", inputs={"seen": "json"}, side={"pose": "json"}, output="json")
def steer(seen: Json, *, pose: Json) -> Json:
    """Half the speed where something is near, and no faster where it is not sure."""
    near = seen["nearest_m"] is not None and seen["nearest_m"] < CLOSE_M
    return {"speed": pose["speed"] / 2 if near or not seen["sure"] else pose["speed"], "sure": seen["sure"]}
