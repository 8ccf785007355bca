"""Operators whose state went with their runtime, from RESET records: which, where, and from when on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from coordinator.report.facts.merged_plans import ID_BITS
from coordinator.report.facts.raw import raw_pieces
from coordinator.report.facts.reader import Incarnation, Run
from coordinator.report.landing.record_array import usable_records
from coordinator.report.report_document import BeganAnew
from protos.records import PLAN_EPOCH_MASK, Plan, Reset, unpack_records


def began_anew(run: Run) -> tuple[BeganAnew, ...]:
    """One per incarnation with such operators, from the first record of its clock in the run on."""
    first_ns: dict[str, int] = {}
    found: list[tuple[Incarnation, dict[str, int]]] = []
    for incarnation in run.incarnations:
        records = list(_plans_and_resets(incarnation))
        if records:
            first_ns[incarnation.clock] = min(records[0].at_ns, first_ns.get(incarnation.clock, records[0].at_ns))
        if lost := dict(_lost(run, records)):
            found.append((incarnation, lost))
    return tuple(
        BeganAnew(
            node=run.plan.nodes[incarnation.node],
            boot=incarnation.boot_hex,
            operators=tuple(lost),
            after_ns=min(lost.values()) - first_ns[incarnation.clock],
        )
        for incarnation, lost in found
    )


def _plans_and_resets(incarnation: Incarnation) -> Iterator[Plan | Reset]:
    for _, raw in raw_pieces(incarnation):
        told = raw[usable_records(raw) & np.isin(raw["kind"], (Plan.number, Reset.number))]
        for record in unpack_records(told.tobytes()):
            assert isinstance(record, (Plan, Reset))
            yield record


def _lost(run: Run, records: Iterable[Plan | Reset]) -> Iterator[tuple[str, int]]:
    """Operator and instant."""
    epochs: dict[int, int] = {}
    for record in records:
        if isinstance(record, Plan):
            if record.stamp in run.plan.numbers:
                epochs[record.plan_epoch & PLAN_EPOCH_MASK] = run.plan.numbers[record.stamp]
        elif record.plan_epoch_low in epochs:
            name = run.plan.operators.get(record.operator | epochs[record.plan_epoch_low] << ID_BITS)
            if name is not None:
                yield name, record.at_ns


def sentences(found: Iterable[BeganAnew]) -> Iterator[str]:
    """One of each."""
    for one in found:
        of = f"operator {one.operators[0]}" if len(one.operators) == 1 else f"operators {', '.join(one.operators)}"
        yield (
            f"node {one.node}: {of} began anew without the state that went with the runtime, "
            f"{one.after_ns / 1e9:.3f} s after the run's beginning there"
        )


__all__ = ["began_anew", "sentences"]
