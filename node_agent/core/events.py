"""Events in, commands out: the engine as one function, for event stories and for replaying a journal.

`handle` is a facade over the engine's calls with plain arguments, which the runtime uses directly because objects cost
four times the scheduling. Nothing here decides anything.
"""

from dataclasses import dataclass
from typing import Any

from node_agent.core import plan as plans
from node_agent.core.engine import Engine
from node_agent.core.facts import MemoryFacts
from node_agent.core.handover import hand_over
from node_agent.core.load import Calls
from node_agent.core.parts import Job, Lineage, Loaded
from node_agent.core.policies.parts import Policy


@dataclass(frozen=True, slots=True)
class Admitted:
    """A tuple enters at a source of this node. plan: by its hash; 0: the committed one."""

    at_ns: int
    source: int
    lineage: Lineage
    payload: Any = None
    size: int = 0
    plan: int = 0


@dataclass(frozen=True, slots=True)
class Received:
    """A tuple, or a mark (of MARKS), arrives from a peer."""

    at_ns: int
    stream: int
    lineage: Lineage
    payload: Any = None
    plan: int = 0


@dataclass(frozen=True, slots=True)
class Beat:
    """A source of this node says how far it is: numbers below `upto` were admitted."""

    at_ns: int
    source: int
    upto: int
    origin_ns: int
    first: int = 0
    epoch: int = 0
    plan: int = 0


@dataclass(frozen=True, slots=True)
class Expired:
    """Time has passed: of use to joins and windows."""

    at_ns: int


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
    """An operator of the running instance has ended with an output on the unit's exit number `exit`."""

    at_ns: int
    exit: int
    payload: Any = None
    lineage: Lineage | None = None  # None: the instance's own


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


Event = Admitted | Received | Beat | Expired | Prepared | Committed | Drained | Ended | Finished | Failed


@dataclass(frozen=True, slots=True)
class Start:
    """Run this instance: unit, tuple, absolute key."""

    unit: int
    lineage: Lineage
    key: int
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Send:
    """Ship a tuple to a peer."""

    at_ns: int
    peer: int
    stream: int
    lineage: Lineage
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Deliver:
    """A result is there."""

    at_ns: int
    output: int
    lineage: Lineage
    payload: Any = None


Command = Start | Send | Deliver


class Story:
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

    def send(self, at_ns: int, loaded: Loaded, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        """The engine's command, kept."""
        self.commands.append(Send(at_ns, peer, stream, lineage, payload))

    def deliver(self, at_ns: int, loaded: Loaded, output: plans.Output, lineage: Lineage, payload: Any) -> None:
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
            job = self._apply(event) or job
        if job is None and self.engine.job is None:
            job = self.engine.next(events[-1].at_ns)
        if job is not None:
            self.commands.append(Start(job[3].id, job[4], job[0], job[5]))
        return self.commands

    def _apply(self, event: Event) -> Job | None:
        engine = self.engine
        match event:
            case Admitted():
                loaded = self._of(event.plan)
                engine.admit(event.at_ns, loaded, event.source, event.lineage, event.payload, event.size)
            case Received():
                engine.receive(event.at_ns, self._of(event.plan), event.stream, event.lineage, event.payload)
            case Beat():
                engine.beat(
                    event.at_ns, self._of(event.plan), event.source, event.epoch, event.upto, event.first,
                    event.origin_ns,
                )  # fmt: skip
            case Expired():
                engine.expire(event.at_ns)
            case Prepared():
                self.by_hash[event.plan.hash] = engine.load(event.plan, _all(event.plan, self.calls))
            case Committed():
                hand_over(self.by_hash[event.plan], self.loaded)
                self.loaded = self.by_hash[event.plan]
            case Drained():
                engine.unload(self.by_hash.pop(event.plan), event.at_ns)
            case Ended():
                assert engine.job is not None
                exit_ = engine.job[3].exits[event.exit]
                engine.emit(event.at_ns, exit_, event.lineage or engine.job[4], event.payload)
            case Finished():
                assert engine.job is not None
                _, _, _, unit, lineage, payload = engine.job
                if unit.collects is not None:
                    unit.collects.present(event.start_ns, lineage, payload)
                return engine.step(event.start_ns, event.at_ns)
            case Failed():
                return engine.fail(event.start_ns, event.at_ns, event.cause)
        return None

    def _of(self, plan: int) -> Loaded:
        return self.by_hash[plan] if plan else self.loaded


def _all(plan: plans.Plan, calls: Calls) -> Calls:
    """Operators of a story do nothing: what they give stands in the events."""
    return {operator.id: calls.get(operator.id, (lambda payload: payload, True)) for operator in plan.operators}
