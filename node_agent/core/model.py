"""Jobs, units and routes of a compiled plan: what an operator's end triggers, without a lookup by name or id.

Shedders, limits, police and windows stand at units and routes. Each has a protocol here, so this module imports none
of them. What they return for the engine to apply is here as well: `Decision` and the effects of a shedder.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

from node_agent.core import plan as plans
from node_agent.core.facts import heading
from node_agent.core.fusion import Fusion
from node_agent.core.lineage import Lineage
from node_agent.core.meters import ALWAYS_NS, UnitMeter
from node_agent.core.punctuation import DelayedRemoval, Punctuation, Removal
from protos.records import RAN

COMPILED = not __file__.endswith(".py")
RECENT_NS = 5_000_000_000


# -- what shedders and admission control return; the engine applies it


@dataclass(frozen=True, slots=True)
class Shed:
    """A tuple is not let into that unit, or was taken out of its queue."""

    unit: Unit
    lineage: Lineage
    policy: int


@dataclass(frozen=True, slots=True)
class ForwardedRemoval:
    """A range of numbers that were shed goes on behind that unit."""

    unit: Unit
    lineage: Lineage
    punctuation: Removal


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """All jobs of these tuples leave that unit's queue."""

    unit: Unit
    lineages: Container[Lineage]


Effect = Shed | ForwardedRemoval | Withdrawal


class Passed(NamedTuple):
    """A tuple that has passed a limit and may still wait. first: the arrival number of the first of its jobs."""

    first: int
    route: Route
    lineage: Lineage


class Displaced(NamedTuple):
    """A tuple that has to go for another one: as what it passed, and its jobs."""

    passed: Passed
    jobs: list[Job]


class Decision(NamedTuple):
    """On an admitted tuple. policy: by which it is shed; 0: it goes on. displaced: a tuple that goes for it, before all
    else. makes_room: the oldest tuples of its units go for it, and it is shed itself where there are none. counted: its
    source has a limit that knows of it, so `settle` is due."""

    policy: int = 0
    displaced: Displaced | None = None
    makes_room: bool = False
    counted: bool = False


# -- what stands at units, routes and steps


class Gate(Protocol):
    """The limit of a unit's queue. front: the oldest jobs go for a new one."""

    @property
    def front(self) -> bool:
        """True where a full queue gives up its oldest job, not the newest."""

    @property
    def most_bytes(self) -> int:
        """The most bytes that the queue holds."""

    def fits(self, queue: Queue, size: int) -> bool:
        """Whether there is room for a job of so many bytes."""

    def add(self, number: int, size: int) -> None:
        """A job has been let in."""

    def withdrawn(self, job: Job) -> None:
        """A job has left from within the queue."""


class Shedding(Protocol):
    """One shedder of a plan. due_ns: at the first event then, or later, `tick` is due."""

    @property
    def due_ns(self) -> int:
        """The instant of the next tick."""

    @property
    def shed(self) -> int:
        """The count of tuples shed so far."""

    def tick(self, at_ns: int) -> list[Effect]:
        """A period has passed. Returns the effects, in order."""

    def counts(self) -> dict[str, int]:
        """Its counters, by window."""

    def release_resources(self) -> None:
        """Release all references to units."""


class EntryShedder(Protocol):
    """Sheds at the entry of one unit."""

    @property
    def shedder(self) -> Shedding:
        """The shedder that the entry belongs to."""

    def forward(self, source: int) -> Iterator[Effect]:
        """What waits of that source goes on behind the unit."""


class StreamShedder(Protocol):
    """The entry shedders of one plan's shedder that a stream, or a join's results, come to."""

    @property
    def shedder(self) -> Shedding:
        """The shedder that the entries belong to."""

    def decide(self, at_ns: int, lineage: Lineage) -> tuple[bool, list[Effect]]:
        """Whether a tuple is let in at all of them, and the effects that come before it."""

    def others(self, route: Route, units: tuple[Unit, ...]) -> tuple[Unit, ...]:
        """Of those units the ones that have none of these entry shedders."""


class SourceControl(Protocol):
    """Admission control of one source. policed: tuples beyond what it declared. only_polices: nothing else is asked
    than `police`."""

    only_polices: bool

    @property
    def name(self) -> str:
        """The name of the source."""

    def police(self, at_ns: int) -> int:
        """By which policy a tuple that comes now is shed; 0: it conforms to what was declared."""

    @property
    def policed(self) -> int:
        """The count of tuples refused by policing so far."""

    def decide(self, at_ns: int, payload: object, memory_full: Callable[[], bool]) -> Decision:
        """On an admitted tuple."""

    def settle(self, first: int, route: Route, lineage: Lineage, policy: int) -> None:
        """The tuple that was decided last goes on, and the first of its jobs will have that number; or it is shed by
        that policy. Only where it was counted."""


class ResultPolice(Protocol):
    """The limit of an operator's results. every: it is asked about every input. shed: results so far."""

    name: str
    every: bool
    shed: int

    def passes(self, results: int) -> int:
        """How many of the results of the next input pass."""

    def inherit(self, other: Self) -> None:
        """The same operator of an older plan: what that one let pass counts."""


class LateRule(Protocol):
    """Whether a tuple is too old for an operator that would start. before: the operator whose result it is; 0: none in
    its unit. variant: runs in its place; None: the tuple is shed. runs: the variant's operator and its parameters. now:
    the clock, where the operators of an instance start at instants of their own."""

    before: int
    now: Callable[[], int] | None
    runs: tuple[str, str]
    variant: Step | None

    def concerns(self, at_ns: int, lineage: Lineage) -> bool:
        """Whether that tuple is late for an operator that would start now."""


class WindowPort(Protocol):
    """Takes tuples and punctuation to the windows of an operator."""

    def present(self, at_ns: int, lineage: Lineage, payload: object) -> None:
        """A tuple. Raises KeyError for one of a source that the plan does not have."""

    def on_punctuation(self, at_ns: int, lineage: Lineage, punctuation: Punctuation) -> None:
        """Apply punctuation."""

    def report(self, at_ns: int) -> None:
        """What has ended enters the system, under the newest plan that the operator is in."""

    def inherit(self, old: Self) -> None:
        """The same operator of an older plan: its windows go on here."""

    def drains(self) -> None:
        """Nothing more is admitted under the plan."""

    def release_resources(self) -> None:
        """Release all references to the windows."""


class DeadlineRule:
    """The deadlines of one unit under a policy that remembers the earlier ones. They do not decrease."""

    __slots__ = ()

    def next_ns(self, at_ns: int, idle: bool) -> int:
        """The deadline of the next tuple, released at that instant; `idle`: nothing of the unit waits or runs."""
        raise NotImplementedError


# -- the parts of a compiled plan

Call = Callable[..., object]  # of an operator: its arguments and its results are its author's
Calls = Mapping[int, tuple[Call, bool]]
"""By operator id: the call, and whether it is plain. What runs in an operator's place for what is late: by - id."""


class Job:
    """One tuple at one task unit, from its release until it has run or was shed. key_ns: the deadline that the policy
    gives it. rank, tie: by which it competes as the head of its queue, its deadline and its release where the policy
    has no order of its own. number: of its arrival, unique on its engine. payload: its first operator's input.
    origin_ns: the early end of its origin, beside what an order reads of a head; not set where a deadline is only the
    release plus a constant.

    The fields are set where jobs are made, by `new_job` and by the ready queue at each release: on the hot path an
    `__init__` costs more than all of them.
    """

    __slots__ = ("key_ns", "lineage", "number", "origin_ns", "payload", "rank", "release_ns", "tie", "unit")

    key_ns: int
    origin_ns: int
    rank: int
    tie: int
    release_ns: int
    number: int
    unit: Unit
    lineage: Lineage
    payload: object

    def __lt__(self, other: Job) -> bool:
        """The order in which jobs run: total, since no two have the same number."""
        return (self.key_ns, self.release_ns, self.number) < (other.key_ns, other.release_ns, other.number)

    def __hash__(self) -> int:
        """By identity, as it is equal to itself only; a compiled class with an order has no hash of its own."""
        return object.__hash__(self)

    def __repr__(self) -> str:
        return f"Job({self.key_ns}, {self.release_ns}, {self.number}, unit {self.unit.id}, {self.lineage})"


def new_job(key_ns: int, release_ns: int, number: int, unit: Unit, lineage: Lineage, payload: object) -> Job:
    """A job with these fields, which competes by its deadline."""
    job = Job.__new__(Job) if COMPILED else Job()  # compiled the first is quicker, as Python the second
    job.key_ns = job.rank = key_ns
    job.release_ns = job.tie = release_ns
    job.number, job.origin_ns = number, lineage[4]
    job.unit, job.lineage, job.payload = unit, lineage, payload
    return job


def before(job: Job, other: Job) -> bool:
    """Whether a job comes before another one of the same heap."""
    if job.rank != other.rank:
        return job.rank < other.rank
    if job.tie != other.tie:
        return job.tie < other.tie
    return job.number < other.number


class Queue(Protocol):
    """Jobs of a unit, which come out by `popleft`, the one with the least deadline first: in the order of arrival
    where a policy's deadlines do not decrease along a unit's arrivals, else by rank. `[0]` is the head."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Job]: ...
    def __getitem__(self, index: int) -> Job: ...

    def append(self, job: Job) -> None:
        """A job comes in."""

    def popleft(self) -> Job:
        """Take the head off. There is one."""

    def clear(self) -> None:
        """Forget all jobs."""


class Arrivals(Queue, Protocol):
    """One in the order of arrival."""

    def head(self) -> Job:
        """The one that came first, in compiled code. There is one."""

    def leaves(self, job: Job) -> bool:
        """Take that job off, if it came first; in compiled code."""


class SideSlot:
    """The newest value of a side input of one operator; None before the first. origin_ns: it is not older than that.

    heir: the slot of a newer plan, which gets the value as well until it has one of its own (`own`).
    """

    __slots__ = ("operator_id", "origin_ns", "own", "port", "rule", "successor", "value")

    def __init__(self, operator_id: int, port: str, rule: plans.SideRule) -> None:
        self.operator_id, self.port, self.rule = operator_id, port, rule
        self.value: object = None
        self.origin_ns = 0
        self.successor: SideSlot | None = None
        self.own = False

    def put(self, value: object, origin_ns: int) -> None:
        """It has arrived."""
        self.value, self.origin_ns, self.own, successor = value, origin_ns, True, self.successor
        while successor is not None and not successor.own:
            successor.value, successor.origin_ns, successor = value, origin_ns, successor.successor

    def at(self, now_ns: int) -> object:
        """The value that an operator gets which starts now; None where there is none, or it may be too old."""
        max_age_ns = self.rule.max_age_ns
        return None if max_age_ns and now_ns - self.origin_ns > max_age_ns else self.value


class Exit:
    """A stream that leaves a unit. `one` is added to the instance's outputs word per output. outdated_ns: a result that
    is older for sure is shed as one of that `operator_id`; 0: none is. alone: the unit that alone gets what leaves
    here, where nothing is asked before. only: that one, where its deadline is its release plus a constant."""

    __slots__ = ("alone", "index", "one", "only", "operator_id", "outdated_ns", "route")

    def __init__(self, index: int, route: Route, operator_id: int) -> None:
        self.index, self.route, self.operator_id, self.one = index, route, operator_id, 1 << (8 * index)
        self.outdated_ns = 0
        self.alone: Unit | None = None
        self.only: Unit | None = None


class Step:
    """One operator in a unit's chain.

    bare: `call(payload)`; otherwise `call(inputs, sides, at)` with inputs a tuple and sides a dict by keyword.
    plain: it is bare, and nothing is asked before. police: where results are policed; `policed`: even those of an
    operator that returns one at most. late: where it is asked whether a tuple is too late for it.
    collects: of a window operator; `call` then says what its windows are made with, and is not called with tuples.
    """

    __slots__ = (
        "bare", "call", "collects", "cost_ns", "exit", "join", "late", "operator_id", "plain", "police", "policed",
        "sides",
    )  # fmt: skip

    def __init__(self, operator: plans.Operator, call: Call, plain: bool) -> None:
        self.operator_id, self.cost_ns, self.join = operator.id, operator.cost_ns, operator.join
        self.call, self.bare, self.plain = call, plain, plain
        self.late: LateRule | None = None
        rules = operator.side_rules or (plans.SideRule(),) * len(operator.sides)
        self.sides: tuple[SideSlot, ...] = tuple(
            SideSlot(operator.id, port, rule) for (port, _), rule in zip(operator.sides, rules, strict=True)
        )
        self.exit: Exit | None = None
        self.collects: WindowPort | None = None
        self.police: ResultPolice | None = None
        self.policed = False

    def police_by(self, police: ResultPolice) -> None:
        """Police its results."""
        self.police, self.policed = police, police.every

    def judge(self, late: LateRule) -> None:
        """Ask about each tuple before it runs."""
        self.late, self.plain = late, False

    def inherit(self, before: Step) -> None:
        """The same operator runs here as in that step of an earlier plan."""
        self.call, self.bare = before.call, before.bare
        self.plain = self.bare and self.late is None
        late, other = self.late, before.late
        if late is None or other is None or late.runs != other.runs:
            return
        if late.variant is not None and other.variant is not None:
            late.variant.call, late.variant.bare = other.variant.call, other.variant.bare


class UtilisationMeter:
    """How long instances of a unit have kept the node busy, choosing them included, until when, how many tuples they
    were, and what these gave on each exit."""

    __slots__ = ("end_ns", "made", "ns", "tuples")

    def __init__(self) -> None:
        self.ns = self.tuples = self.end_ns = 0
        self.made = [0, 0, 0, 0]

    def add(self, took_ns: int, end_ns: int, counts: int, ended: bool) -> None:
        """An instance of one tuple. counts: its outputs word. ended: it does not go on later."""
        self.ns += took_ns
        self.end_ns = end_ns
        self.tuples += ended
        exit_ = 0
        while counts:
            self.made[exit_] += counts & 0xFF
            counts >>= 8
            exit_ += 1


class Unit:
    """A task unit, or under a policy that yields one operator of it (then `rest` is what follows)."""

    __slots__ = (
        "_before_ns", "_span", "_span_worst_ns", "absences", "arrivals", "chain", "collects", "deadline_ns", "exits",
        "flags", "gate", "hang_ns", "has_end_hooks", "id", "inputs", "join_shedder", "last_step", "late_ns", "loaded",
        "lost", "meter", "offset_ns", "punctuated_exits", "queue", "ran", "rest", "rule", "runs", "shed", "spec",
        "sub_deadline_ns", "timed", "timed_ns", "unfused", "useful_ns", "utilisation", "worst_ns",
    )  # fmt: skip

    LIMIT = 8192  # lineages of which some inputs of a union have been absent; beyond it the oldest is forgotten

    def __init__(
        self,
        spec: plans.Unit,
        chain: tuple[Step, ...],
        flags: int,
        loaded: CompiledPlan,
        arrivals: Arrivals,
        queue: Queue | None = None,
    ) -> None:
        """arrivals: empty; queue: where it is another one."""
        self.spec, self.id, self.flags, self.loaded = spec, spec.id, flags, loaded
        self.ran = heading(RAN, flags, spec.id)  # how the record of an instance begins
        self.sub_deadline_ns, self.deadline_ns = spec.sub_deadline_ns, spec.deadline_ns
        self.useful_ns = spec.last_ns  # after its origin, how long a tuple is worth an instance; see `load.py`
        self.chain, self.last_step = chain, chain[-1]
        self.exits = tuple(step.exit for step in chain if step.exit is not None)
        self.punctuated_exits: tuple[Exit, ...] = ()  # exits that lead to a join, here and in the rest
        self.has_end_hooks = False  # there is more to do when an instance ends than to choose the next one
        self.utilisation: UtilisationMeter | None = None  # where a shedder asks for it
        self.collects: WindowPort | None = None  # punctuation ends here
        self.join_shedder: StreamShedder | None = None  # of a unit that begins with a join by lineage
        self.offset_ns = 0
        self.rule: DeadlineRule | None = None  # of its deadlines, where they are not the release plus the offset
        self.meter: UnitMeter | None = None  # where the policy measures
        self.hang_ns = min(ALWAYS_NS, sum(loaded.plan.operator_by_id[step.operator_id].hang_ns for step in chain))
        self.arrivals = arrivals  # stays empty where the queue is not in the order of arrival
        self.queue: Queue = arrivals if queue is None else queue
        first = chain[0].operator_id == spec.operators[0]  # not what follows where its policy yields
        self.gate: Gate | None = None
        self.rest: Unit | None = None
        self.runs = self.shed = self.lost = 0  # tuples: run to their end, shed at or in it, lost at or in it
        self.unfused = 0  # of the shed: those that a fusion left out
        self.timed = self.timed_ns = self.worst_ns = 0  # instances that were timed, from their release to their end
        self._span = self._span_worst_ns = self._before_ns = 0  # the span that runs, the longest in it and before it
        head = loaded.plan.operator_by_id[chain[0].operator_id]
        self.inputs = 1 if head.join else len(head.inputs)  # more than one: a union, each triggers
        self.absences: dict[tuple[int, int, int, int], int] = {}  # by lineage: how many inputs were absent
        self.late_ns = head.late.late_ns if head.late is not None and not head.late.run and first else 0  # 0: any age

    def record_response_time(self, ns: int, at_ns: int) -> None:
        """The driver has timed an instance, from its release to its end."""
        self.recent_ns(at_ns)
        self.timed += 1
        self.timed_ns += ns
        self.worst_ns = max(self.worst_ns, ns)
        self._span_worst_ns = max(self._span_worst_ns, ns)

    def recent_ns(self, at_ns: int) -> int:
        """The longest of those that were timed within the last one to two spans; 0: none was."""
        span = at_ns // RECENT_NS
        if span != self._span:
            self._before_ns = self._span_worst_ns if span == self._span + 1 else 0
            self._span, self._span_worst_ns = span, 0
        return max(self._before_ns, self._span_worst_ns)


class Route:
    """Everything that a stream triggers on this node."""

    __slots__ = (
        "admission", "admitted", "counted", "delayed_removal", "entry_shedders", "joins", "loaded", "lost", "marked",
        "outputs", "refused", "sends", "shed", "sides", "simple", "stream", "stream_shedders", "units",
    )  # fmt: skip

    def __init__(self, loaded: CompiledPlan, stream: plans.Stream) -> None:
        self.loaded, self.stream, self.marked = loaded, stream.id, stream.marked
        self.units: tuple[Unit, ...] = ()
        self.joins: tuple[tuple[Join | FusionHead, int], ...] = ()  # and the port
        self.sides: tuple[SideSlot, ...] = ()
        self.sends: tuple[int, ...] = ()  # peers
        self.outputs: tuple[plans.Output, ...] = ()
        self.stream_shedders: tuple[StreamShedder, ...] = ()  # shedders that say which of the units a tuple goes on to
        self.entry_shedders: tuple[
            EntryShedder, ...
        ] = ()  # of its units and joins; heartbeats forward what is pending at them
        self.simple = False  # units only
        self.counted = stream.counted and stream.marked
        self.delayed_removal: DelayedRemoval | None = None  # of that source
        self.admission: SourceControl | None = None  # of that source
        self.admitted = self.refused = 0  # tuples of that source
        self.shed = self.lost = 0  # arrivals that none of its consumers here got

    @property
    def policed(self) -> int:
        """Tuples of that source beyond what it declared."""
        return 0 if self.admission is None else self.admission.policed

    def settle(self) -> None:
        """Call when the parts are known."""
        limited = any(unit.gate is not None for unit in self.units)
        self.simple = not (self.joins or self.sides or self.sends or self.outputs or self.stream_shedders or limited)


class Waiting:
    """The contributors of one join result that have arrived so far.

    taken: the ports that have delivered, as bits. absent: 0, or FILTERED and REMOVED as bits. after: the next result of
    a lineage that a port had twice.
    """

    FILTERED, REMOVED = 1, 2

    __slots__ = ("absent", "after", "expires_ns", "lineages", "punctuation", "taken", "values")

    def __init__(self, ports: int, expires_ns: int) -> None:
        self.punctuation: Lineage | None = None  # of the last absent one
        self.lineages: list[Lineage | None] = [None] * ports
        self.values: list[object] = [None] * ports
        self.taken, self.absent, self.expires_ns = 0, 0, expires_ns
        self.after: Waiting | None = None


class Join:
    """A join by lineage at the head of a unit: one result when every port has delivered."""

    __slots__ = ("ports", "unit", "wait_ns", "waiting")

    LIMIT = 65_536  # entries; beyond it the oldest expires
    IN_A_ROW = 256  # results of one lineage that wait at once; what would begin one more expires

    def __init__(self, unit: Unit, ports: int) -> None:
        self.unit, self.ports = unit, ports
        self.waiting: dict[tuple[int, int, int, int], Waiting] = {}
        # Past the last end-to-end deadline a partner is of little use; twice that, so that late results stay visible.
        self.wait_ns = 2 * unit.spec.last_ns + 1_000_000_000


class FusionHead(NamedTuple):
    """A fusion at the head of a unit. waiting: the same, for who only counts what waits."""

    unit: Unit
    waiting: Fusion


class CompiledPlan:
    """A plan as it runs here."""

    __slots__ = ("flags", "joins", "plan", "routes", "shedders", "source_routes", "units", "windows")

    def __init__(self, plan: plans.Plan, flags: int) -> None:
        self.plan, self.flags = plan, flags
        self.units: list[Unit] = []
        self.joins: list[Join | FusionHead] = []
        self.windows: list[WindowPort] = []
        self.routes: dict[int, Route] = {}  # by stream
        self.source_routes: dict[int, Route] = {}  # by source
        self.shedders: tuple[Shedding, ...] = ()

    @property
    def steps(self) -> list[Step]:
        """All operators."""
        return [step for unit in self.units for step in unit.chain]

    @property
    def variants(self) -> list[Step]:
        """What runs in an operator's place where a tuple is late."""
        return [step.late.variant for step in self.steps if step.late is not None and step.late.variant is not None]

    @property
    def ready(self) -> int:
        """Queued jobs."""
        return sum(len(unit.queue) for unit in self.units)

    @property
    def fuses(self) -> bool:
        """Whether tuples may wait to be fused."""
        return any(isinstance(join, FusionHead) for join in self.joins)

    @property
    def awaited(self) -> int:
        """Of `waiting` what a draining plan waits for: not the last tuples of inputs that others no longer follow."""
        joins = (join for join in self.joins if not isinstance(join, FusionHead) or join.waiting.times_out)
        return sum(len(join.waiting) for join in joins)

    @property
    def waiting(self) -> int:
        """Join results that wait for a contributor, and tuples that wait to be fused."""
        return sum(len(join.waiting) for join in self.joins)

    def release_resources(self) -> None:
        """Release all references within an unloaded plan, so that it is freed without the garbage collector, which
        leaves alone all that was there when it was frozen."""
        for windowed in self.windows:
            windowed.release_resources()
        for shedder in self.shedders:
            shedder.release_resources()
        self.shedders = ()
        self.units.clear()
        self.joins.clear()
        self.windows.clear()
        self.routes.clear()
        self.source_routes.clear()

    def shedding_counts(self) -> dict[str, int]:
        """Counters of the shedders, by window; see `entry_shedders.Shedder.counts`."""
        return {name: n for shedder in self.shedders for name, n in shedder.counts().items()}

    def policed(self) -> dict[str, int]:
        """What policing has shed, where it has: `arrivals.SOURCE`, `results.OPERATOR`."""
        sources = [route.admission for route in self.source_routes.values()]
        operators = [step.police for unit in self.units for step in unit.chain]
        shed = {f"arrivals.{entry.name}": entry.policed for entry in sources if entry is not None}
        shed |= {f"results.{police.name}": police.shed for police in operators if police is not None}
        return {name: n for name, n in shed.items() if n}


__all__ = [
    "ALWAYS_NS", "CompiledPlan", "DeadlineRule", "Decision", "Displaced", "Effect", "EntryShedder", "Exit",
    "ForwardedRemoval", "FusionHead", "Gate", "Join", "LateRule", "Passed", "ResultPolice",
    "Route", "Shed", "Shedding", "SideSlot", "SourceControl", "Step", "StreamShedder", "Unit", "UtilisationMeter",
    "Waiting", "WindowPort", "Withdrawal",
]  # fmt: skip
