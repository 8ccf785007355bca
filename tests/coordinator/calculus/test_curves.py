"""Curves: closed forms against brute force, the printed forms, extension of selectivities; contradictions refused."""

import random
from fractions import Fraction
from itertools import accumulate

import pytest

from coordinator.calculus.curves import Bursts, Curve, Jcp, RateBurst, Recorded, Spanned, Staircase, recorded_spans
from coordinator.calculus.flow import Jittered, Known, Selected, Spaced, jittered, least, selected, total
from coordinator.calculus.selectivity import ONE, Selectivity, UndeclaredError, contradicting, contradiction, declared
from coordinator.errors import MistakeError
from tests.seeds import seeds
from tests.sentences import refused

SPANNED: list[Spanned] = [
    Jcp(10, 3, 25),
    Jcp(10, 0, 7),
    Jcp(7, 2, 0),
    Bursts(4, 9),
    RateBurst(3, Fraction(2, 7)),
    Recorded((1, 2, 3, 5), (0, 1, 4, 11)),
]


@pytest.mark.parametrize("curve", SPANNED, ids=repr)
def test_count_is_the_inverse_of_span_and_steps_at_its_points_only(curve: Spanned) -> None:
    spans = [curve.span(n) for n in range(1, 200)]
    assert spans == sorted(spans)
    points = set(curve.points(60))
    for t in range(61):
        assert curve.count(t) == sum(span <= t for span in spans)
        assert t in points or curve.count(t) == curve.count(t - 1)
        assert curve.alpha(t) == (sum(span < t for span in spans) if t else 0)
        assert curve.count(t) <= curve.burst + curve.rate * t


def test_jcp_is_theorem_1() -> None:
    """alpha(t) = min(ceil(t/D), ceil((t+J)/T))."""
    stream = Jcp(Fraction(4), Fraction(5, 4), Fraction(10))
    for i in range(1, 400):
        t = Fraction(i, 8)
        assert stream.alpha(t) == min(-(-t // stream.gap), -(-(t + stream.jitter) // stream.period))
    assert [stream.span(n) for n in (1, 4, 5)] == [0, Fraction(15, 4), 6]


@pytest.mark.parametrize(
    ("given", "code"), [((4, 4, 1), "gap_above_period"), ((4, 5, 1), "gap_above_period"), ((4, 1, -1), "negative")]
)
def test_a_jcp_stream_that_contradicts_itself_is_refused(given: tuple[int, int, int], code: str) -> None:
    with refused(code, MistakeError):
        Jcp(*given)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Bursts(0, 1), "not_above_zero"), (lambda: Bursts(1, 0), "not_above_zero"),
        (lambda: RateBurst(0, Fraction(1)), "not_above_zero"), (lambda: RateBurst(1, Fraction(0)), "not_above_zero"),
        (lambda: Recorded((1, 2), (0, 0)), "unusable_recording"),
    ],
)  # fmt: skip
def test_what_is_no_stream_is_refused(make: object, code: str) -> None:
    with refused(code, MistakeError):
        make()  # type: ignore[operator]


def test_a_recording_bounds_itself_and_is_tight_for_short_stretches() -> None:
    for seed in range(30):
        draw = random.Random(seed)
        instants = [*accumulate(draw.choice([0, 0, 1, 5, 40]) for _ in range(draw.randint(3, 200))), 10_000]
        counts, spans = recorded_spans(instants)
        curve = Recorded(tuple(counts), tuple(spans))
        for i, first in enumerate(instants):
            for n, last in enumerate(instants[i:], start=1):
                assert curve.span(n) <= last - first, f"seed {seed}"
        assert curve.count(0) == max(instants.count(each) for each in instants), f"seed {seed}"
        everything: list[int] = [curve.count(t) for t in range(0, 30_000, 37)]
        assert everything == sorted(everything), f"seed {seed}"


# -- selectivity


@pytest.mark.parametrize(
    "pairs", [((1, 1), (2, 1)), ((1, 1), (10, 10), (20, 10)), ((1, 3), (4, 5)), ((3, 0),), ((5, 2), (7, 2))]
)
def test_selectivity_is_sound_against_every_pattern(pairs: tuple[tuple[int, int], ...], seed: int) -> None:
    """Random patterns that keep every declared pair never beat the extension."""
    sigma, draw = Selectivity(pairs), random.Random(seed + 6)
    for _ in range(200):
        outputs: list[int] = []
        for _ in range(60):
            room = [m - sum(outputs[max(0, len(outputs) - k + 1) :]) for k, m in pairs]
            outputs.append(draw.choice([0, max(0, min(room)), max(0, min(room))]))
        sums = [0, *accumulate(outputs)]
        for k in range(1, 61):
            assert max(sums[i + k] - sums[i] for i in range(61 - k)) <= sigma(k)


def test_selectivity_of_the_collision_filter_is_half_rounded_up() -> None:
    sigma = declared([[2, 1]], 0.5)
    assert [sigma(k) for k in range(6)] == [0, 1, 1, 2, 2, 3]
    assert sigma(10_001) == 5001 and sigma.rate == Fraction(1, 2)


def test_selectivity_does_not_decrease_and_its_rate_is_its_slope() -> None:
    for pairs in [((1, 1), (10, 10), (20, 10)), ((3, 2), (5, 3)), ((1, 4), (5000, 6000)), ((9000, 10),)]:
        sigma = Selectivity(pairs)
        values = [sigma(k) for k in range(0, 20_000, 13)]
        assert values == sorted(values)
        assert sigma(3_000_000) <= sigma.rate * 3_000_000 + sigma(9000)


def test_undeclared_is_one_output_per_input_and_more_has_to_be_declared() -> None:
    assert declared([], 1)(7) == 7 and declared([], 0.2)(7) == 7
    assert declared([[1, 3]], 3)(7) == 21
    with pytest.raises(UndeclaredError):
        declared([], 1.5)


def test_a_mean_above_the_worst_case_is_found() -> None:
    assert contradiction([[20, 10]], 0.6) == (20, 10)
    assert contradiction([[20, 10]], 0.5) is None and contradiction([], 0.5) is None


def test_fewer_inputs_with_more_outputs_contradict() -> None:
    assert contradicting([[20, 5], [10, 6]]) == ((10, 6), (20, 5))
    assert contradicting([[10, 6], [10, 7]]) == ((10, 7), (10, 6))
    assert contradicting([[1, 1], [10, 6], [20, 6], [20, 6]]) is None and contradicting([]) is None


# -- compositions


def test_compositions_step_at_their_points_only_and_are_written_out_exactly() -> None:
    base = Jcp(10, 2, 13)
    curves: list[Curve] = [
        jittered(jittered(base, 3), 4),
        Selected(base, Selectivity(((1, 1), (3, 2)))),
        selected(base, [ONE, Selectivity(((1, 2), (2, 2)))]),
        least([Jittered(Bursts(5, 30), 8), Spaced(2, 3)]),
        total([base, Bursts(2, 7), Jittered(Bursts(1, 9), 2)]),
    ]
    for curve in curves:
        stairs, points = Staircase.of(curve, 90), set(curve.points(90))
        for t in range(91):
            assert stairs.count(t) == curve.count(t)
            assert t in points or curve.count(t) == curve.count(t - 1)
        assert curve.count(10**6) <= curve.rate * 10**6 + 100


def test_jitter_lets_more_into_a_window() -> None:
    assert jittered(Bursts(5, 30), 29).count(0) == 5
    assert jittered(Bursts(5, 30), 30).count(0) == 10


def test_remembering_asks_for_no_more_than_was_asked() -> None:
    """A margin per stream would multiply along a chain, and a short busy period would look too long to search."""
    curve: Curve = Bursts(1, 100)
    for _ in range(60):
        curve = Known(least([Jittered(curve, 1), Spaced(1, 1)]))
    assert curve.count(30_000) == 301
    assert list(curve.points(150)) == [0, 40, 140]
    assert curve.count(40) == 2 and curve.count(10**7) == 100_001


@pytest.mark.parametrize("seed", seeds(range(60)))
def test_the_least_steps_where_it_says(seed: int) -> None:
    """It leaves out points of curves that have grown beyond the others: instant by instant nothing is missed."""
    dice = random.Random(seed)

    def one() -> Jittered | Selected | Spaced | Bursts:
        bursts = Bursts(dice.randint(1, 6), dice.randint(2, 40))
        kinds = [bursts, Spaced(dice.randint(1, 3), dice.randint(1, 9)), Jittered(bursts, dice.randint(1, 30))]
        return dice.choice([*kinds, Selected(bursts, Selectivity(((2, 1), (1, 1))))])

    curve, limit = least([one() for _ in range(dice.randint(2, 4))]), dice.randint(1, 200)
    stairs = Staircase.of(curve, limit)
    assert [stairs.count(t) for t in range(limit + 1)] == [curve.count(t) for t in range(limit + 1)], f"seed {seed}"
