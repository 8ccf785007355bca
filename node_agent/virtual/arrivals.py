"""Arrivals of a trial: whole bursts, jittery periods, or a rate. Instants count from the trial's start."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from node_agent.virtual import random_draws
from node_agent.virtual.errors import bad_input
from node_agent.virtual.scenario import Scenario, Source
from protos.plan.arrivals import BurstArrival, JcpArrival, RateArrival

SECOND_NS = 1_000_000_000
_ARRIVAL = 2  # what a draw is for


class Burst(NamedTuple):
    """Tuples that a source admits at one instant."""

    at_ns: int
    source: int
    tuples: int


class WithSources(Protocol):
    """A plan, or several."""

    @property
    def sources(self) -> Sequence[Source]:
        """Each once."""


def bursts(plan: WithSources, scenario: Scenario, trial: int) -> list[Burst]:
    """All admissions of a trial, but for ticks, in order: by instant, then by source id (the order in the query).

    Raises BadInputError for a kind of arrival that cannot be simulated.
    """
    span_ns = scenario.bursts * max(_period_ns(source) for source in plan.sources)
    found: list[Burst] = []
    for source in plan.sources:
        if source.ticks:
            continue
        phase_ns = scenario.phase_ns.get(source.name, 0)
        found += [
            Burst(phase_ns + at_ns, source.id, count) for at_ns, count in _instants(source, scenario, trial, span_ns)
        ]
    return sorted(found)


def _period_ns(source: Source) -> int:
    return source.arrival.period_ns if isinstance(source.arrival, BurstArrival | JcpArrival) else SECOND_NS


def _instants(source: Source, scenario: Scenario, trial: int, span_ns: int) -> Iterator[tuple[int, int]]:
    count = scenario.burst.get(source.name)
    match source.arrival:
        case BurstArrival() as arrival:
            size = arrival.burst if count is None else count
            times = scenario.bursts if size else 0
            return ((number * arrival.period_ns, size) for number in range(times))
        case JcpArrival() as arrival:
            drawn_for = _ARRIVAL, scenario.seed, trial, source.id
            return _jcp(arrival, drawn_for, span_ns, 1 if count is None else count)
        case RateArrival() as arrival:
            return _rate(arrival, span_ns, arrival.burst if count is None else count)
    kind = source.arrival.kind
    raise bad_input(
        "arrivals_not_simulated",
        f"source {source.name}: arrivals of kind {kind!r} cannot be simulated",
        "burst, jcp and rate can",
        subject=source.name,
    )


def _jcp(arrival: JcpArrival, drawn_for: tuple[int, ...], span_ns: int, count: int) -> Iterator[tuple[int, int]]:
    """One tuple about every period: up to `early` before and `late` after its instant, `min_gap` apart."""
    width_ns = arrival.early_ns + arrival.late_ns
    earliest_ns = 0
    for number in range(-(-span_ns // arrival.period_ns)):
        drawn = random_draws.uniform(random_draws.key(*drawn_for, number))
        at_ns = max(number * arrival.period_ns + round(drawn * width_ns) - arrival.early_ns, earliest_ns)
        earliest_ns = at_ns + arrival.min_gap_ns
        yield at_ns, count


def _rate(arrival: RateArrival, span_ns: int, burst: int) -> Iterator[tuple[int, int]]:
    """The worst that the curve allows: the burst at once, then tuple by tuple at the rate."""
    if burst:
        yield 0, burst
    for number in range(1, int(span_ns * arrival.rate_per_s / SECOND_NS) + 1):
        yield round(number * SECOND_NS / arrival.rate_per_s), 1
