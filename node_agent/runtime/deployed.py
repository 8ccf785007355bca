"""One plan in the runtime: its state, and what is looked up per tuple."""

from dataclasses import dataclass, field

from node_agent.codecs import Codec, UnknownCodecError
from node_agent.core import plan as core
from node_agent.core.engine import Engine
from node_agent.core.load import Calls
from node_agent.core.parts import Job, Loaded
from node_agent.execute import Executor
from node_agent.registry import Registry
from node_agent.runtime.profile import Cost
from node_agent.signature import OperatorError
from node_agent.wire.plan import PlanError

NONE, PREPARED, COMMITTED, DRAINING, ENDED = range(5)  # agent.proto PlanState

QUIET_NS = 1_000_000_000
MOST_QUIET_NS = 10_000_000_000


class Lane:
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
    lane: Lane
    loaded: Loaded
    codecs: dict[int, Codec]  # by stream
    costs: list[Cost]
    state: int = PREPARED
    held: int = 0  # tuples in links, waiting or unacknowledged
    arrived_ns: int = 0  # when a peer last sent a tuple of this plan
    policed: dict[str, int] = field(default_factory=dict)  # shed by policing, as counted so far

    @property
    def ready(self) -> int:
        """Task instances that are queued or chosen."""
        chosen = self.lane.engine.job
        return self.loaded.ready + int(chosen is not None and chosen[3].loaded is self.loaded)

    @property
    def streams(self) -> dict[int, core.Stream]:
        """By id; for what is not per tuple."""
        return {stream.id: stream for stream in self.plan.streams}

    def quiet_ns(self) -> int:
        """How long peers that drain as well may still hold tuples for this node: the longest deadline, and a second."""
        deadlines = [stream.last_ns for stream in self.plan.streams if stream.producers]
        return min(max(deadlines) + QUIET_NS, MOST_QUIET_NS) if deadlines else 0

    def drained(self, at_ns: int) -> bool:
        """Nothing of this plan is left here, and nothing is on its way."""
        empty = not (self.ready or self.loaded.waiting or self.held)
        return empty and at_ns - self.arrived_ns >= self.quiet_ns()


def make_codecs(plan: core.Plan, registry: Registry) -> dict[int, Codec]:
    """By stream. Raises PlanError where one is not installed."""
    try:
        return {stream.id: registry.codecs.get(stream.codec) for stream in plan.streams}
    except UnknownCodecError as error:
        raise PlanError(str(error)) from None


def make_calls(plan: core.Plan, registry: Registry) -> Calls:
    """A fresh instance of every operator. Raises PlanError where one is not installed or refuses its parameters."""
    names = {stream.id: stream.name for stream in plan.streams}
    calls = {}
    for operator in plan.operators:
        try:
            bound = registry.make(operator.run, operator.with_json, [names[each] for each in operator.inputs])
        except OperatorError as error:
            raise PlanError(f"{operator.name}: {error}") from None
        calls[operator.id] = (bound.call, bound.plain)
    return calls
