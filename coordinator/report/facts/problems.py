"""Contradictions in a ledger, in words."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from coordinator.report.facts.plan_view import OUTPUT, PEER, RESULT, SIDE, UNIT, PlanView, consumer_parts
from protos.records import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.report.facts.reader import Run
from coordinator.report.report_document import Contradiction


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
    # of a record and its second witness (`witness`):
    BEFORE_ITS_CAUSE = 13
    OVERLAP = 14
    OUT_OF_ORDER = 15
    OUTSIDE_ITS_RUN = 16
    ODD_ORIGIN = 17
    LINK_NUMBER = 18
    IMPOSSIBLE_END = 19
    ADMITTED_AGAIN = 20
    NEVER_ADMITTED = 21
    ODD_SUM = 22
    NUMBER_SKIPPED = 23
    ODD_COUNT = 24


FIRST_OF_WITNESSES = Fault.BEFORE_ITS_CAUSE


class Problem(NamedTuple):
    """One contradiction. ref: consumer id, or (kinds 6 to 12) source, stream, output or unit, or (from 13 on) the kind
    of the record. Sorts by kind first."""

    fault: int
    incarnation: int
    ref: int
    source: int
    epoch: int
    seq: int
    ordinal: int
    times: int


def grouped(problem: Problem) -> tuple[int, int, int]:
    """What it is summed up by: kind, incarnation, and kind of the record where there is one."""
    return problem.fault, problem.incarnation, problem.ref if problem.fault >= FIRST_OF_WITNESSES else 0


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


_SECOND = {
    Fault.BEFORE_ITS_CAUSE: "is from before its cause: its tuple came, started or was sent later",
    Fault.OVERLAP: "overlaps with the instance before or behind it, on one thread",
    Fault.OUT_OF_ORDER: "stands between records of other instants",
    Fault.OUTSIDE_ITS_RUN: "is of an instant at which the unit that made the result did not run",
    Fault.ODD_ORIGIN: "has another origin than the tuple was ADMITTED with",
    Fault.LINK_NUMBER: "has a number on its link that names another tuple at the other end",
    Fault.IMPOSSIBLE_END: "is an end that the plan does not have there",
    Fault.ADMITTED_AGAIN: "is of a tuple that was admitted before",
    Fault.NEVER_ADMITTED: "is of a tuple that was never admitted",
    Fault.ODD_COUNT: "counts other tuples admitted or refused than there are records of",
    Fault.NUMBER_SKIPPED: "does not follow the tuple that its source admitted before it",
    Fault.ODD_SUM: "is among results whose latencies add up to another sum than the node's own",
}


_FIRST = {
    Fault.OPEN: "tuples came and have no end",
    Fault.NO_ARRIVAL: "tuples ended that never came",
    Fault.NOT_SENT: "tuples were RECEIVED that their peer has not SENT",
    Fault.ADMITTED_NOWHERE: "ADMITTED names a source that the plan does not have there",
    Fault.RECEIVED_NOWHERE: "RECEIVED names a stream that nobody consumes there",
    Fault.ODD_OUTPUT: "OUTPUT has another deadline than the plan's, or an empty interval of origin",
    Fault.ODD_EXIT: "RAN or LOST has outputs on exits that its unit lacks",
    Fault.REFUSED_NOWHERE: "REFUSED names a source that nobody feeds there",
    Fault.REFUSED_MISSING: "REFUSED records do not add up",
}


def summary(run: Run, counted: Mapping[tuple[int, int, int], int]) -> tuple[Contradiction, ...]:
    """One per kind of contradiction and incarnation. counted: by kind, incarnation and kind of record or 0."""
    return tuple(
        Contradiction(
            node=run.plan.nodes[run.incarnations[inc].node],
            boot=run.incarnations[inc].boot_hex,
            what=_FIRST[Fault(fault)] if fault in _FIRST else f"{KINDS[kind]} {_SECOND[Fault(fault)]}",
            times=times,
        )
        for (fault, inc, kind), times in sorted(counted.items())
    )


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
        case Fault.ODD_EXIT:
            text = f"RAN or LOST of unit {ref} with outputs on an exit that it does not have"
        case Fault.ODD_COUNT:
            return f"{place}: LOAD record number {problem.seq} {_SECOND[Fault.ODD_COUNT]} since the one before it"
        case _:
            text = f"{KINDS[ref]} {_SECOND[Fault(problem.fault)]}"
    return f"{place}: {tuple_}: {text}{times}"
