"""Operators whose state went with their runtime, from RESET records: which, where, and from when on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coordinator.report.facts.merged_plans import ID_BITS
from coordinator.report.facts.reader import Incarnation, Run, records_of
from protos.records import PLAN_EPOCH_MASK, Plan, Reset


def began_anew(run: Run) -> list[dict[str, Any]]:
    """A row per incarnation with such operators: `node`, `boot`, `operators` and `after_ns`, since the first record of
    its clock in the run."""
    first_ns: dict[str, int] = {}
    rows: list[dict[str, Any]] = []
    for incarnation in run.incarnations:
        told = [record for _, record in records_of(incarnation) if isinstance(record, (Plan, Reset))]
        if told:
            first_ns[incarnation.clock] = min(told[0].at_ns, first_ns.get(incarnation.clock, told[0].at_ns))
        if lost := dict(_lost(run, told)):
            rows.append(_row(run, incarnation, lost))
    for row, clock in ((row, row.pop("clock")) for row in rows):
        row["after_ns"] = row.pop("at_ns") - first_ns[clock]
    return rows


def _lost(run: Run, told: Iterable[Plan | Reset]) -> Iterator[tuple[str, int]]:
    """Operator and instant."""
    epochs: dict[int, int] = {}
    for record in told:
        if isinstance(record, Plan):
            if record.stamp in run.plan.numbers:
                epochs[record.plan_epoch & PLAN_EPOCH_MASK] = run.plan.numbers[record.stamp]
        elif record.plan_epoch_low in epochs:
            name = run.plan.operators.get(record.operator | epochs[record.plan_epoch_low] << ID_BITS)
            if name is not None:
                yield name, record.at_ns


def _row(run: Run, incarnation: Incarnation, lost: Mapping[str, int]) -> dict[str, Any]:
    return {
        "node": run.plan.nodes[incarnation.node],
        "boot": incarnation.boot_hex,
        "operators": list(lost),
        "at_ns": min(lost.values()),
        "clock": incarnation.clock,
    }


def sentences(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One per row."""
    for row in rows:
        operators = row["operators"]
        whose = f"operator {operators[0]}" if len(operators) == 1 else f"operators {', '.join(operators)}"
        yield (
            f"node {row['node']}: {whose} began anew without the state that went with the runtime, "
            f"{row['after_ns'] / 1e9:.3f} s after the run's beginning there"
        )


__all__ = ["began_anew", "sentences"]
