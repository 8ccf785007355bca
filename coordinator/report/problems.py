"""Contradictions in a ledger, in words."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from coordinator.report.plan_view import OUTPUT, PEER, RESULT, SIDE, UNIT, PlanView, consumer_parts

if TYPE_CHECKING:
    from coordinator.report.reader import Run


class Fault(IntEnum):
    """Kinds of contradiction in a ledger."""

    OPEN = 4
    NO_ARRIVAL = 5
    NOT_SENT = 6
    ADMITTED_NOWHERE = 7
    RECEIVED_NOWHERE = 8
    ODD_OUTPUT = 9
    ODD_EXIT = 10
    REFUSED_NOWHERE = 11
    REFUSED_MISSING = 12


class Problem(NamedTuple):
    """One contradiction. ref: consumer id, or (kinds 6 to 12) source, stream, output or unit. Sorts by kind first."""

    fault: int
    incarnation: int
    ref: int
    source: int
    epoch: int
    seq: int
    ordinal: int
    times: int


def consumer_text(plan: PlanView, consumer: int) -> str:
    """A consumer in words."""
    kind, ref, stream = consumer_parts(consumer)
    on = plan.streams.get(stream, f"stream {stream}")
    if kind == UNIT:
        return f"unit {ref} ({plan.units[ref].label})" if ref in plan.units else f"unit {ref}, which the plan lacks"
    if kind == SIDE:
        return f"side input {on} of {plan.operators.get(ref, ref)}"
    if kind == OUTPUT:
        return f"output {plan.outputs[ref].name}" if ref in plan.outputs else f"output {ref}, which the plan lacks"
    if kind == RESULT:
        return (
            f"a result shed in unit {ref} ({plan.units[ref].label})" if ref in plan.units else f"unit {ref}'s results"
        )
    return f"sending {on} to {plan.nodes.get(ref, ref)}" if kind == PEER else f"consumer {consumer}"


_ENDS = {
    UNIT: "RAN, SHED, LOST or MERGED", SIDE: "ABSORBED", OUTPUT: "OUTPUT", PEER: "SENT or LOST", RESULT: "SHED",
}  # fmt: skip


def sentence(run: Run, problem: Problem) -> str:
    """A problem in words: which record, which tuple, which node."""
    plan = run.plan
    incarnation = run.incarnations[problem.incarnation]
    place = f"{plan.nodes[incarnation.node]}/{incarnation.boot_hex}"
    tuple_ = f"tuple {problem.source & 0xFFFF}/{problem.epoch}/{problem.seq}.{problem.ordinal}"
    times = f" ({problem.times} times)" if problem.times > 1 else ""
    ref = problem.ref
    ends = _ENDS.get(consumer_parts(ref)[0], "record")
    match problem.fault:
        case Fault.OPEN:
            text = f"arrived for {consumer_text(plan, ref)}, but no {ends} record ends it"
        case Fault.NO_ARRIVAL:
            text = f"{ends} for {consumer_text(plan, ref)}, but no ADMITTED, RECEIVED or RAN record brought it"
        case Fault.NOT_SENT:
            text = f"RECEIVED on {plan.streams.get(ref, f'stream {ref}')}, but its peer has no SENT record for it"
        case Fault.ADMITTED_NOWHERE:
            text = f"ADMITTED from source {ref}, which has no consumer here"
        case Fault.RECEIVED_NOWHERE:
            text = f"RECEIVED on {plan.streams.get(ref, f'stream {ref}')}, which has no consumer here"
        case Fault.ODD_OUTPUT:
            text = f"OUTPUT for output {ref} with another deadline than the plan's, or an empty interval of origin"
        case Fault.REFUSED_NOWHERE:
            return f"{place}: {problem.times} tuples REFUSED at source {ref & 0xFFFF}, which clients do not feed here"
        case Fault.REFUSED_MISSING:
            name = plan.streams.get(plan.sources[ref][1], f"{ref & 0xFFFF}")
            return f"{place}: REFUSED records of source {name} speak of {problem.seq} tuples, and count {problem.times}"
        case _:
            text = f"RAN or LOST of unit {ref} with outputs on an exit that it does not have"
    return f"{place}: {tuple_}: {text}{times}"
