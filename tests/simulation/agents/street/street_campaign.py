"""Seeds of the street: the campaign of whole agents with a richer query, and a checker of its own."""

from collections.abc import Sequence

from tests.simulation.agents import agent_campaign
from tests.simulation.agents.agent_campaign import Outcome, World
from tests.simulation.agents.agents_line import AgentsLine
from tests.simulation.agents.sometimes import OF_THE_STREET
from tests.simulation.agents.street.street_checker import StreetCheck
from tests.simulation.agents.street.street_line import StreetLine


def _check(line: AgentsLine, healed_ns: int) -> StreetCheck:
    assert isinstance(line, StreetLine)
    return StreetCheck(line, healed_ns)


STREET = World(StreetLine, _check, "tests.simulation.agents.street", recoveries=OF_THE_STREET)


def run(seed: int, kinds: Sequence[str] | None = None) -> Outcome:
    """One seed, with its own kinds of faults or with these."""
    return agent_campaign.run(seed, kinds, world=STREET)


def kinds_drawn(seed: int) -> set[str]:
    """Of which a seed has a fault at all."""
    return agent_campaign.kinds_drawn(seed, STREET)
