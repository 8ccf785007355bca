"""Maximum urgency first ([A] 1.3, after Stewart): critical units before the others, within both the least laxity.

The critical set holds the units with the shortest sub-deadlines, for as long as their measured use of the CPU is 100 %
together: in overload the others give way. Laxity is the time that a job can still wait: deadline - now - expected cost;
now is the same for all, so it does not enter. [A] has no user priorities, Stewart's third criterion.
"""

from node_agent.core.meters import PPM, NodeMeter
from node_agent.core.model import Job
from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.policy_parts import Asked, Order, Policy

OTHERS = 1 << 62  # added to the rank of what is not critical; instants in ns are less
EVERY = 256  # ranks after which the critical set is found again, at least


class Urgency(Order):
    """Ranks by criticality, then laxity."""

    __slots__ = ("_critical", "_left", "_meter")

    def __init__(self, meter: NodeMeter) -> None:
        self._meter, self._left = meter, 0
        self._critical: frozenset[int] = frozenset()  # units' numbers

    def place(self, head: Job) -> None:
        """Laxity, and what sets the others apart."""
        if not self._left:
            self._find()
        self._left -= 1
        meter = head.unit.meter
        assert meter is not None  # the policy measures
        laxity_ns = head.key_ns - meter.expected_ns()
        head.rank = laxity_ns if meter.number in self._critical else OTHERS + laxity_ns

    def _find(self) -> None:
        """O(units log units), so it is done once in as many ranks as there are units: O(log units) each."""
        self._left = max(EVERY, len(self._meter.units))
        used_ppm, critical = 0, []
        for unit in sorted(self._meter.units, key=lambda each: (each.sub_deadline_ns, each.number)):
            used_ppm += unit.use_ppm
            if used_ppm > PPM:
                break
            critical.append(unit.number)
        self._critical = frozenset(critical)


MUF = Policy(name="muf", offset=sub_deadline, order=Urgency, asks=Asked.COSTS | Asked.GAPS)
