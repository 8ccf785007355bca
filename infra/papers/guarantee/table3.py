"""[Q] table 3: four queries, three with a branch in common; from which cost of it they are schedulable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from coordinator.calculus.curves import Jcp, RateBurst
from coordinator.calculus.service import DelayBound, RateLatency
from coordinator.calculus.theorems import QosQuery, sharper, theorem4, theorem5
from infra.papers.claims import Band, always, value
from infra.papers.reproduction import Effort, Figure, Tell

SHARING = 3  # the first three queries share
PRINTED_MS = Fraction(914, 1000)
SIMPLEST = 10_000  # thresholds are fractions of small integers: denominators up to this are told apart


def queries() -> list[QosQuery]:
    """In ms. JCP(1/0.8, 1/0.25, 6, 4); Q4: 200 tuples/s at most, served with 150/s after 3 ms."""
    stream = Jcp(Fraction(4), Fraction(5, 4), Fraction(10))
    fourth = RateBurst(1, Fraction(1, 5), whole=False)
    return [
        QosQuery("Q1", stream, DelayBound(Fraction(10)), Fraction(3, 2)),
        QosQuery("Q2", stream, DelayBound(Fraction(13)), Fraction(2)),
        QosQuery("Q3", stream, DelayBound(Fraction(10)), Fraction(3, 2)),
        QosQuery("Q4", fourth, RateLatency(Fraction(3, 20), Fraction(3)), Fraction(7, 5)),
    ]


def threshold(admitted: Callable[[Fraction], bool]) -> Fraction:
    """The least shared cost in (0, 1.5] ms that is admitted: by bisection, then the simplest fraction there that is
    admitted while nothing below it is."""
    low, high = Fraction(0), Fraction(3, 2)
    while high - low > Fraction(1, 10**9):
        middle = (low + high) / 2
        low, high = (low, middle) if admitted(middle) else (middle, high)
    simple = high.limit_denominator(SIMPLEST)
    if not (admitted(simple) and not admitted(simple - Fraction(1, 10**9))):
        raise AssertionError(f"no simple fraction near {float(high)}")
    return simple


def full_at(four: list[QosQuery]) -> Fraction:
    """The shared cost at which U = 1: U is affine in it, so two costs with U > 1 tell, where no horizon is searched."""
    low, high = Fraction(1, 10), Fraction(1, 5)
    at_low, at_high = (theorem5(four, SHARING, shared).utilisation for shared in (low, high))
    return low + (at_low - 1) * (high - low) / (at_low - at_high)


def exact(value: Fraction) -> str:
    """As a fraction and in decimals."""
    return f"{value} = {float(value):.4f}"


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Thresholds by the tests that are sound; by utilisation alone."""
    tell("thresholds")
    four = queries()
    by_theorem = threshold(lambda shared: theorem5(four, SHARING, shared).admitted)
    by_sharper = threshold(lambda shared: sharper(four, SHARING, shared).admitted)
    by_utilisation = full_at(four)
    at_printed = theorem5(four, SHARING, PRINTED_MS).utilisation
    yield thresholds(theorem4(four).admitted, by_theorem, by_sharper, by_utilisation, at_printed)


def thresholds(
    apart: bool, by_theorem: Fraction, by_sharper: Fraction, by_utilisation: Fraction, at_printed: Fraction
) -> Figure:
    """apart: whether the four are admitted without sharing; at_printed: utilisation at the printed cost."""
    return Figure(
        "table 3: schedulable from a shared cost of (ms)",
        [
            always("not schedulable without sharing", [not apart], "tests"),
            value("schedulable from 0.914 ms on", Band.of([float(by_sharper)]), float(PRINTED_MS)),
        ],
        {"theorems 4 and 5": exact(by_theorem), "sharper test": exact(by_sharper),
         "utilisation 1": exact(by_utilisation), "utilisation at 0.914": f"{float(at_printed):.4f}"},
        [
            always("at 0.914 the processor's utilisation is above 1 in the worst case, so no sound test admits the "
                   "queries there", [at_printed > 1 and by_utilisation > PRINTED_MS], "tests"),
            always("the sharper test, which blocks once instead of shifting every deadline, admits them sooner than "
                   "theorems 4 and 5", [by_sharper < by_theorem], "tests"),
        ],
        "JCP(1/0.8, 1/0.25, 6, 4) is D = 1.25, T = 4, J = 10 ms; Q4 comes at 0.2 per ms without a burst. Theorems with "
        "floors, a finite horizon, and j <= M.",
    )  # fmt: skip
