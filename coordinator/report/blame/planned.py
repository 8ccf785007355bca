"""What the plan allows: how long an instance, a link and a tuple's age may take, and how many tuples may come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

from coordinator.report.facts.most_results import most_results
from coordinator.report.facts.plan_view import PlanView
from protos.plan.arrivals import Arrival, BurstArrival, JcpArrival, RateArrival, TraceArrival
from protos.plan_document import Plan
from protos.plan_pb2 import LocalPlan

SECOND_NS = 1_000_000_000
FRAME_BYTES = 48  # of a tuple on a link, beside its payload
LONGEST_NS = 10 * SECOND_NS  # a period beyond it says nothing of a core's load


@dataclass(frozen=True, slots=True)
class Curve:
    """At most burst + t * rate / SECOND tuples come in any t."""

    burst: float
    rate: float
    text: str


class Planned:
    """Of the last plan; units of earlier plans count by the same operators on the same node."""

    def __init__(self, plan: PlanView) -> None:
        self.view, self.made = plan, plan.made

    @cached_property
    def unit_ns(self) -> Mapping[int, int]:
        """What an instance of each unit takes at most for one tuple; no entry: nobody says."""
        by_operators = {
            (self.view.index[name], operators): ns
            for name, local in self.made.nodes.items()
            if name in self.view.index
            for operators, ns in _units(self.made, name, local)
        }
        wanted = ((unit.id, by_operators.get((unit.node, unit.operators), 0)) for unit in self.view.units.values())
        return {id_: ns for id_, ns in wanted if ns}

    def link_ns(self, sender: int, receiver: int, payload_bytes: int) -> int:
        """From one node to another, as declared."""
        local = self.made.nodes.get(self.view.nodes.get(sender, ""))
        name = self.view.nodes.get(receiver)
        for peer in () if local is None else local.peers:
            if peer.name == name:
                bits = (payload_bytes + FRAME_BYTES) * 8 * SECOND_NS
                return peer.latency_ns + (bits // peer.bandwidth_bps if peer.bandwidth_bps else 0)
        return 0

    def decision_ns(self, node: int) -> int:
        """What the plan counts for a choice."""
        known = self.made.cluster.nodes.get(self.view.nodes.get(node, ""))
        charges = (known.charges if known is not None else None) or self.made.analysis.charges
        return charges.decision_ns

    def source_name(self, source: int) -> str:
        """Of a client's source, else of windows."""
        window = self.view.windows.get(source)
        if window is not None:
            return window.name
        return self.view.streams.get(self.view.sources.get(source, (0, 0))[1], "")

    def max_age_ns(self, source: int) -> int:
        """Beyond which a tuple is refused; 0: never."""
        known = self.made.graph.sources.get(self.source_name(source))
        return 0 if known is None else known.max_age_ns

    def guaranteed(self, output: str) -> bool:
        """Whether the plan says that this output is always in time."""
        claim = self.made.guarantee.get(output)
        return claim is not None and claim.guaranteed

    def query_of_operators(self, operators: tuple[str, ...]) -> str:
        """The query that a unit belongs to; "" where it is shared, or there is only one without a name."""
        return self._only({name for name, part in self.made.queries.items() if set(operators) & set(part.operators)})

    def query_of_source(self, source: str) -> str:
        """The query whose source that is; "" where it is shared."""
        return self._only({name for name, part in self.made.queries.items() if source in part.sources})

    def query_of_output(self, output: str) -> str:
        """The query whose output that is."""
        return self._only({name for name, outputs in self.view.queries.items() if output in outputs})

    def _only(self, found: set[str]) -> str:
        if not self.made.queries:
            return self.made.query
        return next(iter(found)) if len(found) == 1 else ""

    def curve(self, source: str) -> Curve | None:
        """How many tuples it may send; None: nobody says."""
        known = self.made.graph.sources.get(source)
        return None if known is None else _curve(known.arrival)

    @cached_property
    def longest_period_ns(self) -> int:
        """Of all sources, as far as it tells of a core's load."""
        return min(LONGEST_NS, max((_period_ns(each.arrival) for each in self.made.graph.sources.values()), default=0))


def _units(made: Plan, name: str, local: LocalPlan) -> Iterator[tuple[tuple[str, ...], int]]:
    node, operators = made.cluster.nodes[name], {operator.id: operator for operator in local.operators}
    charges, speed = node.charges or made.analysis.charges, Fraction(str(node.speed))
    for unit in local.units:
        chain, tuples, ns = [operators[id_] for id_ in unit.operators], 1, 0
        for operator in chain:
            cost_ns = max(operator.cost_ns, operator.late.cost_ns)
            ns += tuples * max(ceil(cost_ns / speed), node.emulate_cost_ns)
            known = made.graph.operators.get(operator.name)
            tuples *= most_results(None if known is None else known.selectivity)
        yield tuple(operator.name for operator in chain), ns + charges.decision_ns if ns else 0


def _curve(arrival: Arrival) -> Curve:
    tolerance_ns = arrival.tolerance_ns
    match arrival:
        case BurstArrival(burst=burst, period_ns=period_ns):
            early = burst * tolerance_ns / period_ns
            return Curve(burst + early, burst * SECOND_NS / period_ns, f"{burst} in {period_ns / 1e6:g} ms")
        case JcpArrival(period_ns=period_ns):
            early = (arrival.early_ns + arrival.late_ns + tolerance_ns) / period_ns
            return Curve(1 + early, SECOND_NS / period_ns, f"1 in {period_ns / 1e6:g} ms")
        case RateArrival(rate_per_s=rate, burst=burst):
            early = rate * tolerance_ns / SECOND_NS
            return Curve(max(1, burst) + early, rate, f"{rate:g}/s" + (f" and {burst} at once" if burst > 1 else ""))
        case TraceArrival():
            rate = arrival.tuples * SECOND_NS / max(1, arrival.span_ns)
            pairs = zip(arrival.counts, arrival.spans_ns, strict=True)
            burst_of = max((n - rate * max(0, ns - tolerance_ns) / SECOND_NS for n, ns in pairs), default=1)
            return Curve(max(1, arrival.burst, burst_of), rate, "its recording")


def _period_ns(arrival: Arrival) -> int:
    match arrival:
        case BurstArrival() | JcpArrival():
            return arrival.period_ns
        case RateArrival():
            return ceil(max(1, arrival.burst) * SECOND_NS / arrival.rate_per_s) if arrival.rate_per_s else 0
        case TraceArrival():
            return 0
