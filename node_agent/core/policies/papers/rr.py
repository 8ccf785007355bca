"""Round robin over units, as [Q] 5 compares with: a turn is one task, since a task is not interrupted."""

from node_agent.core.meters import NodeMeter
from node_agent.core.model import Job
from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.policy_parts import Asked, Order, Policy

MOST_UNITS = 1 << 24


class Turns(Order):
    """Ranks by round, then by the unit's number.

    The turn stands at the unit of the largest rank that was passed so far: a unit that becomes ready behind it waits
    for the next round, one before it takes part in this one.
    """

    __slots__ = ("_round", "_turn")

    def __init__(self, meter: NodeMeter) -> None:
        self._round, self._turn = 0, 0

    def place(self, head: Job) -> None:
        """The first free turn of the unit."""
        meter = head.unit.meter
        assert meter is not None  # the policy measures
        number = meter.number
        head.rank = (self._round + (number <= self._turn)) * MOST_UNITS + number

    def chosen(self, rank: int) -> None:
        """The turn is now at the unit of that rank."""
        self._round, self._turn = rank // MOST_UNITS, rank % MOST_UNITS


RR = Policy(name="rr", offset=sub_deadline, order=Turns, asks=Asked(0))
