"""[A] 3.2 and figures 5 and 6: what the printed controller does with k, and what `adaptive` does after a shock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from infra.papers.batching.batch_length import AS, EQUAL, LENGTH, TREES, Draws, less, missed
from infra.papers.batching.printed_controller import Ratio, controlled
from infra.papers.batching.query_trees import MS, PHI_NS, Result, Setting, measure, measured_with
from infra.papers.claims import Band, always, holds
from infra.papers.pool import spread
from infra.papers.reproduction import SEEDS, Curve, Effort, Figure, Plot, Tell
from node_agent.core.plan import Parameters

PROPORTIONAL = tuple(map(Fraction, ("1/2", "1", "5/2", "10", "20")))
INTEGRAL = tuple(map(Fraction, (1, 5, 10, 15, 20)))
FACTORS = [(each, Fraction(10)) for each in PROPORTIONAL] + [(Fraction(1), each) for each in INTEGRAL]
CORNERS = [(Fraction(p), Fraction(i)) for p, i in (("1", 10), ("1", 1), ("20", 10))]
SHOCKED = ("bts", "ats", "ats1", "adaptive")
PAIRS_RATES = (0.3, 0.6, 1.0)
Factors = tuple[Fraction, Fraction]  # Kp, KI


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """The shock, pairs of ATS and BTS, where k begins, Kp and KI."""
    seeds, tiny = SEEDS[effort], effort == "tiny"
    base = Setting(0.8, length=LENGTH[effort], slower=TREES)
    tell("shock")
    shocks = [(LENGTH[effort], 0.3 if tiny else 3.0, SHOCKED, seed) for seed in seeds]
    yield shock(spread(shocked, shocks), seeds)
    tell("ATS and BTS")
    yield paired(pairs(seeds, PAIRS_RATES, LENGTH[effort] // 10), seeds)
    tell("where k begins")
    work = [(replace(base, seed=seed), ("ats",), 10 * MS, k) for seed in seeds for k in (1, 20)]
    begun = iter(spread(measure, work))
    yield beginnings([(next(begun)["ats"], next(begun)["ats"]) for _ in seeds], seeds)
    tell("figures 5 and 6")
    chosen = (
        [(Fraction(1), Fraction(10)), (Fraction(20), Fraction(10)), (Fraction(1), Fraction(1))] if tiny else FACTORS
    )
    ratios: tuple[tuple[Ratio, list[Factors]], ...] = (("execution", chosen), ("total", CORNERS))
    keys = [(ratio, each) for ratio, many in ratios for each in dict.fromkeys(many)]
    found = iter(spread(one, [(*key, replace(base, seed=seed)) for key in keys for seed in seeds]))
    by_key = {key: [next(found) for _ in seeds] for key in keys}
    alone, total = ({each: runs for (of, each), runs in by_key.items() if of == ratio} for ratio, _ in ratios)
    yield factors(alone, total, seeds)


def shocked(
    length: int, shock_s: float, names: tuple[str, ...] = SHOCKED, seed: int = 1, slower: int = TREES
) -> dict[str, Result]:
    """lambda = 0.3, four times that for 2 s; phi = 10 ms, k from 20."""
    return measure(Setting(0.3, length=length, shock_s=shock_s, seed=seed, slower=slower), names, 10 * MS, 20)


def shock(draws: Draws, seeds: list[int]) -> Figure:
    """What each policy misses after it."""
    return Figure(
        "section 3.2: ATS after a shock, rate x 4 for 2 s (SDMR, %)",
        [holds("k converges to the value of least SDMR: ATS within 2 points of BTS with k = 20, where it begins",
               [each["ats"].missed <= each["bts"].missed + 2 for each in draws])],
        {name: str(missed(draws, name)) for name in draws[0]}
        | {"k of ats at the end": str(Band.of(each["ats"].k for each in draws)),
           "draws in which it is 1": f"{sum(each['ats'].k == 1 for each in draws)} of {len(draws)}",
           "ats - bts": str(less(draws, "bts", "ats")), "ats - adaptive": str(less(draws, "adaptive", "ats"))},
        [
            holds("where the printed controller falls to k = 1, it misses more than BTS, which stays at 20",
                  [each["ats"].k > 1 or each["ats"].missed > each["bts"].missed for each in draws]),
            holds("`adaptive` misses no more than any of the others, within 2 points",
                  [each["adaptive"].missed <= min(of.missed for of in each.values()) + 2 for each in draws]),
        ],
        f"lambda = 0.3, phi = 0.01 s, k from 20. {AS}",
        seeds,
        [Plot(f"missed of what came in each second, seed {seeds[0]}", "s", "%",
              [Curve(name, list(map(float, range(len(each.by_second)))), list(each.by_second))
               for name, each in draws[0].items()])],
    )  # fmt: skip


Pair = tuple[float, int, int]  # missed by BTS less missed by ATS; times that k grew; executions of ATS


def pair(setting: Setting, phi_ms: int) -> Pair:
    """The same arrivals under `bts` with k = 1 and under `ats` from k = 1."""
    found = measure(setting, ("bts", "ats"), phi_ms * MS)
    return found["bts"].missed - found["ats"].missed, found["ats"].grown, found["ats"].decisions


def pairs(seeds: list[int], rates: tuple[float, ...], length: int) -> dict[int, list[Pair]]:
    """By phi in ms."""
    settings = [Setting(rate, length=length, seed=seed, slower=TREES) for rate in rates for seed in seeds]
    found = spread(pair, [(setting, phi_ms) for phi_ms in (100, 10) for setting in settings])
    return {100: found[: len(settings)], 10: found[len(settings) :]}


def paired(found: dict[int, list[Pair]], seeds: list[int]) -> Figure:
    """ATS against BTS, on the same arrivals."""
    every = [each for runs in found.values() for each in runs]
    return Figure(
        "section 3.2: ATS against BTS with k = 1, paired runs (SDMR, points)",
        [holds("ATS below BTS", [points > 0 for points, _, _ in every], "runs")],
        {f"BTS - ATS at phi {phi} ms": str(Band.of(each[0] for each in runs)) for phi, runs in found.items()}
        | {"times that k grew": sum(each[1] for each in every), "executions of ats": sum(each[2] for each in every)},
        [always("k never grows, and every run of ATS is the run of BTS, to the tuple",
                [not grown and not points for points, grown, _ in every], "runs")],
        f"lambda {', '.join(f'{rate:g}' for rate in PAIRS_RATES)}; a tenth of the length. {AS}",
        seeds,
    )  # fmt: skip


def beginnings(found: Sequence[tuple[Result, Result]], seeds: list[int]) -> Figure:
    """ATS from k = 1 and from k = 20."""
    return Figure(
        "section 3.2: where k begins (SDMR of ATS, %)",
        [holds(f"the first k matters little (within {EQUAL} points)",
               [abs(one.missed - twenty.missed) <= EQUAL for one, twenty in found])],
        {"k from 1": str(Band.of(each.missed for each, _ in found)),
         "k from 20": str(Band.of(each.missed for _, each in found)),
         "k from 1 - k from 20": str(Band.of(one.missed - twenty.missed for one, twenty in found))},
        [holds("a larger first k misses less or as much, before the controller lowers it",
               [twenty.missed <= one.missed for one, twenty in found])],
        f"lambda = 0.8, phi = 0.01 s. {AS}",
        seeds,
    )  # fmt: skip


def one(ratio: Ratio, of: Factors, setting: Setting) -> Result:
    """`ats1` with the printed form of the controller and other factors, phi = 0.1 s."""
    policy = controlled("ats1", *of, ratio, Parameters(phi_ns=PHI_NS))
    return measured_with(setting, {"ats1": policy})["ats1"]


def factors(alone: dict[Factors, list[Result]], total: dict[Factors, list[Result]], seeds: list[int]) -> Figure:
    """Results by factors, of each draw: SDMR per execution, and the present total."""
    curves = {
        "Kp": {each[0]: runs for each, runs in alone.items() if each[1] == 10},
        "KI": {each[1]: runs for each, runs in alone.items() if each[0] == 1},
    }
    best = {
        what: [min((runs[draw].missed, factor) for factor, runs in by.items())[1] for draw in range(len(seeds))]
        for what, by in curves.items()
    }
    moved = {factor: [each.grown / each.decisions for each in runs] for factor, runs in curves["Kp"].items()}
    low, high = moved[min(moved)], moved[max(moved)]
    return Figure(
        "figures 5 and 6: choice of Kp and KI (SDMR, %)",
        [
            holds("the least is at Kp = 1", [each == 1 for each in best["Kp"]]),
            holds("the least is at KI = 10", [each == 10 for each in best["KI"]]),
            holds("a larger Kp changes k more often", [more > less_ for less_, more in zip(low, high, strict=True)]),
        ],
        {f"per execution, {what}": ", ".join(f"{float(factor):g}: {Band.of(each.missed for each in runs)}"
                                             for factor, runs in by.items()) for what, by in curves.items()}
        | {f"best {what}, draws": ", ".join(f"{float(factor):g}: {chosen.count(factor)}" for factor in curves[what])
           for what, chosen in best.items()}
        | {"executions in which k grew (%), least and largest Kp":
           f"{Band.of(100 * each for each in low)}, {Band.of(100 * each for each in high)}",
           "total SDMR: times that k grew": sum(each.grown for runs in total.values() for each in runs)},
        [always("with the present total of (3) k never grows, with any of the factors, so both curves are flat",
                [not each.grown and each.missed == total[CORNERS[0]][draw].missed
                 for runs in total.values() for draw, each in enumerate(runs)], "runs")],
        "ats1, since without dropping no execution is met in overload. lambda = 0.8; KI = 10 while Kp varies; SDMR of "
        f"each execution, definition 4. Not printed: the load, and the interval of SDMR. {AS}",
        seeds,
        [Plot(f"figure {number}, SDMR of each execution, ats1", what, "SDMR, %, median of the draws",
              [Curve("ats1", [float(each) for each in by], [Band.of(of.missed for of in runs).median
                                                            for runs in by.values()])])
         for number, (what, by) in zip((5, 6), curves.items(), strict=True)],
    )  # fmt: skip
