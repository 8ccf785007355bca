"""One plan in the runtime: its state, and what is looked up per tuple."""

from dataclasses import dataclass, field

from node_agent.core import plan as core
from node_agent.core.engine.engine import Engine
from node_agent.core.engine.handover import Pairs
from node_agent.core.model import CompiledPlan, Job
from node_agent.operators.codecs import Codec
from node_agent.operators.source_call import SourceCall
from node_agent.runtime.deployments.cost_meter import Ages, Cost
from node_agent.runtime.executor import Executor

NONE, PREPARED, COMMITTED, DRAINING, ENDED = range(5)  # agent.proto PlanState

QUIET_NS = 1_000_000_000
MOST_QUIET_NS = 10_000_000_000


class EngineSlot:
    """The plans of one policy with the same parameters share an engine, and so one queue. Lanes take turns."""

    __slots__ = ("engine", "executor", "parked", "policy")

    def __init__(self, policy: tuple[str, int, core.Parameters], engine: Engine, executor: Executor) -> None:
        self.policy, self.engine, self.executor = policy, engine, executor
        self.parked: Job | None = None  # chosen, not started


@dataclass(slots=True, eq=False)
class Deployed:
    """A plan that is loaded here."""

    hash: str  # 64 hex digits
    plan: core.Plan
    engine_slot: EngineSlot
    loaded: CompiledPlan
    codecs: dict[int, Codec]  # by stream
    costs: list[Cost]
    base: "Deployed | None" = None  # the plan that was committed when this one was loaded
    inherits: Pairs = ()  # operators of this one and of `base` that have one instance
    state: int = PREPARED
    again: int = 0  # the last epoch in which it was committed once more while it admitted
    held: int = 0  # tuples in links, waiting or unacknowledged
    superseded: bool = False  # another plan was committed in its place
    arrived_ns: int = 0  # when a peer last sent a tuple of this plan
    policed: dict[str, int] = field(default_factory=dict)  # shed by policing, as counted so far
    counted: frozenset[int] = frozenset()  # streams that lead to a window: each number of their sources is reported
    feeders: dict[int, frozenset[int]] = field(default_factory=dict)  # sources by stream from peers, as from `feeders`
    producers: dict[tuple[str, int], int] = field(init=False)  # a peer's number, by its name and a stream it may send
    pulls: dict[int, SourceCall] = field(default_factory=dict)  # what makes tuples here, by source
    calls: dict[int, Cost] = field(default_factory=dict)  # what that costs
    ages: dict[int, Ages] = field(default_factory=dict)  # as tuples come to it, by source

    def __post_init__(self) -> None:
        names = {peer.index: peer.name for peer in self.plan.peers}
        self.producers = {
            (names[index], stream.id): index
            for stream in self.plan.streams
            for index in stream.producers
            if index in names
        }

    @property
    def decided(self) -> tuple[int, bool]:
        """Which of two committed plans is later, as control has it (`deployment.py`)."""
        latest = max(self.plan.epoch, self.again)
        return latest, self.plan.epoch == latest

    @property
    def measured(self) -> list[Cost | Ages]:
        """All that a profile tells of."""
        return [*self.costs, *self.calls.values(), *self.ages.values()]

    @property
    def ready(self) -> int:
        """Task instances that are queued or chosen."""
        chosen = self.engine_slot.engine.job
        return self.loaded.ready + int(chosen is not None and chosen.unit.loaded is self.loaded)

    @property
    def streams(self) -> dict[int, core.Stream]:
        """By id; for what is not per tuple."""
        return {stream.id: stream for stream in self.plan.streams}

    def last_ns(self, stream: int) -> int:
        """After its origin, how long a tuple of that stream may be in time."""
        return next(each.last_ns for each in self.plan.streams if each.id == stream)

    def quiet_ns(self) -> int:
        """How long peers that drain as well may still hold tuples for this node: the longest deadline, and a second.

        That second also where there are no such peers but another plan has been committed: ending this one keeps the
        thread about as long as that commit did, and the two are not to come together.
        """
        deadlines = [stream.last_ns for stream in self.plan.streams if stream.producers]
        if not deadlines:
            return QUIET_NS if self.superseded else 0
        return min(max(deadlines) + QUIET_NS, MOST_QUIET_NS)

    def drained(self, at_ns: int) -> bool:
        """Nothing of this plan is left here, and nothing is on its way."""
        empty = not (self.ready or self.loaded.awaited or self.held)
        return empty and at_ns - self.arrived_ns >= self.quiet_ns()
