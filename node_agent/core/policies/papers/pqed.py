"""Packaged QED, sound: a unit goes on without a decision while its next tuple is the most urgent of all.

What has arrived is looked at between tuples, so the schedule is exactly QED's, and so is every promise; what is saved
is the decision. The printed form (`pqed-printed`) takes a number of tuples from the curves instead, and can miss.
"""

from node_agent.core.meters import NodeMeter
from node_agent.core.model import Job, before
from node_agent.core.plan import Parameters
from node_agent.core.policies.papers.qed import qos
from node_agent.core.policies.policy_parts import Asked, Policy, Stay


class MostUrgent(Stay):
    """Goes on while no other unit's head comes before."""

    __slots__ = ()

    def __init__(self, meter: NodeMeter, parameters: Parameters) -> None:
        """Needs nothing of the node."""

    def goes_on(self, head: Job, other: Job | None, at_ns: int) -> bool:
        """In the engine's own order: deadline, release, arrival."""
        return other is None or before(head, other)


PQED = Policy(name="pqed", rule=qos, stays=MostUrgent, asks=Asked(0))
