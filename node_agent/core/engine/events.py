"""Events in, commands out: the engine as one function, for event stories and for replaying a journal.

`handle` is a table over the engine's calls with plain arguments, which the runtime uses directly because objects cost
four times the scheduling. Nothing here decides anything.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine
from node_agent.core.engine.handover import inherit_state
from node_agent.core.facts import MemoryFacts
from node_agent.core.lineage import Lineage
from node_agent.core.model import Calls, CompiledPlan, Job, Step
from node_agent.core.policies.policy_parts import Policy


@dataclass(frozen=True, slots=True)
class Admitted:
    """A tuple enters at a source of this node. plan: by its hash; 0: the committed one."""

    at_ns: int
    source: int
    lineage: Lineage
    payload: object = None
    size: int = 0
    plan: int = 0


@dataclass(frozen=True, slots=True)
class Received:
    """A tuple or punctuation arrives from a peer."""

    at_ns: int
    stream: int
    lineage: Lineage
    payload: object = None
    plan: int = 0


@dataclass(frozen=True, slots=True)
class Lost:
    """An arrival of a stream that none of its consumers gets."""

    at_ns: int
    stream: int
    lineage: Lineage
    cause: int
    plan: int = 0


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A source of this node says how far it is: numbers below `number` were admitted."""

    at_ns: int
    source: int
    number: int
    origin_ns: int
    first: int = 0
    epoch: int = 0
    plan: int = 0


@dataclass(frozen=True, slots=True)
class Expired:
    """Time has passed: of use to joins and windows."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class Released:
    """A tuple comes to a unit of this node, however it came there. unit: its place in the plan."""

    at_ns: int
    unit: int
    lineage: Lineage
    payload: object = None
    plan: int = 0


@dataclass(frozen=True, slots=True)
class MemoryPressure:
    """The node's memory is full: so many queued jobs of a unit go. unit: its place in the plan."""

    at_ns: int
    unit: int
    jobs: int
    plan: int = 0


@dataclass(frozen=True, slots=True)
class Limited:
    """At most so many jobs are queued from now on."""

    at_ns: int
    jobs: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan is loaded beside the one that is committed."""

    at_ns: int
    plan: plans.Plan


@dataclass(frozen=True, slots=True)
class Committed:
    """The plan of that hash is admitted to from now on; the one before it drains."""

    at_ns: int
    plan: int


@dataclass(frozen=True, slots=True)
class Drained:
    """The plan of that hash is forgotten."""

    at_ns: int
    plan: int


@dataclass(frozen=True, slots=True)
class Ended:
    """An operator of the running instance has ended with an output on the unit's exit number `exit`. counted_only: it
    comes to its consumers later."""

    at_ns: int
    exit: int
    payload: object = None
    lineage: Lineage | None = None  # None: the instance's own
    slot: int = 0
    counted_only: bool = False


@dataclass(frozen=True, slots=True)
class Policed:
    """An operator of the running instance, by its place in the unit, has made these results of one input: those that
    are too many are shed."""

    at_ns: int
    step: int
    lineages: tuple[Lineage, ...]
    slot: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """An operator of the running instance, by its place in the unit, would start now: is the tuple too late for it?"""

    at_ns: int
    step: int
    slot: int = 0


@dataclass(frozen=True, slots=True)
class Stale:
    """An operator of the running instance, by its place in the unit, would start without a side input that it needs."""

    at_ns: int
    step: int
    slot: int = 0


@dataclass(frozen=True, slots=True)
class Yielded:
    """The running instance goes on later, with what follows in its unit."""

    at_ns: int
    payload: object = None


@dataclass(frozen=True, slots=True)
class Resumed:
    """The instance that was chosen begins at that instant only."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The running instance has ended."""

    start_ns: int
    at_ns: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The running instance has ended badly."""

    start_ns: int
    at_ns: int
    cause: int
    slot: int = 0


Event = (
    Admitted | Received | Lost | Heartbeat | Released | MemoryPressure | Limited | Expired | Prepared | Committed
    | Drained | Ended | Policed | Judged | Stale | Yielded | Resumed | Finished | Failed
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Start:
    """Run this instance: unit, tuple, absolute key."""

    unit: int
    lineage: Lineage
    key: int
    payload: object = None


@dataclass(frozen=True, slots=True)
class Send:
    """Ship a tuple to a peer."""

    at_ns: int
    peer: int
    stream: int
    lineage: Lineage
    payload: object = None


@dataclass(frozen=True, slots=True)
class Deliver:
    """A result is there."""

    at_ns: int
    output: int
    lineage: Lineage
    payload: object = None


Command = Start | Send | Deliver


class ScenarioRunner:
    """One node's engine, at first under one plan. An event that finds the engine idle may start an instance at once.

    calls: of window operators, which do their work when their instance ends well; by the same id in all plans. What the
    others give stands in the events.
    """

    def __init__(self, plan: plans.Plan, policy: Policy, calls: Calls | None = None) -> None:
        self.facts = MemoryFacts()
        self.engine = Engine(policy, self.facts, self)
        self.calls = calls or {}
        self.loaded = self.engine.load(plan, _all(plan, self.calls))  # the committed plan
        self.by_hash = {plan.hash: self.loaded}
        self.commands: list[Command] = []

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: object) -> None:
        """The engine's command, kept."""
        self.commands.append(Send(at_ns, peer, stream, lineage, payload))

    def deliver(
        self, at_ns: int, loaded: CompiledPlan, output: plans.Output, lineage: Lineage, payload: object
    ) -> None:
        """The engine's command, kept."""
        self.commands.append(Deliver(at_ns, output.id, lineage, payload))

    def handle(self, *events: Event) -> list[Command]:
        """Apply the events of one instant, then say what follows: at most one Start, after all of them.

        The end of the instance is applied last, because `step` also dispatches: what it triggered stands before the
        arrivals (Ended comes first among the events), and the choice sees all of them.
        """
        self.commands = []
        job: Job | None = None
        for event in sorted(events, key=lambda each: isinstance(each, Finished | Failed)):
            job = TABLE[type(event)](self, event) or job
        if job is None and self.engine.job is None:
            job = self.engine.next(events[-1].at_ns)
        if job is not None:
            self.commands.append(Start(job.unit.id, job.lineage, job.key_ns, job.payload))
        return self.commands

    def of(self, plan: int) -> CompiledPlan:
        """The plan of that hash; 0: the committed one."""
        return self.by_hash[plan] if plan else self.loaded

    @property
    def running_job(self) -> Job:
        """The running instance."""
        assert self.engine.job is not None
        return self.engine.job


def _admitted(runner: ScenarioRunner, event: Admitted) -> None:
    runner.engine.admit(
        event.at_ns, runner.of(event.plan).source_routes[event.source], event.lineage, event.payload, event.size
    )


def _received(runner: ScenarioRunner, event: Received) -> None:
    runner.engine.receive(event.at_ns, runner.of(event.plan).routes[event.stream], event.lineage, event.payload)


def _lost(runner: ScenarioRunner, event: Lost) -> None:
    runner.engine.lose(event.at_ns, runner.of(event.plan), event.stream, event.lineage, event.cause)


def _heartbeat(runner: ScenarioRunner, event: Heartbeat) -> None:
    loaded = runner.of(event.plan)
    runner.engine.heartbeat(event.at_ns, loaded, event.source, event.epoch, event.number, event.first, event.origin_ns)


def _released(runner: ScenarioRunner, event: Released) -> None:
    runner.engine.release(event.at_ns, runner.of(event.plan).units[event.unit], event.lineage, event.payload)


def _queued_shed(runner: ScenarioRunner, event: MemoryPressure) -> None:
    runner.engine.shed_queued(event.at_ns, runner.of(event.plan).units[event.unit], event.jobs)


def _limited(runner: ScenarioRunner, event: Limited) -> None:
    runner.engine.limit_to(event.jobs)


def _expired(runner: ScenarioRunner, event: Expired) -> None:
    runner.engine.expire(event.at_ns)


def _prepared(runner: ScenarioRunner, event: Prepared) -> None:
    runner.by_hash[event.plan.hash] = runner.engine.load(event.plan, _all(event.plan, runner.calls))


def _committed(runner: ScenarioRunner, event: Committed) -> None:
    inherit_state(runner.by_hash[event.plan], runner.loaded)
    runner.loaded = runner.by_hash[event.plan]


def _drained(runner: ScenarioRunner, event: Drained) -> None:
    runner.engine.unload(runner.by_hash.pop(event.plan), event.at_ns)


def _ended(runner: ScenarioRunner, event: Ended) -> None:
    exit_ = runner.running_job.unit.exits[event.exit]
    if event.counted_only:
        runner.engine.count_output(exit_)
    else:
        lineage = event.lineage or runner.engine.jobs[event.slot].lineage
        runner.engine.emit(event.at_ns, exit_, lineage, event.payload, event.slot)


def _policed(runner: ScenarioRunner, event: Policed) -> None:
    unit = runner.running_job.unit
    runner.engine.police(event.at_ns, unit, unit.chain[event.step], event.lineages, event.slot)


def _judged(runner: ScenarioRunner, event: Judged) -> None:
    unit = runner.running_job.unit
    step: Step = unit.chain[event.step]
    runner.engine.judge(event.at_ns, unit, step, runner.engine.jobs[event.slot].lineage, event.slot)


def _stale(runner: ScenarioRunner, event: Stale) -> None:
    unit = runner.running_job.unit
    lineage = runner.engine.jobs[event.slot].lineage
    runner.engine.shed_stale(event.at_ns, unit, unit.chain[event.step], lineage, event.slot)


def _yielded(runner: ScenarioRunner, event: Yielded) -> None:
    runner.engine.suspend(event.payload)


def _resumed(runner: ScenarioRunner, event: Resumed) -> None:
    runner.engine.resume(event.at_ns)


def _finished(runner: ScenarioRunner, event: Finished) -> Job | None:
    job = runner.running_job
    if job.unit.collects is not None:
        job.unit.collects.present(event.start_ns, job.lineage, job.payload)
    return runner.engine.step(event.start_ns, event.at_ns)


def _failed(runner: ScenarioRunner, event: Failed) -> Job | None:
    return runner.engine.fail(event.start_ns, event.at_ns, event.cause, event.slot)


TABLE: Mapping[type, Callable[..., Job | None]] = {
    Admitted: _admitted,
    Received: _received,
    Lost: _lost,
    Heartbeat: _heartbeat,
    Released: _released,
    MemoryPressure: _queued_shed,
    Limited: _limited,
    Expired: _expired,
    Prepared: _prepared,
    Committed: _committed,
    Drained: _drained,
    Ended: _ended,
    Policed: _policed,
    Judged: _judged,
    Stale: _stale,
    Yielded: _yielded,
    Resumed: _resumed,
    Finished: _finished,
    Failed: _failed,
}


def _all(plan: plans.Plan, calls: Calls) -> Calls:
    """Operators of a story do nothing: what they give stands in the events."""
    return {operator.id: calls.get(operator.id, (lambda payload: payload, True)) for operator in plan.operators}
