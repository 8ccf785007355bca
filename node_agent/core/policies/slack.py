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

from node_agent.core.meters import MOST_COST_NS, ExitMeter, NodeMeter, UnitMeter
from node_agent.core.model import ALWAYS_NS, CompiledPlan, FusionHead, Job, Join, Route, Step, Unit
from node_agent.core.policies.edf import sub_deadline
from node_agent.core.policies.excess import gives_up
from node_agent.core.policies.hopeless import hopeless
from node_agent.core.policies.policy_parts import Asked, Dropper, Order, Policy
from node_agent.core.policies.split_joins import SplitJoin, after, splits
from protos.records import POLICY_EXCESS, POLICY_LATE

TIMES = 2  # the least deadline of its node: what has this much time waits for that
SOON, EVERY = 16, 256  # ranks after which the work that is left is added up anew, at least: at first, and ever later
STEP_BITS = 16  # of a tie: units on the way to an output
NUMBER_BITS = 40  # of a tie: the tuple's number at its source
YOUNG = 8  # of its deadline: a tuple that has waited for less of it than one part is young
TRIAL = 32  # of the time, one part is for trials of a unit
SOME_DAY_NS, LEAST_NS = ALWAYS_NS // 2, -ALWAYS_NS
MOST_WORK_NS = 1 << 44  # up to an output: hours, which as many results as there may be cannot take beyond 64 bits
NUMBERS = (1 << NUMBER_BITS) - 1
_YOUNG = YOUNG  # as a C integer in compiled code, where no other module reads it


class EndToEnd(Order):
    """Ranks by the instant when the first of a unit's outputs is due, later by the least deadline of the node where
    that of the unit is `TIMES` as long; then, where a join follows, by the tuple's number; then by how many units are
    left to an output.

    It also keeps the meters' `slack_ns`: how long after its origin a tuple may start in a unit and still meet an
    output, by measured costs, with what runs in an operator's place where that is cheaper. Units on other nodes are
    not known here: there a stream has time until its deadline.
    """

    __slots__ = ("_changes", "_every", "_meter", "_newest", "_plans")

    def __init__(self, meter: NodeMeter) -> None:
        self._meter, self._changes, self._every = meter, -1, SOON
        self._plans: dict[CompiledPlan, list[Ahead]] = {}  # of its units, each after those that it leads to
        self._newest: CompiledPlan | None = None  # of these, that was looked at last: mostly the only one

    def place(self, head: Job) -> None:
        """By deadline; ties by number and steps."""
        unit = head.unit
        meter = unit.meter
        assert meter is not None  # the policy measures
        node = self._meter
        loaded = unit.loaded
        known = loaded is self._newest or loaded in self._plans
        if self._changes != node.changes or not node.ranks or not known:
            self._look_at(loaded)
        node.ranks -= 1
        number = 0
        if unit.punctuated_exits:
            seq = head.lineage[2]
            number = 1 + seq % NUMBERS
        head.rank, head.tie = head.origin_ns + meter.place_ns, number << STEP_BITS | meter.steps

    def _look_at(self, loaded: CompiledPlan) -> None:
        if self._changes != self._meter.changes:
            self._plans, self._newest, self._changes, self._every = {}, None, self._meter.changes, SOON
        if loaded not in self._plans:
            self._plans[loaded] = _ahead(loaded.units)
            self._newest = loaded
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


class Left:
    """On the way to the output that leaves most time. room_ns: how long after its origin a tuple may come and still
    meet it; due_ns: after its origin, its deadline, or when the tuple has to leave the node; work_ns: what is to be
    done up to it on this node, in the mean; steps: units up to the last output; declared_room_ns: `room_ns` if all took
    what it was declared to take. `left` makes one, without the cost of an `__init__`."""

    __slots__ = ("declared_room_ns", "due_ns", "room_ns", "steps", "work_ns")

    room_ns: int
    due_ns: int
    work_ns: int
    steps: int
    declared_room_ns: int

    def exceeds(self, other: "Left") -> bool:
        """Whether it leaves more room. What decides between equals is the same on every node."""
        if self.room_ns != other.room_ns:
            return self.room_ns > other.room_ns
        mine = self.due_ns, self.work_ns, self.steps, self.declared_room_ns
        return mine > (other.due_ns, other.work_ns, other.steps, other.declared_room_ns)


def left(room_ns: int, due_ns: int, work_ns: int, steps: int, declared_room_ns: int) -> Left:
    """One with these. No sum of costs takes a room below the least one, so that all have 64 bits."""
    made = Left()
    made.room_ns, made.declared_room_ns = max(room_ns, LEAST_NS), max(declared_room_ns, LEAST_NS)
    made.due_ns, made.work_ns, made.steps = due_ns, work_ns, steps
    return made


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
        end_ns = min(max(ends, default=0), ALWAYS_NS)
        self.end = left(end_ns, end_ns, 0, 0, end_ns) if ends else None
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
        if joined is not None and joined.ends:
            return self._past_branches(joined)
        for meter in self.units:
            found = _from(meter, 1)
            if best is None or found.exceeds(best):
                best = found
        for meter, inputs in self.joins:
            found = _from(meter, inputs)
            if best is None or found.exceeds(best):
                best = found
        return NOTHING if best is None else best

    def _past_branches(self, joined: UnitMeter) -> Left:
        """A tuple takes all of the branches, one after the other."""
        cost_ns = declared_ns = 0
        for meter in self.branches:
            cost_ns = min(MOST_COST_NS, cost_ns + meter.expected_ns())
            declared_ns = min(MOST_COST_NS, declared_ns + meter.declared_ns)
        work_ns = min(MOST_WORK_NS, joined.work_ns + cost_ns)
        room_ns, declared_room_ns = joined.slack_ns - cost_ns, joined.declared_slack_ns - declared_ns
        return left(room_ns, joined.due_ns, work_ns, self.steps, declared_room_ns)


class Ahead:
    """A unit, and what is ahead of its tuples on this node. branch: of a stream that is split; tuples of it are not
    given up for others."""

    __slots__ = ("behind", "branch", "deadline_ns", "meter")

    def __init__(self, unit: Unit, splits: Mapping[Route, SplitJoin], branch: bool) -> None:
        self.meter, self.deadline_ns, self.branch = _meter(unit), unit.deadline_ns, branch
        behind: list[Behind] = []
        steps = declared_ns = 0
        for step in unit.chain:
            declared_ns = min(MOST_COST_NS, declared_ns + _least_ns(step))
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
        cost_ns, unit_ns = meter.expected_ns(), max(1, meter.declared_ns)
        if not self.behind:
            meter.ends, meter.slack_ns, meter.declared_slack_ns, meter.due_ns = False, ALWAYS_NS, ALWAYS_NS, 0
            meter.work_ns, meter.yields = min(cost_ns, MOST_WORK_NS), False
            return
        best: Left | None = None
        for each in self.behind:
            before, leaving, queued_ns = each.left(), each.exit_meter, 0
            own_ns = cost_ns if each.declared_ns == unit_ns else _part(cost_ns, each.declared_ns, unit_ns)
            for unit in each.units:
                queued_ns += unit.work_ns
            leaving.queued_ns = min(MOST_WORK_NS, queued_ns)
            found = left(
                before.room_ns - own_ns,
                before.due_ns,
                own_ns + leaving.passing(before.work_ns),
                each.steps,
                before.declared_room_ns - each.declared_ns,
            )
            if best is None or found.exceeds(best):
                best = found
        assert best is not None
        meter.ends, meter.slack_ns, meter.declared_slack_ns = True, best.room_ns, best.declared_room_ns
        meter.due_ns, meter.work_ns = best.due_ns, min(max(1, best.work_ns), MOST_WORK_NS)
        meter.yields = best.room_ns < SOME_DAY_NS and not self.branch


NOTHING = left(0, 0, 0, 0, 0)


def _part(cost_ns: int, declared_ns: int, unit_ns: int) -> int:
    """Of a unit's cost, by what was declared; the product may take more than 64 bits."""
    return cost_ns * declared_ns // unit_ns


def _from(meter: UnitMeter, inputs: int) -> Left:
    """From a unit on that runs once for so many tuples that come."""
    work_ns = meter.work_ns if inputs == 1 else meter.work_ns // inputs
    return left(meter.slack_ns, meter.due_ns, work_ns, meter.steps, meter.declared_slack_ns)


def _ahead(units: list[Unit]) -> list[Ahead]:
    """Of each unit, after all that it leads to."""
    backwards = _backwards(units)
    found = splits(backwards)
    branches = {unit for split in found.values() for unit in split.before}
    return [Ahead(unit, found, unit in branches) for unit in backwards]


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


class HopelessOrExcess(Dropper):
    """Sheds what is hopeless, and of what waits tuples that are given up for others. What is young is not asked."""

    __slots__ = ()

    def judge(self, job: Job, at_ns: int, ahead: int) -> int:
        """Hopeless first."""
        unit = job.unit
        meter = unit.meter
        assert meter is not None  # the policy measures
        if hopeless(job, at_ns, ahead):
            if _tries(job, meter, at_ns):
                return 0
            meter.node.done_ns += meter.work_ns
            return POLICY_LATE
        youngest_ns = job.lineage[5]
        age_ns, deadline_ns = at_ns - youngest_ns, unit.deadline_ns
        young = age_ns < deadline_ns and age_ns * _YOUNG < deadline_ns
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
    if meter.doubted_ns is None:
        meter.doubted_ns = at_ns
    none_fits = slack_ns < -(-job.unit.deadline_ns // YOUNG)  # a multiple of it could take more than 64 bits
    pause_ns = meter.pause_ns if none_fits else max(meter.pause_ns, declared_ns)
    if at_ns < meter.doubted_ns + min(pause_ns, TRIAL * meter.work_ns):
        return False
    left_ns = lineage[5] + meter.due_ns - job.release_ns
    if at_ns > max(lineage[5] + meter.declared_slack_ns, job.release_ns + left_ns // 2):
        return False
    meter.doubted_ns, meter.on_trial = at_ns, True
    meter.pause_ns = max(meter.pause_ns, declared_ns)
    return True


SLACK = Policy(
    name="slack", offset=sub_deadline, order=EndToEnd, dropper=HopelessOrExcess(), asks=Asked.COSTS | Asked.RESULTS
)
