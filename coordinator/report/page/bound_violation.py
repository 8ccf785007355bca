"""Results that took longer than their plan's bound, in words: what was counted, and what a bound does not cover."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.report.report_document import Output, Report
from coordinator.units import counted, show_ns

SHOWN = 4  # of the units that ran longer than planned


def sentences(report: Report) -> list[str]:
    """Nothing where no result was beyond its bound for certain."""
    several = bool(report.earlier)
    lines = [
        f"output {name}: {found.above_bound} of {counted(found.delivered, 'result')} took longer than "
        f"{_bound(found, several)}, by up to {show_ns(found.above_bound_by_ns or 0)}"
        for name, found in report.outputs.items()
        if found.above_bound
    ]
    if lines:
        units = [f"{_named(one.operators)} on {one.node}" for one in report.cost_overruns or ()]
        more = f" and {len(units) - SHOWN} more" if len(units) > SHOWN else ""
        here = f" (here: {', '.join(units[:SHOWN])}{more})" if units else ""
        lines.append(
            "a bound holds for what the plan declares. It does not cover operators that run longer than their cost"
            f"{here}, tuples that come more often or older than declared, stalls by the operating system or by other "
            "programs, loss on links, or a node that restarts"
        )
    return lines


def _bound(found: Output, several: bool) -> str:
    if several or found.bound_ns is None:
        return "the bound of the plan that it ran under"
    return f"the plan's bound, {show_ns(found.bound_ns)}"


def _named(operators: Sequence[str]) -> str:
    return operators[0] if len(operators) == 1 else f"{operators[0]}..{operators[-1]}"
