"""Every verdict can fail and can hold: figures of random results, in which each claim comes out either way.

No simulation runs. A world is a set of results of the type that a reproduction hands to its figures.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from infra.papers.batching import batch_length, control, streams, theory
from infra.papers.batching.batch_length import SHOWN, SOME, Draws
from infra.papers.batching.query_trees import Result
from infra.papers.conventional import method_comparison as conventional
from infra.papers.conventional.method_outcomes import Outcome as Compared
from infra.papers.conventional.method_outcomes import Reason
from infra.papers.conventional.methods import METHODS
from infra.papers.guarantee import adaptation, batches, composed, long_streams, sharing, sweeps, table2, table3
from infra.papers.placement import both_placements, figure6, figure7, section41
from infra.papers.reproduction import Figure
from infra.papers.shedding import comparison
from infra.papers.shedding.window_node import Outcome

WORLDS = 4000
SEEDS = [[1], [1, 2], [1, 2, 3]]
Makes = Callable[[Random, list[int]], Iterator[Figure]]


def result(random: Random) -> Result:
    missed = random.choice((0.0, 4.0, 10.0, 15.0, 30.0, 45.0, 75.0))
    low = random.choice((missed - 5, missed - 0.5))
    return Result(
        missed, random.choice((1.0, 3.0, 9.0)), random.choice((50.0, 99.5, 100.0)), random.choice((1, 3, 40, 5000)),
        1.0, random.choice((0, 0, 3)), 2.0, (low, random.choice((missed - 3, missed + 3))), random.choice((1, 7)),
        (missed,),
    )  # fmt: skip


def draws(random: Random, seeds: list[int], names: tuple[str, ...]) -> Draws:
    """In a third of the worlds all policies have one result, in another third they have those of a few."""
    kind = random.randrange(3)
    few = [result(random) for _ in range(1 if kind == 0 else 2 if kind == 1 else len(names))]
    if random.random() < 0.5:
        return [{name: random.choice(few) for name in names} for _ in seeds]
    return [{name: few[i % len(few)] for i, name in enumerate(names)} for _ in seeds]


def at_lambda(random: Random, seeds: list[int]) -> Iterator[Figure]:
    shown = draws(random, seeds, SHOWN)
    yield batch_length.figure8(shown, seeds)
    yield batch_length.all_trees(shown, seeds)
    yield batch_length.arrivals([[random.choice((40, 50, 51, 76)) for _ in range(3)] for _ in seeds], seeds)
    yield batch_length.controller({0.5: shown}, seeds)
    yield batch_length.cpu("cpu", {0.5: shown}, seeds)


def of_lengths(random: Random, seeds: list[int]) -> Iterator[Figure]:
    cases = [(phi, k) for phi in (10, 20, 100) for k in (1, 2, 5)]
    yield batch_length.lengths({case: [random.choice((0, 5, 9)) for _ in seeds] for case in cases}, seeds)


def by_rates(random: Random, seeds: list[int]) -> Iterator[Figure]:
    runs = {rate: draws(random, seeds, SOME) for rate in (0.4, 0.8)}
    yield batch_length.overhead(
        {rate: draws(random, seeds, ("taat", "taat1", "bts", "ats")) for rate in (0.1, 1.0)}, seeds
    )
    yield batch_length.figure10(runs, draws(random, seeds, SOME), seeds)
    means = [random.choice((0.505, 0.55, 0.6)) for _ in seeds]
    yield batch_length.above("above", "higher", runs[0.4], runs[0.8], means, seeds)
    yield batch_length.three_hundred("300", runs, seeds)
    yield batch_length.full(runs, runs, seeds)


def controlled(random: Random, seeds: list[int]) -> Iterator[Figure]:
    yield control.shock(draws(random, seeds, control.SHOCKED), seeds)
    pair = random.choice([(0.0, 0, 5), (2.0, 1, 5), (-1.0, 0, 5)])
    yield control.paired({100: [pair for _ in seeds], 10: [pair for _ in seeds]}, seeds)
    yield control.beginnings([(result(random), result(random)) for _ in seeds], seeds)
    few = [(Fraction(p), Fraction(i)) for p, i in ((1, 10), (20, 10), (1, 1))]
    total = {factors: [result(random)] * len(seeds) for factors in control.CORNERS}
    if random.random() < 0.5:
        total = dict.fromkeys(total, total[control.CORNERS[0]])
    yield control.factors({factors: [result(random) for _ in seeds] for factors in few}, total, seeds)


def other_streams(random: Random, seeds: list[int]) -> Iterator[Figure]:
    names = streams.NAMES
    yield streams.urgency(draws(random, seeds, (*names, *(f"{name} muf" for name in names))), seeds)
    yield streams.zipf({each: draws(random, seeds, names) for each in streams.STREAMS}, seeds)


def of_theory(random: Random, seeds: list[int]) -> Iterator[Figure]:
    names = ("taat", "bts", "bts1", "ats", "ats1", "adaptive")
    runs = draws(random, seeds, names)
    yield theory.theorem({0.5: runs}, seeds)
    near = [
        [
            Result(expected + random.choice((0.0, 9.0)), 1, 1, 1, 1, 0, 1, (expected - 1, expected + 1), 1, ())
            for _ in seeds
        ]
        for _, _, expected, _ in theory.ARITHMETIC
    ]
    yield theory.arithmetic(near, seeds)
    yield theory.lengths(*([{100: [1.0, random.choice((1.0, 2.0, 9.0))]} for _ in seeds] for _ in range(2)), seeds)


def placed(random: Random, seeds: list[int]) -> Iterator[Figure]:
    ends = random.choice([(3, 5, 6, 7), (4, 6, 5, 8), (3, 6, 5, 7)])
    names = [(1, "O1"), (2, "O1"), (1, "O3"), (2, "O3")]
    edf = sorted(
        ((seq, unit, float(end), float(due)) for (seq, unit), end, due in zip(names, ends, (3, 5, 7, 9), strict=True)),
        key=lambda each: each[2],
    )
    between = random.choice([edf, edf[::-1], edf[:3]])
    yield figure6.by_edf(edf, between, edf)
    yield figure6.by_fifo(edf)
    yield section41.by_batch(
        {name: random.choice((ms, ms, ms, ms, ms, 31, 20, 301)) for name, ms in section41.PRINTED.items()},
        random.choice((300, 480)),
    )
    yield section41.by_tuple({name: random.choice((10, 31, 274, 282, 301)) for name in (
        "existing: p1", "existing: p2", "proposal: p1", "proposal: p2")})  # fmt: skip
    low, high, none = (random.choice((0.0, 0.75, None)) for _ in range(3))
    yield both_placements.where(
        [10, 15, 20, 26, 27], {node: [low, 0.75, 1.0, high, none] for node in "ab"},
        (random.choice("12"), random.choice("12")), {random.choice("12")}, random.random() < 0.5,
    )  # fmt: skip
    yield both_placements.sub_deadlines(
        random.choice([{"O1": 30, "O2": 30, "O3..O21": 270, "O6..O5": 3000}, {"O1": 30}])
    )


def in_time(random: Random, seeds: list[int]) -> Iterator[Figure]:
    def sample() -> figure7.Draws:
        def one(way: int) -> figure7.Missed:
            two = random.choice((2.11, 15.6, 40.9, 55.5, float(way)))
            three = random.choice((2.11, 15.6, 40.9, 55.5))
            share = random.choice((0.0, 0.0, 30.0, 100.0))
            return figure7.Missed(two, three, {"control": share, "warning": share, "advisory": share})

        return [{way: one(i) for i, way in enumerate(figure7.WAYS)} for _ in seeds]

    at_15 = {0: sample(), 5: sample()}
    if random.random() < 0.3:
        at_15[5] = at_15[0]
    yield figure7.by_hand(random.choice([figure7.HANDS, dict.fromkeys(figure7.HANDS, "1/2/3")]))
    yield figure7.order(at_15, seeds)
    yield figure7.percentages(at_15, seeds)
    yield figure7.fifo(at_15, seeds)
    yield figure7.definition(at_15[0], seeds)
    yield figure7.sweep({5: sample(), 26: sample()}, seeds)
    yield figure7.batches(*(figure7.Batched(random.randint(1, 3), random.randint(1, 3)) for _ in range(2)))


def guaranteed(random: Random, seeds: list[int]) -> Iterator[Figure]:
    costs = [Fraction(random.choice((900, 914, 1015, 1228)), 1000) for _ in range(3)]
    yield table3.thresholds(
        random.random() < 0.5, costs[0], costs[1], costs[2], random.choice((Fraction(1, 2), Fraction(2)))
    )
    several = [random.choice(([0.0] * 4, [1.0] * 4, [1.0, 9.0, 0.0, 0.0])) for _ in range(2)]
    yield sharing.dense(
        {700: [2.0] * 4 if random.random() < 0.5 else [2.0, 9.0, 1.0, 1.0], 860: several[0], 1020: several[1]}
    )
    yield sharing.at_random(
        {each: [random.choice((0.8, 0.86, 0.9, 1.1)) for _ in seeds] for each in (2000, 6000)}, seeds
    )

    def row() -> composed.Sharing:
        return composed.Sharing(
            random.randint(5, 9), random.randint(4, 9), *(random.choice((0.0, 1.0)) for _ in range(4))
        )

    yield composed.compared({100: row(), 500: row()}, 6, 6)

    def missed(names: tuple[str, ...]) -> dict[str, float]:
        return {name: random.choice((0.0, 0.0, 8.0, 30.0)) for name in names}

    found = [
        table2.AtLimit(random.choice((380, 403, 900)), random.choice((390, 403, 410)), missed(table2.SHOWN),
                       random.choice((0.0, 50.0)), random.choice((0.0, 4.2, 100 * (420 / 403 - 1))),
                       missed(table2.PHASED))
        for _ in seeds
    ]  # fmt: skip
    for make in (table2.table2, table2.figure4, table2.dear, table2.printed_form, table2.phases):
        yield make(found, seeds)
    point = [sweeps.Point(random.random() < 0.5, missed(("qed", "pqed", "fifo"))) for _ in seeds]
    yield sweeps.sweep("figure 5", {1.0: [*point, sweeps.Point(True, missed(("qed", "pqed", "fifo")))]}, seeds)


def batched(random: Random, seeds: list[int]) -> Iterator[Figure]:
    yield batches.soundness(
        [(40, {name: random.choice((0, 1)) for name in ("pqed-printed", "pqed", "qed")})] * len(seeds), seeds
    )

    def one() -> batches.Batches:
        return batches.Batches(random.choice((1.0, 2.0, 3.0)), random.randint(1, 3),
                               random.choice((1.0, 2.0, 3.0, 4.0)), random.choice((1.0, 2.0)), 0.0)  # fmt: skip

    yield from batches.sizes_and_time(
        [{count: {name: one() for name in batches.FORMS} for count in (100, 400, 450)} for _ in seeds[:1]], seeds[:1]
    )
    length = [long_streams.Long(random.choice((0.0, 0.1, 30.0)), random.choice((0.0, 30.0)), random.choice((1.0, 9.0)))
              for _ in range(2)]  # fmt: skip
    yield long_streams.three_hundred({300: [length[0]] * len(seeds), 300_000: [length[1]] * len(seeds)}, seeds)
    adapted = adaptation.Adapted(
        random.random() < 0.8, random.choice((None, 1.1)), random.choice((None, 1.1)), random.random() < 0.5,
        {"faster": random.choice((0.0, 1.0))}, random.choice((-1.0, 2.0)), random.choice((-1.0, 0.5)),
        random.choice((0.0, 1.0)),
    )  # fmt: skip
    yield adaptation.three_ways([adapted] * len(seeds), seeds)


def shed(random: Random, seeds: list[int]) -> Iterator[Figure]:
    def outcome() -> Outcome:
        bad = random.choice((0, 0, 2))
        given = random.choice((0, 20, 60, 95))
        best = given + random.choice((0, 3, 3, 30, -1))
        return Outcome(100, given, 1, random.choice((0, 0, 1)), 50, bad, best=best, bounds=random.choice((0, 1)),
                       busy=random.choice((80.0, 100.0)), useful=random.choice((0.0, 50.0)))  # fmt: skip

    def table(policies: tuple[str, ...], load: float) -> comparison.Table:
        same = outcome()
        alike = random.random() < 0.4
        return {(policy, load): [same if alike else outcome() for _ in seeds] for policy in policies}

    whole = table(comparison.POLICIES, 1.1)
    for make in (comparison.shares, comparison.exact, comparison.utilisation, comparison.several):
        yield make(whole, seeds)
    yield comparison.periods({each: table(("front",), 1.1) for each in (500, 20_000)}, seeds)
    yield comparison.strong(table(("front", "window-aware"), 1.1), seeds)
    yield comparison.bursty(table(comparison.POLICIES, 1.2), seeds)


def compared(random: Random, seeds: list[int]) -> Iterator[Figure]:
    """In half of the worlds methods are alike."""
    alike = random.random() < 0.5

    def ns(name: str) -> int | None:
        return random.choice((None, 10_000_000)) if name == "RM" or not alike else 10_000_000

    outputs = ("control", "warning", "advisory")
    ours = random.choice((1_000_000, 10_000_000, 20_000_000))
    bounds = {each: {output: ns(each.name) for output in outputs} for each in METHODS}
    bounds[conventional.OURS] = dict.fromkeys(outputs, ours)
    yield conventional.bounds_of_collision(bounds)
    yield conventional.how_far({each: 20 if alike and each.conventional else random.choice((10, 20, 30))
                                for each in METHODS} | ({conventional.OURS: 31} if alike else {}))  # fmt: skip

    def outcome(seed: int, level: float) -> Compared:
        rest = random.choice(([0.5], [1.5]))
        shares = {each.name: rest if alike else random.choice(([0.5], [0.6], [1.5], [])) for each in METHODS}
        if alike:
            shares |= random.choice(({}, {"ours": [0.4]}, {"DM": [0.4], "ours": [0.7]}, {"DM": [0.6], "ours": [0.4]}))
        return Compared(seed, level, shares, random.random() < 0.5, random.choice((None, Reason.SUMS, *Reason)))

    yield from conventional.of_random({level: [outcome(seed, level) for seed in seeds] for level in (0.3, 0.5)})


WORLDS_OF: tuple[Makes, ...] = (
    at_lambda, of_lengths, by_rates, controlled, other_streams, of_theory, placed, in_time, guaranteed, batched, shed,
    compared,
)  # fmt: skip


@pytest.mark.parametrize("makes", WORLDS_OF, ids=lambda makes: makes.__name__)
def test_every_verdict_can_fail_and_can_hold(makes: Makes, seed: int) -> None:
    """A claim that comes out one way in all worlds has no check that is worth the name."""
    random = Random(seed)
    seen: dict[tuple[str, str, int], set[str]] = {}
    says: dict[tuple[str, str, int], Any] = {}
    for _ in range(WORLDS):
        for figure in makes(random, random.choice(SEEDS)):
            for kind, claims in (("claim", figure.claims), ("finding", figure.findings)):
                for index, each in enumerate(claims):
                    seen.setdefault((figure.name, kind, index), set()).add(each.verdict)
                    says[figure.name, kind, index] = each.says
        if all(verdicts != {"yes"} and verdicts != {"no"} for verdicts in seen.values()):
            break
    assert {key: (says[key], verdicts) for key, verdicts in seen.items() if verdicts in ({"yes"}, {"no"})} == {}
