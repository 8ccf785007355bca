"""Meters of a running node, for the policies that need measurements.

All numbers are integers, taken from the events' own fields in the order of the events, so a journal gives the same
measurements, and by them the same commands, on any machine. Every measurement is O(1).
"""

from collections.abc import Sequence
from typing import Protocol

from node_agent.core import plan as plans
from node_agent.core.plan import Arrivals, Service

PPM = 1_000_000
MADE_BITS, MOST_MADE = 8, 255  # of an instance's outputs word, per exit
MOST_PAUSE_NS = 1 << 60
ALWAYS_NS = 1 << 62  # of a tuple that is worth running at any age: something without a deadline waits for it
MOST_COST_NS = 1 << 56  # that a unit declares: two years, so that multiples of it have 64 bits
JOBS, ARRIVALS, DECISIONS = 512, 128, 128  # how many samples a mean remembers at most; half of them at least


class Mean:
    """A mean over the newest samples: sums, which are halved when they have become as many as `limit`.

    Rejected: a mean with a fixed weight for each sample; a batch of 500 tuples is worth more than one tuple.
    """

    __slots__ = ("count", "limit", "total")

    def __init__(self, limit: int) -> None:
        self.total, self.count, self.limit = 0, 0, limit

    def add(self, total: int, count: int = 1) -> None:
        """`count` samples that are `total` together."""
        self.total += total
        self.count += count
        if self.count >= self.limit:
            self.halve()

    def halve(self) -> None:
        """Newer samples count for more."""
        self.total >>= 1
        self.count >>= 1

    def inherit(self, other: "Mean") -> None:
        """With the samples of another one."""
        self.total, self.count = other.total, other.count

    def of(self) -> int:
        """The mean, rounded down; 0 without samples."""
        return self.total // self.count if self.count else 0


class MeteredStep(Protocol):
    """An operator of a unit: what it costs, as declared."""

    @property
    def cost_ns(self) -> int:
        """The declared CPU time of the step, ns."""


class MeteredUnit(Protocol):
    """A unit that is measured."""

    @property
    def chain(self) -> Sequence[MeteredStep]:
        """The steps of the unit, in order."""

    @property
    def spec(self) -> plans.Unit:
        """The unit as the plan has it."""

    @property
    def sub_deadline_ns(self) -> int:
        """The unit's sub-deadline, ns."""


class ExitMeter(Mean):
    """A stream that leaves a unit: how many tuples leave per tuple of the unit. queued_ns: work of each of them in the
    units that it comes to, as an order knows it."""

    __slots__ = ("queued_ns",)

    def __init__(self) -> None:
        super().__init__(JOBS)
        self.queued_ns = 0

    def passing(self, work_ns: int) -> int:
        """Per tuple of the unit, of work that each of these has, less than 1 << 45; before the first one, as if none
        passed."""
        return work_ns * self.total // self.count if self.count else 0


class UnitMeter:
    """One task unit: CPU time per tuple, and gaps between arrivals."""

    __slots__ = (
        "_came", "_costs_ns", "_gaps", "_gaps_ns", "_last_ns", "arrivals", "costs", "declared_ns", "declared_slack_ns",
        "doubted_ns", "due_ns", "ends", "excess", "exits", "node", "number", "on_trial", "pause_ns", "place_ns",
        "service", "slack_ns", "steps", "sub_deadline_ns", "urgent", "work_ns", "yields",
    )  # fmt: skip

    def __init__(self, node: "NodeMeter", number: int, unit: MeteredUnit) -> None:
        self.node, self.number = node, number
        self.declared_ns = min(MOST_COST_NS, sum(step.cost_ns for step in unit.chain))
        self.sub_deadline_ns: int = unit.sub_deadline_ns
        self.service: tuple[Service, ...] = unit.spec.service
        self.arrivals: tuple[Arrivals, ...] = unit.spec.arrivals
        self.costs = self._costs_ns = 0  # a mean, as `Mean` has it: a unit's numbers are near each other in memory
        self.exits = tuple(ExitMeter() for _ in unit.spec.exits)
        self._came, self._last_ns = False, 0  # whether a tuple has come, and when the last one did
        self._gaps = self._gaps_ns = 0  # likewise
        # What an order knows of it; see `policies/slack.py` and `policies/excess.py`.
        self.ends = False  # it leads to an output; where it does not, a tuple may start at any time
        self.slack_ns = ALWAYS_NS  # how long after its origin a tuple may start and still meet an output
        self.declared_slack_ns = ALWAYS_NS  # the same by declared costs
        self.due_ns = 0  # after its origin, that output
        self.work_ns = 1  # up to there, in the mean
        self.place_ns = 0  # where a tuple stands, after its origin
        self.steps = 0  # units up to the last output, itself included
        self.urgent = self.yields = False  # its deadline is nearly the least; tuples of it may be given up for others
        self.on_trial = False  # what runs was hopeless
        self.doubted_ns: int | None = None  # since when all were hopeless, or the last trial; None: one is not
        self.pause_ns = 0  # how long after that there is no trial
        self.excess = 0  # tuples that wait and are given up

    @property
    def cost_ns(self) -> int:
        """Per tuple, everything that its instance runs: [A] (4) with measured costs and selectivities. Before the first
        instance, as declared."""
        return self.expected_ns()

    def expected_ns(self) -> int:
        """`cost_ns`, which the hot path asks by this call."""
        return max(1, self._costs_ns // self.costs if self.costs else self.declared_ns)

    @property
    def gap_ns(self) -> int:
        """Mean time between arrivals; 0: not known yet."""
        return self._gaps_ns // self._gaps if self._gaps else 0

    @property
    def use_ppm(self) -> int:
        """Share of the CPU that the unit takes at its measured rate; 0: not known yet."""
        return self.cost_ns * PPM // max(1, self.gap_ns) if self._gaps else 0

    def ran(self, tuples: int, ran_ns: int) -> None:
        """So many took that long together."""
        self.costs += tuples
        self._costs_ns += ran_ns
        if self.costs >= JOBS:
            self.costs, self._costs_ns = self.costs >> 1, self._costs_ns >> 1

    def arrived(self, at_ns: int) -> None:
        """A tuple, at its release."""
        if self._came:
            self._gaps_ns += at_ns - self._last_ns
            self._gaps += 1
            if self._gaps >= ARRIVALS:
                self._gaps_ns, self._gaps = self._gaps_ns >> 1, self._gaps >> 1
        self._came, self._last_ns = True, at_ns

    def made(self, counts: int) -> None:
        """A tuple has run: how many left by each exit, a byte each, the first one lowest."""
        done_ns = self.work_ns
        for exit_ in self.exits:
            count = counts & MOST_MADE
            counts >>= MADE_BITS
            exit_.total += count  # `add`, without the call
            exit_.count += 1
            if exit_.count >= JOBS:
                exit_.halve()
            done_ns -= count * exit_.queued_ns
        self.node.done_ns += done_ns

    def tried(self, ran_ns: int) -> None:
        """An instance on trial took so long. Where it is quick, what was measured before is of another time."""
        self.on_trial, self.node.ranks = False, 0
        if 2 * ran_ns <= self.cost_ns:
            self._costs_ns, self.costs = ran_ns, 1
            self.pause_ns = 0
        else:
            self.pause_ns = min(2 * self.pause_ns, MOST_PAUSE_NS)

    def inherit(self, other: "UnitMeter") -> None:
        """A new plan has a unit of the same operators: go on with what is known of it."""
        self.costs, self._costs_ns = other.costs, other._costs_ns
        for own, known in zip(self.exits, other.exits, strict=False):
            own.inherit(known)
        self._gaps, self._gaps_ns = other._gaps, other._gaps_ns  # not when the last one came: it may not have recorded


class NodeMeter:
    """One engine. `ended` and `missed` count task instances since the start, those that were shed as missed."""

    __slots__ = (
        "_number", "changes", "cost", "decision", "done_ns", "ended", "least_ns", "looked_ns", "looks", "missed",
        "ranks", "units",
    )  # fmt: skip

    def __init__(self) -> None:
        self.decision = Mean(DECISIONS)
        self.cost = Mean(JOBS)
        self.ended = self.missed = 0
        self.units: list[UnitMeter] = []
        self.changes = 0  # of the units
        # See `policies/excess.py`.
        self.looks = 0  # tuples until the excess is counted anew
        self.looked_ns = 0  # when it was counted
        self.done_ns = 0  # of the work that was counted then, as far as it is known to be over
        self.ranks = 0  # until the work that is left is added up anew; see `policies/slack.py`
        self.least_ns = 0  # sub-deadline of a unit
        self._number = 0

    @property
    def decision_ns(self) -> int:
        """Cost of one scheduling decision."""
        return self.decision.of()

    @property
    def cost_ns(self) -> int:
        """Per tuple that ran, of any unit; 0: none has."""
        return self.cost.of()

    def add(self, unit: MeteredUnit) -> UnitMeter:
        """A meter for a unit of the engine. Numbers are never given twice."""
        self._number += 1
        self.changes += 1
        meter = UnitMeter(self, self._number, unit)
        self.least_ns = min(self.least_ns, meter.sub_deadline_ns) if self.units else meter.sub_deadline_ns
        self.units.append(meter)
        return meter

    def remove(self, unit: UnitMeter) -> None:
        """The unit is gone."""
        self.changes += 1
        self.units.remove(unit)
        self.least_ns = min((each.sub_deadline_ns for each in self.units), default=0)

    def ran(self, unit: UnitMeter, jobs: int, missed: int, ran_ns: int) -> None:
        """An instance of that many tuples."""
        self.ended += jobs
        self.missed += missed
        if jobs:
            if unit.on_trial:
                unit.tried(ran_ns)
            unit.ran(jobs, ran_ns)
            self.cost.add(ran_ns, jobs)

    def decided(self, decision_ns: int) -> None:
        """A decision took that long: not where the unit went on."""
        self.decision.add(decision_ns)

    def shed(self) -> None:
        """A job was dropped."""
        self.ended += 1
        self.missed += 1
