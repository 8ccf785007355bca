"""The cluster in virtual time: nodes, links, sources and sinks of a plan, driven by one event queue, trial by trial.

All trials run in one incarnation per node, one after the other in virtual time: a trial begins after the one before
has ended, with new operator instances and empty queues, and its tuples carry its number as lineage epoch. Where there
are several plans, every trial begins under the first and goes through all of them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from node_agent.core import plan as core
from node_agent.core.engine.compiler import Calls
from node_agent.core.facts import Facts, MemoryFacts, Stretch
from node_agent.core.lineage import Lineage
from node_agent.operators.codecs import UnknownCodecError
from node_agent.operators.registry import Registry
from node_agent.operators.signature import OperatorError
from node_agent.runtime.executor import apply
from node_agent.virtual import random_draws
from node_agent.virtual.arrivals import Burst, bursts
from node_agent.virtual.change_schedule import ChangeSchedule
from node_agent.virtual.cluster.heartbeat_schedule import Heartbeats, tail_ns
from node_agent.virtual.cluster.link import Cable, Ends, Link
from node_agent.virtual.cluster.node import Apply, Policies, VirtualNode, installed
from node_agent.virtual.cluster.payloads import payload_bytes
from node_agent.virtual.cluster.virtual_deployment import VirtualDeployment
from node_agent.virtual.cost_model import Costs
from node_agent.virtual.errors import bad_input
from node_agent.virtual.event_queue import ADMITTED, CHANGED, Events
from node_agent.virtual.scenario import Scenario, Source
from node_agent.virtual.summary import WindowSummary
from node_agent.virtual.world import Admission, Delivery, Offer, World
from protos.records import (
    COUNTED,
    FLAG,
    LOAD,
    NO_REF,
    PLAN,
    PLAN_EPOCH_MASK,
    RECORD_BYTES,
    SHED_POLICIES,
    STATE_COMMITTED,
    STATE_ENDED,
    STATE_PREPARED,
    SUM_MASK,
)

SECOND_NS = 1_000_000_000
_LOSS = 3  # what a draw is for


class NoFacts(Facts):
    """Writes facts over and over into the same stretch: for runs that only want the results."""

    __slots__ = ()

    def __init__(self) -> None:
        stretch: Stretch = (0, 256 * RECORD_BYTES)
        super().__init__(bytearray(stretch[1]), lambda: stretch)


class Cluster:
    """Runs trials. Raises BadInputError where an operator of a plan is not installed here.

    facts: the trace so far, by node, or what swallows it. instances: task instances run so far. taken: tuples that were
    admitted. rejected: of sources that the plan of the moment does not have, and such as are too old. failures: errors
    that operators raised, (node, operator) -> (how many, the first). windows: by operator. shed: by policy.
    """

    def __init__(
        self,
        schedule: ChangeSchedule,
        scenario: Scenario,
        registry: Registry,
        world: World,
        trace: bool = True,
        apply: Apply = apply,
        policies: Policies = installed,
    ) -> None:
        self._change_schedule, self._scenario, self._registry, self._world = schedule, scenario, registry, world
        self._apply, self._policies = apply, policies
        self._locals = schedule.nodes(scenario)
        self._sources = {source.id: source for source in schedule.sources}
        self._ids = {source.name: source.id for source in schedule.sources}
        self._names = {(p.epoch, source.id): source.name for p in schedule.plans for source in p.sources} | {
            (p.epoch, number): name for p in schedule.plans for number, name in p.windows.items()
        }
        self.facts: dict[str, Facts] = {node: MemoryFacts() if trace else NoFacts() for node in self._locals}
        self.instances = self.taken = self.rejected = 0
        self.busy_ns, self.overhead_ns = dict.fromkeys(self.facts, 0), dict.fromkeys(self.facts, 0)
        self.failures: dict[tuple[str, str], tuple[int, BaseException]] = {}
        self.shed: Counter[str] = Counter()
        self.windows = {name: WindowSummary() for p in schedule.plans for name in p.windows.values()}
        self._numbers: dict[tuple[int, int], int] = {}  # the last tuple on each link, by both ends
        oldest_ns = max(scenario.ages_ns.values(), default=0)
        parts = [local for locals_ in self._locals.values() for local in locals_]
        self._tail_ns = tail_ns(parts, scenario.latency_ns, oldest_ns)
        self.started_ns = self.now_ns = _next_second(oldest_ns)
        self._trial, self._events = 0, Events()
        self._nodes: dict[str, VirtualNode] = {}
        self._seqs: dict[int, int] = {}
        self._replaced_ns: list[int] = []  # when the world made a new plan of what it admits
        for local, *_ in self._locals.values():
            self._state(local, STATE_COMMITTED)

    def data(self, node: str) -> bytes:
        """The records of that node."""
        facts = self.facts[node]
        assert isinstance(facts, MemoryFacts)
        return facts.data()

    def run(self, trial: int) -> None:
        """One trial, from its first admission until nothing is left to do."""
        self._set_up(trial)
        admissions = self._world.begin(trial)
        planned = bursts(self._change_schedule, self._scenario, trial) if admissions is None else []
        first_ns = min([*(burst.at_ns for burst in planned), *(each.at_ns for each in admissions or ())], default=0)
        self._begun_ns = self.now_ns + max(0, -first_ns)
        for epoch in range(2, len(self._change_schedule.plans) + 1):
            self._events.at(self._begun_ns + self._change_schedule.at_ns[epoch - 1], CHANGED, self._change, epoch)
        for burst in planned:
            self._events.at(self._begun_ns + burst.at_ns, ADMITTED, self._admit_burst, burst)
        self._schedule(admissions or ())
        self._heartbeats.extend(self._begun_ns + max((burst.at_ns for burst in planned), default=0))
        self._events.run()
        while (expiry_ns := self._next_expiry_ns()) is not None:
            self._events.pass_until(expiry_ns)
            for node in self._nodes.values():
                node.engine.expire(expiry_ns)
            self._events.run()
        for node in self._nodes.values():
            node.end(self._events.now_ns)
        self.now_ns = _next_second(self._events.now_ns)
        for node in self._nodes.values():
            self.instances += node.instances
            self.busy_ns[node.name] += node.busy_ns
            self.overhead_ns[node.name] += node.overhead_ns
            for peer, link in node.links.items():
                self._numbers[node.index, peer] = link.number
            for policy, tuples in node.engine.ledger.shed_by.items():
                self.shed[SHED_POLICIES[policy]] += tuples
            for name, counts in node.windows():
                self.windows[name].add(counts)

    def end(self) -> None:
        """The incarnation of every node ends: write what a stopping node writes."""
        for node, (*_, local) in self._locals.items():
            facts = self.facts[node]
            facts.write(LOAD, FLAG | local.epoch & PLAN_EPOCH_MASK, NO_REF,
                        facts.refused % COUNTED, facts.admitted % COUNTED, facts.latencies_ns & SUM_MASK,
                        self.now_ns, 0, 0,
                        self.busy_ns[node], self.overhead_ns[node],
                        facts.position // RECORD_BYTES)  # fmt: skip
            self._state(local, STATE_ENDED)

    # -- what nodes tell

    def delivered(self, at_ns: int, plan: core.Plan, output: core.Output, lineage: Lineage, payload: Any) -> None:
        """A result, on to the world."""
        source, _, seq, ordinal, origin_ns, _ = lineage
        name = self._names[plan.epoch, source]
        admissions = self._world.deliver(
            Delivery(output.name, at_ns - self._begun_ns, at_ns - origin_ns, name, seq, ordinal, payload)
        )
        if admissions is not None:
            self._replaced_ns.append(at_ns)
            self._schedule(admissions)

    def failed(self, node: str, operator: str, error: BaseException) -> None:
        """An operator raised; the first error of each operator is kept."""
        count, first = self.failures.get((node, operator), (0, error))
        self.failures[node, operator] = (count + 1, first)

    def committed(self, at_ns: int, node: str, deployed: VirtualDeployment) -> None:
        """Sources of that node say how far they are."""
        self._heartbeats.committed(at_ns, node, deployed.loaded)

    @property
    def until_ns(self) -> int:
        """When no admitted tuple lies in an open window any more."""
        return self._heartbeats.until_ns

    # -- inside

    def _state(self, local: core.Plan, state: int) -> None:
        self.facts[local.node].write(
            PLAN, local.epoch & PLAN_EPOCH_MASK, state, 0, 0, 0, self.now_ns, local.epoch, last=local.hash
        )

    def _set_up(self, trial: int) -> None:
        scenario = self._scenario
        self._trial, self._events = trial, Events(self.now_ns)
        self._seqs = dict.fromkeys(self._sources, 0)
        self._replaced_ns = []
        self._nodes = {}
        self._heartbeats = Heartbeats(self._events, self._nodes, self._number, self._tail_ns)
        for local, *_ in self._locals.values():
            self._nodes[local.node] = VirtualNode(
                local, self.facts[local.node], self._events, self,
                barrier=scenario.batch == "barrier", decision_ns=scenario.decision_ns,
                apply=self._apply, trial=trial, policies=self._policies,
            )  # fmt: skip
            self._prepare(local)
            again = trial > 1 and len(self._change_schedule.plans) > 1  # else it has been told once and for all
            self._nodes[local.node].commit(self.now_ns, local.epoch, told=again)

    def _prepare(self, local: core.Plan) -> None:
        """Load a node's part of a plan, and lay the links that it needs and that are not there."""
        scenario, schedule = self._scenario, self._change_schedule
        node = self._nodes[local.node]
        speed = schedule.plans[local.epoch - 1].speeds[local.node]
        costs = Costs(
            local, speed, scenario.jitter, scenario.cost_scale, scenario.seed, self._trial,
            schedule.numbers(local.epoch),
        )  # fmt: skip
        node.prepare(local, self._calls(local), costs)
        for peer in local.peers:
            if peer.index not in node.links:
                node.links[peer.index] = self._link(node, peer)

    def _change(self, at_ns: int, epoch: int) -> None:
        """A new plan: prepared on all nodes, then each commits it, earlier or later."""
        for node, locals_ in self._locals.items():
            local = locals_[epoch - 1]
            self._prepare(local)
            self._nodes[node].tell(at_ns, self._nodes[node].plans[epoch], STATE_PREPARED)
            commit_ns = self._begun_ns + self._change_schedule.commit_ns(
                self._scenario, self._trial, epoch, local.index
            )
            self._events.at(commit_ns, CHANGED, self._nodes[node].commit, epoch)

    def _calls(self, local: core.Plan) -> Calls:
        names = {stream.id: stream.name for stream in local.streams}
        types = {stream.id: stream.codec for stream in local.streams}
        calls: dict[int, tuple[Callable[..., Any], bool]] = {}
        try:
            for identity in local.installed:
                self._registry.check(identity)
        except OperatorError as error:
            raise bad_input(error.code, f"node {local.node}: {error}", subject=local.node) from None
        for operator in local.operators:
            try:
                given = operator.called or [names[each] for each in operator.inputs]
                codec = self._registry.codecs.get(types[operator.output])
                calls[operator.id] = self._registry.calls(operator, given, codec)
                if operator.late is not None and operator.late.run:
                    calls[-operator.id] = self._registry.variant(operator, given, codec)
            except (OperatorError, UnknownCodecError) as error:
                raise bad_input(
                    error.code, f"operator {operator.name} of node {local.node}: {error}", subject=operator.name
                ) from None
        return calls

    def _link(self, node: VirtualNode, peer: core.Peer) -> Link:
        scenario = self._scenario
        ideal = scenario.latency_ns is not None
        cable = Cable(
            latency_ns=peer.latency_ns if scenario.latency_ns is None else scenario.latency_ns,
            bandwidth_bps=0 if ideal else peer.bandwidth_bps,
            loss=scenario.loss,
            loss_key=random_draws.key(_LOSS, scenario.seed, self._trial),
        )
        other = next(name for name, (local, *_) in self._locals.items() if local.index == peer.index)
        ends = Ends(node.index, peer.index, self.facts[node.name], self.facts[other])
        number = self._numbers.get((node.index, peer.index), 0)

        def receive(at_ns: int, epoch: int, stream: int, lineage: Lineage, payload: Any) -> None:
            self._nodes[other].receive(at_ns, epoch, stream, lineage, payload)

        return Link(self._events, ends, cable, receive, number)

    def _number(self, source: str) -> int:
        """Of the last tuple of a source."""
        return self._seqs[self._ids[source]]

    def _schedule(self, admissions: Sequence[Admission]) -> None:
        plan, last_ns = len(self._replaced_ns), 0
        for admission in admissions:
            if admission.source not in self._ids:
                raise bad_input(
                    "unknown_source",
                    f"the plan has no source {admission.source!r}",
                    f"it has {', '.join(self._ids)}",
                    subject=admission.source,
                )
            at_ns = self._begun_ns + admission.at_ns
            if at_ns > (self._replaced_ns[-1] if plan else -1):
                self._events.at(at_ns, ADMITTED, self._admit_planned, (plan, admission))
                last_ns = max(last_ns, at_ns)
        self._heartbeats.extend(last_ns)

    def _admit_planned(self, at_ns: int, item: tuple[int, Admission]) -> None:
        plan, admission = item
        if plan < len(self._replaced_ns) and at_ns > self._replaced_ns[plan]:
            return  # the world has made another plan since
        for offer in admission.offers:
            self._admit(at_ns, self._sources[self._ids[admission.source]], offer)

    def _admit_burst(self, at_ns: int, burst: Burst) -> None:
        source = self._sources[burst.source]
        for _ in range(burst.tuples):
            seq = self._seqs[burst.source] + 1
            offer = self._world.offer(source.name, seq, at_ns - self._begun_ns)
            if offer is not None:
                self._admit(at_ns, source, offer)

    def _admit(self, at_ns: int, source: Source, offer: Offer) -> None:
        """Under the plan that the source's node has committed, or refused."""
        node = self._nodes[source.node]
        origin_ns = at_ns - offer.age_ns
        spec = node.offered(at_ns, source.name, origin_ns)
        if spec is None:
            self.rejected += 1
            return
        self._seqs[source.id] = seq = self._seqs[source.id] + 1
        self.taken += 1
        lineage = (spec.id, self._trial, seq, 0, origin_ns, origin_ns)
        node.admit(at_ns, spec.id, lineage, offer.payload, payload_bytes(offer.payload))

    def _next_expiry_ns(self) -> int | None:
        times = [at_ns for node in self._nodes.values() if (at_ns := node.next_expiry_ns()) is not None]
        return max(min(times), self._events.now_ns) if times else None


def _next_second(at_ns: int) -> int:
    """The first whole second that is more than a second after that instant."""
    return (at_ns // SECOND_NS + 2) * SECOND_NS
