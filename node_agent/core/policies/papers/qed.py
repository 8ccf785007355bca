"""QoS earliest deadline ([Q] algorithm 1): the earliest of the deadlines that keep each unit's service curve."""

from collections.abc import Callable

from node_agent.core.plan import Service, Unit
from node_agent.core.policies.policy_parts import Policy


class QosDeadlines:
    """[Q] theorem 2 in integers: D_n = max over j <= n of (a_j + beta^-1(n - j + 1)).

    For a delay bound beta^-1 is a constant: D_n = a_n + D. For a rate-latency curve it is D_n = max(a_n + L, D_{n-1}) +
    1/P, kept exactly, in units of 1/tuples ns, and rounded down. Of several curves the least deadline counts; the
    printed rule 5 (their supremum) is sound but looser. Of rule 2 (the first result of a busy period) a tuple that does
    not find the unit idle has no deadline; there is always another curve. The deadlines are those of the curves
    themselves: theorem 3 moves all of them by the same longest task, which changes no order, and it belongs to the
    admission test.
    """

    __slots__ = ("_last", "_parts")

    def __init__(self, parts: tuple[Service, ...]) -> None:
        self._parts = parts
        self._last: list[int | None] = [None] * len(parts)

    def __call__(self, at_ns: int, idle: bool) -> int:
        """The deadline of the next tuple, released at that instant; `idle`: nothing of the unit waits or runs."""
        least_ns: int | None = None
        for index, part in enumerate(self._parts):
            if part.first and not idle:
                continue
            due_ns = at_ns + part.latency_ns
            if part.period_ns:
                scaled, last = due_ns * part.tuples, self._last[index]
                scaled = max(scaled, last if last is not None else scaled) + part.period_ns
                self._last[index] = scaled
                due_ns = scaled // part.tuples
            least_ns = due_ns if least_ns is None else min(least_ns, due_ns)
        assert least_ns is not None
        return least_ns


def qos(unit: Unit) -> Callable[[int, bool], int]:
    """By the unit's declared service curves; without one, its sub-deadline is a delay bound."""
    return QosDeadlines(unit.service or (Service(unit.sub_deadline_ns),))


QED = Policy(name="qed", rule=qos)
