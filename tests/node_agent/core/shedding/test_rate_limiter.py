"""[P]'s load shedder: never beyond the limit for any arrivals; the least valuable go first."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.core.plan import Pace
from node_agent.core.shedding.policing import PacePolice
from node_agent.core.shedding.rate_limiter import PASS, SHED, RateLimiter
from node_agent.core.shedding.utility import LEAST
from tests.sentences import Wording

SAID = Wording("engine", "rate limiter")

SPAN_NS = 1000
VALUES = st.integers(0, 5) | st.floats() | st.floats(0, 1)
ARRIVALS = st.lists(st.tuples(st.integers(0, 400) | st.just(0), VALUES, st.integers(0, 3)), max_size=80)


class Played:
    """Drives a shedder as an engine would, and remembers who survived."""

    def __init__(self, shedder: RateLimiter) -> None:
        self.shedder = shedder
        self.alive: dict[int, tuple[int, float]] = {}
        self.waiting: list[int] = []
        self.undisplaced: list[int] = []  # instants of those that passed without displacing
        self.came = self.gone = 0

    def arrive(self, at_ns: int, value: float) -> int:
        number = self.came
        self.came += 1
        decision = self.shedder.decide(at_ns, value, number)
        if decision == SHED:
            return decision
        if decision == PASS:
            self.undisplaced.append(at_ns)
        else:
            assert decision in self.waiting, "only what passed and has not been taken can be displaced"
            before_ns, before = self.alive.pop(decision)
            assert at_ns - before_ns < self.shedder.span_ns
            assert math.isnan(before) or before < value or math.isinf(before)
            self.waiting.remove(decision)
            self.gone += 1
        self.alive[number] = (at_ns, value)
        self.waiting.append(number)
        return decision

    def take(self, count: int) -> None:
        for number in self.waiting[:count]:
            self.shedder.taken(number)
        del self.waiting[:count]

    @property
    def instants(self) -> list[int]:
        return sorted(at_ns for at_ns, _ in self.alive.values())

    def value(self) -> float:
        return sum(value for _, value in self.alive.values())


def _within_limit(instants: list[int], most: int, span_ns: int) -> bool:
    return all(later - first >= span_ns for first, later in zip(instants, instants[most:], strict=False))


@given(st.integers(1, 6), ARRIVALS)
def test_never_beyond_the_limit(most: int, arrivals: list[Any]) -> None:
    shedder = RateLimiter(most, SPAN_NS)
    played, at_ns = Played(shedder), 0
    for gap_ns, value, taken in arrivals:
        at_ns += gap_ns
        played.arrive(at_ns, value)
        played.take(taken)
        assert _within_limit(played.instants, most, SPAN_NS)
    assert shedder.passed == len(played.alive)
    assert shedder.displaced == played.gone
    assert shedder.passed + shedder.displaced + shedder.shed == played.came
    assert shedder.unjudged == sum(not math.isfinite(value) for _, value, _ in arrivals)


@given(st.integers(1, 6), ARRIVALS)
def test_policing_of_the_same_limit_finds_nothing(most: int, arrivals: list[Any]) -> None:
    """Neither in what survives, nor where it is asked about those only that displace nobody."""
    played, at_ns = Played(RateLimiter(most, SPAN_NS)), 0
    for gap_ns, value, taken in arrivals:
        at_ns += gap_ns
        played.arrive(at_ns, value)
        played.take(taken)
    for instants in (played.instants, played.undisplaced):
        police = PacePolice(Pace(most, SPAN_NS, 0))
        for instant in instants:
            assert police.conforms(instant)
            police.count(instant)


@given(st.integers(1, 6), st.lists(st.integers(-3, 3) | st.floats(-1, 1), max_size=40))
def test_of_one_span_that_all_waits_the_best_are_kept(most: int, values: list[float]) -> None:
    played = Played(RateLimiter(most, SPAN_NS))
    for index, value in enumerate(values):
        played.arrive(index, value)
    assert sorted(value for _, value in played.alive.values()) == sorted(values)[-most:]


@given(st.integers(1, 6), st.lists(st.integers(0, 300), max_size=60), st.floats(0, 1))
def test_equal_values_are_served_in_their_order(most: int, gaps: list[int], value: float) -> None:
    played, at_ns = Played(RateLimiter(most, SPAN_NS)), 0
    for gap_ns in gaps:
        at_ns += gap_ns
        assert played.arrive(at_ns, value) in (PASS, SHED)


@given(st.integers(1, 6), ARRIVALS)
def test_what_is_not_above_the_limit_is_not_shed(most: int, arrivals: list[Any]) -> None:
    played, at_ns, came = Played(RateLimiter(most, SPAN_NS)), 0, []
    for gap_ns, value, taken in arrivals:
        at_ns += gap_ns
        came.append(at_ns)
        decision = played.arrive(at_ns, value)
        if sum(instant > at_ns - SPAN_NS for instant in came) <= most:
            assert decision == PASS
        played.take(taken)


def _kept(most: int, rate: float, bursts: bool, wait: int, chance: random.Random) -> tuple[float, float]:
    """The value that survives, and what first come first served keeps; `wait` tuples wait at most."""
    values: list[Callable[[], float]] = [
        chance.random,
        lambda: chance.expovariate(1),
        lambda: float(chance.random() < 0.3),
    ]
    value, span_ns, at, tail_value = chance.choice(values), 1_000_000, 0.0, 0.0
    tail: list[int] = []
    played = Played(RateLimiter(most, span_ns))
    for index in range(int(200 * rate)):
        at += chance.expovariate(most * rate / span_ns)
        span, within = divmod(int(at), span_ns)
        at_ns, worth = (span * span_ns + within // 5 if bursts else int(at)), value()
        if index < most or at_ns - tail[-most] >= span_ns or len(tail) < most:
            tail.append(at_ns)
            tail_value += worth
        played.arrive(at_ns, worth)
        played.take(len(played.waiting) - wait)
    return played.value(), tail_value


@pytest.mark.parametrize("bursts", [False, True])
@pytest.mark.parametrize("wait", [0, 3, 100])
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_it_keeps_as_much_as_drop_tail(bursts: bool, wait: int, seed: int) -> None:
    """On random streams, over several limits and rates together."""
    chance = random.Random(seed)
    pairs = [_kept(most, rate, bursts, wait, chance) for most in (1, 5, 20) for rate in (1.3, 3)]
    assert sum(ours for ours, _ in pairs) >= sum(tail for _, tail in pairs)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_two_spans_finds_a_place_though_nothing_waits(seed: int) -> None:
    """One tuple in sixty is worth more than all others, and what passed has begun at once. Twelve places in a span."""
    draw, shedder = random.Random(seed), RateLimiter(12, SPAN_NS)
    at_ns, decisions = 0, []
    for number in range(6000):
        at_ns += draw.randint(1, 2 * SPAN_NS // 60)
        value = 2.0 if number % 60 == 59 else draw.random()
        decision = shedder.decide(at_ns, value, number)
        if decision == PASS:
            shedder.taken(number)
        if value == 2.0:
            decisions.append(decision)
    assert decisions.count(SHED) <= 3, f"seed {seed}"  # of 100; 7 to 19 if no place is spared


def test_what_cannot_be_judged_goes_first() -> None:
    played = Played(RateLimiter(2, SPAN_NS))
    assert played.arrive(0, LEAST) == PASS
    assert played.arrive(1, math.nan) == PASS
    assert played.arrive(2, math.inf) == SHED
    assert played.arrive(3, -1e300) == 1  # the younger of two equals
    assert played.arrive(4, 1) == 0
    assert played.arrive(5, -1) == 3


def test_a_displacing_tuple_takes_its_place_now() -> None:
    played = Played(RateLimiter(1, 10))
    assert played.arrive(0, 1) == PASS
    assert played.arrive(9, 2) == 0
    assert played.arrive(10, 1) == SHED  # 9 and 10 would be too near
    played.take(1)
    assert played.arrive(18, 9) == SHED
    assert played.arrive(19, 10) == PASS


def test_a_new_plan_goes_on() -> None:
    old, new = Played(RateLimiter(2, SPAN_NS)), RateLimiter(2, SPAN_NS)
    old.arrive(0, 1)
    old.arrive(1, 2)
    new.inherit(old.shedder)
    assert new.decide(2, 1, 2) == SHED
    assert new.decide(3, 3, 3) == 0
    fewer = RateLimiter(1, SPAN_NS)
    fewer.inherit(new)
    assert fewer.decide(4, 9, 4) == SHED, "two are there, and one is allowed"
    assert fewer.decide(1001, 9, 5) == 3
    assert fewer.decide(2001, 10, 6) == PASS


def test_memory_is_bounded_by_the_limit(seed: int) -> None:
    shedder, chance = RateLimiter(10, SPAN_NS), random.Random(seed)
    for number in range(20_000):
        shedder.decide(number // 20, number + chance.random(), number)
        assert len(shedder._admissions) <= 2 * 10 + 17
        assert len(shedder._heap) <= 2 * 10 + 17
    assert len(shedder._waiting) <= len(shedder._held) <= 10
    assert shedder.displaced > 1000


@pytest.mark.parametrize(("most", "span_ns"), [(0, 1), (-1, 1), (1, 0), (70_000, 1)])
def test_a_limit_that_is_none(most: int, span_ns: int) -> None:
    with SAID.refuses("out_of_range", kind=ValueError):
        RateLimiter(most, span_ns)
