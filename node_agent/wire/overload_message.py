"""Windows, shedding and limits of a local plan: protobuf -> core, each checked for range."""

from node_agent.core import plan as core
from node_agent.core.shedding.rate_limiter import MOST as MOST_LIMIT
from node_agent.core.shedding.utility import read as read_value
from protos import plan_pb2

LONGEST_NS = 10**18
MOST_LENGTH = 10**6  # of a window by count
MOST_OVERLAP = 1024  # windows that one tuple is in
MOST_FEEDS = 64
MOST_QUEUED = 1_000_000
KINDS = ("time", "count", "sized")
SHEDDERS = ("window-aware", "front", "random", "drop-tail")
ON_FULL = ("refuse", "drop-tail", "front")


class OverloadError(ValueError):
    """A part of a local plan that this agent cannot run; the text says why."""


def limit(name: str, given: plan_pb2.Limit) -> core.Limit:
    """Of a source. Raises OverloadError."""
    if not 1 <= given.tuples <= MOST_LIMIT or not 1 <= given.span_ns <= LONGEST_NS:
        raise OverloadError(f"source {name}: a limit of {given.tuples} tuples per {given.span_ns} ns is none")
    if given.value_json:
        try:
            read_value(given.value_json)
        except ValueError as error:
            raise OverloadError(f"source {name}: its value cannot be computed: {error}") from None
    return core.Limit(given.tuples, given.span_ns, given.value_json)


def window(name: str, given: plan_pb2.Window) -> core.Window:
    """Of an operator. Raises OverloadError."""
    longest = MOST_LENGTH if given.kind == "count" else LONGEST_NS
    if given.kind not in KINDS:
        raise OverloadError(f"operator {name}: windows of kind {given.kind!r}; this agent has {', '.join(KINDS)}")
    if not 0 < given.length <= longest or not 0 < given.hop <= longest or given.length > MOST_OVERLAP * given.hop:
        raise OverloadError(f"operator {name}: windows of {given.length} every {given.hop} are out of range")
    for what, value_ns in (("lateness", given.lateness_ns), ("use", given.useful_ns), ("wait", given.wait_ns)):
        if not 0 <= value_ns <= LONGEST_NS:
            raise OverloadError(f"operator {name}: the {what} of its windows is {value_ns} ns")
    if not 0 < len(given.feeds) <= MOST_FEEDS or len({feed.source for feed in given.feeds}) < len(given.feeds):
        raise OverloadError(f"operator {name}: its windows need 1 to {MOST_FEEDS} sources, each of them once")
    if given.kind != "time" and (len(given.feeds) > 1 or given.on):
        raise OverloadError(f"operator {name}: windows of kind {given.kind} are of one source")
    if len(given.on) not in (0, 2) or bool(given.size) != (given.kind == "sized"):
        raise OverloadError(f"operator {name}: its windows have {len(given.on)} keys and size {given.size!r}")
    return core.Window(
        kind=given.kind,
        length=given.length,
        hop=given.hop,
        source=given.source,
        feeds=tuple((feed.source, feed.input) for feed in given.feeds),
        names=tuple(feed.name for feed in given.feeds),
        lateness_ns=given.lateness_ns,
        first=given.first,
        useful_ns=given.useful_ns,
        wait_ns=given.wait_ns,
        by=given.by,
        on=tuple(given.on),
        size=given.size,
    )


def late(name: str, given: plan_pb2.Late) -> core.Late:
    """Of an operator. Raises OverloadError."""
    if not 0 < given.late_ns <= LONGEST_NS or not 0 <= given.cost_ns <= LONGEST_NS:
        raise OverloadError(f"operator {name}: late after {given.late_ns} ns, at {given.cost_ns} ns, is out of range")
    return core.Late(given.late_ns, given.run, given.with_json or "{}", given.cost_ns)


def shedding(given: plan_pb2.Shedding) -> core.Shedding:
    """Of a node. Raises OverloadError."""
    if given.policy not in SHEDDERS:
        raise OverloadError(f"shedding {given.policy!r} is unknown: this agent has {', '.join(SHEDDERS)}")
    if not given.units or not given.windows or not 1 <= given.most <= MOST_QUEUED:
        raise OverloadError(f"shedding {given.policy} at {len(given.units)} units, of {given.most} tuples, is none")
    if not 0 <= given.target_ns <= LONGEST_NS or not 0 < given.period_ns <= LONGEST_NS:
        raise OverloadError(f"shedding {given.policy}: a target of {given.target_ns} ns every {given.period_ns} ns")
    return core.Shedding(
        given.policy, tuple(given.units), tuple(given.windows), given.most, given.target_ns, given.period_ns,
        tuple(given.path),
    )  # fmt: skip


def on_full(what: str, given: str, refuses: bool) -> str:
    """What happens at a limit. Raises OverloadError."""
    chosen = given or ("refuse" if refuses else "drop-tail")
    if chosen not in (ON_FULL if refuses else ON_FULL[1:]):
        raise OverloadError(f"{what}: {chosen!r} is nothing to do when queues are full: {', '.join(ON_FULL)}")
    return chosen


def check(plan: core.Plan) -> None:
    """What refers to what. Raises OverloadError."""
    sources = {source.id: source for source in plan.sources}
    units, operators = {unit.id for unit in plan.units}, plan.operator_by_id
    for operator in plan.operators:
        window_ = operator.window
        if window_ is None:
            continue
        source = sources.get(window_.source)
        if source is None or source.window != operator.id or source.stream != operator.output:
            raise OverloadError(f"operator {operator.name}: its windows are admitted by no source of theirs")
        if any(number >= len(operator.inputs) for _, number in window_.feeds):
            raise OverloadError(f"operator {operator.name}: a source of its windows comes by an input it does not have")
    for operator in plan.operators:
        if operator.closes:
            other = operators.get(operator.closes)
            if other is None or other.window is None or operator.inputs != (other.output,):
                raise OverloadError(f"operator {operator.name} closes the windows of no operator here")
    for source in plan.sources:
        if source.window and (source.window not in operators or operators[source.window].window is None):
            raise OverloadError(f"source {source.name} is of the windows of no operator here")
    for each in plan.sheddings:
        known = set(each.units) | set(each.path) <= units
        if not known or any(n not in operators or operators[n].window is None for n in each.windows):
            raise OverloadError(f"shedding {each.policy} names units or windows that are not here")
    doors = [unit for each in plan.sheddings for unit in {*each.units, *(each.path if each.policy == "front" else ())}]
    if len(set(doors)) < len(doors):
        raise OverloadError(f"plan of {plan.query}: two sheddings stand at the door of one unit")


__all__ = ["OverloadError", "check", "late", "limit", "on_full", "shedding", "window"]
