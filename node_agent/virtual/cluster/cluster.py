"""The cluster in virtual time: the agents' runtimes, clients of their sources, and ideal links, trial by trial.

All trials run in one incarnation per node, one after the other in virtual time: a trial begins after the one before
has ended, with new runtimes, and its tuples carry its number as lineage epoch. Where there are several plans, every
trial begins under the first and goes through all of them.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from node_agent.core import plan as core
from node_agent.core.lineage import Lineage
from node_agent.operators.codecs import UnknownCodecError
from node_agent.operators.registry import Registry
from node_agent.runtime.deployments.lifecycle import Policies, installed
from node_agent.runtime.executor import Operate
from node_agent.virtual import random_draws
from node_agent.virtual.arrivals import Burst, bursts
from node_agent.virtual.change_schedule import ChangeSchedule
from node_agent.virtual.cluster.ideal_network import Cable, IdealListener, Traffic
from node_agent.virtual.cluster.node import DRIFT_PPM, NodeSettings, VirtualNode, VirtualTrace
from node_agent.virtual.cluster.source_client import ClientSettings, SourceClient
from node_agent.virtual.cluster.window_tail import seldom_ns, tail_ns, thinned
from node_agent.virtual.cost_model import Costs
from node_agent.virtual.errors import bad_input
from node_agent.virtual.event_queue import ADMITTED, CHANGED, Events
from node_agent.virtual.scenario import Scenario
from node_agent.virtual.summary import WindowSummary
from node_agent.virtual.world import Admission, Delivery, Offer, World
from node_agent.wire.plan_error import PlanError
from protos.records import SHED_POLICIES, VIRTUAL, Header

SECOND_NS = 1_000_000_000
SET_UP_NS = SECOND_NS // 2  # before a trial: links connect
DRAINED_NS = 10_000_000  # a plan that comes back is tried again so often
_LOSS = 3  # what a draw is for


class Cluster:
    """Runs trials. Raises BadInputError where an operator of a plan is not installed here.

    instances: task instances run so far. taken, rejected: tuples that were admitted, and that were not. failures: those
    of operators, (node, operator) -> (how many, the first). windows: by operator. shed: by policy.
    """

    def __init__(
        self, schedule: ChangeSchedule, scenario: Scenario, registry: Registry, world: World, domain: str,
        trace: bool = True, operate: Operate | None = None, policies: Policies = installed,
    ) -> None:  # fmt: skip
        """domain: the name of the clock. trace: whether it is kept."""
        self._change_schedule, self._scenario, self._registry, self._world = schedule, scenario, registry, world
        self._domain, self._operate, self._policies = domain, operate, policies
        self._locals = schedule.nodes(scenario)
        self._by_index = {local.index: name for name, (local, *_) in self._locals.items()}
        self._sources = {source.id: source for source in schedule.sources}
        self._ids = {source.name: source.id for source in schedule.sources}
        self._names = {(p.epoch, source.id): source.name for p in schedule.plans for source in p.sources} | {
            (p.epoch, number): name for p in schedule.plans for number, name in p.windows.items()
        }
        self.instances = self.taken = self.rejected = 0
        self.failures: dict[tuple[str, str], tuple[int, BaseException]] = {}
        self.shed: Counter[str] = Counter()
        self.windows = {name: WindowSummary() for p in schedule.plans for name in p.windows.values()}
        oldest_ns = max(scenario.ages_ns.values(), default=0)
        parts = [local for locals_ in self._locals.values() for local in locals_]
        counted = any(operator.window is not None for part in parts for operator in part.operators)
        self._tail_ns = tail_ns(parts, scenario.latency_ns, oldest_ns) if counted else 0
        self._locals = {
            name: tuple(thinned(local, seldom_ns(self._tail_ns)) for local in locals_)
            for name, locals_ in self._locals.items()
        }
        beats_ns = (
            source.beat_ns for locals_ in self._locals.values() for local in locals_ for source in local.sources
        )
        self._beat_ns = max(beats_ns, default=0) if counted else 0
        self._now_ns = _next_second(oldest_ns)
        self.started_ns = self._now_ns - SET_UP_NS
        self._traces = {
            name: VirtualTrace(Header(name, local.index, 1, domain, 0, self.started_ns, 0, VIRTUAL), trace)
            for name, (local, *_) in self._locals.items()
        }
        self._numbers: dict[str, dict[str, int]] = {name: {} for name in self._locals}
        self._nodes: dict[str, VirtualNode] = {}
        self._clients: dict[int, SourceClient] = {}
        self._replaced_ns: list[int] = []  # when the world made a new plan of what it admits
        self._trial = self._planned = self._until_ns = self._begun_ns = self._given_ns = 0
        self._traffic = Traffic(Events())

    def data(self, node: str) -> bytes:
        """The records of that node."""
        return bytes(self._traces[node].data())

    def run(self, trial: int) -> None:
        """One trial, from its first admission until nothing is left to do."""
        if self._nodes:
            self._end_trial(last=False)
        self._set_up(trial)
        admissions = self._world.begin(trial)
        planned = bursts(self._change_schedule, self._scenario, trial) if admissions is None else []
        first_ns = min([*(burst.at_ns for burst in planned), *(each.at_ns for each in admissions or ())], default=0)
        self._begun_ns = self._now_ns + max(0, -first_ns)
        self._plan(self._now_ns, CHANGED, self._commit_first)
        for epoch in range(2, len(self._change_schedule.plans) + 1):
            self._plan(self._begun_ns + self._change_schedule.at_ns[epoch - 1], CHANGED, self._change, epoch)
        for burst in planned:
            self._plan(self._begun_ns + burst.at_ns, ADMITTED, self._admit_burst, burst)
        fed = {number for number, source in self._sources.items() if source.pull is None}
        given_ns = [burst.at_ns for burst in planned if burst.source in fed] + [each.at_ns for each in admissions or ()]
        self._given_ns = self._begun_ns + max(given_ns, default=0)
        ticks_ns = [self._ticking(source.name)[1] for source in self._sources.values() if source.ticks]
        self._until_ns = max([self._begun_ns + max((burst.at_ns for burst in planned), default=0), *ticks_ns])
        self._until_ns += self._tail_ns
        self._schedule(admissions or ())
        self._traffic.events.run()
        self._now_ns = _next_second(self._traffic.events.now_ns)
        for node in self._nodes.values():
            self.instances += node.instances
            self.taken += node.made_here
            self.rejected += node.refused_here
            self._numbers[node.name] |= node.numbers()
            for policy, tuples in node.shed():
                self.shed[SHED_POLICIES[policy]] += tuples
            for name, counts in node.windows():
                self.windows[name].add(counts)

    @property
    def refused_offers(self) -> dict[str, tuple[int, ...]]:
        """Of the trial that ran last, by source: numbers of the tuples that were not admitted, from 1 as offered."""
        return {self._sources[number].name: tuple(one.refused) for number, one in self._clients.items() if one.refused}

    def end(self) -> None:
        """The incarnation of every node ends."""
        self._end_trial(last=True)

    def _end_trial(self, last: bool) -> None:
        for node in self._nodes.values():
            node.end(last)

    # -- what nodes and clients tell

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

    def failed(self, node: str, what: str, error: BaseException) -> None:
        """An operator or a source raised; the first error of each is kept."""
        count, first = self.failures.get((node, what), (0, error))
        self.failures[node, what] = (count + 1, first)

    def admitted(self, tuples: int) -> None:
        """A client was told so."""
        self.taken += tuples

    def refused(self, tuples: int) -> None:
        """A client was told so."""
        self.rejected += tuples

    def idle(self) -> None:
        """A node waits: where all do, and nothing comes any more, the trial has ended."""
        events = self._traffic.events
        if self._planned or events.now_ns < self._until_ns + 2 * self._beat_ns:
            return
        if self._beat_ns:  # links are never empty as long as heartbeats go on
            for node in self._nodes.values():
                node.end_heartbeats()
        if not self._traffic.under_way and all(client.settled for client in self._clients.values()):
            events.stopped = all(node.quiet for node in self._nodes.values())

    # -- inside

    def _plan(self, at_ns: int, kind: int, call: Any, argument: Any = None) -> None:
        """Something that the trial does not end before."""
        self._planned += 1
        self._traffic.events.at(at_ns, kind, self._happens, (call, argument))

    def _happens(self, at_ns: int, what: tuple[Any, Any]) -> None:
        self._planned -= 1
        call, argument = what
        call(at_ns, argument)

    def _set_up(self, trial: int) -> None:
        scenario = self._scenario
        self._trial, self._traffic = trial, Traffic(Events(self._now_ns - SET_UP_NS))
        self._planned, self._replaced_ns = 0, []
        self._nodes, self._clients = {}, {}
        for name, (local, *_) in self._locals.items():
            settings = NodeSettings(
                self._domain, local.index + 1, trial, self._policies, scenario.decision_ns, self._operate,
                scenario.batch == "barrier", seldom_ns(self._tail_ns),
            )  # fmt: skip
            reach = _Reach(self, local.index)
            self._nodes[name] = VirtualNode(
                local, settings, self._traffic, self._traces[name], self._registry, reach, self, self._ticking
            )
        for local, *_ in self._locals.values():
            self._prepare(local)
            self._nodes[local.node].number_from(self._numbers[local.node])
        for number, source in self._sources.items():
            if source.pull is not None:
                continue
            try:
                codec = self._registry.codecs.get(source.codec)
            except UnknownCodecError as error:
                raise bad_input(error.code, f"source {source.name}: {error}", subject=source.name) from None
            client = ClientSettings(source.name, codec, trial << 16 | number, self._domain, DRIFT_PPM)
            self._clients[number] = SourceClient(self._traffic, client, self)

    def _prepare(self, local: core.Plan) -> None:
        """Load a node's part of a plan."""
        scenario, schedule = self._scenario, self._change_schedule
        plan = schedule.plans[local.epoch - 1]
        costs = Costs(
            local, plan.speeds[local.node], scenario.jitter, scenario.cost_scale, scenario.seed, self._trial,
            schedule.numbers(local.epoch),
        )  # fmt: skip
        routes = tuple((peer.index, peer.name, f"{self._by_index[peer.index]}:1") for peer in local.peers)
        try:
            self._nodes[local.node].prepare(local, plan.hash, routes, costs)
        except PlanError as error:
            raise bad_input(error.code, f"node {local.node}: {error}", subject=local.node) from None

    def _commit_first(self, at_ns: int, _: Any) -> None:
        for node in self._nodes.values():
            node.commit(self._change_schedule.plans[0].hash)
        self._connect()

    def _connect(self) -> None:
        """Sources that are there, and were not before."""
        for number, client in self._clients.items():
            node = self._nodes[self._sources[number].node]
            if not client.connected and node.source(self._sources[number].name) is not None:
                client.connect(node.listener)

    def _change(self, at_ns: int, epoch: int) -> None:
        """A new plan: prepared on all nodes, then each commits it, earlier or later. One that comes back waits until it
        has drained, as agents have it; one that is there changes nothing."""
        plans = self._change_schedule.plans
        plan_hash = plans[epoch - 1].hash
        if plan_hash == plans[epoch - 2].hash:
            return
        if any(node.holds(plan_hash) for node in self._nodes.values()):
            self._plan(at_ns + DRAINED_NS, CHANGED, self._change, epoch)
            return
        for locals_ in self._locals.values():
            local = locals_[epoch - 1]
            self._prepare(local)
            commit_ns = self._begun_ns + self._change_schedule.commit_ns(
                self._scenario, self._trial, epoch, local.index
            )
            self._plan(max(at_ns, commit_ns), CHANGED, self._commit, (self._nodes[local.node], epoch))

    def _commit(self, at_ns: int, what: tuple[VirtualNode, int]) -> None:
        node, epoch = what
        node.commit(self._change_schedule.plans[epoch - 1].hash)
        self._connect()

    def reach(self, from_: int, to: str) -> tuple[IdealListener, Cable, Cable]:
        """The way from one node to another, and back."""
        scenario = self._scenario
        locals_ = next(each for each in self._locals.values() if each[0].index == from_)
        target = self._nodes[to]
        peer = next(peer for local in locals_ for peer in local.peers if peer.index == target.index)
        latency_ns = peer.latency_ns if scenario.latency_ns is None else scenario.latency_ns
        there = Cable(
            latency_ns=latency_ns,
            bandwidth_bps=0 if scenario.latency_ns is not None else peer.bandwidth_bps,
            loss=scenario.loss,
            loss_key=random_draws.key(_LOSS, scenario.seed, self._trial),
            sender=from_,
        )
        return target.listener, there, Cable(latency_ns)

    def _schedule(self, admissions: Sequence[Admission]) -> None:
        plan, last_ns = len(self._replaced_ns), 0
        for admission in admissions:
            if admission.source not in self._ids:
                raise bad_input(
                    "unknown_source", f"the plan has no source {admission.source!r}",
                    f"it has {', '.join(self._ids)}", subject=admission.source,
                )  # fmt: skip
            at_ns = self._begun_ns + admission.at_ns
            if at_ns > (self._replaced_ns[-1] if plan else -1):
                self._plan(at_ns, ADMITTED, self._admit_planned, (plan, admission))
                last_ns = max(last_ns, at_ns)
        self._until_ns = max(self._until_ns, last_ns + self._tail_ns)

    def _admit_planned(self, at_ns: int, item: tuple[int, Admission]) -> None:
        plan, admission = item
        if plan < len(self._replaced_ns) and at_ns > self._replaced_ns[plan]:
            return  # the world has made another plan since
        number = self._ids[admission.source]
        if number not in self._clients:
            return  # what its node makes itself the world has no part in
        for offer in admission.offers:
            self._offer(at_ns, number, offer)
        self._clients[number].flush()

    def _admit_burst(self, at_ns: int, burst: Burst) -> None:
        source = self._sources[burst.source]
        if source.pull is not None:
            self._nodes[source.node].go_on(source.name, burst.tuples)
            return
        client = self._clients[burst.source]
        for _ in range(burst.tuples):
            seq = client.offered - client.denied + 1
            offer = self._world.offer(source.name, seq, at_ns - self._begun_ns)
            if offer is not None:
                self._offer(at_ns, burst.source, offer)
        client.flush()

    def _ticking(self, name: str) -> tuple[int, int]:
        """From when until when a source ticks: as often as others have bursts, and on to the last of a client's."""
        source = self._sources[self._ids[name]]
        assert source.pull is not None
        own_ns = self._begun_ns + self._scenario.bursts * source.pull.every_ns
        return self._begun_ns, max(own_ns, self._given_ns + 1)

    def _offer(self, at_ns: int, number: int, offer: Offer) -> None:
        self._clients[number].offer(at_ns - offer.age_ns, offer.payload)


class _Reach:
    """Where a node's links lead."""

    def __init__(self, cluster: Cluster, from_: int) -> None:
        self._cluster, self._from = cluster, from_

    def __call__(self, to: str) -> tuple[IdealListener, Cable, Cable]:
        return self._cluster.reach(self._from, to)


def _next_second(at_ns: int) -> int:
    """The first whole second that is more than a second after that instant."""
    return (at_ns // SECOND_NS + 2) * SECOND_NS


__all__ = ["Cluster"]
