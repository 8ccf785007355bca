"""Source and operators of the patrol robot. `coordinator run --local coordinator/examples/patrol_robot --for 10s`."""

from typing import Any

from node_agent.sdk import Aged, Tick, operator, source


@source("patrol.camera", version="1")
class Camera:
    """A row of distances ahead, in cm. A real one opens its device in __init__ and reads it in __call__, which may
    block: it has a thread of its own."""

    def __init__(self, width: int = 16) -> None:
        self.width = width

    def __call__(self, *, tick: Tick) -> Aged | None:
        if tick.number % 50 == 0:
            return None  # no frame this time
        near = tick.number % self.width
        row = [200 - 150 * (place == near) for place in range(self.width)]
        return Aged({"frame": tick.number, "cm": row}, age_ms=4)  # exposed 4 ms before it was there


@operator("patrol.obstacle", inputs={"row": "json"})
def obstacle(row: dict[str, Any], *, within_cm: int = 100) -> dict[str, Any]:
    near = [place for place, cm in enumerate(row["cm"]) if cm <= within_cm]
    return {"frame": row["frame"], "width": len(row["cm"]), "near": near}


@operator("patrol.steer", inputs={"obstacle": "json"})
def steer(obstacle: dict[str, Any]) -> dict[str, Any]:
    left = [place for place in obstacle["near"] if place < obstacle["width"] / 2]
    return {"frame": obstacle["frame"], "turn": "none" if not obstacle["near"] else "right" if left else "left"}


@operator("patrol.status", inputs={"tick": "json"}, side={"obstacle": "json"})
def status(tick: dict[str, Any], *, obstacle: dict[str, Any] | None) -> dict[str, Any]:
    return {"tick": tick["tick"], "last_frame": obstacle and obstacle["frame"]}
