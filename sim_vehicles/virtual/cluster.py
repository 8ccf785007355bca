"""The cluster in virtual time: nodes, links, sources and sinks of one plan, driven by one event queue, trial by trial.

All trials run in one incarnation per node, one after the other in virtual time: a trial begins after the one before
has ended, with new operator instances and empty queues, and its tuples carry its number as lineage epoch.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from node_agent.core import plan as core
from node_agent.core.facts import Facts, MemoryFacts, Stretch
from node_agent.core.load import Calls
from node_agent.core.parts import Lineage
from node_agent.execute import apply
from node_agent.registry import Registry
from node_agent.signature import OperatorError
from protos.records import LOAD, NO_REF, PLAN, PLAN_EPOCH_MASK, RECORD_BYTES, STATE_COMMITTED, STATE_ENDED
from sim_vehicles.errors import BadInputError
from sim_vehicles.virtual import draws
from sim_vehicles.virtual.arrivals import Burst, bursts
from sim_vehicles.virtual.costs import Costs
from sim_vehicles.virtual.events import ADMITTED, Events
from sim_vehicles.virtual.link import Cable, Ends, Link
from sim_vehicles.virtual.node import Apply, VirtualNode
from sim_vehicles.virtual.payloads import payload_bytes
from sim_vehicles.virtual.scenario import PLAN_EPOCH, PlanFile, Scenario, as_run
from sim_vehicles.virtual.world import Admission, Delivery, Offer, World

SECOND_NS = 1_000_000_000
_LOSS = 3  # what a draw is for


class NoFacts(Facts):
    """Writes facts over and over into the same stretch: for runs that only want the results."""

    __slots__ = ()

    def __init__(self) -> None:
        stretch: Stretch = (0, 256 * RECORD_BYTES)
        super().__init__(bytearray(stretch[1]), lambda: stretch)


class Cluster:
    """Runs trials. Raises BadInputError where an operator of the plan is not installed here.

    facts: the trace so far, by node, or what swallows it. instances: task instances run so far. failures: errors that
    operators raised, (node, operator) -> (how many, the first).
    """

    def __init__(
        self,
        plan: PlanFile,
        scenario: Scenario,
        registry: Registry,
        world: World,
        trace: bool = True,
        apply: Apply = apply,
    ) -> None:
        self._plan, self._scenario, self._registry, self._world = plan, scenario, registry, world
        self._apply = apply
        self._locals = [as_run(local, scenario) for local in plan.nodes]
        self._names = {source.id: source.name for source in plan.sources}
        self._at = {source.id: source.node for source in plan.sources}
        self._ids = {source.name: source.id for source in plan.sources}
        self.facts: dict[str, Facts] = {local.node: MemoryFacts() if trace else NoFacts() for local in self._locals}
        self.instances = self.admitted = 0
        self.busy_ns, self.overhead_ns = dict.fromkeys(self.facts, 0), dict.fromkeys(self.facts, 0)
        self.failures: dict[tuple[str, int], tuple[int, BaseException]] = {}
        self._numbers: dict[tuple[int, int], int] = {}  # the last tuple on each link, by both ends
        oldest_ns = max(scenario.ages_ns.values(), default=0)
        self.started_ns = self.now_ns = _next_second(oldest_ns)
        self._trial, self._events = 0, Events()
        self._nodes: dict[str, VirtualNode] = {}
        self._seqs: dict[int, int] = {}
        self._replaced_ns: list[int] = []  # when the world made a new plan of what it admits
        for local in self._locals:
            self._state(local, STATE_COMMITTED)

    def run(self, trial: int) -> None:
        """One trial, from its first admission until nothing is left to do."""
        self._set_up(trial)
        admissions = self._world.begin(trial)
        planned = bursts(self._plan, self._scenario, trial) if admissions is None else []
        first_ns = min([*(burst.at_ns for burst in planned), *(each.at_ns for each in admissions or ())], default=0)
        self._begun_ns = self.now_ns + max(0, -first_ns)
        for burst in planned:
            self._events.at(self._begun_ns + burst.at_ns, ADMITTED, self._admit_burst, burst)
        self._schedule(admissions or ())
        self._events.run()
        while (expiry_ns := self._next_expiry_ns()) is not None:
            for node in self._nodes.values():
                node.engine.expire(expiry_ns)
            self._events.run()
        self.now_ns = _next_second(self._events.now_ns)
        for node in self._nodes.values():
            self.instances += node.instances
            self.busy_ns[node.name] += node.busy_ns
            self.overhead_ns[node.name] += node.overhead_ns
            for peer, link in node.links.items():
                self._numbers[node.loaded.plan.index, peer] = link.number

    def end(self) -> None:
        """The incarnation of every node ends: write what a stopping node writes."""
        for local in self._locals:
            facts = self.facts[local.node]
            facts.write(LOAD, PLAN_EPOCH & PLAN_EPOCH_MASK, NO_REF, 0, 0, 0, self.now_ns, 0, 0,
                        self.busy_ns[local.node], self.overhead_ns[local.node],
                        facts.position // RECORD_BYTES)  # fmt: skip
            self._state(local, STATE_ENDED)

    # -- what nodes tell

    def delivered(self, at_ns: int, output: core.Output, lineage: Lineage, payload: Any) -> None:
        """A result, on to the world."""
        source, _, seq, ordinal, origin_ns, _ = lineage
        admissions = self._world.deliver(
            Delivery(output.name, at_ns - self._begun_ns, at_ns - origin_ns, self._names[source], seq, ordinal, payload)
        )
        if admissions is not None:
            self._replaced_ns.append(at_ns)
            self._schedule(admissions)

    def failed(self, node: str, operator: int, error: BaseException) -> None:
        """An operator raised; the first error of each operator is kept."""
        count, first = self.failures.get((node, operator), (0, error))
        self.failures[node, operator] = (count + 1, first)

    # -- inside

    def _state(self, local: core.Plan, state: int) -> None:
        self.facts[local.node].write(
            PLAN, PLAN_EPOCH & PLAN_EPOCH_MASK, state, 0, 0, 0, self.now_ns, PLAN_EPOCH, last=self._plan.hash_u64
        )

    def _set_up(self, trial: int) -> None:
        scenario = self._scenario
        self._trial, self._events = trial, Events(self.now_ns)
        self._seqs = dict.fromkeys(self._names, 0)
        self._replaced_ns = []
        self._nodes = {}
        for local in self._locals:
            costs = Costs(
                local, self._plan.speeds[local.node], scenario.jitter, scenario.cost_scale, scenario.seed, trial
            )
            self._nodes[local.node] = VirtualNode(
                local, self._calls(local), self.facts[local.node], costs, self._events, self,
                barrier=scenario.batch == "barrier", decision_ns=scenario.decision_ns,
                apply=self._apply,
            )  # fmt: skip
        by_index = {local.index: self._nodes[local.node] for local in self._locals}
        for local in self._locals:
            node = self._nodes[local.node]
            node.links = {peer.index: self._link(node, peer, by_index[peer.index]) for peer in local.peers}

    def _calls(self, local: core.Plan) -> Calls:
        names = {stream.id: stream.name for stream in local.streams}
        calls = {}
        for operator in local.operators:
            try:
                bound = self._registry.make(operator.run, operator.with_json, [names[each] for each in operator.inputs])
            except OperatorError as error:
                raise BadInputError(
                    f"operator {operator.name} of node {local.node}: {error} (files of operators: --operators FILE.py)"
                ) from None
            calls[operator.id] = (bound.call, bound.plain)
        return calls

    def _link(self, node: VirtualNode, peer: core.Peer, other: VirtualNode) -> Link:
        scenario = self._scenario
        index = node.loaded.plan.index
        ideal = scenario.latency_ns is not None
        cable = Cable(
            latency_ns=peer.latency_ns if scenario.latency_ns is None else scenario.latency_ns,
            bandwidth_bps=0 if ideal else peer.bandwidth_bps,
            loss=scenario.loss,
            loss_key=draws.key(_LOSS, scenario.seed, self._trial),
        )
        ends = Ends(index, peer.index, self.facts[node.name], self.facts[other.name])
        deadlines_ns: Mapping[int, int] = {stream.id: stream.deadline_ns for stream in node.loaded.plan.streams}
        number = self._numbers.get((index, peer.index), 0)
        return Link(self._events, ends, cable, other.receive, node.loaded.flags, deadlines_ns, number)

    def _schedule(self, admissions: Sequence[Admission]) -> None:
        plan = len(self._replaced_ns)
        for admission in admissions:
            if admission.source not in self._ids:
                raise BadInputError(f"the plan has no source {admission.source!r}; it has {', '.join(self._ids)}")
            at_ns = self._begun_ns + admission.at_ns
            if at_ns > (self._replaced_ns[-1] if plan else -1):
                self._events.at(at_ns, ADMITTED, self._admit_planned, (plan, admission))

    def _admit_planned(self, at_ns: int, item: tuple[int, Admission]) -> None:
        plan, admission = item
        if plan < len(self._replaced_ns) and at_ns > self._replaced_ns[plan]:
            return  # the world has made another plan since
        for offer in admission.offers:
            self._admit(at_ns, self._ids[admission.source], offer)

    def _admit_burst(self, at_ns: int, burst: Burst) -> None:
        for _ in range(burst.tuples):
            seq = self._seqs[burst.source] + 1
            offer = self._world.offer(self._names[burst.source], seq, at_ns - self._begun_ns)
            if offer is not None:
                self._admit(at_ns, burst.source, offer)

    def _admit(self, at_ns: int, source: int, offer: Offer) -> None:
        self._seqs[source] = seq = self._seqs[source] + 1
        self.admitted += 1
        origin_ns = at_ns - offer.age_ns
        lineage = (source, self._trial, seq, 0, origin_ns, origin_ns)
        self._nodes[self._at[source]].admit(at_ns, source, lineage, offer.payload, payload_bytes(offer.payload))

    def _next_expiry_ns(self) -> int | None:
        times = [at_ns for node in self._nodes.values() if (at_ns := node.next_expiry_ns()) is not None]
        return max(min(times), self._events.now_ns) if times else None


def _next_second(at_ns: int) -> int:
    """The first whole second that is more than a second after that instant."""
    return (at_ns // SECOND_NS + 2) * SECOND_NS
