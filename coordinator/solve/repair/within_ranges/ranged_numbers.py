"""Keys that change only where a range is declared for them, beside `numbers.NUMBERS`.

A search for repairs without ranges takes speeds by a factor and arrivals by a share ([Q] 4.4), which change several
keys at once. A user declares a range for one key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from coordinator.solve.repair.case_parts import NODES, SOURCES
from coordinator.solve.repair.numbers import COUNT, MICRO, MILLI, PER_S, SHARE, Number
from coordinator.spec.arrivals import Arrival
from coordinator.spec.cluster import Node
from coordinator.spec.query import Source
from protos.plan.arrivals import BurstArrival, JcpArrival, RateArrival

FASTEST = 1000 * MILLI  # what a file may have, in thousandths
SECOND_NS = 10**9


def _speed(node: Node) -> int | None:
    speed = node.speed * MILLI
    return int(speed) if speed.denominator == 1 else None


def _burst(source: Source) -> int | None:
    written = source.arrival.written
    is_declared = isinstance(written, BurstArrival | RateArrival) and not _ticks(source)
    return source.arrival.burst if is_declared else None


def _with_burst(source: Source, value: int) -> Source:
    arrival = source.arrival
    if isinstance(arrival.written, BurstArrival):
        rate = Fraction(value, arrival.written.period_ns)
        return _arriving(source, Arrival(value, rate, replace(arrival.written, burst=value)))
    assert isinstance(arrival.written, RateArrival)  # it was read
    return _arriving(source, Arrival(value, arrival.rate, replace(arrival.written, burst=value)))


def _period(source: Source) -> int | None:
    written = source.arrival.written
    return written.period_ns if isinstance(written, BurstArrival) and not _ticks(source) else None


def _with_period(source: Source, value: int) -> Source:
    """How late a tuple may be follows unless it is declared."""
    written = source.arrival.written
    assert isinstance(written, BurstArrival)  # it was read
    late_ns = value // 10 if written.tolerance_ns == written.period_ns // 10 else written.tolerance_ns
    changed = replace(written, period_ns=value, tolerance_ns=late_ns)
    return _arriving(source, Arrival(source.arrival.burst, Fraction(source.arrival.burst, value), changed))


def _rate(source: Source) -> int | None:
    written = source.arrival.written
    return round(written.rate_per_s * MICRO) if isinstance(written, RateArrival) else None


def _with_rate(source: Source, value: int) -> Source:
    written = source.arrival.written
    assert isinstance(written, RateArrival)  # it was read
    rate = Fraction(value, MICRO) / SECOND_NS
    return _arriving(source, Arrival(source.arrival.burst, rate, replace(written, rate_per_s=value / MICRO)))


def _jcp(read: Callable[[JcpArrival], int]) -> Callable[[Source], int | None]:
    return lambda one: read(one.arrival.written) if isinstance(one.arrival.written, JcpArrival) else None


def _with_jcp(write: Callable[[JcpArrival, int], JcpArrival]) -> Callable[[Source, int], Source]:
    """With the burst that follows."""

    def changed(source: Source, value: int) -> Source:
        assert isinstance(source.arrival.written, JcpArrival)  # it was read
        jcp = write(source.arrival.written, value)
        burst = (jcp.early_ns + jcp.late_ns) // (jcp.period_ns - jcp.min_gap_ns) + 1
        return _arriving(source, Arrival(burst, Fraction(1, jcp.period_ns), replace(jcp, burst=burst)))

    return changed


def _most_gap(source: Source) -> int:
    assert isinstance(source.arrival.written, JcpArrival)  # it was read
    return source.arrival.written.period_ns - 1


def _nothing(_: object) -> int:
    return 0


def _arriving(source: Source, arrival: Arrival) -> Source:
    return replace(source, arrival=arrival)


def _ticks(source: Source) -> bool:
    """Whether its arrivals follow from `every:`."""
    return source.pull is not None and source.pull.every_ns > 0


def _most(source: Source) -> int | None:
    return source.limit.tuples if source.limit is not None else None


def _a_second(source: Source) -> int | None:
    return source.limit.tuples if source.limit is not None and source.limit.span_ns == SECOND_NS else None


def _with_most(source: Source, value: int) -> Source:
    assert source.limit is not None  # it was read
    return replace(source, limit=replace(source.limit, tuples=value))


def _with_span(source: Source, value: int) -> Source:
    assert source.limit is not None  # it was read
    return replace(source, limit=replace(source.limit, span_ns=value))


MACHINES: tuple[Number[Node], ...] = (
    Number(
        NODES,
        "speed",
        "speed",
        "make node {name} faster: a speed of {after} instead of {before}",
        "more",
        _speed,
        lambda one, value: replace(one, speed=Fraction(value, MILLI)),
        SHARE,
        lambda _: FASTEST,
    ),
    Number(
        NODES,
        "emulate.cost_per_tuple",
        "speed",
        "let node {name} take at least {after} per tuple (emulate) instead of {before}",
        "less",
        lambda one: one.emulate_cost_ns or None,
        lambda one, value: replace(one, emulate_cost_ns=value),
    ),
)
ARRIVALS: tuple[Number[Source], ...] = (
    Number(
        SOURCES,
        "arrival.burst",
        "input",
        "shed input of {name}: a burst of {after} instead of {before}",
        "less",
        _burst,
        _with_burst,
        COUNT,
    ),
    Number(
        SOURCES,
        "arrival.period",
        "input",
        "shed input of {name}: a burst every {after} (period) instead of {before}",
        "more",
        _period,
        _with_period,
    ),
    Number(
        SOURCES,
        "arrival.rate",
        "input",
        "shed input of {name}: {after} a second (rate) instead of {before}",
        "less",
        _rate,
        _with_rate,
        PER_S,
    ),
    Number(
        SOURCES,
        "arrival.jcp.period",
        "input",
        "shed input of {name}: a tuple every {after} (period) instead of {before}",
        "more",
        _jcp(lambda jcp: jcp.period_ns),
        _with_jcp(lambda jcp, value: replace(jcp, period_ns=value)),
    ),
    Number(
        SOURCES,
        "arrival.jcp.min_gap",
        "input",
        "feed {name} more evenly: tuples at least {after} apart (min_gap) instead of {before}",
        "more",
        _jcp(lambda jcp: jcp.min_gap_ns),
        _with_jcp(lambda jcp, value: replace(jcp, min_gap_ns=value)),
        end=_most_gap,
    ),
    Number(
        SOURCES,
        "arrival.jcp.early",
        "input",
        "feed {name} more evenly: tuples at most {after} early instead of {before}",
        "less",
        _jcp(lambda jcp: jcp.early_ns),
        _with_jcp(lambda jcp, value: replace(jcp, early_ns=value)),
        end=_nothing,
    ),
    Number(
        SOURCES,
        "arrival.jcp.late",
        "input",
        "feed {name} more evenly: tuples at most {after} late instead of {before}",
        "less",
        _jcp(lambda jcp: jcp.late_ns),
        _with_jcp(lambda jcp, value: replace(jcp, late_ns=value)),
        end=_nothing,
    ),
    Number(
        SOURCES,
        "max_rate",
        "input",
        "let at most {after} tuples of {name} a second go on (max_rate) instead of {before}",
        "less",
        _a_second,
        _with_most,
        COUNT,
    ),
    Number(
        SOURCES,
        "max_rate.tuples",
        "input",
        "let at most {after} tuples of {name} go on at a time (max_rate) instead of {before}",
        "less",
        _most,
        _with_most,
        COUNT,
    ),
    Number(
        SOURCES,
        "max_rate.per",
        "input",
        "let tuples of {name} go on every {after} (max_rate) instead of {before}",
        "more",
        lambda one: one.limit.span_ns if one.limit is not None else None,
        _with_span,
    ),
)
RANGED: tuple[Number[Node] | Number[Source], ...] = (*MACHINES, *ARRIVALS)

__all__ = ["RANGED"]
