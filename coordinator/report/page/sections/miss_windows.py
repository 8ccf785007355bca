"""When in the run a missed result was under way, and which nodes were away meanwhile."""

from __future__ import annotations

from collections import Counter

from coordinator.report.facts.reader import Incarnation
from coordinator.report.page.elements import PageRun
from coordinator.report.report_document import Miss, MissHop
from coordinator.report.series.incidents import Incident, IncidentKind

ABSENT: frozenset[IncidentKind] = frozenset(("away", "restarted", "asleep", "no_trace"))


def under_way(page_run: PageRun, miss: Miss) -> tuple[int, int]:
    """From its origin, as far as it is known, to its end, in the run."""
    ended = _incarnation(page_run, miss.node, miss.boot)
    until_ns = page_run.series.clock.at(ended, miss.at_ns) if ended is not None else page_run.series.length_ns
    spans = [span_of(page_run, hop) for hop in miss.hops]
    begins = [since_ns for since_ns, _ in spans]
    if miss.latency_ns is not None:
        begins.append(until_ns - miss.latency_ns)
    return min(begins, default=until_ns - miss.deadline_ns), max([until_ns, *(end_ns for _, end_ns in spans)])


def span_of(page_run: PageRun, hop: MissHop) -> tuple[int, int]:
    """In the run: by the clock of that node's runtime that was there then."""
    clock = page_run.series.clock
    mine = [one for one in clock.presences if page_run.run.plan.nodes[one.incarnation.node] == hop.node]
    for one in mine:
        since_ns, until_ns = clock.at(one.incarnation, hop.from_ns), clock.at(one.incarnation, hop.until_ns)
        if since_ns <= one.until_ns and until_ns >= one.from_ns:
            return since_ns, until_ns
    length_ns = hop.until_ns - hop.from_ns
    return (0, length_ns) if not mine else (mine[-1].until_ns - length_ns, mine[-1].until_ns)


def _incarnation(page_run: PageRun, node: str, boot: str) -> Incarnation | None:
    return next(
        (
            one
            for one in page_run.run.incarnations
            if one.boot_hex == boot and page_run.run.plan.nodes[one.node] == node
        ),
        None,
    )


def absences(page_run: PageRun, from_ns: int, until_ns: int) -> list[Incident]:
    """Of nodes, that fall into that time."""
    return [
        one
        for one in page_run.series.incidents
        if one.kind in ABSENT and one.from_ns < until_ns and end_of(page_run, one) > from_ns
    ]


def end_of(page_run: PageRun, one: Incident) -> int:
    """In the run."""
    return page_run.series.length_ns if one.until_ns is None else one.until_ns


def while_away(page_run: PageRun, output: str) -> tuple[int, str]:
    """How many of the misses of an output that are told of were under way as a node was away, and the node for most."""
    misses = page_run.report.misses
    nodes: Counter[str] = Counter()
    times = 0
    for miss in misses.worst if misses is not None else ():
        if miss.output == output:
            away = {one.node for one in absences(page_run, *under_way(page_run, miss)) if one.kind != "no_trace"}
            times += bool(away)
            nodes.update(away)
    return times, nodes.most_common(1)[0][0] if nodes else ""


__all__ = ["absences", "end_of", "span_of", "under_way", "while_away"]
