"""Seeds of the changing line: the campaign of whole agents in which queries come and go and a node fails."""

from collections.abc import Sequence

from tests.simulation.agents import agent_campaign
from tests.simulation.agents.agent_campaign import Outcome, World
from tests.simulation.agents.changing.change_faults import CHANGE_KINDS
from tests.simulation.agents.changing.changing_checker import check
from tests.simulation.agents.changing.changing_line import ChangingLine
from tests.simulation.agents.sometimes import OF_CHANGES

CHANGES = World(
    ChangingLine,
    check,
    "tests.simulation.agents.changing",
    recoveries=OF_CHANGES,
    shares=(0.0, 0.02, 0.05),  # in a third of the seeds nothing but changes happens
    more=CHANGE_KINDS,
    more_shares=(0.4, 0.4, 0.3),
)


def run(seed: int, kinds: Sequence[str] | None = None, once: bool = False) -> Outcome:
    """One seed, with its own kinds of faults or with these. once: each kind once."""
    return agent_campaign.run(seed, kinds, once, world=CHANGES)


def kinds_drawn(seed: int) -> set[str]:
    """Of which a seed has a fault at all."""
    return agent_campaign.kinds_drawn(seed, CHANGES)
