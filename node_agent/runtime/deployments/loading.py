"""From a plan's file to what runs, in steps: read, check, make operators, compile.

Nothing is entered anywhere before the last step, so a load that fails or is dropped leaves no trace.

An operator that the committed plan has as well (core/engine/handover.py) is not made again: this plan gets the same
instance at once, which is what it would get at its commit. So a commit makes nothing and cannot fail, an operator with
a large model is not in memory twice, and the parameters need no check, for they made that instance. If another plan is
committed in between, the commit hands over that one's instances; what only the earlier one had goes on from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from google.protobuf.message import DecodeError

from node_agent.core import plan as core
from node_agent.core.engine.handover import comparing
from node_agent.core.incremental import Incremental
from node_agent.core.model import Call, CompiledPlan
from node_agent.host.files import plan_files
from node_agent.operators.codecs import LARGE, Codec, UnknownCodecError
from node_agent.operators.registry import Registry
from node_agent.operators.signature import OperatorError
from node_agent.operators.source_call import SourceCall
from node_agent.ports import Disk
from node_agent.runtime.large_payloads import LARGE_BYTES, LargePayloads, is_large
from node_agent.wire.plan_error import PlanError
from node_agent.wire.plan_message import reading
from protos import plan_pb2
from protos.records import stamp_of

DEFAULT_BYTES = 64 << 20  # of queued payloads, where no plan says


@dataclass(slots=True)
class LoadedCode:
    """What a plan is made of before it is compiled."""

    codecs: dict[int, Codec] = field(default_factory=dict)  # by stream
    calls: dict[int, tuple[Call, bool]] = field(default_factory=dict)  # by operator
    inherits: dict[int, int] = field(default_factory=dict)  # operators: here, in the plan whose instances these are
    pulls: dict[int, SourceCall] = field(default_factory=dict)  # by source


def read(
    directory: Path, plan_hash: str, epoch: int, core_number: int, name: str, disk: Disk
) -> Incremental[core.Plan]:
    """The plan of that hash for that core of the node called `name`. Raises PlanError with the reason."""
    try:
        data = disk.read(plan_files.local_path(directory, plan_hash, core_number))
        yield
        message = plan_pb2.LocalPlan.FromString(data)
        yield
        plan = yield from reading(message, stamp_of(plan_hash), epoch)
    except OSError as error:
        raise PlanError("unreadable", f"the plan file cannot be read: {error.strerror}") from None
    except PlanError as error:
        raise PlanError.within(error, f"node {name} cannot run this plan") from None
    except (DecodeError, ValueError, KeyError) as error:
        raise PlanError("not_a_plan", f"node {name} cannot run this plan: {error}", subject=name) from None
    if plan.node != name:
        raise PlanError("other_nodes", f"the plan is for node {plan.node!r}, this agent is {name!r}", subject=plan.node)
    return plan


def make(
    plan: core.Plan,
    registry: Registry,
    base: CompiledPlan | None,
    large: LargePayloads,
    pulls: Mapping[tuple[str, str, str], SourceCall] = MappingProxyType({}),
) -> Incremental[LoadedCode]:
    """Codecs, operators and what sources call. base: the committed plan, whose instances are taken, as are its `pulls`,
    by source, what is run and its parameters: a device may not be there twice. large: counts results. Raises PlanError
    where something is not installed, is not what was planned, or refuses its parameters, or where payloads fit no
    queue."""
    code = LoadedCode()
    try:
        for identity in plan.installed:
            registry.check(identity)
            yield
    except OperatorError as error:
        raise PlanError.within(error) from None
    _check_memory(plan)
    if base is not None:
        yield from _inherit(code, plan, base)
    try:
        for stream in plan.streams:
            code.codecs[stream.id] = _counted(registry.codecs.get(stream.codec, stream.max_bytes), large)
            yield
    except UnknownCodecError as error:
        raise PlanError.within(error) from None
    yield from _pulled(code, plan, registry, pulls)
    names = {stream.id: stream.name for stream in plan.streams}
    for operator in plan.operators:
        if operator.id not in code.calls:
            try:
                given = operator.called or [names[each] for each in operator.inputs]
                code.calls[operator.id] = registry.calls(operator, given, code.codecs[operator.output])
            except OperatorError as error:
                raise _refused(error, operator.name) from None
            yield
        if operator.late is not None and operator.late.run and -operator.id not in code.calls:
            try:
                given = operator.called or [names[each] for each in operator.inputs]
                code.calls[-operator.id] = registry.variant(operator, given, code.codecs[operator.output])
            except OperatorError as error:
                raise _refused(error, f"{operator.name}, where it is late") from None
            yield
    return code


def _pulled(
    code: LoadedCode, plan: core.Plan, registry: Registry, pulls: Mapping[tuple[str, str, str], SourceCall]
) -> Incremental[None]:
    for source in plan.sources:
        if source.pull is None or not source.pull.run:
            continue
        run, with_json = source.pull.run, source.pull.with_json
        try:
            same = pulls.get((source.name, run, with_json))
            code.pulls[source.id] = same or registry.source_call(run, with_json, code.codecs[source.stream])
        except OperatorError as error:
            raise _refused(error, source.name) from None
        yield


def _refused(error: OperatorError, name: str) -> PlanError:
    """What is wrong with what `name` runs; where its author's code raised: the line, and what to do."""
    raised = error.__cause__
    if error.code != "raised" or raised is None:
        return PlanError.within(error, name)
    import traceback

    frames = traceback.extract_tb(raised.__traceback__)[1:]  # the first is the call of it
    at = f", at {frames[0].filename}:{frames[0].lineno}" if frames else ""
    mend, here = "correct it there, or its parameters in 'with:'", Path.cwd()
    if isinstance(raised, OSError):
        mend = f"correct it there; paths without a '/' in front begin at {here}"
    return PlanError("raised", f"{name}: {error}{at}", mend, subject=name)


def _counted(codec: Codec, large: LargePayloads) -> Codec:
    """The codec, whose large results are counted as an operator gives them."""
    if codec.name not in LARGE or codec.most_bytes < LARGE_BYTES:
        return codec
    fit = codec.fit

    def counted(value: object) -> object:
        value = fit(value)
        if is_large(value):
            large.add(value)
        return value

    return codec._replace(fit=counted)


def _check_memory(plan: core.Plan) -> None:
    """One payload of each stream fits what may be queued. Raises PlanError."""
    memory = plan.memory_bytes or DEFAULT_BYTES
    for stream in plan.streams:
        if stream.max_bytes > memory:
            raise PlanError(
                "too_large",
                f"a payload of stream {stream.name} may have {stream.max_bytes} bytes, and the queues of node"
                f" {plan.node} {memory}: give it more 'memory:' in the cluster file, or declare a smaller 'max_size:'",
                subject=stream.name,
            )


def _inherit(code: LoadedCode, plan: core.Plan, base: CompiledPlan) -> Incremental[None]:
    steps = {step.operator_id: step for step in base.steps}  # it may be unloaded before the end
    yield
    code.inherits = yield from comparing(plan, base.plan)
    for mine, its in code.inherits.items():
        before = steps[its]
        code.calls[mine] = (before.call, before.bare)
        late, other = plan.operator_by_id[mine].late, before.late
        if late is None or other is None or other.variant is None:
            continue
        if other.runs == (late.run, late.with_json):
            code.calls[-mine] = (other.variant.call, other.variant.bare)
    yield
