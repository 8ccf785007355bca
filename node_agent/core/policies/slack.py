"""The earliest end-to-end deadline first, short ones before long ones, among equals what has come furthest; what cannot
be met is shed. For nodes that promise nothing: there is no bound for it.

Five things differ from `edf`. Sub-deadlines make work urgent that has time: a unit's 30 ms of a deadline of 300 ms
compete with a deadline of 30 ms; here the tuple's own deadline counts. What has at least twice the least deadline of
its node stands as much as that one later (`TIMES`): in lasting overload all that waits is on the brink, so a new tuple
of a short deadline would wait behind all that has a long one and is due before it, and come to the brink as well. So
nothing that can still be met goes before what has the least deadline, unless its own is nearly as short. Of tuples
with one deadline those with the fewest units left on this node come first: where not all of a burst can be met, some
are met, instead of all being late together. Before a join the older tuple comes first, and on every node the same one:
a result needs all its branches, and the fewest units left would take the short branch of many tuples before the long
one of any. And what cannot be met makes room, judged by the work that is left up to an output, of all outputs that a
unit leads to by the one with most room.
"""

from collections.abc import Mapping
from typing import NamedTuple

from node_agent.core.meters import ExitMeter, NodeMeter, UnitMeter
from node_agent.core.model import ALWAYS_NS, CompiledPlan, FusionHead, Job, Join, Route, Step, Unit
from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.excess import gives_up
from node_agent.core.policies.hopeless import hopeless
from node_agent.core.policies.policy_parts import Policy
from node_agent.core.policies.split_joins import SplitJoin, after, splits
from protos.records import POLICY_EXCESS, POLICY_LATE

TIMES = 2  # the least deadline of its node: what has this much time waits for that
SOON, EVERY = 16, 256  # ranks after which the work that is left is added up anew, at least: at first, and ever later
STEP_BITS = 16  # of a tie: units on the way to an output
NUMBER_BITS = 40  # of a tie: the tuple's number at its source
YOUNG = 8  # of its deadline: a tuple that has waited for less of it than one part is young
TRIAL = 32  # of the time, one part is for trials of a unit
SOME_DAY_NS = ALWAYS_NS // 2
MOST_WORK_NS = 1 << 44  # up to an output: hours, which as many results as there may be cannot take beyond 64 bits
NUMBERS = (1 << NUMBER_BITS) - 1


class EndToEnd:
    """Ranks by the instant when the first of a unit's outputs is due, later by the least deadline of the node where
    that of the unit is `TIMES` as long; then, where a join follows, by the tuple's number; then by how many units are
    left to an output.

    It also keeps the meters' `slack_ns`: how long after its origin a tuple may start in a unit and still meet an
    output, by measured costs, with what runs in an operator's place where that is cheaper. Units on other nodes are
    not known here: there a stream has time until its deadline.
    """

    __slots__ = ("_changes", "_every", "_meter", "_plans")

    def __init__(self, meter: NodeMeter) -> None:
        self._meter, self._changes, self._every = meter, -1, SOON
        self._plans: dict[CompiledPlan, list[Ahead]] = {}  # of its units, each after those that it leads to

    def place(self, head: Job) -> None:
        """By deadline; ties by number and steps."""
        unit, lineage = head.unit, head.lineage
        meter = unit.meter
        assert meter is not None  # the policy measures
        node = self._meter
        if self._changes != node.changes or not node.ranks or unit.loaded not in self._plans:
            self._look_at(unit.loaded)
        node.ranks -= 1
        number = 1 + lineage[2] % NUMBERS if unit.punctuated_exits else 0
        head.rank, head.tie = lineage[4] + meter.place_ns, number << STEP_BITS | meter.steps

    def chosen(self, rank: int) -> None:
        """Nothing follows from it."""

    def _look_at(self, loaded: CompiledPlan) -> None:
        if self._changes != self._meter.changes:
            self._plans, self._changes, self._every = {}, self._meter.changes, SOON
        if loaded not in self._plans:
            self._plans[loaded] = _ahead(loaded.units)
            every = [each for plan in self._plans.values() for each in plan]
            least_ns = min((each.deadline_ns for each in every if each.deadline_ns), default=0)
            for each in every:
                urgent = each.deadline_ns < TIMES * least_ns
                each.meter.urgent, each.meter.place_ns = urgent, each.deadline_ns + (0 if urgent else least_ns)
        self._add_up()

    def _add_up(self) -> None:
        """O(units), so it is done once in as many ranks as there are units."""
        self._meter.ranks, self._meter.looks = max(self._every, len(self._meter.units)), 0
        self._every = min(EVERY, 2 * self._every)
        for plan in self._plans.values():
            for each in plan:
                each.add_up()


class Left(NamedTuple):
    """On the way to the output that leaves most time. room_ns: how long after its origin a tuple may come and still
    meet it; due_ns: after its origin, its deadline, or when the tuple has to leave the node; work_ns: what is to be
    done up to it on this node, in the mean; steps: units up to the last output; declared_room_ns: `room_ns` if all took
    what it was declared to take."""

    room_ns: int
    due_ns: int
    work_ns: int
    steps: int
    declared_room_ns: int


class Behind:
    """A stream that leaves a unit. exit_meter: how many leave there; declared_ns: of the unit's operators up to there;
    end: what is left at the earliest end of the stream itself, an output or a link; units: the meters of those that it
    comes to; joins: of those behind a join, and its inputs; branches, joined: where it is split, of what is before its
    branches come together, and of the unit there; steps: units behind it or an earlier one, up to the last output."""

    __slots__ = ("branches", "declared_ns", "end", "exit_meter", "joined", "joins", "steps", "units")

    def __init__(
        self, exit_meter: ExitMeter, declared_ns: int, route: Route, split: SplitJoin | None, steps: int
    ) -> None:
        self.exit_meter, self.declared_ns = exit_meter, declared_ns
        ends = [output.deadline_ns for output in route.outputs]
        ends += [ALWAYS_NS] if route.sides else []  # an operator reads the newest one
        ends += [_leaving_ns(route)] if route.sends else []
        self.end = max((Left(end_ns, end_ns, 0, 0, end_ns) for end_ns in ends), default=None)
        self.units = tuple(_meter(unit) for unit in route.units)
        self.joins = tuple((_meter(join.unit), _inputs(join)) for join, _ in route.joins)
        self.branches: tuple[UnitMeter, ...] = ()
        self.joined: UnitMeter | None = None
        if split is not None and not ends:
            self.branches, self.joined = tuple(_meter(unit) for unit in split.before), _meter(split.join)
        self.steps = max([steps] + [_meter(unit).steps for unit in after(route)])

    def left(self) -> Left:
        """What is left of a tuple that comes on that stream."""
        best, joined = self.end, self.joined
        if joined is not None and joined.slack_ns is not None:
            cost_ns = sum([meter.cost_ns for meter in self.branches])
            room_ns = joined.declared_slack_ns - sum([meter.declared_ns for meter in self.branches])
            return Left(joined.slack_ns - cost_ns, joined.due_ns, joined.work_ns + cost_ns, self.steps, room_ns)
        for meter in self.units:
            left = _left(meter, 1)
            if best is None or left > best:
                best = left
        for meter, inputs in self.joins:
            left = _left(meter, inputs)
            if best is None or left > best:
                best = left
        return NOTHING if best is None else best


class Ahead:
    """A unit, and what is ahead of its tuples on this node. branch: of a stream that is split; tuples of it are not
    given up for others."""

    __slots__ = ("behind", "branch", "deadline_ns", "meter")

    def __init__(self, unit: Unit, splits: Mapping[Route, SplitJoin], branch: bool) -> None:
        self.meter, self.deadline_ns, self.branch = _meter(unit), unit.deadline_ns, branch
        behind: list[Behind] = []
        steps = declared_ns = 0
        for step in unit.chain:
            declared_ns += _least_ns(step)
            if step.exit is not None:
                route, exit_meter = step.exit.route, self.meter.exits[step.exit.index]
                each = Behind(exit_meter, declared_ns, route, splits.get(route), steps)
                behind.append(each)
                steps = each.steps
        self.behind = tuple(behind)
        self.meter.steps = min(steps + 1, (1 << STEP_BITS) - 1)

    def add_up(self) -> None:
        """The meter's figures anew, of the output that leaves most room; the units that it leads to are added up."""
        meter = self.meter
        if not self.behind:
            meter.slack_ns, meter.due_ns, meter.work_ns, meter.yields = None, 0, max(1, meter.cost_ns), False
            return
        cost_ns, unit_ns = meter.cost_ns, max(1, meter.declared_ns)
        best: Left | None = None
        for each in self.behind:
            left, own_ns, leaving = each.left(), cost_ns * each.declared_ns // unit_ns, each.exit_meter
            leaving.queued_ns = min(MOST_WORK_NS, sum([unit.work_ns for unit in each.units]))
            work_ns = own_ns + leaving.passing(left.work_ns)
            left = Left(
                left.room_ns - own_ns, left.due_ns, work_ns, each.steps, left.declared_room_ns - each.declared_ns
            )
            if best is None or left > best:
                best = left
        assert best is not None
        meter.slack_ns, meter.due_ns = best.room_ns, best.due_ns
        meter.work_ns = min(max(1, best.work_ns), MOST_WORK_NS)
        meter.declared_slack_ns = best.declared_room_ns
        meter.yields = best.room_ns < SOME_DAY_NS and not self.branch


NOTHING = Left(0, 0, 0, 0, 0)


def _ahead(units: list[Unit]) -> list[Ahead]:
    """Of each unit, after all that it leads to."""
    backwards = _backwards(units)
    found = splits(backwards)
    branches = {unit for split in found.values() for unit in split.before}
    return [Ahead(unit, found, unit in branches) for unit in backwards]


def _left(meter: UnitMeter, inputs: int) -> Left:
    """From a unit on that runs once for so many tuples that come."""
    room_ns, declared_ns = meter.slack_ns, meter.declared_slack_ns
    if room_ns is None:
        room_ns = declared_ns = ALWAYS_NS
    return Left(room_ns, meter.due_ns, meter.work_ns // inputs, meter.steps, declared_ns)


def _inputs(join: Join | FusionHead) -> int:
    head = join.unit.loaded.plan.operator_by_id[join.unit.chain[0].operator_id]
    return len(head.inputs)


def _meter(unit: Unit) -> UnitMeter:
    assert unit.meter is not None  # the policy measures
    return unit.meter


def _least_ns(step: Step) -> int:
    """As declared; of what runs in its place for tuples that are late, where that is less."""
    variant = None if step.late is None else step.late.variant
    return int(step.cost_ns if variant is None else min(step.cost_ns, variant.cost_ns))


def _leaving_ns(route: Route) -> int:
    plan = route.loaded.plan
    deadline_ns = next(each.last_ns for each in plan.streams if each.id == route.stream)
    latency_ns = min((each.latency_ns for each in plan.peers if each.index in route.sends), default=0)
    return deadline_ns - latency_ns if deadline_ns else ALWAYS_NS


def _backwards(units: list[Unit]) -> list[Unit]:
    """Each unit after all that it leads to. In a circle, which no plan has, somewhere."""
    found: list[Unit] = []
    seen = set[Unit]()
    for first in units:
        waiting = [(first, False)]
        while waiting:
            unit, ended = waiting.pop()
            if ended:
                found.append(unit)
            elif unit not in seen:
                seen.add(unit)
                waiting.append((unit, True))
                waiting += [(each, False) for exit_ in unit.exits for each in after(exit_.route)]
    return found


def hopeless_or_excess(job: Job, at_ns: int, ahead: int) -> int:
    """Sheds what is hopeless, and of what waits tuples that are given up for others. What is young is not asked."""
    meter = job.unit.meter
    assert meter is not None  # the policy measures
    if hopeless(job, at_ns, ahead):
        if _tries(job, meter, at_ns):
            return 0
        meter.node.done_ns += meter.work_ns
        return POLICY_LATE
    young = (at_ns - job.lineage[5]) * YOUNG < job.unit.deadline_ns
    if not young and meter.yields and gives_up(job, at_ns):
        return POLICY_EXCESS
    meter.doubted_ns = None
    return 0


def _tries(job: Job, meter: UnitMeter, at_ns: int) -> bool:
    """Whether a tuple runs although it is hopeless, to measure anew: what never runs is never found to be quick. One
    instance that hung would end its unit, and so would a declared cost that is far too high.

    Where hardly any tuple can be met by what was measured it runs at once. Elsewhere one that has not waited could be
    met, unless all come too old: so none is tried before all have been hopeless for a while. Pauses double until
    trials take one part of the time. What is tried could be met as declared, or half of its time here is left.
    """
    slack_ns, lineage, declared_ns = meter.slack_ns, job.lineage, TRIAL * meter.declared_ns
    assert slack_ns is not None  # it is hopeless
    if meter.doubted_ns is None:
        meter.doubted_ns = at_ns
    none_fits = slack_ns * YOUNG < job.unit.deadline_ns
    pause_ns = meter.pause_ns if none_fits else max(meter.pause_ns, declared_ns)
    if at_ns < meter.doubted_ns + min(pause_ns, TRIAL * meter.work_ns):
        return False
    left_ns = lineage[5] + meter.due_ns - job.release_ns
    if at_ns > max(lineage[5] + meter.declared_slack_ns, job.release_ns + left_ns // 2):
        return False
    meter.doubted_ns, meter.on_trial = at_ns, True
    meter.pause_ns = max(meter.pause_ns, declared_ns)
    return True


SLACK = Policy(name="slack", offset=sub_deadline, order=EndToEnd, dropper=hopeless_or_excess)
