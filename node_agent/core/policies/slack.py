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

from typing import NamedTuple

from node_agent.core.meters import NodeMeter, UnitMeter
from node_agent.core.model import ALWAYS_NS, CompiledPlan, FusionHead, Job, Join, Route, Step, Unit
from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.excess import gives_up
from node_agent.core.policies.hopeless import hopeless
from node_agent.core.policies.policy_parts import Policy
from node_agent.core.policies.split_joins import SplitJoin, after, splits
from protos.records import POLICY_EXCESS, POLICY_LATE

TIMES = 2  # the least deadline of its node: what has this much time waits for that
SOON, EVERY = 16, 256  # ranks after which the work that is left is added up anew, at least: at first, and ever later
STEP_BITS = 16  # of a rank: units on the way to an output
NUMBER_BITS = 40  # of a rank: the tuple's number at its source
YOUNG = 8  # of its deadline: a tuple that has waited for less of it than one part is young
TRIAL = 32  # of the time, one part is for trials of a unit
SOME_DAY_NS = ALWAYS_NS // 2
NUMBERS = (1 << NUMBER_BITS) - 1


class EndToEnd:
    """Ranks by the instant when the first of a unit's outputs is due, later by the least deadline of the node where
    that of the unit is `TIMES` as long; then, where a join follows, by the tuple's number; then by how many units are
    left to an output.

    It also keeps the meters' `slack_ns`: how long after its origin a tuple may start in a unit and still meet an
    output, by measured costs, with what runs in an operator's place where that is cheaper. Units on other nodes are
    not known here: there a stream has time until its deadline.
    """

    __slots__ = ("_changes", "_every", "_meter", "_plans", "_splits")

    def __init__(self, meter: NodeMeter) -> None:
        self._meter, self._changes, self._every = meter, -1, SOON
        self._plans: dict[CompiledPlan, list[Unit]] = {}  # loaded plan -> its units, each after those that it leads to
        self._splits: dict[Route, SplitJoin] = {}

    def rank(self, head: Job) -> int:
        """Place by deadline, number and steps in one number."""
        unit, lineage, meter = head.unit, head.lineage, head.unit.meter
        assert meter is not None  # the policy measures
        node = self._meter
        if self._changes != node.changes or not node.ranks or unit.loaded not in self._plans:
            self._look_at(unit.loaded)
        node.ranks -= 1
        number = 1 + lineage[2] % NUMBERS if unit.punctuated_exits else 0
        return (lineage[4] + meter.place_ns << NUMBER_BITS | number) << STEP_BITS | meter.steps

    def chosen(self, rank: int) -> None:
        """Nothing follows from it."""

    def _look_at(self, loaded: CompiledPlan) -> None:
        if self._changes != self._meter.changes:
            self._plans, self._splits, self._changes, self._every = {}, {}, self._meter.changes, SOON
        if loaded not in self._plans:
            self._plans[loaded] = backwards = _backwards(loaded.units)
            self._splits |= splits(backwards)
        self._add_up()

    def _add_up(self) -> None:
        """O(units), so it is done once in as many ranks as there are units."""
        self._meter.ranks, self._meter.looks = max(self._every, len(self._meter.units)), 0
        self._every = min(EVERY, 2 * self._every)
        every = [unit.deadline_ns for units in self._plans.values() for unit in units]
        least_ns = min((deadline_ns for deadline_ns in every if deadline_ns), default=0)
        branched = {unit for split in self._splits.values() for unit in split.before}
        for units in self._plans.values():
            for unit in units:
                meter = _meter(unit)
                meter.urgent = unit.deadline_ns < TIMES * least_ns
                meter.place_ns = unit.deadline_ns + (0 if meter.urgent else least_ns)
                self._add(unit, meter)
                meter.yields = meter.slack_ns is not None and meter.slack_ns < SOME_DAY_NS and unit not in branched

    def _add(self, unit: Unit, meter: UnitMeter) -> None:
        """What is left from a unit on; the units that it leads to are known."""
        best: Left | None = None
        steps = declared_ns = 0
        for step in unit.chain:
            declared_ns += _least_ns(step)
            if step.exit is not None:
                left = self._left_behind(step.exit.route)
                steps = max(steps, left.steps)
                own_ns = meter.cost_ns * declared_ns // max(1, meter.declared_ns)
                leaving = meter.exits[step.exit.index]
                leaving.queued_ns = sum(_meter(each).work_ns for each in step.exit.route.units)
                work_ns = own_ns + leaving.passing(left.work_ns)
                left = Left(left.room_ns - own_ns, left.due_ns, work_ns, steps, left.declared_room_ns - declared_ns)
                best = left if best is None else max(best, left)
        if best is None:
            meter.slack_ns, meter.due_ns, meter.work_ns = None, 0, max(1, meter.cost_ns)
        else:
            meter.slack_ns, meter.due_ns, meter.work_ns = best.room_ns, best.due_ns, max(1, best.work_ns)
            meter.declared_slack_ns = best.declared_room_ns
        meter.steps = min(steps + 1, (1 << STEP_BITS) - 1)

    def _left_behind(self, route: Route) -> "Left":
        """What is left of a tuple that comes on that stream."""
        ends = [output.deadline_ns for output in route.outputs]
        ends += [ALWAYS_NS] if route.sides else []  # an operator reads the newest one
        ends += [_leaving_ns(route)] if route.sends else []
        found = [Left(end_ns, end_ns, 0, 0, end_ns) for end_ns in ends]
        found += [_left(unit, 1) for unit in route.units] + [_left(join.unit, _inputs(join)) for join, _ in route.joins]
        split = self._splits.get(route)
        if split is not None and not ends:
            joined = _meter(split.join)
            if joined.slack_ns is not None:
                branches_ns = sum(_meter(unit).cost_ns for unit in split.before)
                room_ns = joined.declared_slack_ns - sum(_meter(unit).declared_ns for unit in split.before)
                work_ns = joined.work_ns + branches_ns
                found = [Left(joined.slack_ns - branches_ns, joined.due_ns, work_ns, 0, room_ns)]
        steps = max((_meter(unit).steps for unit in after(route)), default=0)
        return max(found, default=Left(0, 0, 0, 0, 0))._replace(steps=steps)


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


def _left(unit: Unit, inputs: int) -> Left:
    """From a unit on that runs once for so many tuples that come."""
    meter = _meter(unit)
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
