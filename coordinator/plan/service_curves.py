"""Service curves that outputs ask beyond their deadlines ([Q] 2.3), divided among the units on their paths.

They are for the policies that go by service curves.

[Q] knows one unit per query: its curve is the output's, and its deadlines are theorem 2's, exactly. On a way of several
units, let F be by when after its admission the output wants a tuple that finds nothing before it (deadline: D, less the
age on admission; wait: L; throughput: L + 1/P; queue: what leaves room). Links take their latencies off F, and each
unit u gets the share F_u = (F - links) d_u / S, with d_u its sub-deadline and S the longest sum of them on any way to
the output. So sub-deadlines divide what is asked as they divide the deadline, and along every way the shares sum up to
no more than F. A unit is then promised

    deadline    the delay bound F_u
    wait        F_u for a tuple that finds it idle
    throughput  gamma(P, F_u - 1/P); where F_u is less than 1/P, the delay bound F_u
    queue       the same, P being the rate of what is admitted

of every output that it leads to. Units that lead to outputs with a deadline only keep their sub-deadlines. That is
sound: let E_n(f) = max over j <= n of (a_j + f + (n - j)/P); theorem 2's deadline of the output is E_n(F). A tuple that
has left the units before u by E_n(f) and meets its deadline at u leaves it by E_n(f + F_u), under gamma as under the
delay bound. Tuples that are filtered before only make deadlines earlier; a union of branches that each keep a curve
keeps it for their sum. Behind an operator with more results than inputs one tuple may be many: units there get delay
bounds. So they do on the way to a window and behind it: what an output asks per second are windows, which say nothing
of tuples, and what waits before it is no longer what was admitted.

Rejected: the whole curve to the last unit and delay bounds before it (short deadlines for all but one unit).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor

from coordinator.spec.graph import order
from coordinator.spec.query import Operator, Output, Query
from coordinator.spec.runtime_charges import MEASURED
from protos import plan_pb2
from protos.plan.arrivals import Arrival, BurstArrival, JcpArrival, RateArrival, TraceArrival

CURVES = frozenset({"qed", "pqed"})  # policies that go by them
MOST_TUPLES = 1_000_000  # of a rate, as agents take it
MOST_RATES = 14  # of one unit, beside its delay bounds
Unit = tuple[str, ...]
Affine = tuple[Fraction, Fraction]  # (b, r): at most b + r t tuples in any closed window of t ns


@dataclass(frozen=True)
class Wish:
    """What an output wants of its ways: a tuple that finds nothing before it by `first_ns`, and then, unless `every_ns`
    is None, one more in every so many ns."""

    first_ns: Fraction
    every_ns: Fraction | None


@dataclass(frozen=True)
class Division:
    """`units`: on every node; `due_ns`: sub-deadlines of operators; `link_ns`: latency to bring a stream to a place,
    where it is not made there."""

    query: Query
    units: tuple[Unit, ...]
    due_ns: Mapping[str, int]
    link_ns: Mapping[tuple[str, str], int]
    place: Mapping[str, str]

    @cached_property
    def _unit(self) -> dict[str, Unit]:
        return {name: unit for unit in self.units for name in unit}

    @cached_property
    def _operator(self) -> dict[str, Operator]:
        return {operator.name: operator for operator in self.query.operators}

    @cached_property
    def _before(self) -> dict[Unit, _Before]:
        """What is before each unit, along its worst ways."""
        found: dict[Unit, _Before] = {}
        firsts = {unit[0] for unit in self.units}
        for operator in (each for each in order(self.query) if each.name in firsts):
            here, reached = self.place[operator.name], []
            for stream in operator.inputs:
                link_ns = self.link_ns.get((stream, here), 0)
                if stream in self._unit:
                    unit = self._unit[stream]
                    reached.append(found[unit].then(self._sum_ns(unit), link_ns, any(map(self._many, unit))))
                else:
                    reached.append(_Before(0, link_ns, False, frozenset((stream,))))
            found[self._unit[operator.name]] = _Before.worst(reached)
        return found

    def _sum_ns(self, unit: Unit) -> int:
        return sum(self.due_ns[name] for name in unit)

    def _many(self, name: str) -> bool:
        """Whether an operator may give more results than it has inputs, or others."""
        if self._operator[name].window is not None:
            return True
        said = self._operator[name].selectivity
        return said is not None and (said.mean > 1 or any(results > inputs for inputs, results in said.at_most))

    @cached_property
    def _behind(self) -> dict[str, set[Unit]]:
        """The units on the ways to each output."""
        return {output.name: self._paths_to(output) for output in self.query.outputs}

    def _paths_to(self, output: Output) -> set[Unit]:
        found, waiting = set(), [output.origin]
        while waiting:
            unit = self._unit[waiting.pop()]
            if unit not in found:
                found.add(unit)
                waiting += [name for name in self._operator[unit[0]].inputs if name in self._unit]
        return found

    def service(self, unit: Unit) -> list[plan_pb2.Service]:
        """What a unit is promised; empty: its sub-deadline alone."""
        own_ns = self._sum_ns(unit)
        delays_ns, firsts_ns, rates = [], [], []
        outputs = [output for output in self.query.outputs if unit in self._behind[output.name]]
        if not any(output.qos for output in outputs):
            return []
        for output in outputs:
            last = self._unit[output.origin]
            whole_ns = self._before[last].sum_ns + self._sum_ns(last)
            links_ns = self._before[last].link_ns + self.link_ns.get((output.origin, output.at), 0)
            for rule, wish in self._wishes(output, last).items():
                share_ns = max(Fraction(0), wish.first_ns - links_ns) * own_ns / whole_ns
                if rule == "wait":
                    firsts_ns.append(floor(share_ns))
                elif self._before[unit].many or wish.every_ns is None or share_ns < wish.every_ns:
                    delays_ns.append(floor(share_ns))
                else:
                    rates.append((share_ns - wish.every_ns, wish.every_ns))
        rates = sorted(set(rates))
        delays_ns += [floor(latency_ns + every_ns) for latency_ns, every_ns in rates[MOST_RATES:]]
        found = [plan_pb2.Service(latency_ns=min(delays_ns))]
        if firsts_ns and min(firsts_ns) < min(delays_ns):
            found.append(plan_pb2.Service(latency_ns=min(firsts_ns), first=True))
        found += [_rate(latency_ns, every_ns) for latency_ns, every_ns in rates[:MOST_RATES]]
        return found

    def _wishes(self, output: Output, last: Unit) -> dict[str, Wish]:
        qos, behind = output.qos, self._before[last].sources
        age_ns = max(source.max_age_ns for source in self.query.sources if source.name in behind)
        found = {"deadline": Wish(Fraction(output.deadline_ns - age_ns), None)}
        if qos.wait_ns is not None:
            found["wait"] = Wish(Fraction(qos.wait_ns), None)
        windows = any(self._operator[unit[0]].window is not None for unit in self._behind[output.name])
        if qos.throughput is not None:
            first_ns = (qos.latency_ns or 0) + qos.every_ns
            found["throughput"] = Wish(first_ns, None if windows else qos.every_ns)
        if qos.queue_bytes is not None and not windows:
            room, (burst, rate) = qos.queue_bytes // MEASURED.tuple_bytes, self._arriving(last)
            found["queue"] = Wish((max(Fraction(0), room - burst) + 1) / rate, 1 / rate)
        return found

    def _arriving(self, unit: Unit) -> Affine:
        """All tuples of the sources that lead to a unit, as admitted."""
        sources = [source for source in self.query.sources if source.name in self._before[unit].sources]
        every = [affine(source.arrival.written) for source in sources]
        return sum((burst for burst, _ in every), Fraction(0)), sum((rate for _, rate in every), Fraction(0))


@dataclass(frozen=True)
class _Before:
    """Before a unit, from the sources on: the longest sum of sub-deadlines, the longest of latencies, whether an
    operator may give more than it takes, and the sources."""

    sum_ns: int
    link_ns: int
    many: bool
    sources: frozenset[str]

    def then(self, sum_ns: int, link_ns: int, many: bool) -> _Before:
        return _Before(self.sum_ns + sum_ns, self.link_ns + link_ns, self.many or many, self.sources)

    @staticmethod
    def worst(every: list[_Before]) -> _Before:
        return _Before(
            max(each.sum_ns for each in every),
            max(each.link_ns for each in every),
            any(each.many for each in every),
            frozenset().union(*(each.sources for each in every)),
        )


def _rate(latency_ns: Fraction, every_ns: Fraction) -> plan_pb2.Service:
    """gamma(1/every, latency), rounded to earlier deadlines where whole numbers cannot say it."""
    period_ns, tuples = every_ns.numerator, every_ns.denominator
    if tuples > MOST_TUPLES:
        period_ns, tuples = max(1, floor(every_ns * MOST_TUPLES)), MOST_TUPLES
    return plan_pb2.Service(latency_ns=floor(latency_ns), period_ns=period_ns, tuples=tuples)


def affine(arrival: Arrival) -> Affine:
    """Of declared arrivals, their tolerance included."""
    burst = Fraction(arrival.burst)
    match arrival:
        case BurstArrival():
            rate = burst / arrival.period_ns
        case JcpArrival():
            rate = Fraction(1, arrival.period_ns)
            burst = 1 + (arrival.early_ns + arrival.late_ns) * rate
        case RateArrival():
            rate = Fraction(str(arrival.rate_per_s)) / 10**9
            burst += rate  # instants are whole ns
        case TraceArrival():
            steps = zip(arrival.counts, arrival.spans_ns, strict=True)
            rate = Fraction(arrival.counts[-1] - 1, arrival.spans_ns[-1])
            burst = max(count - rate * span_ns for count, span_ns in steps)
    return burst + rate * arrival.tolerance_ns, rate
