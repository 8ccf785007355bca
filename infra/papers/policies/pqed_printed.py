"""Packaged QED as printed ([Q] 4.1, equations (5) to (7)): for comparison only, it is unsound.

The chosen unit i runs min(Z, backlog) tuples without a decision, with D the deadline of the most urgent other head:

    Z = (alpha_i (x) beta_i^max)(D - t) = (D - t - sum over j != i of (alpha_j (x) beta_j*)(D - t) C_j) / C_i

What the other units have queued already is not in the sum, so an admitted set can miss. When another head becomes the
most urgent one, Z is computed again, between tuples (table 1).
"""

from bisect import bisect_right
from dataclasses import replace

from node_agent.core.meters import NodeMeter, UnitMeter
from node_agent.core.model import Job
from node_agent.core.plan import Arrivals, Parameters, Service
from node_agent.core.policies.papers.qed import QosDeadlines, qos
from node_agent.core.policies.policy_parts import Policy, Stay

MOST = 100_000  # tuples that a curve is looked at for


class Demand:
    """floor(alpha (x) beta*): how many tuples of a unit may have deadlines up to an instant, when all come as early as
    its arrival curve allows and the service curve is `ahead_ns` earlier (theorem 3). Without a declared arrival curve
    the measured mean gap stands for it."""

    __slots__ = ("_arrivals", "_deadlines_ns", "_next")

    def __init__(self, unit: UnitMeter, ahead_ns: int) -> None:
        service = unit.service or (Service(unit.sub_deadline_ns),)
        self._arrivals = unit.arrivals or (Arrivals(0, max(1, unit.gap_ns)),)
        self._next = QosDeadlines(
            tuple(replace(each, latency_ns=max(0, each.latency_ns - ahead_ns)) for each in service)
        )
        self._deadlines_ns: list[int] = []

    def count(self, at_ns: int) -> int:
        """Tuples due at that time or before it."""
        found = self._deadlines_ns
        while (not found or found[-1] <= at_ns) and len(found) < MOST:
            earliest_ns = max(len(found) * each.period_ns - each.ahead_ns for each in self._arrivals)
            found.append(self._next.next_ns(max(0, earliest_ns), not found))
        return bisect_right(found, at_ns)


class Packages(Stay):
    """Runs what is left of the batch."""

    __slots__ = ("_changes", "_demands", "_left", "_meter", "_other")

    def __init__(self, meter: NodeMeter, parameters: Parameters) -> None:
        self._meter = meter
        self._changes = 0
        self._demands: dict[int, Demand] = {}  # by the unit's number; offline, as long as the units are the same
        self._left = 0
        self._other: Job | None = None

    def begins(self, job: Job, other: Job | None, at_ns: int) -> None:
        """A decision."""
        self._look(job, other, at_ns)

    def goes_on(self, head: Job, other: Job | None, at_ns: int) -> bool:
        """The next tuple of the batch."""
        if other is not self._other:
            self._look(head, other, at_ns)
            return self._left > 0 or other is None
        self._left -= 1
        return self._left > 0 or other is None

    def _look(self, job: Job, other: Job | None, at_ns: int) -> None:
        self._other = other
        unit = job.unit.meter
        assert unit is not None  # the policy measures
        self._left = self._size(unit, other.key_ns - at_ns) if other is not None else 0

    def _size(self, unit: UnitMeter, left_ns: int) -> int:
        """Z, from equation (5)."""
        units = self._meter.units
        if self._changes != self._meter.changes:
            longest_ns = max(each.declared_ns for each in units)
            self._demands = {each.number: Demand(each, longest_ns) for each in units}
            self._changes = self._meter.changes
        others_ns: int = sum(
            self._demands[each.number].count(left_ns) * each.declared_ns for each in units if each is not unit
        )
        size: int = (left_ns - others_ns) // max(1, unit.declared_ns)
        return size


PQED_PRINTED = Policy(name="pqed-printed", rule=qos, stays=Packages)
