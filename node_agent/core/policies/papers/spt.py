"""Shortest processing time first, as [Q] 5 compares with: the unit with the least measured cost per tuple."""

from node_agent.core.meters import NodeMeter
from node_agent.core.model import Job
from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.policy_parts import Asked, Order, Policy


class LeastCost(Order):
    """Ranks by the expected cost of the head, which is the unit's mean cost. Before it has run, as declared."""

    __slots__ = ()

    def __init__(self, meter: NodeMeter) -> None:
        """Needs nothing of the node."""

    def place(self, head: Job) -> None:
        """ns."""
        meter = head.unit.meter
        assert meter is not None  # the policy measures
        head.rank = meter.expected_ns()


SPT = Policy(name="spt", offset=sub_deadline, order=LeastCost, asks=Asked.COSTS)
