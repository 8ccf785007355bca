"""Deployment of a plan on a node in virtual time, and the observers of the node."""

from enum import IntEnum
from typing import Any, Protocol

from node_agent.core import plan as core
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan
from node_agent.virtual.cost_model import Costs
from protos.records import STATE_COMMITTED, STATE_DRAINING, STATE_PREPARED


class State(IntEnum):
    """Of a plan on a node, as trace records have it."""

    PREPARED = STATE_PREPARED
    COMMITTED = STATE_COMMITTED
    DRAINING = STATE_DRAINING


class VirtualDeployment:
    """One plan on a node."""

    __slots__ = ("costs", "counted", "loaded", "plan", "sources", "state")

    def __init__(self, plan: core.Plan, loaded: CompiledPlan, costs: Costs) -> None:
        self.plan, self.loaded, self.costs, self.state = plan, loaded, costs, State.PREPARED
        self.sources = {source.name: source for source in plan.sources if not source.window}
        self.counted = frozenset(stream.id for stream in plan.streams if stream.counted)


class Results(Protocol):
    """Who is told of results."""

    def delivered(self, at_ns: int, plan: core.Plan, output: core.Output, lineage: Lineage, payload: Any) -> None:
        """A result is there; `at_ns` on the clock of the events."""


class Failures(Protocol):
    """Who is told of operators that raise."""

    def failed(self, node: str, operator: str, error: BaseException) -> None:
        """That operator raised on a tuple, which is lost."""


class Commits(Protocol):
    """Who is told of plans that are committed."""

    def committed(self, at_ns: int, node: str, deployed: VirtualDeployment) -> None:
        """That node admits under that plan from now on."""


class Observer(Results, Failures, Commits, Protocol):
    """All of them."""

    @property
    def until_ns(self) -> int:
        """After that nothing that was admitted can lie in an open window: what is due then is not waited for."""


__all__ = ["Commits", "Failures", "Observer", "Results", "State", "VirtualDeployment"]
