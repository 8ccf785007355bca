"""How runs, operators and figures are called, on a page and on a terminal alike."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.report.facts.reader import Run
from coordinator.report.report_document import Output

COLUMNS = ("met", "late", "shed", "lost", "undecidable")
LATENCIES = ("p50", "p95", "p99", "max")


def milliseconds(ns: int | None) -> str:
    """A duration for people, in ms; a dash where it is not known."""
    return "–" if ns is None else f"{ns / 1e6:,.3f}".rstrip("0").rstrip(".")


def tenths(ns: int | None) -> str:
    """A measured latency in ms; report.json has more digits."""
    return "–" if ns is None else f"{ns / 1e6:,.1f}"


def brief(ns: float) -> str:
    """A duration in the unit that suits it, to three digits."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= scale:
            return f"{ns / scale:.3g} {unit}" if abs(ns) < 1000 * scale else f"{ns / scale:,.0f} {unit}"
    return f"{ns:.0f} ns"


def latencies(found: Output) -> dict[str, int | None]:
    """By the names of LATENCIES."""
    return {
        "p50": found.latency_ns.p50,
        "p95": found.latency_ns.p95,
        "p99": found.latency_ns.p99,
        "max": found.latency_ns.max,
    }


def labels(runs: Sequence[Run]) -> list[str]:
    """A short name per run: its allocator and policies where these tell the runs apart, else its directory."""
    shown = [f"{run.plan.made.allocator} + {policies(run)}" for run in runs]
    names = [run.name for run in runs] if len(set(shown)) < len(runs) else shown
    return [f"{name} ({n})" if names.count(name) > 1 else name for n, name in enumerate(names, start=1)]


def policies(run: Run) -> str:
    """The policies of the nodes: those a simulation replaced them by, else the plan's."""
    if run.simulated_policy is not None:
        return run.simulated_policy
    made = run.plan.made
    return ", ".join(sorted({local.policy.name or "?" for local in made.nodes.values()}))


def operators_of(run: Run) -> list[str]:
    """The placed operators, in the query's order."""
    operators = run.plan.made.graph.operators
    return sorted(run.plan.made.placement, key=lambda name: (operators[name].id if name in operators else 0, name))
