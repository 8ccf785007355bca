"""Windows, shedding and limits of a local plan: protobuf -> core, each checked for range."""

from node_agent.core import plan as core
from node_agent.core.shedding.rate_limiter import MOST as MOST_LIMIT
from node_agent.core.shedding.utility import read as read_value
from node_agent.wire.plan_error import PlanError
from protos import plan_pb2

LONGEST_NS = 10**18
MOST_LENGTH = 10**6  # of a window by count
MOST_OVERLAP = 1024  # windows that one tuple is in
MOST_FEEDS = 64
MOST_QUEUED = 1_000_000
KINDS = ("time", "count", "sized")
SHEDDERS = ("window-aware", "front", "random", "drop-tail")
ON_FULL = ("refuse", "drop-tail", "front")


def limit(name: str, given: plan_pb2.Limit) -> core.Limit:
    """Of a source. Raises PlanError."""
    what = f"source {name}"
    if not 1 <= given.tuples <= MOST_LIMIT or not 1 <= given.span_ns <= LONGEST_NS:
        raise PlanError(
            "out_of_range", f"{what}: a limit of {given.tuples} tuples per {given.span_ns} ns is none", subject=what
        )
    if given.value_json:
        try:
            read_value(given.value_json)
        except ValueError as error:
            raise PlanError(
                "value_not_computed", f"{what}: its value cannot be computed: {error}", subject=what
            ) from None
    return core.Limit(given.tuples, given.span_ns, given.value_json)


def window(name: str, given: plan_pb2.Window) -> core.Window:
    """Of an operator. Raises PlanError."""
    what = f"operator {name}"
    longest = MOST_LENGTH if given.kind == "count" else LONGEST_NS
    if given.kind not in KINDS:
        raise PlanError(
            "unknown_window_kind",
            f"{what}: windows of kind {given.kind!r}; this agent has {', '.join(KINDS)}",
            subject=what,
        )
    if not 0 < given.length <= longest or not 0 < given.hop <= longest or given.length > MOST_OVERLAP * given.hop:
        raise PlanError(
            "out_of_range", f"{what}: windows of {given.length} every {given.hop} are out of range", subject=what
        )
    for part, value_ns in (("lateness", given.lateness_ns), ("use", given.useful_ns), ("wait", given.wait_ns)):
        if not 0 <= value_ns <= LONGEST_NS:
            raise PlanError("out_of_range", f"{what}: the {part} of its windows is {value_ns} ns", subject=what)
    if not 0 < len(given.feeds) <= MOST_FEEDS or len({feed.source for feed in given.feeds}) < len(given.feeds):
        raise PlanError(
            "wrong_number_of_sources",
            f"{what}: its windows need 1 to {MOST_FEEDS} sources, each of them once",
            subject=what,
        )
    if given.kind != "time" and (len(given.feeds) > 1 or given.on):
        raise PlanError(
            "wrong_number_of_sources", f"{what}: windows of kind {given.kind} are of one source", subject=what
        )
    if len(given.on) not in (0, 2) or bool(given.size) != (given.kind == "sized"):
        raise PlanError(
            "wrong_keys", f"{what}: its windows have {len(given.on)} keys and size {given.size!r}", subject=what
        )
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
    """Of an operator. Raises PlanError."""
    what = f"operator {name}"
    if not 0 < given.late_ns <= LONGEST_NS or not 0 <= given.cost_ns <= LONGEST_NS:
        raise PlanError(
            "out_of_range",
            f"{what}: late after {given.late_ns} ns, at {given.cost_ns} ns, is out of range",
            subject=what,
        )
    return core.Late(given.late_ns, given.run, given.with_json or "{}", given.cost_ns)


def shedding(given: plan_pb2.Shedding) -> core.Shedding:
    """Of a node. Raises PlanError."""
    what = f"shedding {given.policy}"
    if given.policy not in SHEDDERS:
        raise PlanError(
            "unknown_shedding",
            f"shedding {given.policy!r} is unknown: this agent has {', '.join(SHEDDERS)}",
            subject=what,
        )
    if not given.units or not given.windows or not 1 <= given.most <= MOST_QUEUED:
        raise PlanError(
            "out_of_range", f"{what} at {len(given.units)} units, of {given.most} tuples, is none", subject=what
        )
    if not 0 <= given.target_ns <= LONGEST_NS or not 0 < given.period_ns <= LONGEST_NS:
        raise PlanError(
            "out_of_range", f"{what}: a target of {given.target_ns} ns every {given.period_ns} ns", subject=what
        )
    return core.Shedding(
        given.policy, tuple(given.units), tuple(given.windows), given.most, given.target_ns, given.period_ns,
        tuple(given.path),
    )  # fmt: skip


def on_full(what: str, given: str, refuses: bool) -> str:
    """What happens at a limit. Raises PlanError."""
    chosen = given or ("refuse" if refuses else "drop-tail")
    if chosen not in (ON_FULL if refuses else ON_FULL[1:]):
        raise PlanError(
            "unknown_on_full",
            f"{what}: {chosen!r} is nothing to do when queues are full: {', '.join(ON_FULL)}",
            subject=what,
        )
    return chosen


def check(plan: core.Plan) -> None:
    """What refers to what. Raises PlanError."""
    sources = {source.id: source for source in plan.sources}
    units, operators = {unit.id for unit in plan.units}, plan.operator_by_id
    for operator in plan.operators:
        window_, what = operator.window, f"operator {operator.name}"
        if window_ is None:
            continue
        source = sources.get(window_.source)
        if source is None or source.window != operator.id or source.stream != operator.output:
            raise PlanError("not_admitted", f"{what}: its windows are admitted by no source of theirs", subject=what)
        if any(number >= len(operator.inputs) for _, number in window_.feeds):
            raise PlanError(
                "unknown_input", f"{what}: a source of its windows comes by an input it does not have", subject=what
            )
    for operator in plan.operators:
        if operator.closes:
            what = f"operator {operator.name}"
            other = operators.get(operator.closes)
            if other is None or other.window is None or operator.inputs != (other.output,):
                raise PlanError("closes_no_windows", f"{what} closes the windows of no operator here", subject=what)
    for source in plan.sources:
        if source.window and (source.window not in operators or operators[source.window].window is None):
            what = f"source {source.name}"
            raise PlanError("no_windows", f"{what} is of the windows of no operator here", subject=what)
    for each in plan.sheddings:
        known = set(each.units) | set(each.path) <= units
        if not known or any(n not in operators or operators[n].window is None for n in each.windows):
            what = f"shedding {each.policy}"
            raise PlanError("not_described", f"{what} names units or windows that are not here", subject=what)
    shed_units = [
        unit for each in plan.sheddings for unit in {*each.units, *(each.path if each.policy == "front" else ())}
    ]
    if len(set(shed_units)) < len(shed_units):
        raise PlanError(
            "two_sheddings", f"plan of {plan.query}: two entry shedders stand before one unit", subject=plan.query
        )


__all__ = ["check", "late", "limit", "on_full", "shedding", "window"]
