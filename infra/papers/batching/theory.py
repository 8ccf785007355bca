"""[A] theorem 1 and lemma 1, and what arithmetic says of overload: checks of the runs, not in the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infra.papers.batching.batch_length import AS, LENGTH, TREES, Draws
from infra.papers.batching.query_trees import DEADLINES_S, MS, PHI_NS, Result, S, Setting, measure
from infra.papers.claims import Band, always, holds
from infra.papers.pool import spread
from infra.papers.reproduction import SEEDS, Curve, Effort, Figure, Plot, Tell

ARITHMETIC = ((0.2, "taat1", 25.6, 2), (0.5, "taat1", 66.3, 2), (0.6, "bts1", 13.0, 3), (0.8, "bts1", 29.3, 3))
Batch = tuple[int, int]  # phi in ms, k; those of a group have one length k phi
CASES: tuple[Batch, ...] = ((10, 10), (100, 1), (10, 5), (50, 1))
LONG = 50  # basic batches of PHI: as long as the longest deadline


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Theorem 1, bounds on overload, batches of equal length."""
    seeds, length = SEEDS[effort], LENGTH[effort]
    tell("theorem 1")
    rates = (0.2, 0.8)
    runs = iter(spread(counted, [(rate, length // 10, seed) for rate in rates for seed in seeds]))
    yield theorem({rate: [next(runs) for _ in seeds] for rate in rates}, seeds)
    tell("arithmetic of overload")
    work = [(Setting(rate, length=length, equal=True, seed=each, slower=TREES), (name,))
            for rate, name, *_ in ARITHMETIC for each in seeds]  # fmt: skip
    found = iter(spread(measure, work))
    yield arithmetic([[next(found)[name] for _ in seeds] for _, name, *_ in ARITHMETIC], seeds)
    tell("batches of equal length")
    equal, drawn = ([apart(length, of, seed=seed) for seed in seeds] for of in (True, False))
    yield lengths(equal, drawn, seeds)


def counted(rate: float, length: int, seed: int = 1) -> dict[str, Result]:
    """Runs whose decisions are counted; `bts1, k = 50`: batches may be as long as the longest deadline."""
    setting = Setting(rate, length=length, seed=seed, slower=TREES)
    found = measure(setting, ("taat", "bts", "bts1", "ats", "ats1"))
    return found | {f"bts1, k = {LONG}": measure(setting, ("bts1",), first_k=LONG)["bts1"]}


def decisions(each: Result, queries: int = 100 // TREES) -> float:
    """Per query."""
    return each.decisions / queries


def limits(each: Result) -> tuple[float, float]:
    """Of decisions per query: T1/U, U the longest deadline; T1/phi, and the basic batches that are cut by the ends."""
    return each.arrivals_s / max(DEADLINES_S), each.arrivals_s * S / PHI_NS + 2


def theorem(runs: dict[float, Draws], seeds: list[int]) -> Figure:
    """Decisions against both limits, by rate."""
    every = [each for draws in runs.values() for each in draws]
    batches = [name for name in every[0] if name != "taat"]

    def within(each: Result) -> bool:
        low, high = limits(each)
        return low <= decisions(each) <= high

    return Figure(
        "theorem 1 and lemma 1: decisions per query",
        [
            always("ATS takes T1/U to T1/phi", [within(each["ats"]) for each in every], "runs"),
            always("every batch policy takes at least T1/U",
                   [decisions(each[name]) >= limits(each[name])[0] for each in every for name in batches], "runs"),
            holds("ATS comes close to T1/U (twice), so it is the best",
                  [decisions(each["ats"]) <= 2 * limits(each["ats"])[0] for each in every], "runs"),
        ],
        {f"lambda {rate:g}": f"T1/U {Band.of(limits(each['bts'])[0] for each in draws)}, "
         f"T1/phi {Band.of(limits(each['bts'])[1] - 2 for each in draws)}; "
         + ", ".join(f"{name} {Band.of(decisions(each[name]) for each in draws)}" for name in (*batches, "taat"))
         for rate, draws in runs.items()},
        [
            always("every batch policy is between the two, one task at a time above both",
                   [within(each[name]) == (name != "taat") for each in every for name in each], "runs"),
            holds("ATS, whose k is 1, is within a fifth of its upper limit",
                  [decisions(each["ats"]) >= 0.8 * limits(each["ats"])[1] for each in every], "runs"),
        ],
        f"U: the longest deadline, 5 s; phi = 0.1 s; a tenth of the length. {AS}",
        seeds,
        [Plot("decisions per query", "lambda, tuples per ms and stream", "decisions, median of the draws",
              [Curve(name, list(runs), [Band.of(decisions(each[name]) for each in draws).median
                                        for draws in runs.values()]) for name in batches])],
    )  # fmt: skip


def arithmetic(found: Sequence[Sequence[Result]], seeds: list[int]) -> Figure:
    """Results of each case of ARITHMETIC, of each draw."""
    cases = list(zip(ARITHMETIC, found, strict=True))
    every = [each for runs in found for each in runs]
    return Figure(
        "figure 8: overload by arithmetic, equal costs of 22 us (SDMR, %)",
        [],
        {f"{name} at {rate:g}": f"{Band.of(each.missed for each in runs)}, bounds "
         f"{Band.of(each.bounds[0] for each in runs)} to {Band.of(each.bounds[1] for each in runs)}"
         for (rate, name, *_), runs in cases},
        [
            holds("with dropping, SDMR lies between 1 - (T + Dmax)/W and 1 - (T + Dmean)/W, within a point; "
                  "W = N (c + s/n), n the mean batch",
                  [each.bounds[0] - 1 <= each.missed <= each.bounds[1] + 1 for each in every], "runs"),
            *(holds(f"{expected:g} +- {by} for {name} at {rate:g}",
                    [abs(each.missed - expected) <= by for each in runs])
              for (rate, name, expected, by), runs in cases),
        ],
        AS,
        seeds,
    )  # fmt: skip


def apart(
    length: int, equal: bool, rate: float = 0.6, cases: Sequence[Batch] = CASES, seed: int = 1
) -> dict[int, list[float]]:
    """SDMR of `bts1` by the length k phi in ms."""
    setting = Setting(rate, length=length, equal=equal, seed=seed, slower=TREES)
    found = spread(measure, [(setting, ("bts1",), phi * MS, k) for phi, k in cases])
    by_length: dict[int, list[float]] = {}
    for (phi, k), each in zip(cases, found, strict=True):
        by_length.setdefault(phi * k, []).append(each["bts1"].missed)
    return by_length


def lengths(equal: list[dict[int, list[float]]], drawn: list[dict[int, list[float]]], seeds: list[int]) -> Figure:
    """Largest differences between batches of one length, of each draw."""
    same, others = (
        [max(max(values) - min(values) for values in each.values()) for each in draws] for draws in (equal, drawn)
    )
    return Figure(
        "figure 4: batches of equal length k phi (SDMR, points)",
        [],
        {"largest difference, equal costs": str(Band.of(same)),
         "largest difference, costs of table 1": str(Band.of(others))},
        [
            holds("with equal costs it is the length k phi that counts, within 2 points", [each <= 2 for each in same]),
            holds("with the costs of table 1 it is not: they differ by more than with equal ones",
                  [two > one for one, two in zip(same, others, strict=True)]),
        ],
        "BTS1, lambda = 0.6; (phi, k) in ms: (10, 10), (100, 1) and (10, 5), (50, 1). With drawn costs a batch holds "
        f"what of the k basic ones is there, and which queries starve differs. {AS}",
        seeds,
    )  # fmt: skip
