"""Records behind an output's results: up to when all of them are there, on the nodes that results come over.

What a result rests on was written before it came. A trace that was collected while its node went on has it up to its
last record; of one that lacks records anywhere nobody knows where, so what was read there is open for all results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coordinator.report.counts import INSTANT_LIMIT, Behind
from coordinator.report.facts.clock_intervals import RunClocks
from coordinator.report.facts.completeness import Status, Trace
from coordinator.report.facts.data_ways import DataWays
from coordinator.report.facts.plan_view import PlanView
from coordinator.units import counted


@dataclass(frozen=True)
class RecordsBehind:
    """until: by node, when its trace ends before its time, on the clock of the output's node; none: all is there."""

    nodes: Mapping[int, str]
    until: Mapping[int, int]

    @classmethod
    def of(
        cls, plan: PlanView, ways: DataWays, output: int, traces: Sequence[Trace], clocks: RunClocks
    ) -> RecordsBehind:
        """Of one output, by its id."""
        own, until = plan.outputs[output].node, {}
        for node in sorted(_nodes(plan, ways, output)):
            there = [each for each in traces if each.incarnation.node == node]
            if len(there) == 1 and there[0].only_open:
                until[node] = clocks.clocks.on(own, node, clocks.ends.get(node, -INSTANT_LIMIT)).lo
            elif not there or any(each.status not in (Status.CLEAN, Status.CRASHED) for each in there):
                until[node] = -INSTANT_LIMIT
        return cls(plan.nodes, until)

    def are_there(self, result: Behind) -> bool:
        """Whether what a result rests on is known."""
        return result.at_ns <= min(self.until.values(), default=INSTANT_LIMIT)

    def lacking(self, results: Iterable[Behind]) -> Iterator[str]:
        """A sentence per node that leaves results open."""
        at = [each.at_ns for each in results]
        for node, until_ns in self.until.items():
            later = sum(at_ns > until_ns for at_ns in at)
            if until_ns <= -INSTANT_LIMIT:
                yield f"{self.nodes[node]} has no whole trace: what results rest on there is not known"
            elif later:
                ends = f"the trace of {self.nodes[node]} was collected before {counted(later, 'result')}"
                yield f"{ends}: what they rest on there is not known"


def _nodes(plan: PlanView, ways: DataWays, output: int) -> set[int]:
    """That results come over, or what they rest on."""
    places = [ways.places[number] for number in ways.places_behind(output)]
    admit = {plan.sources[source][0] for place in places for source in place.sources}
    run = {plan.units[unit].node for place in places for unit in place.units}
    return admit | run | {place.node for place in places}


__all__ = ["RecordsBehind"]
