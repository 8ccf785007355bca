"""What runs on the two nodes. After a change of a name, an input or a parameter, write operators.json again."""

from typing import Any

from node_agent.sdk import operator

Reading = dict[str, Any]


@operator("my.smoothed", inputs={"reading": "json"}, output="json")
class Smoothed:
    """The vibration of each press, smoothed: the new reading counts for `share`, what came before for the rest."""

    def __init__(self, share: float = 0.5) -> None:
        self.share, self.levels = share, dict[str, float]()

    def __call__(self, reading: Reading) -> Reading:
        before = self.levels.get(reading["press"], reading["mm_s"])
        level = self.levels[reading["press"]] = before + self.share * (reading["mm_s"] - before)
        return {"press": reading["press"], "mm_s": round(level, 2)}


@operator("my.judged", inputs={"reading": "json"}, output="json")
def judged(reading: Reading, *, limit: float = 7.1) -> Reading:
    """Whether the lamp is to light."""
    return {**reading, "lamp": reading["mm_s"] > limit}
