"""A node in virtual time: the agent's engine and plans, its operators run one after the other as events.

The operators' code runs when they start (then they read their side inputs); what they return counts when they end. An
operator's output is inserted into other units' queues when *that* operator ends, and the choice of the next instance is
made when everything else of the instant is in.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from node_agent.core import plan as core
from node_agent.core.engine.compiler import Calls
from node_agent.core.engine.engine import Engine, Settings
from node_agent.core.engine.handover import inherit_state
from node_agent.core.facts import Facts
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Exit, Job, Step, Unit
from node_agent.core.policies import Policy, policy
from node_agent.core.shedding.memory_limit import REFUSE, Memory
from node_agent.core.shedding.refusals import Refusals, age_refused
from node_agent.core.windows.sequence import NEVER
from node_agent.runtime.executor import MOST_OUTPUTS, RAISED, Item, OutputsError, Rest, apply, cause_of
from node_agent.virtual.cluster.link import Link
from node_agent.virtual.cluster.virtual_deployment import Observer, State, VirtualDeployment
from node_agent.virtual.cost_model import Costs
from node_agent.virtual.event_queue import DISPATCHED, ENDED, EXPIRED, Events
from protos.records import PLAN, REASON_STOPPED, STATE_DRAINED

Apply = Callable[[Step, Lineage, Any, int, int], list[tuple[Lineage, Any]]]  # as `node_agent.runtime.executor.apply`

Policies = Callable[[core.Plan], Policy]  # which one a node's plans run under


def installed(plan: core.Plan) -> Policy:
    """The one that the plan names, as an agent has it. Raises ValueError."""
    return policy(plan.policy, plan.largest_batch, plan.parameters)


class VirtualNode:
    """One node: at most one plan is committed, earlier ones drain. It is also the engine's `Commands`.

    plan: what the node is called, and its policy, which all its plans share.
    """

    __slots__ = (
        "_apply",
        "_barrier",
        "_chain",
        "_costs",
        "_decision_ns",
        "_due_ns",
        "_events",
        "_failed",
        "_held",
        "_items",
        "_memory",
        "_observer",
        "_of",
        "_position",
        "_start_ns",
        "_step",
        "_trial",
        "_unit",
        "_waking",
        "_windows",
        "busy_ns",
        "committed",
        "engine",
        "index",
        "instances",
        "links",
        "name",
        "overhead_ns",
        "plans",
        "promised",
        "refusals",
    )  # fmt: skip

    def __init__(
        self, plan: core.Plan, facts: Facts, events: Events, observer: Observer, barrier: bool, decision_ns: int = 0,
        apply: Apply = apply, trial: int = 1, policies: Policies = installed,
    ) -> None:  # fmt: skip
        self._apply, self._trial = apply, trial
        self.name, self.index, self._events, self._observer = plan.node, plan.index, events, observer
        settings = Settings(trial, memory_full=self._is_full)
        self.engine = Engine(policies(plan), facts, self, settings)
        self.refusals = Refusals(facts, trial)
        self._memory: Memory | None = None  # where a source sheds when it is full; others are never refused
        self._decision_ns = decision_ns
        self.overhead_ns = 0
        self.plans: dict[int, VirtualDeployment] = {}  # by epoch, with which tuples are stamped here
        self._of: dict[CompiledPlan, VirtualDeployment] = {}
        self.committed: VirtualDeployment | None = None
        self.links: dict[int, Link] = {}
        self.promised: dict[str, int] = {}  # by source: heartbeats have said that nothing that comes is older
        self.busy_ns = self.instances = 0
        self._windows = False  # some plan has windows here
        self._due_ns: int | None = None  # the earliest instant at which `_expire` will be called
        self._waking = False
        self._unit: Unit | None = None  # of the running instance
        self._costs: Costs | None = None  # of its plan
        self._chain: tuple[Step, ...] = ()
        self._step: Step | None = None
        self._items: list[Item] = []
        self._failed: dict[int, int] = {}  # slot -> cause
        self._position = self._start_ns = 0
        self._barrier = barrier
        # Outputs that wait for the rest of their batch, by stream, source and origin.
        self._held: dict[tuple[int, int, int], list[tuple[Lineage, Any]]] = {}

    # -- plans

    def prepare(self, plan: core.Plan, calls: Calls, costs: Costs) -> None:
        """Load a plan beside those that run."""
        deployed = VirtualDeployment(plan, self.engine.load(plan, calls), costs)
        self.plans[plan.epoch] = self._of[deployed.loaded] = deployed
        self._windows = self._windows or any(operator.window is not None for operator in plan.operators)

    def commit(self, at_ns: int, epoch: int, told: bool = True) -> None:
        """Admit under that plan from now on, once; what was committed drains. told: write it down."""
        deployed, before = self.plans[epoch], self.committed
        if deployed.state is not State.PREPARED:
            return
        if before is not None:
            inherit_state(deployed.loaded, before.loaded)
            before.state = State.DRAINING
            self.tell(at_ns, before, before.state)
        self.committed = deployed
        sheds = deployed.plan.memory_bytes and any(source.on_full != REFUSE for source in deployed.plan.sources)
        self._memory = Memory(deployed.plan.memory_bytes, self._queued) if sheds else None
        deployed.state = State.COMMITTED
        if told:
            self.tell(at_ns, deployed, deployed.state)
        self._observer.committed(at_ns, self.name, deployed)

    def tell(self, at_ns: int, deployed: VirtualDeployment, state: int) -> None:
        """The PLAN record of a plan's state."""
        plan = deployed.plan
        self.engine.facts.write(PLAN, deployed.loaded.flags, state, 0, 0, 0, at_ns, plan.epoch, last=plan.hash)

    def end(self, at_ns: int) -> None:
        """Nothing is left in the cluster: what was draining has drained."""
        self.refusals.write()
        for deployed in self.plans.values():
            if deployed.state is State.DRAINING:
                self.tell(at_ns, deployed, STATE_DRAINED)

    # -- the engine's commands

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        """Onto the link to that peer."""
        self.links[peer].send(at_ns, loaded, stream, lineage, payload)

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: core.Output, lineage: Lineage, payload: Any) -> None:
        """A result."""
        self._observer.delivered(at_ns, loaded.plan, output, lineage, payload)

    # -- arrivals

    def _queued(self) -> int:
        return self.engine.queued

    def _is_full(self) -> bool:
        return self._memory is not None and self._memory.full()

    def offered(self, at_ns: int, source: str, origin_ns: int) -> core.Source | None:
        """Where a tuple of a source of this node is admitted now. None: it was refused, and a record says so."""
        assert self.committed is not None
        deployed, reason = self.committed, REASON_STOPPED
        spec = deployed.sources.get(source)
        if spec is not None:
            counted, promised_ns = spec.stream in deployed.counted, self.promised.get(source)
            reason = age_refused(spec, counted, at_ns, origin_ns, origin_ns, promised_ns)
        if not reason:
            return spec
        known = [each for each in self.plans.values() if source in each.sources]
        last = max(known, key=lambda each: each.plan.epoch, default=None)
        offered = (0, 0) if last is None else (last.loaded.flags, last.sources[source].id)  # to no plan that was here
        self.refusals.add(at_ns, *offered, reason, at_ns - origin_ns, at_ns - origin_ns)
        self.refusals.settle(at_ns)
        return None

    def admit(self, at_ns: int, source: int, lineage: Lineage, payload: Any, size: int) -> None:
        """A tuple of a source of this node, under the plan that is committed."""
        assert self.committed is not None
        if self._memory is not None:
            self._memory.came(payload)
        self.engine.admit(at_ns, self.committed.loaded, source, lineage, payload, size)
        self.look(at_ns)
        self._wake(at_ns)

    def receive(self, at_ns: int, epoch: int, stream: int, lineage: Lineage, payload: Any) -> None:
        """A tuple or a mark from a peer. Its stamp proves that its plan was decided for: it is committed."""
        deployed = self.plans[epoch]
        if deployed.state is State.PREPARED:
            self.commit(at_ns, epoch)
        self.engine.receive(at_ns, deployed.loaded, stream, lineage, payload)
        self.look(at_ns)
        self._wake(at_ns)

    def beat(self, at_ns: int, loaded: CompiledPlan, source: core.Source, upto: int, first: int) -> None:
        """A source of this node says how far it is: numbers below `upto` were admitted, from `first` on under that
        plan; none that comes is older than its greatest age."""
        oldest_ns = at_ns - source.max_age_ns if source.max_age_ns else NEVER
        self.promised[source.name] = max(oldest_ns, self.promised.get(source.name, oldest_ns))
        self.engine.heartbeat(at_ns, loaded, source.id, self._trial, upto, first, oldest_ns)
        self.look(at_ns)
        self._wake(at_ns)

    # -- what is waited for

    def look(self, at_ns: int) -> None:
        """Whether windows have to be looked at earlier than was known, or than was of interest."""
        if not self._windows:
            return
        due_ns = self.engine.window_due_ns
        if due_ns is None or due_ns > self._observer.until_ns or (self._due_ns is not None and self._due_ns <= due_ns):
            return
        self._due_ns = max(due_ns, at_ns)
        self._events.at(self._due_ns, EXPIRED, self._expire)

    def _expire(self, at_ns: int, _: Any) -> None:
        if self._due_ns is not None and at_ns >= self._due_ns:
            self._due_ns = None
            self.engine.expire(at_ns)
            self.look(at_ns)
            self._wake(at_ns)

    def next_expiry_ns(self) -> int | None:
        """When the engine will next give up a join result that still waits; it does so in the order of arrival."""
        joins = (join for deployed in self.plans.values() for join in deployed.loaded.joins)
        times = [next(iter(join.waiting.values())).expires_ns for join in joins if join.waiting]
        return min(times, default=None)

    def windows(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """How windows ended so far, by operator."""
        for windowed in self.engine.windows.operators:
            if windowed.state.newest is windowed:
                yield windowed.name, windowed.state.counts

    # -- running

    def _wake(self, at_ns: int) -> None:
        if self._unit is None and not self._waking:
            self._waking = True
            self._events.at(at_ns, DISPATCHED, self._dispatch)

    def _dispatch(self, at_ns: int, _: Any) -> None:
        """Everything of this instant is in: go on with the running instance, or choose the next one."""
        self._waking = False
        if self._unit is None:
            job = self.engine.next(at_ns)
        elif self._items and self._position < len(self._chain):
            self._operate(at_ns)
            return
        else:
            job = self._finish(at_ns)
        self.look(at_ns)
        if job is None:
            self._unit = None
        elif self._decision_ns and self.engine.decided:
            self._unit = job.unit
            self.overhead_ns += self._decision_ns
            self._events.at(at_ns + self._decision_ns, DISPATCHED, self._begin, job)
        else:
            self._begin(at_ns, job)

    def _begin(self, at_ns: int, job: Job) -> None:
        self._unit = job.unit
        self._costs = self._of[job.unit.loaded].costs
        self._chain, self._position, self._start_ns = job.unit.chain, 0, at_ns
        if isinstance(job.payload, Rest):
            self._items = job.payload
        else:
            self._items = [(slot, each.lineage, each.payload) for slot, each in enumerate(self.engine.jobs)]
        self._failed = {}
        self.instances += 1
        self._operate(at_ns)

    def _operate(self, at_ns: int) -> None:
        """Run operators up to the next instant that anything else can see: an output, a side input, the end."""
        end_ns, chain = at_ns, self._chain
        while True:
            step = chain[self._position]
            self._position += 1
            end_ns += self._run(step, end_ns)
            if step.exit is not None or not self._items or self._position == len(chain) or chain[self._position].sides:
                break
        self._step = step
        self.busy_ns += end_ns - at_ns
        self._events.at(end_ns, ENDED, self._ended)

    def _run(self, step: Step, start_ns: int) -> int:
        """One operator on all items of the instance, beginning at start_ns; its cost in ns."""
        unit, costs = self._unit, self._costs
        assert unit is not None and costs is not None
        made: list[Item] = []
        cost_ns = 0
        for slot, lineage, payload in self._items:
            if slot in self._failed:
                continue
            run = step
            if step.late is not None:
                chosen = self.engine.judge(start_ns + cost_ns, unit, step, lineage, slot)
                if chosen is None:
                    continue
                run = chosen
            cost_ns += costs.cost_ns(step.operator_id if run is step else -step.operator_id, lineage)
            try:
                got = self._apply(run, lineage, payload, self._start_ns, unit.deadline_ns)
            except RAISED as error:  # the author's code; it costs its tuple only
                self._fails(step, slot, error)
                got = []
            if step.police is not None:
                ended_ns = start_ns + cost_ns
                got = got[: self.engine.police(ended_ns, unit, step, [each for each, _ in got], slot)]
            if len(made) >= MOST_OUTPUTS and sum(each[0] == slot for each in made) + len(got) > MOST_OUTPUTS:
                self._fails(step, slot, OutputsError(f"more than {MOST_OUTPUTS} results of one instance"))
            for each, value in got:
                made.append((slot, each, value))
        self._items = [item for item in made if item[0] not in self._failed] if self._failed else made
        return cost_ns

    def _fails(self, step: Step, slot: int, error: BaseException) -> None:
        self._failed[slot] = cause_of(error)
        assert self._unit is not None
        operator = self._unit.loaded.plan.operator_by_id[step.operator_id]
        self._observer.failed(self.name, operator.name, error)

    def _ended(self, at_ns: int, _: Any) -> None:
        """An operator has ended: its outputs are inserted now."""
        assert self._step is not None
        exit_ = self._step.exit
        if exit_ is not None:
            for slot, lineage, payload in self._items:
                if self._barrier:
                    self._hold(exit_, lineage, payload)
                else:
                    self.engine.emit(at_ns, exit_, lineage, payload, slot)
            if self._barrier:
                self._release_batch(at_ns, exit_.route.stream)
        self._waking = True
        self._events.at(at_ns, DISPATCHED, self._dispatch)

    def _finish(self, at_ns: int) -> Job | None:
        engine, start_ns = self.engine, self._start_ns
        if engine.batching:
            for slot in sorted(self._failed, reverse=True):
                engine.fail(start_ns, at_ns, self._failed[slot], slot)
        elif self._failed:
            return engine.fail(start_ns, at_ns, self._failed[0])
        elif self._unit is not None and self._unit.rest is not None and self._items:
            engine.suspend(Rest(self._items))
        return engine.step(start_ns, at_ns)

    # -- the barrier of [P] 4.1

    def _hold(self, exit_: Exit, lineage: Lineage, payload: Any) -> None:
        self.engine.count_output(exit_)
        key = (exit_.route.stream, lineage[0], lineage[4])
        self._held.setdefault(key, []).append((lineage, payload))

    def _release_batch(self, at_ns: int, stream: int) -> None:
        """Hand on what was held back, once no tuple of the same burst is left in the unit's queue."""
        job = self.engine.job
        assert job is not None
        source, origin_ns = job.lineage[0], job.lineage[4]
        if any(other.lineage[0] == source and other.lineage[4] == origin_ns for other in job.unit.queue):
            return
        for lineage, payload in self._held.pop((stream, source, origin_ns), ()):
            self.engine.receive(at_ns, job.unit.loaded, stream, lineage, payload)
