"""plan.LocalPlan (protobuf) -> core Plan. What comes from the wire is checked here, once, with limits."""

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TypeVar

from node_agent.core import plan as core
from node_agent.core.incremental import Incremental, finish
from node_agent.core.policies import POLICIES, policy
from node_agent.link.limits import MAX_MESSAGE_BYTES
from node_agent.wire import overload_message
from node_agent.wire.plan_error import PlanError
from protos import connectors, plan_pb2
from protos.policies import refused

FORMAT = 1
ID_LIMIT = 0xFFFF  # ids are 16 bits in trace records; 0xFFFF means none
MOST_EXITS = 4
LONGEST_NS = 10**18
MOST_PACES = 16  # of one source
MOST_PAIRS = 64  # of inputs and results, of one operator
MOST_SPANS = 512
MOST_TUPLES = 1 << 16  # that policing looks back on
MOST_INPUTS = 1_000_000
MOST_PARTS = 10**9  # of a nanosecond
LARGEST = (1 << 63) - 1
MOST_CURVES = 16  # of one unit
MOST_K = 1_000_000
MOST_FUSED = 1024  # tuples of an input that wait to be fused
LEAST_BEAT_NS = 1_000_000
LEAST_EVERY_NS, MOST_EVERY_NS = 1_000_000, 86_400_000_000_000
LONGEST_VERSION = 100
CODE = re.compile("[0-9a-f]{64}")


Message = TypeVar("Message")
Made = TypeVar("Made")


def core_plan(message: plan_pb2.LocalPlan, plan_hash: int, epoch: int) -> core.Plan:
    """The local plan in the core's terms. Raises PlanError where it breaks a limit or refers to what is not there."""
    return finish(reading(message, plan_hash, epoch))


def reading(message: plan_pb2.LocalPlan, plan_hash: int, epoch: int) -> Incremental[core.Plan]:
    """`core_plan`, an operator or a unit at a time."""
    if message.version != FORMAT:
        raise PlanError(
            "other_version",
            f"local plan of version {message.version}, this agent knows {FORMAT}: install the same release",
        )
    if reason := refused(message.policy.name):
        raise PlanError("policy_never_live", reason, subject=message.policy.name)
    if message.policy.name not in POLICIES:
        raise PlanError(
            "unknown_policy",
            f"unknown policy {message.policy.name!r}: this agent has {', '.join(sorted(POLICIES))}",
            subject=message.policy.name,
        )
    try:
        policy(message.policy.name, message.policy.largest_batch)
    except ValueError as error:
        raise PlanError(
            "not_in_batches", f"policy {message.policy.name!r} with batches: {error}", subject=message.policy.name
        ) from None
    plan = core.Plan(
        query=message.query,
        node=message.node,
        index=message.index,
        hash=plan_hash,
        epoch=epoch,
        policy=message.policy.name,
        largest_batch=message.policy.largest_batch,
        streams=(yield from _each(_stream, message.streams)),
        sources=(yield from _each(_source, message.sources)),
        operators=(yield from _each(_operator, message.operators)),
        units=(yield from _each(_unit, message.units)),
        outputs=tuple(_output(o) for o in message.outputs),
        sends=tuple((s.stream, s.peer) for s in message.sends),
        peers=tuple(core.Peer(p.index, p.name, p.latency_ns, p.bandwidth_bps) for p in message.peers),
        memory_bytes=message.memory_bytes,
        emulate_cost_ns=message.emulate_cost_ns,
        cpu=message.cpu,
        parameters=_parameters(message.policy),
        sheddings=(yield from _each(overload_message.shedding, message.sheddings)),
        installed=tuple(_installed(each) for each in message.installed),
    )
    yield from _check(plan)
    overload_message.check(plan)
    return plan


def _each(make: Callable[[Message], Made], messages: Iterable[Message]) -> Incremental[tuple[Made, ...]]:
    made = []
    for message in messages:
        made.append(make(message))
        yield
    return tuple(made)


def _stream(s: plan_pb2.Stream) -> core.Stream:
    if s.max_bytes > MAX_MESSAGE_BYTES:
        text = f"stream {s.name} takes payloads of {s.max_bytes} bytes: at most {MAX_MESSAGE_BYTES} are carried"
        raise PlanError("out_of_range", text, subject=s.name)
    return core.Stream(
        s.id, s.name, s.codec, s.marked, s.deadline_ns, tuple(s.producers), s.last_deadline_ns, s.counted, s.max_bytes
    )


def _parameters(given: plan_pb2.Policy) -> core.Parameters:
    what = f"policy {given.name}"
    _duration(what, "phi", given.phi_ns)
    _duration(what, "phi of hops", given.hop_phi_ns)
    found = core.Parameters(
        phi_ns=given.phi_ns,
        hop_phi_ns=given.hop_phi_ns,
        share_ppm=given.share_ppm or core.DEFAULTS.share_ppm,
        first_k=given.first_k or core.DEFAULTS.first_k,
    )
    if found.share_ppm >= 1_000_000 or found.first_k > MOST_K:
        raise PlanError(
            "out_of_range", f"{what}: share_ppm must be below 1000000 and first_k at most {MOST_K}", subject=what
        )
    return found


def _unit(u: plan_pb2.Unit) -> core.Unit:
    what = f"unit {u.id}"
    if len(u.service) > MOST_CURVES or len(u.arrivals) > MOST_CURVES:
        raise PlanError("too_many", f"{what} has more than {MOST_CURVES} service or arrival curves", subject=what)
    for service in u.service:
        _duration(what, "latency of its service", service.latency_ns)
        _duration(what, "period of its service", service.period_ns)
        if service.period_ns and not 0 < service.tuples <= MOST_INPUTS:
            raise PlanError(
                "out_of_range", f"{what}: a service with a period needs 1 to {MOST_INPUTS} tuples", subject=what
            )
        if service.period_ns and service.first:
            raise PlanError(
                "idle_service_with_period", f"{what}: a service for what finds it idle has no period", subject=what
            )
    if u.service and all(service.first for service in u.service):
        raise PlanError("no_service", f"{what} has no service for tuples that do not find it idle", subject=what)
    for arrivals in u.arrivals:
        _duration(what, "arrivals ahead", arrivals.ahead_ns)
        if not 0 < arrivals.period_ns <= LONGEST_NS:
            raise PlanError(
                "out_of_range", f"{what}: the period of its arrivals must be between 1 and {LONGEST_NS}", subject=what
            )
    return core.Unit(
        id=u.id,
        operators=tuple(u.operators),
        sub_deadline_ns=u.sub_deadline_ns,
        deadline_ns=u.deadline_ns,
        exits=tuple(u.exits),
        service=tuple(core.Service(s.latency_ns, s.period_ns, s.tuples or 1, s.first) for s in u.service),
        arrivals=tuple(core.Arrivals(each.ahead_ns, each.period_ns) for each in u.arrivals),
        last_deadline_ns=u.last_deadline_ns,
        queue_bytes=u.queue_bytes,
        on_full=overload_message.on_full(what, u.on_full, refuses=False),
    )


def _source(s: plan_pb2.Source) -> core.Source:
    if s.HasField("connector"):
        _connector(f"source {s.name}", s.connector, reads=True)
        if s.window or s.HasField("pull"):
            text = f"source {s.name} has a connector, and its tuples are made here"
            raise PlanError("made_here", text, subject=s.name)
    return core.Source(
        s.id,
        s.name,
        s.stream,
        s.max_age_ns,
        tuple(core.Pace(p.tuples, p.interval, p.slack, p.parts, p.most) for p in s.paces),
        tuple((span.tuples, span.span_ns) for span in s.spans),
        s.window,
        overload_message.limit(s.name, s.limit) if s.HasField("limit") else None,
        overload_message.on_full(f"source {s.name}", s.on_full, refuses=True),
        s.beat_ns,
        _pull(s) if s.HasField("pull") else None,
    )


def _output(o: plan_pb2.Output) -> core.Output:
    if o.HasField("connector"):
        _connector(f"output {o.name}", o.connector, reads=False)
    return core.Output(o.id, o.name, o.stream, o.deadline_ns)


def _connector(what: str, given: plan_pb2.Connector, reads: bool) -> None:
    """It is a client's business: the core knows nothing of it."""
    texts = (given.kind, given.topic, given.encoding, given.schema, given.stamp)
    if given.kind not in connectors.KINDS:
        known = ", ".join(connectors.KINDS)
        text = f"{what}: connector {given.kind[:40]!r}, this agent has {known}"
        raise PlanError("unknown_connector", text, subject=what)
    why = connectors.wrong(given.kind, given.url, reads)
    if not why and given.kind == "zenoh":
        why = connectors.wrong_key(given.topic, reads)
    if not why and max(len(each.encode()) for each in texts) > connectors.MOST_BYTES:
        why = f"has a text of more than {connectors.MOST_BYTES} bytes"
    if not why and given.qos > connectors.MOST_QOS:
        why = f"has qos {given.qos}, at most {connectors.MOST_QOS}"
    if why:
        raise PlanError("not_connectable", f"{what}: the place of its connector {why}", subject=what)


def _pull(s: plan_pb2.Source) -> core.Pull:
    """How its tuples are made here."""
    what, given = f"source {s.name}", s.pull
    if s.window or not (given.every_ns or given.run):
        raise PlanError("not_made_here", f"{what}: nothing says what makes its tuples here", subject=what)
    if given.every_ns and not LEAST_EVERY_NS <= given.every_ns <= MOST_EVERY_NS:
        raise PlanError(
            "out_of_range",
            f"{what}: a tick every {given.every_ns} ns; {LEAST_EVERY_NS} to {MOST_EVERY_NS} ns",
            subject=what,
        )
    if not 0 <= given.offset_ns < max(1, given.every_ns):
        raise PlanError(
            "out_of_range", f"{what}: ticks {given.offset_ns} ns beyond multiples of {given.every_ns}", subject=what
        )
    return core.Pull(given.every_ns, given.offset_ns, given.run, given.with_json or "{}")


def _operator(o: plan_pb2.Operator) -> core.Operator:
    return core.Operator(
        id=o.id,
        name=o.name,
        run=o.run,
        inputs=tuple(o.inputs),
        output=o.output,
        cost_ns=o.cost_ns,
        sub_deadline_ns=o.sub_deadline_ns,
        sides=tuple((side.port, side.stream) for side in o.sides),
        side_rules=_side_rules(o),
        join=o.join,
        hang_ns=o.hang_ns or 1_000_000_000,
        with_json=o.with_json or "{}",
        at_most=tuple((pair.inputs, pair.results) for pair in o.at_most),
        fresh=o.fresh,
        called=tuple(o.called),
        window=overload_message.window(o.name, o.window) if o.HasField("window") else None,
        closes=o.closes,
        late=overload_message.late(o.name, o.late) if o.HasField("late") else None,
        sync=_sync(o.name, o.sync) if o.HasField("sync") else None,
    )


def _side_rules(o: plan_pb2.Operator) -> tuple[core.SideRule, ...]:
    """None where values of any age count and no tuple needs one."""
    for side in o.sides:
        _duration(f"operator {o.name}", f"the age of its side input {side.port}", side.max_age_ns)
    found = tuple(core.SideRule(side.max_age_ns, side.shed) for side in o.sides)
    return found if any(each != core.SideRule() for each in found) else ()


def _sync(name: str, given: plan_pb2.Sync) -> core.Sync:
    what = f"operator {name}"
    _duration(what, "the tolerance of its inputs", given.within_ns)
    _duration(what, "the timeout of its inputs", given.timeout_ns)
    if given.by_stamp and not 1 <= given.keep <= MOST_FUSED:
        raise PlanError(
            "out_of_range", f"{what}: {given.keep} tuples of an input that wait; 1 to {MOST_FUSED}", subject=what
        )
    return core.Sync(given.by_stamp, given.within_ns, given.timeout_ns, given.keep, given.by_stamp and given.each)


def _installed(i: plan_pb2.Installed) -> core.Identity:
    if not i.run or len(i.version) > LONGEST_VERSION or not CODE.fullmatch(i.code):
        raise PlanError(
            "bad_identity",
            f"{i.run or 'an operator'} is planned with a version or a hash of its code that is none",
            subject=i.run,
        )
    return core.Identity(i.run, i.version, i.code)


def _check(plan: core.Plan) -> Incremental[None]:
    streams = _ids("stream", [s.id for s in plan.streams])
    operators = _ids("operator", [o.id for o in plan.operators])
    peers = {peer.index for peer in plan.peers}
    if any(not 0 <= index < ID_LIMIT for index in (plan.index, *peers)):
        raise PlanError("out_of_range", f"node numbers must be between 0 and {ID_LIMIT - 1}")
    _ids("source", [s.id for s in plan.sources])
    _ids("output", [o.id for o in plan.outputs])
    _ids("unit", [u.id for u in plan.units])
    used = {s.stream for s in plan.sources} | {o.stream for o in plan.outputs} | {s for s, _ in plan.sends}
    for stream in plan.streams:
        _deadlines(f"stream {stream.name}", stream)
    for output in plan.outputs:
        _duration(f"output {output.name}", "deadline", output.deadline_ns)
    yield
    for source in plan.sources:
        _arrivals(source)
        yield
    for operator in plan.operators:
        yield
        _selectivity(operator)
        used |= {operator.output, *operator.inputs, *(stream for _, stream in operator.sides)}
        _duration(f"operator {operator.name}", "hang", operator.hang_ns)
        _inputs(operator)
    if missing := used - streams:
        raise PlanError("not_described", f"streams {sorted(missing)} are used but not described")
    if missing := {peer for _, peer in plan.sends} - peers:
        raise PlanError("not_described", f"peers {sorted(missing)} are sent to but not described")
    seen: list[int] = []
    for unit in plan.units:
        yield
        what = f"unit {unit.id}"
        _duration(what, "sub-deadline", unit.sub_deadline_ns)
        _deadlines(what, unit)
        made = {plan.operator_by_id[each].output for each in unit.operators if each in operators}
        if not unit.operators or not set(unit.operators) <= operators or not set(unit.exits) <= made:
            raise PlanError("not_its_own", f"{what} names operators or exits that are not its own", subject=what)
        _chain(plan, unit)
        if len(unit.exits) > MOST_EXITS:
            raise PlanError(
                "too_many",
                f"{what} has {len(unit.exits)} exits, at most {MOST_EXITS} fit in a trace record",
                subject=what,
            )
        seen += unit.operators
    if sorted(seen) != sorted(operators):
        raise PlanError("not_in_one_unit", "every operator must be in exactly one unit")


def _inputs(operator: core.Operator) -> None:
    what = f"operator {operator.name}"
    if not operator.inputs:
        raise PlanError("no_input", f"{what} has no input", subject=what)
    if operator.sync is not None and (not operator.join or len(operator.inputs) < 2):
        raise PlanError(
            "wrong_number_of_inputs", f"{what} fuses {len(operator.inputs)} inputs; it needs two", subject=what
        )


def _arrivals(source: core.Source) -> None:
    """What is policed has to be something, and to fit in the memory that policing may have."""
    what = f"source {source.name}"
    if source.beat_ns and source.beat_ns < LEAST_BEAT_NS:
        raise PlanError(
            "out_of_range", f"{what}: a heartbeat every {source.beat_ns} ns; {LEAST_BEAT_NS} ns or more", subject=what
        )
    _duration(what, "beat", source.beat_ns)
    if len(source.paces) > MOST_PACES or len(source.spans) > MOST_SPANS:
        raise PlanError("too_many", f"{what} has more than {MOST_PACES} paces or {MOST_SPANS} spans", subject=what)
    for pace in source.paces:
        if not 1 <= pace.tuples <= MOST_INPUTS or not 1 <= pace.parts <= MOST_PARTS:
            raise PlanError(
                "out_of_range", f"{what}: a pace of {pace.tuples} tuples in 1/{pace.parts} ns is none", subject=what
            )
        if not 0 < pace.interval <= LARGEST or not 0 <= pace.slack <= LARGEST:
            raise PlanError(
                "out_of_range",
                f"{what}: a pace with interval {pace.interval} and slack {pace.slack} is none",
                subject=what,
            )
    for tuples, span_ns in source.spans:
        if not 2 <= tuples <= MOST_TUPLES:
            raise PlanError(
                "out_of_range", f"{what}: a span of {tuples} tuples: must be of 2 to {MOST_TUPLES}", subject=what
            )
        _duration(what, "a span", span_ns)


def _selectivity(operator: core.Operator) -> None:
    what = f"operator {operator.name}"
    if len(operator.called) not in (0, len(operator.inputs)):
        raise PlanError(
            "wrong_number_of_inputs",
            f"{what}: {len(operator.called)} names for {len(operator.inputs)} inputs",
            subject=what,
        )
    if len(operator.at_most) > MOST_PAIRS:
        raise PlanError("too_many", f"{what} has more than {MOST_PAIRS} pairs of inputs and results", subject=what)
    for inputs, results in operator.at_most:
        if not 1 <= inputs <= MOST_INPUTS or not 0 <= results < 1 << 32:
            raise PlanError(
                "out_of_range", f"{what}: at most {results} results of {inputs} inputs cannot be policed", subject=what
            )


def _chain(plan: core.Plan, unit: core.Unit) -> None:
    """One instance runs a unit's operators one after the other, so each must read what the one before makes."""
    members = [plan.operator_by_id[each] for each in unit.operators]
    for before, after in pairwise(members):
        if after.inputs != (before.output,) or after.join:
            raise PlanError(
                "not_a_chain",
                f"unit {unit.id}: operator {after.name} does not follow {before.name} alone",
                subject=f"unit {unit.id}",
            )


def _ids(kind: str, ids: list[int]) -> set[int]:
    if len(set(ids)) != len(ids) or any(not 0 < each < ID_LIMIT for each in ids):
        raise PlanError("bad_ids", f"{kind} ids must be unique and between 1 and {ID_LIMIT - 1}", subject=kind)
    return set(ids)


def _deadlines(what: str, leads: core.Stream | core.Unit) -> None:
    """The least and the greatest deadline of the outputs that something leads to."""
    least_ns, last_ns = leads.deadline_ns, leads.last_deadline_ns
    _duration(what, "deadline", least_ns)
    _duration(what, "last deadline", last_ns)
    if last_ns and not 0 < least_ns <= last_ns:
        raise PlanError(
            "deadlines_in_wrong_order",
            f"{what}: last deadline {last_ns} ns is not from its least one, {least_ns} ns, on",
            subject=what,
        )


def _duration(what: str, duration: str, value_ns: int) -> None:
    if not 0 <= value_ns <= LONGEST_NS:
        raise PlanError(
            "out_of_range",
            f"{what}: {duration} is {value_ns} ns: must be between 0 and {LONGEST_NS}",
            subject=what,
        )
