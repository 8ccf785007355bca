"""QoS earliest deadline ([Q] algorithm 1): the earliest of the deadlines that keep each unit's service curve."""

from node_agent.core.model import ALWAYS_NS, DeadlineRule
from node_agent.core.plan import Service, Unit
from node_agent.core.policies.policy_parts import Policy


class Curve:
    """A service curve of a unit, and its deadline before: for a delay bound it has none.

    The sums of a rate-latency curve are in units of 1/tuples ns, which take more than 64 bits: no C integer has them.
    """

    __slots__ = ("_last", "_latency_ns", "_period_ns", "_tuples", "first")

    def __init__(self, part: Service) -> None:
        self._latency_ns = min(part.latency_ns, ALWAYS_NS)
        self._period_ns, self._tuples, self.first = part.period_ns, part.tuples, part.first
        self._last: int | None = None

    def next_ns(self, at_ns: int) -> int:
        """The deadline of the next tuple."""
        due_ns = at_ns + self._latency_ns
        if not self._period_ns:
            return due_ns
        scaled, last = self._tuples * due_ns, self._last
        scaled = max(scaled, last if last is not None else scaled) + self._period_ns
        self._last = scaled
        return scaled // self._tuples


class QosDeadlines(DeadlineRule):
    """[Q] theorem 2 in integers: D_n = max over j <= n of (a_j + beta^-1(n - j + 1)).

    For a delay bound beta^-1 is a constant: D_n = a_n + D. For a rate-latency curve it is D_n = max(a_n + L, D_{n-1}) +
    1/P, kept exactly, in units of 1/tuples ns, and rounded down. Of several curves the least deadline counts; the
    printed rule 5 (their supremum) is sound but looser. Of rule 2 (the first result of a busy period) a tuple that does
    not find the unit idle has no deadline; there is always another curve. The deadlines are those of the curves
    themselves: theorem 3 moves all of them by the same longest task, which changes no order, and it belongs to the
    admission test.
    """

    __slots__ = ("_curves",)

    def __init__(self, parts: tuple[Service, ...]) -> None:
        self._curves = tuple(Curve(part) for part in parts)

    def next_ns(self, at_ns: int, idle: bool) -> int:
        """The least of the curves that hold for the tuple."""
        least_ns, found = 0, False
        for curve in self._curves:
            if idle or not curve.first:
                due_ns = curve.next_ns(at_ns)
                if not found or due_ns < least_ns:
                    least_ns, found = due_ns, True
        assert found
        return least_ns


def qos(unit: Unit) -> DeadlineRule:
    """By the unit's declared service curves; without one, its sub-deadline is a delay bound."""
    return QosDeadlines(unit.service or (Service(unit.sub_deadline_ns),))


QED = Policy(name="qed", rule=qos)
