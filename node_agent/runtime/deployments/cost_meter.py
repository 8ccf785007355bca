"""Measures the cost of each operator: thread CPU time of its calls, sampled; and the CPU time that emulated nodes add.
Beside it what calls cost that make a source's tuples, and how old tuples are as they come to their source: of all.

A reading of the thread's CPU clock is a system call, about as dear as scheduling an instance, so at most one instance
in a millisecond is measured, the units in turn, so that one which always runs behind another is not left out; of
instances that take longer, all that follow each other. On an emulated node every call is, because every call must be
filled up. What is taken down is without that filling: it is the operator's own.

CPU time leaves out what preempts the runtime, and what an operator waits for: a file, a socket, a sleep. The time that
went by is summed up beside it, so that an operator that waits can be told.

Quantiles come from counts in buckets that are a sixteenth of their value wide at most; a quantile is told as the upper
end of its bucket, so it is never below the true one of what was measured, and at most 6.25 % above.
"""

from collections.abc import Sequence
from typing import Protocol

from node_agent.core.lineage import Lineage
from node_agent.core.model import Step
from node_agent.core.shedding.refusals import FAR_NS
from node_agent.operators.hop import Checking
from node_agent.ports import Clock

EARLY = 16  # calls: caches are cold, the interpreter has not adapted, imports within functions are made
SLOTS_BITS = 4  # a power of two is divided into 16 buckets
MOST_ROWS_BYTES = 16 * 1024  # of one answer to AskProfile: encoding it takes the scheduling thread a fraction of a ms

OPERATOR, CALL, AGE = range(3)  # agent.proto Measured

Row = tuple[int, str, bool, int, int, int, int, int, float, tuple[int, ...], tuple[int, ...], int]  # as in ipc.Profile


def bucket(ns: int) -> int:
    """The number of the bucket of a duration; they ascend with it."""
    shift = ns.bit_length() - SLOTS_BITS - 1
    return ns if shift <= 0 else (shift << SLOTS_BITS) + (ns >> shift)


def upper_ns(number: int) -> int:
    """The longest duration in a bucket."""
    shift = (number >> SLOTS_BITS) - 1
    if shift <= 0:
        return number
    return ((number - (shift << SLOTS_BITS) + 1) << shift) - 1


class Cost:
    """Of one operator of one plan, over the measured calls; of: or of what makes a source's tuples. degraded: of what
    runs in its place for late tuples."""

    __slots__ = (
        "counts", "degraded", "elapsed_ns", "emulate_ns", "later_worst_ns", "name", "of", "operator_id", "squares_ns2",
        "total_ns", "tuples", "worst_ns",
    )  # fmt: skip

    def __init__(
        self, operator_id: int, name: str, emulate_ns: int = 0, degraded: bool = False, of: int = OPERATOR
    ) -> None:
        self.operator_id, self.name, self.emulate_ns, self.degraded, self.of = (
            operator_id,
            name,
            emulate_ns,
            degraded,
            of,
        )
        self.tuples = self.total_ns = self.elapsed_ns = self.worst_ns = self.later_worst_ns = 0
        self.squares_ns2 = 0.0
        self.counts: dict[int, int] = {}  # by bucket; few are ever hit

    def add(self, spent_ns: int, elapsed_ns: int) -> None:
        """One call: its CPU time, and the time that went by."""
        self.tuples += 1
        self.total_ns += spent_ns
        self.elapsed_ns += elapsed_ns
        self.squares_ns2 += float(spent_ns) * spent_ns
        self.worst_ns = max(self.worst_ns, spent_ns)
        if spent_ns > self.later_worst_ns and self.tuples > EARLY:
            self.later_worst_ns = spent_ns
        number = bucket(spent_ns)
        self.counts[number] = self.counts.get(number, 0) + 1

    def row(self) -> Row:
        """As in ipc.Profile."""
        hit = sorted(self.counts)
        return (
            self.operator_id, self.name, self.degraded, self.tuples, self.total_ns, self.elapsed_ns, self.worst_ns,
            self.later_worst_ns, self.squares_ns2, tuple(map(upper_ns, hit)), tuple(self.counts[each] for each in hit),
            self.of,
        )  # fmt: skip


class Ages:
    """How old the tuples that a source was offered may have been as they came, refused ones among them."""

    __slots__ = ("counts", "name", "source_id", "worst_ns")

    def __init__(self, source_id: int, name: str) -> None:
        self.source_id, self.name, self.worst_ns = source_id, name, 0
        self.counts: dict[int, int] = {}  # by bucket

    def add(self, at_ns: int, origin_ns: int) -> None:
        """One tuple: the earliest instant that may be its origin. None where that is not known, or lies ahead."""
        age_ns = at_ns - origin_ns
        if 0 <= age_ns < FAR_NS:
            self.worst_ns = max(self.worst_ns, age_ns)
            number = bucket(age_ns)
            self.counts[number] = self.counts.get(number, 0) + 1

    def row(self) -> Row:
        """As in ipc.Profile."""
        hit = sorted(self.counts)
        counts = tuple(self.counts[each] for each in hit)
        upper = tuple(map(upper_ns, hit))
        return self.source_id, self.name, False, sum(counts), 0, 0, self.worst_ns, 0, 0.0, upper, counts, AGE


def rows(costs: Sequence[Cost | Ages], first: int) -> tuple[tuple[Row, ...], int]:
    """As many rows from the `first` on as one answer takes, and where the next answer begins; 0: there is none."""
    found: list[Row] = []
    size = 0
    for number in range(first, len(costs)):
        row = costs[number].row()
        size += 160 + len(row[1]) + 24 * len(row[-2])
        if found and size > MOST_ROWS_BYTES:
            return tuple(found), number
        found.append(row)
    return tuple(found), 0


class Meter(Protocol):
    """The Executor's `spend`, and what it found. always: it is told of every instance."""

    costs: dict[Step, Cost]
    always: bool
    began_ns: int

    def start(self) -> None:
        """The next instance begins now, with its first operator."""

    def spend(self, step: Step, lineage: Lineage, raised: bool) -> None:
        """The operator has returned, or has raised."""


class CostMeter:
    """The Executor's `spend`. Call `start` before the instance. checking: what is no cost of operators."""

    always = False
    __slots__ = ("began_ns", "checking", "clock", "costs", "mark_ns", "wall_ns")

    def __init__(self, clock: Clock, checking: Checking | None = None) -> None:
        self.clock, self.checking = clock, checking
        self.costs: dict[Step, Cost] = {}
        self.mark_ns = self.wall_ns = self.began_ns = 0

    def start(self) -> None:
        """The next instance begins now, with its first operator."""
        self.began_ns = self.wall_ns = self.clock.now_ns()
        self.mark_ns = self.clock.cpu_ns()
        self._checked()

    def _checked(self) -> tuple[int, int]:
        """CPU time and time that checks have taken since this was asked before."""
        checking = self.checking
        if checking is None:
            return 0, 0
        taken = checking.cpu_ns, checking.elapsed_ns
        checking.cpu_ns = checking.elapsed_ns = 0
        return taken

    def spend(self, step: Step, lineage: Lineage, raised: bool) -> None:
        """The operator has ended: take down its CPU time, unless it raised, then use up what is left of its emulated
        cost."""
        cost = self.costs[step]
        mark_ns, emulate_ns, cpu_ns = self.mark_ns, cost.emulate_ns, self.clock.cpu_ns
        spent_ns = cpu_ns() - mark_ns
        checks_ns, waited_ns = self._checked()
        if not raised:
            cost.add(max(0, spent_ns - checks_ns), max(0, self.clock.now_ns() - self.wall_ns - waited_ns))
        if emulate_ns:
            while spent_ns < emulate_ns:
                spent_ns = cpu_ns() - mark_ns
            self.mark_ns = mark_ns + spent_ns
        else:
            self.mark_ns = cpu_ns()
        self.wall_ns = self.clock.now_ns()
