"""Seeds of the sensors: the campaign of whole agents with sources that they run themselves."""

from collections.abc import Mapping, Sequence

from tests.simulation.agents import agent_campaign
from tests.simulation.agents.agent_campaign import Outcome, World
from tests.simulation.agents.agents_line import AgentsLine
from tests.simulation.agents.sensors.sensors_checker import SensorsCheck
from tests.simulation.agents.sensors.sensors_line import SensorsLine
from tests.simulation.agents.sometimes import RECOVERIES

OF_SENSORS: Mapping[str, str] = {
    **RECOVERIES,
    "a set ran without one of its inputs": "fused in part",
    "a large value was read beside": "results with an image",
    "a large value was too old to be read": "results without an image",
    "a fused tuple merged": "merged",
    "a tuple was replaced": "shed replaced",
    "a call raised": "refused raised",
}


def _check(line: AgentsLine, healed_ns: int) -> SensorsCheck:
    assert isinstance(line, SensorsLine)
    return SensorsCheck(line, healed_ns)


SENSORS = World(SensorsLine, _check, "tests.simulation.agents.sensors", recoveries=OF_SENSORS)


def run(seed: int, kinds: Sequence[str] | None = None) -> Outcome:
    """One seed, with its own kinds of faults or with these."""
    return agent_campaign.run(seed, kinds, world=SENSORS)


__all__ = ["SENSORS", "run"]
