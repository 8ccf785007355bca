"""Heartbeats: how far the counted sources of this node are, said at the commit of a plan and then every `beat_ns`.

A heartbeat says which numbers were admitted and how old what comes later can be at most, so that windows end although
nothing comes, and the loss of a source's last tuple is noticed. `Source.max_age_ns` is what makes it true: a counted
source refuses every tuple whose age may be above it.

Once another plan is committed, or the source's plan is stopped, there is one more: what was admitted under this plan by
then, and the promise as of then. Windows may go on under the next plan, so promises hold there as well: where that plan
allows a greater age, what is older than was promised before is refused.

Numbers of a source go on from plan to plan, also where it has another id in the next one: a window operator that is
kept takes a number that it had for a repetition. Where that id was another source's, whose numbers were higher, they go
on from there, for a lineage must not repeat either; that leaves a gap, which costs windows.
"""

from dataclasses import dataclass

from node_agent.core import plan as core
from node_agent.link.clock_offset import FAR_NS
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments.deployed_plan import COMMITTED, Deployed
from node_agent.runtime.deployments.lifecycle import Plans


@dataclass(slots=True, eq=False)
class SourceHeartbeat:
    """A counted source under one plan. first: the lowest number that is admitted under it. ended: when the plan ceased
    to admit, and the lowest number that came after it."""

    deployed: Deployed
    source: core.Source
    first: int
    due_ns: int = 0
    ended: tuple[int, int] | None = None


class Heartbeats:
    """Tells the engines. numbers: the last number of each source, by its id, over all plans. promised: by source, the
    oldest origin that anything that comes may have."""

    def __init__(self, shared: Shared, plans: Plans, numbers: dict[int, int], promised: dict[str, int]) -> None:
        self.shared, self.plans, self.numbers, self.promised = shared, plans, numbers, promised
        self.by_source: dict[tuple[Deployed, int], SourceHeartbeat] = {}
        self.newest: Deployed | None = None  # whose sources are heard
        self.ids: dict[str, int] = {}  # of each source, in the last plan that counted it

    def look_up(self) -> None:
        """Call at every change of plans or of their states, before anything more is admitted."""
        for each in self.by_source.values():
            if each.ended is None and each.deployed.state != COMMITTED:
                each.ended, each.due_ns = (self.shared.now_ns(), self._next(each.source)), 0
        deployed = max(
            (each for each in self.plans.by_hash.values() if each.state == COMMITTED),
            key=lambda each: each.plan.epoch,
            default=None,
        )
        if deployed is None or deployed is self.newest:
            return
        self.newest = deployed
        counted = [source for source in deployed.plan.sources if source.beat_ns and not source.window]
        lasts = {name: self.numbers.get(id_, 0) for name, id_ in self.ids.items()}
        for source in counted:
            self.numbers[source.id] = max(self.numbers.get(source.id, 0), lasts.get(source.name, 0))
            self.by_source[deployed, source.id] = SourceHeartbeat(deployed, source, self._next(source))
        self.ids |= {source.name: source.id for source in counted}

    @property
    def due_ns(self) -> int:
        """When the next one is to be said."""
        return min((each.due_ns for each in self.by_source.values()), default=FAR_NS)

    def send(self, at_ns: int) -> None:
        """Say those that are due. Everything that was admitted before has been handed to the engines."""
        for key, each in list(self.by_source.items()):
            if each.due_ns > at_ns:
                continue
            as_of_ns, upto = each.ended or (at_ns, self._next(each.source))
            oldest_ns = as_of_ns - each.source.max_age_ns if each.source.max_age_ns else -FAR_NS
            name = each.source.name
            self.promised[name] = max(oldest_ns, self.promised.get(name, oldest_ns))
            if self.plans.by_hash.get(each.deployed.hash) is each.deployed:
                each.deployed.engine_slot.engine.heartbeat(
                    at_ns, each.deployed.loaded, each.source.id, self.shared.lineage_epoch, upto, each.first, oldest_ns
                )
            if each.ended is not None:
                del self.by_source[key]
            else:
                each.due_ns = at_ns + each.source.beat_ns

    def _next(self, source: core.Source) -> int:
        return self.numbers.get(source.id, 0) + 1
