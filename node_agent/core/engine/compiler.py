"""Compiles a plan for the engine: units with their chains, and for every stream the route of what it triggers."""

from typing import cast

from node_agent.core import expiry
from node_agent.core import plan as plans
from node_agent.core.fusion import Fusion
from node_agent.core.incremental import Incremental, finish
from node_agent.core.job_queues import KeyQueue, in_order
from node_agent.core.model import ALWAYS_NS, Calls, CompiledPlan, Exit, FusionHead, Join, Route, Step, Unit
from node_agent.core.policies.policy_parts import Policy
from node_agent.core.shedding import install, source_admission
from node_agent.core.shedding.memory_limit import FRONT, QueueLimit
from node_agent.core.shedding.policing import selectivity_police
from node_agent.core.windows.results import Collecting
from node_agent.core.windows.window_operator import WindowOperator
from protos.records import PLAN_EPOCH_MASK


def compile_plan(plan: plans.Plan, calls: Calls, policy: Policy) -> CompiledPlan:
    """The plan, ready to run under that policy. Raises KeyError where a call or a stream is missing."""
    return finish(compiling(plan, calls, policy))


def compiling(plan: plans.Plan, calls: Calls, policy: Policy) -> Incremental[CompiledPlan]:
    """`compile_plan`, a task unit at a time."""
    loaded = CompiledPlan(plan, plan.epoch & PLAN_EPOCH_MASK)
    loaded.routes = {stream.id: Route(loaded, stream) for stream in plan.streams}
    steps: dict[int, Step] = {}
    for spec in plan.units:
        for operator_id in spec.operators:
            call, plain = calls[operator_id]
            steps[operator_id] = step = Step(plan.operator_by_id[operator_id], call, plain)
            if plan.operator_by_id[operator_id].window is not None:
                collecting = cast(Collecting, call())
                step.collects = WindowOperator(loaded, plan.operator_by_id[operator_id], collecting)
                loaded.windows.append(step.collects)
            police = selectivity_police(plan.operator_by_id[operator_id])
            if police is not None:
                step.police_by(police)
        expiry.wire(plan, spec, steps, calls)
        _add_unit(loaded, spec, [steps[each] for each in spec.operators], policy)
        yield
    yield from _connect(loaded, steps)
    install.install_shedders(loaded)
    loaded.source_routes = {source.id: loaded.routes[source.stream] for source in plan.sources}
    for source in plan.sources:
        source_admission.install_admission(source, loaded.source_routes[source.id])
        yield
    return loaded


def _add_unit(loaded: CompiledPlan, spec: plans.Unit, steps: list[Step], policy: Policy) -> None:
    plan = loaded.plan
    for index, stream in enumerate(spec.exits):
        producer = next(step for step in steps if plan.operator_by_id[step.operator_id].output == stream)
        producer.exit = Exit(index, loaded.routes[stream], producer.operator_id)
    rest: Unit | None = None
    punctuated: tuple[Exit, ...] = ()
    pieces = [(step,) for step in steps] if policy.yields else [tuple(steps)]
    for chain in reversed(pieces):
        unit = Unit(spec, chain, loaded.flags, loaded, in_order(), None if policy.key is None else KeyQueue())
        punctuated = tuple(each for each in unit.exits if each.route.marked) + punctuated
        unit.offset_ns = policy.offset(spec) if policy.offset else 0
        unit.rule = policy.rule(spec) if policy.rule else None
        unit.punctuated_exits, unit.rest = punctuated, rest
        if any(each.route.counted for each in punctuated):
            unit.inputs = 1  # a tuple comes by one way to its windows: what is absent on one is on all
        unit.collects = chain[0].collects
        unit.has_end_hooks = bool(punctuated) or unit.collects is not None
        loaded.units.append(unit)
        rest = unit
    if spec.queue_bytes and rest is not None:
        rest.gate = QueueLimit(spec.queue_bytes, spec.on_full == FRONT)
    if steps[0].join:
        assert rest is not None
        head = plan.operator_by_id[steps[0].operator_id]
        join = Join(rest, len(head.inputs))
        if head.sync is None:
            loaded.joins.append(join)
        else:
            loaded.joins.append(FusionHead(rest, Fusion(head.sync, len(head.inputs), join.wait_ns)))


def _connect(loaded: CompiledPlan, steps: dict[int, Step]) -> Incremental[None]:
    plan, routes = loaded.plan, loaded.routes
    joins = {join.unit.spec.id: join for join in loaded.joins}
    firsts = {unit.id: unit for unit in loaded.units}  # of a unit's pieces the first was added last
    for spec in plan.units:
        head = plan.operator_by_id[spec.operators[0]]
        first = firsts[spec.id]
        for port, stream in enumerate(head.inputs):
            if head.join:
                routes[stream].joins += ((joins[spec.id], port),)
            else:
                routes[stream].units += (first,)
        yield
    for operator in plan.operators:
        for slot, (_, stream) in zip(steps[operator.id].sides, operator.sides, strict=True):
            routes[stream].sides += (slot,)
    yield
    for stream, peer in plan.sends:
        routes[stream].sends += (peer,)
    for output in plan.outputs:
        routes[output.stream].outputs += (output,)
    for number, route in enumerate(routes.values()):
        route.settle()
        if not number % 16:
            yield
    for unit in loaded.units:
        for exit_ in unit.exits:
            exit_.outdated_ns = expiry.outdated_ns(plan.operator_by_id[exit_.operator_id], exit_.route)
    yield from _keep_what_is_read_beside(loaded)


def _keep_what_is_read_beside(loaded: CompiledPlan) -> Incremental[None]:
    """Keep units useful at any age that feed a side input here or lead to no output, as no deadline bounds their use.
    The units that lead to them on this node are kept as well."""
    before: dict[Unit, list[Unit]] = {}
    waiting: list[Unit] = []
    for unit in loaded.units:
        routes = [each.route for each in unit.exits]
        for route in routes:
            for after in (*route.units, *(join.unit for join, _ in route.joins)):
                before.setdefault(after, []).append(unit)
        if not unit.useful_ns or any(route.sides for route in routes):
            waiting.append(unit)
        yield
    while waiting:
        unit = waiting.pop()
        if unit.useful_ns != ALWAYS_NS:
            unit.useful_ns = ALWAYS_NS
            waiting += before.get(unit, ())
