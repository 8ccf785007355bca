"""Results that took longer than their plan's bound, in words: what was counted, and what a bound does not cover."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from coordinator.report.report_document import Output, Report
from coordinator.spec.quality import show_share
from coordinator.units import counted, show_ns

SHOWN = 4  # of the units that ran longer than planned


def sentences(report: Report) -> list[str]:
    """Nothing where no result was beyond its bound for certain, and no output asks for a confidence."""
    several = bool(report.earlier)
    lines = [
        f"output {name}: {found.above_bound} of {counted(found.delivered, 'result')} took longer than "
        f"{_bound(found, several)}, by up to {show_ns(found.above_bound_by_ns or 0)}"
        for name, found in report.outputs.items()
        if found.above_bound and found.held is None
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
    return [*lines, *(line for name, found in report.outputs.items() for line in _held(name, found))]


def _held(name: str, found: Output) -> list[str]:
    """Of an output that asks for a confidence: what was counted, and what that says."""
    held = found.held
    if held is None or found.bound_ns is None:
        return []
    share, late = show_share(held.share), show_share(1 - Fraction(str(held.share)))
    by = f", by up to {show_ns(found.above_bound_by_ns)}" if found.above_bound_by_ns else ""
    bound = f"{show_ns(found.bound_ns)}{by}, the bound that {share} are to keep"
    counts = f"output {name}: {held.beyond} of {counted(held.results, 'result')} took longer than {bound}"
    if held.says == "kept":
        return [f"{counts}: at most {_percent(held.most)} do, with 95 %, and {late} may"]
    if held.says == "broken":
        more = "costs are not as they were measured, or something happened that no bound covers"
        return [f"{counts}: at least {_percent(held.least)} do, with 95 %, and {late} may: {more}"]
    too_few = f"; {counted(held.needed, 'result')} without one beyond would show it" if not held.beyond else ""
    return [
        f"{counts}: between {_percent(held.least)} and {_percent(held.most)} do, so this run does not tell{too_few}"
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _bound(found: Output, several: bool) -> str:
    if several or found.bound_ns is None:
        return "the bound of the plan that it ran under"
    return f"the plan's bound, {show_ns(found.bound_ns)}"


def _named(operators: Sequence[str]) -> str:
    return operators[0] if len(operators) == 1 else f"{operators[0]}..{operators[-1]}"
