"""The plans of this node: prepared, committed, draining; which one a tuple runs under.

A cluster runs one plan at a time, of one or several queries: committing a plan makes the one before it drain, under
any names of their queries. A tuple from a peer that is stamped with a plan which is only prepared here proves that the
deployment was decided: it is committed at once.
"""

import traceback
from collections.abc import Callable
from pathlib import Path

from node_agent.core import plan as core
from node_agent.core.engine.compiler import compiling
from node_agent.core.engine.engine import Commands, Engine, Settings
from node_agent.core.engine.handover import inherit_state, paired
from node_agent.core.incremental import Incremental, finish
from node_agent.core.model import CompiledPlan, Job, Step
from node_agent.core.policies import Policy, policy
from node_agent.core.shedding.memory_limit import JOB_BYTES
from node_agent.core.shedding.source_admission import inherit_admission
from node_agent.host.system_disk import SYSTEM_DISK
from node_agent.link.limits import MAX_FRAME_BYTES, MESSAGE_HEAD_BYTES, TUPLE_FIELDS_BYTES
from node_agent.operators.hop import UnencodableError
from node_agent.operators.registry import Registry
from node_agent.operators.source_call import SourceCall
from node_agent.ports import Disk
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments import loading
from node_agent.runtime.deployments.announcements import EventAnnouncer
from node_agent.runtime.deployments.cost_meter import CALL, Ages, Cost, Meter
from node_agent.runtime.deployments.counters import Counts
from node_agent.runtime.deployments.deployed_plan import (
    COMMITTED,
    DRAINING,
    ENDED,
    NONE,
    PREPARED,
    Deployed,
    EngineSlot,
)
from node_agent.runtime.executor import Executor
from node_agent.wire.plan_error import PlanError
from node_agent.wire.punctuation_frames import feeders
from protos import records

MOST_PLANS = 8
LARGE_HEAD_BYTES = MESSAGE_HEAD_BYTES + TUPLE_FIELDS_BYTES  # of a large tuple beside its payload, at most
MOST_BYTES = 1 << 40  # that plans may let queues hold: compiled code multiplies by it
LEAST_JOBS = 1024  # that a lane may queue; at most, what would fill the node's memory without any payload
FACT_STATES = {
    PREPARED: records.STATE_PREPARED,
    COMMITTED: records.STATE_COMMITTED,
    DRAINING: records.STATE_DRAINING,
}

Policies = Callable[[core.Plan], Policy]  # which one a plan runs under; raises ValueError
Changed = Callable[[Deployed, str], None]  # the runtime changed a plan's state by itself, and why


class Plans:
    """All that is loaded. `commands` is what the engines send and deliver through."""

    def __init__(self, shared: Shared, registry: Registry, commands: Commands, meter: Meter, changed: Changed) -> None:
        self.shared, self.registry, self.commands, self.meter = shared, registry, commands, meter
        self.changed = changed
        self.engine_slots: list[EngineSlot] = []
        self.by_hash: dict[str, Deployed] = {}
        self.by_stamp: dict[int, Deployed] = {}  # by the first eight bytes of the hash, as tuples carry it
        self.by_loaded: dict[CompiledPlan, Deployed] = {}
        self.emulating = False  # every instance is told to the meter
        self.large_bytes = 0  # that the largest tuple takes which any of them declares; 0: none is larger than a frame
        self.limit_bytes = loading.DEFAULT_BYTES  # of queued payloads of all plans: the most that one of them allows
        self.memory_full: Callable[[], bool] = _never
        self.policies: Policies = installed
        self.on_plans_changed: Callable[[], None] = (
            _ignore  # called when a plan's state or the set of plans has changed
        )
        self._sources: dict[str, tuple[Deployed, core.Source]] = {}  # where tuples are admitted now, by name
        self.windows: dict[int, int] = {}  # by source: above all numbers of windows, in all lanes and plans
        self.announcer = EventAnnouncer(shared)
        self.counts = Counts(shared)

    # -- what control asks; each returns (accepted, why)

    def preparing(
        self, directory: Path, plan_hash: str, epoch: int, core_number: int = 0, disk: Disk = SYSTEM_DISK
    ) -> Incremental[tuple[bool, str]]:
        """Load the plan file of that hash for that core, in slices."""
        if plan_hash in self.by_hash:
            return True, ""
        if len(self.by_hash) >= MOST_PLANS:
            return False, f"{MOST_PLANS} plans are loaded on {self.shared.name}: stop one of them first"
        try:
            plan = yield from loading.read(directory, plan_hash, epoch, core_number, self.shared.name, disk)
        except PlanError as error:
            return False, str(error)
        try:
            yield from self.loading(plan, plan_hash)
        except (ValueError, KeyError) as error:
            return False, f"node {self.shared.name} cannot run this plan: {error}"
        return True, ""

    def load(self, plan: core.Plan, plan_hash: str) -> Deployed:
        """`loading`, at once."""
        return finish(self.loading(plan, plan_hash))

    def loading(self, plan: core.Plan, plan_hash: str) -> Incremental[Deployed]:
        """Make the operators that the committed plan does not have, compile the plan. Raises PlanError."""
        if plan.hash in self.by_stamp:
            raise PlanError("same_stamp", "another plan has the same first eight bytes of its hash")
        base = self.committed
        code = yield from loading.make(
            plan, self.registry, base.loaded if base else None, self.shared.large, _pulls(base)
        )
        engine_slot = self._engine_slot(plan)
        loaded = yield from compiling(plan, code.calls, engine_slot.engine.policy)
        costs = {}
        for step in loaded.steps:
            name = plan.operator_by_id[step.operator_id].name
            costs[step] = Cost(step.operator_id, name, plan.emulate_cost_ns)
            if step.late is not None:
                step.late.now = self.shared.now_ns
            yield
        pairs = paired(loaded, base.loaded, code.inherits) if base is not None and self._is_here(base) else None
        yield
        engine_slot.engine.add(loaded)
        if engine_slot not in self.engine_slots:
            self.engine_slots.append(engine_slot)
        for variant in loaded.variants:
            name = plan.operator_by_id[variant.operator_id].name
            costs[variant] = Cost(variant.operator_id, name, plan.emulate_cost_ns, degraded=True)
        self.meter.costs.update(costs)
        ages = {one.id: Ages(one.id, one.name) for one in plan.sources if not one.window}
        calls = {one.id: Cost(one.id, one.name, of=CALL) for one in plan.sources if one.id in code.pulls}
        costed = list(costs.values())
        deployed = Deployed(plan_hash, plan, engine_slot, loaded, code.codecs, costed, calls=calls, ages=ages)
        deployed.counted = frozenset(stream.id for stream in plan.streams if stream.counted)
        deployed.feeders = feeders(plan)
        deployed.pulls = code.pulls
        if pairs is not None and base is not None and self._is_here(base):  # it may have gone while this one was loaded
            deployed.base, deployed.inherits = base, pairs
        idle = not self.carries_tuples
        self.by_hash[plan_hash] = self.by_stamp[plan.hash] = self.by_loaded[loaded] = deployed
        self._look_up()
        self._fact(deployed)
        if idle:
            self.shared.machine.settle()
        return deployed

    def commit(self, plan_hash: str, epoch: int = 0, why: str = "") -> tuple[bool, str]:
        """Admit under it from now on. epoch: of the last decision for it, if not its own; why: where the runtime
        decided it by itself."""
        deployed = self.by_hash.get(plan_hash)
        if deployed is None:
            return False, f"plan {plan_hash[:8]} is not prepared on {self.shared.name}"
        deployed.again = max(deployed.again, epoch)
        if deployed.state != PREPARED:
            return True, ""
        before = self.committed
        if before is not None and before.decided > deployed.decided:
            return self._too_late(deployed, before, why)
        if before is not None:
            inherit_state(deployed.loaded, before.loaded, deployed.inherits if deployed.base is before else None)
            before.superseded = True
            self._set(before, DRAINING)
            self.changed(before, f"plan {plan_hash[:8]} was committed")
        elif (stopped := self._draining()) is not None:  # its tuples are still under way, and count
            inherit_admission(deployed.loaded, stopped.loaded)
        if deployed.plan.cpu >= 0 and not self.shared.machine.pin(deployed.plan.cpu):
            self.shared.note(
                "cpu_not_pinned", f"core {deployed.plan.cpu} does not exist here: the runtime is not pinned"
            )
        self._set(deployed, COMMITTED)
        if why:
            self.changed(deployed, why)
        return True, ""

    def resumed(self, plan_hash: str) -> None:
        """A plan that ran here before this runtime began: its operators began without the state that they had."""
        deployed = self.by_hash[plan_hash]
        for operator in deployed.plan.operators:
            if operator.window is not None or self.registry.keeps_state(operator.run):
                self.shared.facts.write(
                    records.RESET, deployed.loaded.flags, operator.id, 0, 0, 0, self.shared.now_ns()
                )
                text = f"operator {operator.name} of plan {plan_hash[:8]} begins anew: its state went with its runtime"
                self.shared.note(f"state_lost.{operator.name}", text, event="state_lost", operator=operator.name)

    def _too_late(self, deployed: Deployed, newest: Deployed, why: str) -> tuple[bool, str]:
        """A later plan is committed already: what is under way of this one runs, and it drains."""
        self._set(deployed, COMMITTED)
        if why:
            self.changed(deployed, why)
        self._set(deployed, DRAINING)
        self.changed(deployed, f"plan {newest.hash[:8]}, which is later, is committed")
        return True, ""

    def abort(self, plan_hash: str) -> tuple[bool, str]:
        """Forget a prepared plan."""
        deployed = self.by_hash.get(plan_hash)
        if deployed is None:
            return True, ""
        if deployed.state != PREPARED:
            return False, f"plan {plan_hash[:8]} is committed on {self.shared.name}: stop it instead"
        self.unload(deployed, self.shared.now_ns(), records.STATE_ENDED)
        return True, ""

    def drain(self, plan_hash: str) -> tuple[bool, str]:
        """Admit nothing more under it."""
        deployed = self.by_hash.get(plan_hash)
        if deployed is not None and deployed.state in {PREPARED, COMMITTED}:
            self._set(deployed, DRAINING)
        return True, ""

    def state(self, plan_hash: str) -> int:
        """PlanState; NONE where it is not loaded."""
        deployed = self.by_hash.get(plan_hash)
        return NONE if deployed is None else deployed.state

    @property
    def committed(self) -> Deployed | None:
        """The plan that admits."""
        return next((each for each in self.by_hash.values() if each.state == COMMITTED), None)

    def _draining(self) -> Deployed | None:
        """The latest plan that drains."""
        found = [each for each in self.by_hash.values() if each.state == DRAINING]
        return max(found, key=lambda each: each.decided, default=None)

    @property
    def carries_tuples(self) -> bool:
        """Whether tuples may be on their way under some plan."""
        return any(each.state in {COMMITTED, DRAINING} for each in self.by_hash.values())

    # -- what tuples ask

    def source(self, name: str) -> tuple[Deployed, core.Source] | None:
        """Where tuples of that source are admitted now."""
        return self._sources.get(name)

    def output(self, name: str) -> tuple[Deployed, core.Output] | None:
        """Which result a sink asks for: of a committed plan, else of one that drains or is prepared."""
        found = [
            (deployed.state != COMMITTED, -deployed.plan.epoch, deployed, output)
            for deployed in self.by_hash.values()
            for output in deployed.plan.outputs
            if output.name == name
        ]
        return min(found, key=lambda each: each[:2])[2:] if found else None

    def stamped(self, stamp: int) -> Deployed | None:
        """The plan that a peer's tuple carries."""
        return self.by_stamp.get(stamp)

    def proven(self, deployed: Deployed) -> None:
        """A peer that may send under this plan has sent: the decision is made, a plan that is prepared is committed."""
        if deployed.state == PREPARED:
            self.commit(deployed.hash, why="a tuple stamped with it came from a peer")

    # -- the end of plans

    def unload_drained(self, at_ns: int) -> bool:
        """Forget plans that have drained; whether there were any."""
        before = len(self.by_hash)
        for deployed in list(self.by_hash.values()):
            if deployed.state == DRAINING and deployed.drained(at_ns):
                self.unload(deployed, at_ns, records.STATE_DRAINED)
                deployed.state = ENDED
                self.changed(deployed, "it has drained")
        return len(self.by_hash) < before

    def unload(self, deployed: Deployed, at_ns: int, state: int) -> None:
        """Forget a plan. What is queued is lost (stopped). state: for the PLAN record."""
        self.announcer.policed_of(deployed)
        self.announcer.spoilt(self.engine_slots)
        self.shared.refusals.write()
        engine_slot = deployed.engine_slot
        while engine_slot.parked is not None and engine_slot.parked.unit.loaded is deployed.loaded:
            engine_slot.parked = self._give_up(engine_slot.engine, at_ns)
        engine_slot.engine.unload(deployed.loaded, at_ns)
        self.counts.update(self.engine_slots)
        for step in (*deployed.loaded.steps, *deployed.loaded.variants):
            del self.meter.costs[step]
        for other in self.by_hash.values():
            if other.base is deployed:
                other.base, other.inherits = None, ()
        del self.by_hash[deployed.hash], self.by_stamp[deployed.plan.hash], self.by_loaded[deployed.loaded]
        if not engine_slot.engine.loaded:
            self.engine_slots.remove(engine_slot)
        self._look_up()
        self._fact(deployed, state)
        deployed.loaded.release_resources()

    def count_policed(self, at_ns: int) -> None:
        """Bring the counters of what was shed up to date, and say what there is to say."""
        self.counts.update(self.engine_slots)
        self.announcer.policed(at_ns, self.by_hash.values())
        self.announcer.shedding(at_ns)
        self.announcer.spoilt(self.engine_slots)

    # -- inside

    def _is_here(self, deployed: Deployed) -> bool:
        return self.by_hash.get(deployed.hash) is deployed

    def _give_up(self, engine: Engine, at_ns: int) -> Job | None:
        """End the chosen instance as lost; returns the next one that this chose."""
        if not engine.batching:
            return engine.fail(at_ns, at_ns, records.CAUSE_STOPPED)
        for slot in reversed(range(len(engine.jobs))):
            engine.fail(at_ns, at_ns, records.CAUSE_STOPPED, slot)
        return engine.step(at_ns, at_ns)

    def _engine_slot(self, plan: core.Plan) -> EngineSlot:
        """The lane for that plan; a new one is not among `engine_slots` yet."""
        key = (plan.policy, plan.largest_batch, plan.parameters)
        for engine_slot in self.engine_slots:
            if engine_slot.policy == key:
                return engine_slot
        chosen = self.policies(plan)
        settings = Settings(self.shared.lineage_epoch, self.windows, memory_full=self.memory_full)
        engine = Engine(chosen, self.shared.facts, self.commands, settings)
        return EngineSlot(key, engine, Executor(engine, self.shared.now_ns, failed=self._failed))

    def _look_up(self) -> None:
        """Rebuilds the lookup tables after the set of plans or a plan's state changed."""
        plans = self.by_hash.values()
        self.emulating = self.meter.always or any(cost.emulate_ns > 0 for cost in self.meter.costs.values())
        largest = max((stream.max_bytes for each in plans for stream in each.plan.streams), default=0)
        self.large_bytes = largest + LARGE_HEAD_BYTES if largest > MAX_FRAME_BYTES - LARGE_HEAD_BYTES else 0
        most = max((each.plan.memory_bytes for each in plans), default=0)
        self.limit_bytes = min(most, MOST_BYTES) or loading.DEFAULT_BYTES
        for engine_slot in self.engine_slots:
            engine_slot.engine.limit_to(max(LEAST_JOBS, self.limit_bytes // JOB_BYTES))
        self._sources = {
            source.name: (each, source)
            for each in plans
            if each.state == COMMITTED
            for source in each.plan.sources
            if not source.window and source.pull is None  # no client feeds windows, nor what is made here
        }
        self.on_plans_changed()

    def _set(self, deployed: Deployed, state: int) -> None:
        deployed.state = state
        if state == DRAINING:
            for windowed in deployed.loaded.windows:
                windowed.drains()
        self._look_up()
        deployed.arrived_ns = max(deployed.arrived_ns, self.shared.now_ns())
        self._fact(deployed)

    def _fact(self, deployed: Deployed, state: int = 0) -> None:
        plan = deployed.plan
        self.shared.facts.write(
            records.PLAN, deployed.loaded.flags, state or FACT_STATES[deployed.state], 0, 0, 0,
            self.shared.now_ns(), plan.epoch, last=plan.hash,
        )  # fmt: skip

    def _failed(self, step: Step, error: BaseException) -> None:
        name = self.meter.costs[step].name
        if isinstance(error, UnencodableError):
            self.shared.note("payloads_unencodable", f"operator {name}: {error}; its tuple is lost")
            return
        self.shared.counters["operator_errors"] += 1
        text = "".join(traceback.format_exception(error, limit=-8)).rstrip()
        message = f"operator {name} raised; its tuple is lost\n{text}"
        self.shared.note(f"operator_errors.{name}", message, event="operator_error", operator=name)


def installed(plan: core.Plan) -> Policy:
    """The policy that the plan names. Raises ValueError."""
    return policy(plan.policy, plan.largest_batch, plan.parameters)


def _pulls(base: Deployed | None) -> dict[tuple[str, str, str], SourceCall]:
    """What sources of a plan call, by source, what is run, and its parameters."""
    sources = {source.id: source for source in base.plan.sources} if base is not None else {}
    return {
        (sources[number].name, pull.run, pull.with_json): call
        for number, call in (base.pulls if base is not None else {}).items()
        if (pull := sources[number].pull) is not None
    }


def _never() -> bool:
    return False


def _ignore() -> None:
    """No one is told."""
