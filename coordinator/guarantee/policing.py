"""Policing: nodes enforce declarations, so that a guarantee stays true when a source or an operator breaks its promise.

In theory: declared, policed at run time, the excess shed and counted.

A source is held to the very curve that the analysis takes for the stream of its admitted tuples: the declared one,
widened by its tolerance and by how long a tuple may wait until the node reads its sockets. So what conforms to the
declaration is not shed while instances keep their declared costs, and what is admitted conforms to what the bounds
rest on.

alpha(t + J) = n (floor((t + J) / T) + 1) holds for a window of t iff any k n + 1 tuples in a row span at least k T - J,
for k up to floor((t + J) / T) + 1: a pace. Only windows up to the longest that the analysis looked at matter, and only
those are enforced: a source whose clock runs a little fast is not held to account for its drift of hours. (A single
pair, k = 1, would let the jitter add up from period to period.)

An operator is held to the pairs of its selectivity, whose subadditive extension is the curve that the analysis uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from coordinator.calculus.curves import Recorded, Staircase, Time, TooLongError
from coordinator.calculus.flow import Known, jittered, least
from coordinator.calculus.selectivity import UndeclaredError, declared
from coordinator.guarantee.analysis import Analysis
from coordinator.guarantee.facts import Facts
from coordinator.guarantee.system import Source, System, arrival_curve
from coordinator.guarantee.window_sources import Windows
from protos import plan_pb2
from protos.plan.analysis import Policed
from protos.plan.arrivals import Arrival, BurstArrival, JcpArrival, RateArrival, TraceArrival
from protos.plan.graph import Graph
from protos.plan.operators import Selectivity

LARGEST = (1 << 63) - 1
MOST_SPANS, MOST_TUPLES = 512, 1 << 16  # what nodes look back on at most
MOST_PAIRS = 64
MOST_PARTS = 10**9  # of a nanosecond


@dataclass(frozen=True)
class Enforced:
    """Of one source. `jitter_ns`: beyond the declared arrivals; `horizon_ns`: in windows up to this; `why`: what keeps
    it from being policed, or nothing."""

    source: plan_pb2.Source
    jitter_ns: int = 0
    horizon_ns: int = 0
    why: str = ""

    def document(self) -> Policed:
        """For plan.json."""
        return Policed(jitter_ns=self.jitter_ns, horizon_ns=self.horizon_ns, why=self.why)


def enforced(plan: Facts, analysis: Analysis) -> tuple[dict[str, plan_pb2.LocalPlan], dict[str, Policed]]:
    """The local plans with what their nodes police, and what that is, by source."""
    policed: dict[str, Policed] = {}
    nodes = {}
    for node, local in plan.nodes.items():
        nodes[node] = plan_pb2.LocalPlan()
        nodes[node].CopyFrom(local)
    for windowed in (False, True):  # windows by count go by what their source is held to
        for local in nodes.values():
            for source in local.sources:
                if bool(source.window) is windowed:
                    _police(plan, analysis, source, policed)
    for local in nodes.values():
        for operator in local.operators:
            collects = any(window.add == operator.name for window in plan.graph.windows.values())
            pairs = () if collects else selectivity(plan.graph.operators[operator.name].declared)
            operator.at_most.extend(plan_pb2.Most(inputs=inputs, results=results) for inputs, results in pairs)
    return nodes, policed


def _police(plan: Facts, analysis: Analysis, source: plan_pb2.Source, policed: dict[str, Policed]) -> None:
    name = source.name
    if name in analysis.system.windows:
        found = window_closings(plan, analysis, analysis.system.windows[name], policed)
    else:
        found = arrivals(analysis, analysis.system.sources[name], plan.graph.sources[name].arrival)
    policed[name] = found.document()
    source.MergeFrom(found.source)


def arrivals(analysis: Analysis, source: Source, arrival: Arrival) -> Enforced:
    """What a node enforces of a source, from its `arrival` in plan.json."""
    flow = analysis.streams.flows.get((source.name, source.node))
    if flow is None:
        return Enforced(plan_pb2.Source(), why=analysis.streams.why[source.name, source.node])
    jitter_ns = 0
    if analysis.charges.drained:
        jitter_ns = source.tolerance_ns + analysis.delays.drains.get(source.node, 0)
    assert isinstance(flow.curve, Known)
    horizon_ns = _horizon_ns(analysis, flow.curve)
    found = declared_limits(arrival, jitter_ns, horizon_ns)
    why = "" if found.paces or found.spans else f"the recording of source {source.name} has too many tuples to look at"
    return Enforced(found, jitter_ns, horizon_ns, why)


def _horizon_ns(analysis: Analysis, curve: Known) -> int:
    """Windows longer than that are of no interest to any bound."""
    return max(floor(curve.asked) + 1, *(output.deadline_ns for output in analysis.system.outputs.values()))


def window_closings(plan: Facts, analysis: Analysis, windows: Windows, policed: Mapping[str, Policed]) -> Enforced:
    """What a node enforces of windows that close: that they do so no more densely than the analysis has it. Beyond that
    are only windows that had to wait for what the bounds leave out, like a node that was stopped."""
    at = (windows.add, windows.node)
    flow = analysis.streams.flows.get(at)
    if flow is None:
        return Enforced(plan_pb2.Source(), why=analysis.streams.why.get(at, "nothing bounds what its node does"))
    assert isinstance(flow.curve, Known)
    spread_ns = analysis.streams.window_closings[windows.add].spread_ns
    jitter_ns = windows.jitter_ns(spread_ns) or 0
    horizon_ns = _horizon_ns(analysis, flow.curve)
    found = closing_promise(plan.graph, analysis.system, windows, jitter_ns, horizon_ns, policed)
    why = "" if found.paces or found.spans else f"too many windows of {windows.name} close to look back on"
    return Enforced(found, jitter_ns, horizon_ns, why)


def closing_promise(
    graph: Graph,
    system: System,
    windows: Windows,
    jitter_ns: int,
    horizon_ns: int,
    policed: Mapping[str, Policed],
) -> plan_pb2.Source:
    """Paces of windows by time, spans of those by count; nothing where they are too many. `policed`: of the other
    sources."""
    if windows.kind != "count":
        return plan_pb2.Source(paces=[_pace(1, Fraction(windows.hop), 0, jitter_ns, horizon_ns)])
    source = system.sources[windows.sources[0]]
    declared = jittered(arrival_curve(graph.sources[source.name].arrival), policed[source.name].jitter_ns)
    numbers = declared if source.limit is None else least([source.limit, declared])
    curve = windows.curve(numbers, jitter_ns)
    assert curve is not None
    try:
        stairs = Staircase.of(curve, horizon_ns)
    except TooLongError:
        return plan_pb2.Source()
    steps = list(zip(stairs.times[1:], stairs.counts, strict=False))  # one more than fit in less spans at least that
    if len(steps) > MOST_SPANS or (steps and steps[-1][1] >= MOST_TUPLES):
        return plan_pb2.Source()
    return plan_pb2.Source(spans=[plan_pb2.Span(tuples=count + 1, span_ns=ceil(at)) for at, count in steps])


def declared_limits(arrival: Arrival, jitter_ns: int, horizon_ns: int) -> plan_pb2.Source:
    """Paces or spans of declared arrivals; nothing where they are too many."""
    if not isinstance(arrival, TraceArrival):
        return plan_pb2.Source(paces=paces(arrival, jitter_ns, horizon_ns))
    curve = arrival_curve(arrival)
    assert isinstance(curve, Recorded)
    spans = recorded(curve, jitter_ns, horizon_ns)
    if len(spans) > MOST_SPANS or spans[-1][0] > MOST_TUPLES:
        return plan_pb2.Source()
    return plan_pb2.Source(spans=[plan_pb2.Span(tuples=n, span_ns=span_ns) for n, span_ns in spans])


def paces(arrival: BurstArrival | JcpArrival | RateArrival, jitter_ns: int, horizon_ns: int) -> list[plan_pb2.Pace]:
    """As paces: every kind but recordings."""
    match arrival:
        case BurstArrival():
            return [_pace(arrival.burst, Fraction(arrival.period_ns), 0, jitter_ns, horizon_ns)]
        case JcpArrival():
            jitter = arrival.early_ns + arrival.late_ns
            found = [_pace(1, Fraction(arrival.period_ns), 0, jitter + jitter_ns, horizon_ns)]
            if arrival.min_gap_ns:
                found.append(_pace(1, Fraction(arrival.min_gap_ns), 0, jitter_ns, horizon_ns))
            return found
        case RateArrival():
            interval = 10**9 / Fraction(str(arrival.rate_per_s))
            return [_pace(1, interval, arrival.burst - 1, jitter_ns + 1, horizon_ns)]  # whole ns may be early by one


def _pace(tuples: int, interval: Fraction, early: int, jitter_ns: int, horizon_ns: int) -> plan_pb2.Pace:
    """A slack of that many intervals, and of the jitter."""
    most_parts = min(MOST_PARTS, LARGEST // ((early + 1) * (floor(interval) + 1) + jitter_ns))
    used = least_above(interval, max(1, most_parts))
    slack = early * used + jitter_ns
    most = floor((horizon_ns + slack) / used) + 1
    parts = used.denominator
    return plan_pb2.Pace(
        tuples=tuples, interval=used.numerator, slack=int(slack * parts), parts=parts, most=min(most, (1 << 32) - 1)
    )


def least_above(exact: Fraction, most: int) -> Fraction:
    """The least fraction from `exact` on whose denominator is at most `most`.

    Between the two is no other such fraction. So for every k <= `most` the same whole numbers are above k times the
    one and k times the other: instants in whole ns are judged alike.
    """
    near = exact.limit_denominator(most)
    if near >= exact:
        return near
    p, q = near.numerator, near.denominator  # what follows it in Farey's sequence: r q - p s = 1, s as large as may be
    s = -pow(p, -1, q) % q
    s += (most - s) // q * q
    return Fraction(p * s + 1, q * s)


def recorded(curve: Recorded, jitter_ns: int, horizon_ns: int) -> list[tuple[int, int]]:
    """(tuples, ns) for every step of alpha(t + J) up to the horizon, or as many as show that there are too many."""
    found: list[tuple[int, int]] = []
    span: Time = 0
    while not found or (found[-1][1] <= horizon_ns and len(found) <= MOST_SPANS and found[-1][0] <= MOST_TUPLES):
        tuples = curve.count(max(jitter_ns, span)) + 1
        span = curve.span(tuples)
        found.append((tuples, int(span) - jitter_ns))
    return found


def selectivity(said: Selectivity) -> tuple[tuple[int, int], ...]:
    """The pairs that an operator is held to, from what it declares; () where nothing bounds it."""
    try:
        pairs = declared(said.at_most, Fraction(str(said.mean))).pairs
    except UndeclaredError:
        return ()
    return pairs if len(pairs) <= MOST_PAIRS else ()
