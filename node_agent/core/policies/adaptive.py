"""`slack` with fewer decisions: runs of a unit so long that decisions cost no more than h of the time.

The unit that runs goes on without a decision while its next tuple is the most urgent one, which changes no order, and
beyond that until it has run for s (1 - h) / h since the last decision, with s the measured cost of one. Between two
tuples it looks at what has come: where the most urgent other one can still be met if the decision is made now, and no
longer after one more tuple, it is made, unless a decision costs more than a tuple. So no whole batch stands before
what is urgent, and where decisions cost next to nothing the schedule is that of `slack`.
"""

from dataclasses import replace

from node_agent.core.meters import PPM, NodeMeter
from node_agent.core.model import Job, before
from node_agent.core.plan import Parameters
from node_agent.core.policies.hopeless import hopeless
from node_agent.core.policies.policy_parts import Stay
from node_agent.core.policies.slack import SLACK, EndToEnd

MOST_DECISION_NS = 1 << 40  # a quarter of an hour, so that its product with a million has 64 bits


class FeedForward(Stay):
    """How long the running unit goes on, from the overhead share."""

    __slots__ = ("_began_ns", "_meter", "_order", "_share_ppm")

    def __init__(self, meter: NodeMeter, parameters: Parameters) -> None:
        self._meter, self._share_ppm = meter, parameters.share_ppm
        self._order = EndToEnd(meter)
        self._began_ns = 0

    def begins(self, job: Job, other: Job | None, at_ns: int) -> None:
        """A decision."""
        self._began_ns = at_ns

    def goes_on(self, head: Job, other: Job | None, at_ns: int) -> bool:
        """With the next tuple of the unit."""
        if hopeless(head, at_ns, 0):
            return False
        if other is None:
            return True
        self._order.place(head)
        if not before(other, head):
            return True
        meter, rival = head.unit.meter, other.unit.meter
        assert meter is not None and rival is not None  # the policy measures
        decision_ns, cost_ns = min(self._meter.decision.of(), MOST_DECISION_NS), meter.expected_ns()
        if at_ns + cost_ns // 2 - self._began_ns > decision_ns * (PPM - self._share_ppm) // self._share_ppm:
            return False
        if decision_ns >= cost_ns:
            return True
        youngest_ns = other.lineage[5]
        room_ns = youngest_ns + rival.slack_ns - at_ns - decision_ns
        return not 0 <= room_ns < cost_ns


ADAPTIVE = replace(SLACK, name="adaptive", stays=FeedForward)
