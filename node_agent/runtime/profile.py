"""What each operator costs: thread CPU time of its calls, sampled; and the CPU time that emulated nodes add.

A reading of the thread's CPU clock is a system call, about as dear as scheduling an instance, so at most one instance
in a millisecond is measured: longer ones are measured all. On an emulated node every call is, because every call
must be filled up.
"""

from time import thread_time_ns

from node_agent.core.parts import Step


class Cost:
    """Of one operator of one plan, over the measured calls."""

    __slots__ = ("emulate_ns", "name", "operator_id", "squares_ns2", "total_ns", "tuples", "worst_ns")

    def __init__(self, operator_id: int, name: str, emulate_ns: int = 0) -> None:
        self.operator_id, self.name, self.emulate_ns = operator_id, name, emulate_ns
        self.tuples = self.total_ns = self.worst_ns = 0
        self.squares_ns2 = 0.0

    def row(self) -> tuple[int, str, int, int, int, float]:
        """As in ipc.Profile."""
        return self.operator_id, self.name, self.tuples, self.total_ns, self.worst_ns, self.squares_ns2


class Meter:
    """The Executor's `spend`. Call `start` before the instance."""

    __slots__ = ("costs", "mark_ns")

    def __init__(self) -> None:
        self.costs: dict[Step, Cost] = {}
        self.mark_ns = 0

    def start(self) -> None:
        """The next operator begins now."""
        self.mark_ns = thread_time_ns()

    def spend(self, step: Step) -> None:
        """The operator has returned: use CPU time up to its emulated cost, then take it down."""
        cost = self.costs[step]
        mark_ns, emulate_ns = self.mark_ns, cost.emulate_ns
        spent_ns = thread_time_ns() - mark_ns
        while spent_ns < emulate_ns:
            spent_ns = thread_time_ns() - mark_ns
        self.mark_ns = mark_ns + spent_ns
        cost.tuples += 1
        cost.total_ns += spent_ns
        cost.squares_ns2 += float(spent_ns) * spent_ns
        cost.worst_ns = max(cost.worst_ns, spent_ns)
