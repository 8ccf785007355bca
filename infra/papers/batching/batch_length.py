"""[A] figures 3, 4 and 7 to 13: batches against one task at a time, and how long a batch should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from infra.papers.batching.query_trees import MS, PHI_NS, Result, Setting, load, measure, passing
from infra.papers.claims import Band, Claim, always, holds, undetermined, value
from infra.papers.pool import spread
from infra.papers.reproduction import SEEDS, Curve, Effort, Figure, Plot, Tell, Values

SHOWN = ("taat", "bts", "bts1", "ats", "ats1", "adaptive", "ideal")
SOME = ("taat", "bts", "ats", "ideal")
LENGTH = {"tiny": 300, "quick": 3000, "full": 10_000}  # tuples per stream; the paper has 10 000
TREES = 20  # times fewer queries on a machine so many times slower: 100 distinct trees in 20 draws
HOW = (
    f"100 queries of table 1 as {100 // TREES} on a machine {TREES} times slower (the same load, batches and "
    "deadlines), other trees for every seed; trees read from the root; 50 us per decision; deadlines uniform. Batches "
    "are collected for phi, as [A] 2 has it."
)
AS = "Trees and machine as in figure 8."
LAMBDA = "lambda, tuples per ms and stream"
PHIS, KS = (10, 20, 100), (1, 2, 5)  # ms, of the printed ones; not printed
FAR, SLIGHT, EQUAL = 10, 15, 5  # points: far apart is more, slightly apart at most, about equal at most
WORDS = f"Far: more than {FAR} points; slightly: at most {SLIGHT}; about equal: within {EQUAL}."
Draws = Sequence[dict[str, Result]]  # results by policy, of each seed
Runs = dict[float, Draws]  # by rate
FULL = 99  # % of the CPU: all of it, but for the first tuples' wait
FEW = 10  # draws of what takes long
WHOLE = 5  # draws of 100 trees each
CONTROL = "the cost of a control step is not printed, and virtual time has none"


def sweep(base: Setting, rates: Sequence[float], seeds: Sequence[int], names: tuple[str, ...]) -> Runs:
    """Every policy on the same arrivals, by rate and seed."""
    work = [(replace(base, rate=rate, seed=seed), names, PHI_NS) for rate in rates for seed in seeds]
    found = iter(spread(measure, work))
    return {rate: [next(found) for _ in seeds] for rate in rates}


def missed(draws: Draws, name: str) -> Band:
    """SDMR, %."""
    return Band.of(each[name].missed for each in draws)


def less(draws: Draws, name: str, than: str) -> Band:
    """How many points SDMR of one policy is below that of another, on the same arrivals."""
    return Band.of(each[than].missed - each[name].missed for each in draws)


def summary(draws: Draws, of: Callable[[Result], float] = lambda each: each.missed) -> str:
    """SDMR of each policy, or another of its results."""
    return ", ".join(f"{name} {Band.of(of(each[name]) for each in draws)}" for name in draws[0])


def plotted(title: str, found: Runs, y: str, of: Callable[[Result], float], printed: tuple[Curve, ...] = ()) -> Plot:
    """Medians over lambda, a curve per policy."""
    names = next(iter(found.values()))[0]
    curves = [
        Curve(name, list(found), [Band.of(of(each[name]) for each in draws).median for draws in found.values()])
        for name in names
    ]
    return Plot(title, LAMBDA, f"{y}, median of the draws", curves + list(printed))


def sdmr(title: str, found: Runs, printed: tuple[Curve, ...] = ()) -> Plot:
    """SDMR over lambda."""
    return plotted(title, found, "SDMR, %", lambda each: each.missed, printed)


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Load, fixed selectivity, batch sizes, overhead, random selectivity, 300 queries, all 100 trees."""
    seeds, base = SEEDS[effort], Setting(0.5, length=LENGTH[effort], slower=TREES)
    yield arrivals([_per_interval(replace(base, seed=seed)) for seed in seeds], seeds)
    tell("figures 8 and 9")
    few, half = replace(base, length=base.length * 3 // 20), replace(base, length=base.length // 2)
    at = sweep(base, [0.5], seeds, SHOWN) | sweep(half, [0.8], seeds, SOME)
    yield figure8(at[0.5], seeds)
    yield controller(at, seeds)
    yield cpu("figure 9: CPU used at fixed selectivity (%)", sweep(few, [0.2], seeds, SOME) | at, seeds)
    tell("figure 4")
    cases = [(phi, k) for phi in PHIS for k in KS]
    ten = seeds[:FEW]
    work = [(replace(base, seed=seed), ("bts",), phi * MS, k) for phi, k in cases for seed in ten]
    bts = iter(spread(measure, work))
    yield lengths({case: [next(bts)["bts"].missed for _ in ten] for case in cases}, ten)
    tell("figure 7")
    dear = replace(few, selectivity=1.0)
    yield overhead(sweep(dear, [0.1, 1.0], seeds, ("taat", "taat1", "bts", "ats")), seeds)
    tell("figures 10 and 11")
    random = sweep(replace(half, selectivity=None), [0.4, 0.8], seeds, SOME)
    yield figure10(random, at[0.8], seeds)
    means = [passing(replace(half, selectivity=None, seed=seed)) for seed in seeds]
    yield above("figure 10 above figure 8 (SDMR, %)", "higher", random[0.8], at[0.8], means, seeds)
    yield cpu("figure 11: CPU used at random selectivity (%)", random, seeds)
    tell("figures 12 and 13")
    many = replace(base, queries=300, length=base.length // 5)
    three, others = (sweep(replace(many, selectivity=each), [0.1, 0.2], ten, SOME) for each in (0.5, None))
    yield three_hundred("figure 12: 300 queries, fixed selectivity (SDMR, %)", three, ten)
    yield three_hundred("figure 13: 300 queries, random selectivity (SDMR, %)", others, ten)
    means = [passing(replace(many, selectivity=None, seed=seed)) for seed in ten]
    name = "figure 13 slightly above figure 12 (SDMR, %)"
    yield above(name, "slightly higher", others[0.2], three[0.2], means, ten)
    yield full(three, others, ten)


def run_whole(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Figure 8 with all 100 trees, a million tuples per run."""
    seeds = SEEDS[effort][:WHOLE]
    tell("100 distinct trees")
    whole = sweep(Setting(0.5, length=LENGTH[effort], slower=1), [0.5], seeds, ("taat", "bts", "bts1", "ats", "ats1"))
    yield all_trees(whole[0.5], seeds)


def _per_interval(setting: Setting) -> list[int]:
    """Tuples of the first stream in each whole 0.1 s."""
    tuples = load(setting)
    one = [at_ns for at_ns, query in zip(tuples.at_ns, tuples.query, strict=True) if query == 0]
    counts = [0] * (one[-1] // (100 * MS))
    for at_ns in one:
        if at_ns // (100 * MS) < len(counts):
            counts[at_ns // (100 * MS)] += 1
    return counts


def arrivals(counts: Sequence[list[int]], seeds: list[int]) -> Figure:
    """Figure 3, of the tuples per interval of each draw."""
    least, most = (Band.of(of(each) for each in counts) for of in (min, max))
    mean = Band.of(sum(each) / len(each) for each in counts)
    below = Band.of(100 * sum(count < 50 for count in each) / len(each) for each in counts)
    return Figure(
        "figure 3: tuples per 0.1 s at lambda = 0.5",
        [value("50 at least", least, 50), value("75 at most", most, 75)],
        {"least": str(least), "mean": str(mean), "largest": str(most), "intervals with fewer than 50 (%)": str(below)},
        [always("the mean is within 3 of the 50 that lambda = 0.5 makes, so 50 is not the least",
                [abs(sum(each) / len(each) - 50) <= 3 for each in counts], "draws")],
        "One Poisson stream.",
        seeds,
        [Plot("figure 3", "s", "tuples per 0.1 s", [
            Curve("one stream", [i / 10 for i in range(len(counts[0]))], list(map(float, counts[0]))),
            Curve("range, printed", [0.0, 0.0], [50.0, 75.0], printed=True),
        ])],
    )  # fmt: skip


def figure8(draws: Draws, seeds: list[int]) -> Figure:
    """At lambda = 0.5."""
    return Figure(
        "figure 8: fixed selectivity, lambda = 0.5 (SDMR, %)",
        printed8(draws),
        values8(draws),
        [holds("`adaptive`, which computes k, does not miss more than BTS1 with k = 1, within a point",
               [each["adaptive"].missed <= each["bts1"].missed + 1 for each in draws])],
        f"{HOW} {WORDS}",
        seeds,
    )  # fmt: skip


def printed8(draws: Draws) -> list[Claim]:
    """What 4.2 says of figure 8."""
    return [
        value("ATS 30 points below TAAT", less(draws, "ats", "taat"), 30),
        value("ATS 15 points below BTS", less(draws, "ats", "bts"), 15),
        *order(draws),
    ]


def values8(draws: Draws) -> Values:
    """SDMR of each policy, and the differences that the claims are about."""
    pairs = (("ats", "taat"), ("ats", "bts"), ("bts1", "bts"), ("ats1", "ats"))
    return {name: str(missed(draws, name)) for name in draws[0]} | {
        f"{than.upper()} - {name.upper()}": str(less(draws, name, than)) for name, than in pairs
    }


def order(draws: Draws) -> list[Claim]:
    """What 4.2 says of figure 8 without values."""
    pairs = [{name: result.missed for name, result in each.items()} for each in draws]
    return [
        holds("TAAT far above the others", [each["taat"] > max(each["bts"], each["ats"]) + FAR for each in pairs]),
        holds("ATS slightly below BTS", [0 < each["bts"] - each["ats"] <= SLIGHT for each in pairs]),
        holds("ATS1 clearly below ATS", [each["ats"] - each["ats1"] > EQUAL for each in pairs]),
        holds("BTS1 about equal to BTS", [abs(each["bts"] - each["bts1"]) <= EQUAL for each in pairs]),
        holds("so dropping improves ATS more than BTS",
              [each["ats"] - each["ats1"] > each["bts"] - each["bts1"] for each in pairs]),
    ]  # fmt: skip


def controller(fixed: Runs, seeds: list[int]) -> Figure:
    """What the printed controller does with k in figure 8."""
    pairs = (("ats", "bts"), ("ats1", "bts1"))
    every = [(each[ours], each[of]) for draws in fixed.values() for each in draws for ours, of in pairs if ours in each]
    last = [each["ats"] for each in fixed[max(fixed)]]
    return Figure(
        "3.2 and 3.4: where the controller takes k in figure 8",
        [
            holds("k > 1, near the longest deadline over phi", [ats.k > 1 for ats, _ in every], "runs"),
            holds("in overload k falls to 1", [each.k == 1 for each in last]),
        ],
        {"executions": sum(ats.decisions for ats, _ in every), "times that k grew": sum(ats.grown for ats, _ in every),
         "largest |BTS - ATS| or |BTS1 - ATS1| (points)": max(abs(ats.missed - bts.missed) for ats, bts in every)},
        [always("k never leaves 1, so ATS is BTS with k = 1, and ATS1 is BTS1, to the tuple",
                [not ats.grown and ats.missed == bts.missed for ats, bts in every], "runs")],
        f"Kp = 1, KI = 10, k from 1; SDMR is the present total, as 3.2 has it. Overload: at {max(fixed):g}. {AS}",
        seeds,
        [sdmr("figure 8", {rate: [{name: each[name] for name in SOME} for each in fixed[rate]]
                           for rate in sorted(fixed)})],
    )  # fmt: skip


def cpu(name: str, found: Runs, seeds: list[int]) -> Figure:
    """Figures 9 and 11."""
    every = [{each: result.cpu for each, result in draw.items()} for draws in found.values() for draw in draws]
    return Figure(
        name,
        [
            holds("TAAT above BTS and ATS", [each["taat"] > max(each["bts"], each["ats"]) for each in every], "runs"),
            holds("TAAT above Ideal", [each["taat"] > each["ideal"] for each in every], "runs"),
            undetermined("ATS slightly above BTS", CONTROL),
        ],
        {f"lambda {rate:g}": ", ".join(f"{each} {Band.of(draw[each].cpu for draw in draws)}" for each in SOME)
         for rate, draws in sorted(found.items())},
        [holds(f"TAAT uses more wherever BTS leaves some of the CPU (below {FULL} %)",
               [each["taat"] > each["bts"] or each["bts"] >= FULL for each in every], "runs")],
        AS,
        seeds,
        [plotted(name, {rate: [{each: draw[each] for each in SOME} for draw in found[rate]] for rate in sorted(found)},
                 "CPU used, %", lambda each: each.cpu)],
    )  # fmt: skip


def lengths(found: dict[tuple[int, int], list[float]], seeds: list[int]) -> Figure:
    """Figure 4: SDMR of `bts` by phi in ms and k, of each draw."""
    phis, ks = (sorted({case[i] for case in found}) for i in (0, 1))
    draws = range(len(seeds))
    best = {phi: [min((found[phi, k][draw], k) for k in ks)[1] for draw in draws] for phi in phis}
    least = [min((found[case][draw], case) for case in found)[1] for draw in draws]
    return Figure(
        "figure 4: batch length k phi at lambda = 0.5 (SDMR of BTS, %)",
        [
            holds("the best k is 5 at phi = 0.01 s", [each == 5 for each in best[10]]),
            holds("the best k is 2 at phi = 0.02 s", [each == 2 for each in best[20]]),
            holds("k = 1 is not the best, at small phi above all", [k > 1 for phi in (10, 20) for k in best[phi]]),
            holds("the least SDMR is at phi = 0.1 s", [phi == 100 for phi, _ in least]),
        ],
        {f"phi {phi} ms": ", ".join(f"k {k} {Band.of(found[phi, k])}" for k in ks) for phi in phis}
        | {f"best k at phi {phi} ms (draws)": _counted(best[phi]) for phi in phis}
        | {"least at (phi in ms, k) (draws)": _counted(least)},
        [holds(f"at phi = 10 ms k = {ks[0]} misses no less than k = {ks[-1]}: SDMR falls with the length k phi",
               [found[10, ks[0]][draw] >= found[10, ks[-1]][draw] for draw in draws])],
        f"k of {', '.join(map(str, ks))}; the least k where several are best. {AS}",
        seeds,
        [Plot("figure 4", "k", "SDMR, %, median of the draws",
              [Curve(f"phi {phi} ms", list(map(float, ks)), [Band.of(found[phi, k]).median for k in ks])
               for phi in phis])],
    )  # fmt: skip


def _counted(values: Sequence[object]) -> str:
    """How often each value is there, the most frequent first."""
    return ", ".join(f"{each}: {times}" for each, times in Counter(values).most_common())


def overhead(found: Runs, seeds: list[int]) -> Figure:
    """Figure 7, of two rates."""
    (_, low), (_, high) = sorted(found.items())
    pairs = list(zip(low, high, strict=True))
    every = [*low, *high]
    return Figure(
        "figure 7: overhead, selectivity 1 (s)",
        [
            holds("TAAT far above the others (twice)",
                  [each["taat"].overhead_s > 2 * max(each["bts"].overhead_s, each["ats"].overhead_s) for each in every],
                  "runs"),
            *(holds(f"{name.upper()} falls with lambda",
                    [after[name].overhead_s < before[name].overhead_s for before, after in pairs])
              for name in ("taat", "bts", "ats")),
            undetermined("ATS slightly above BTS", CONTROL),
        ],
        {f"lambda {rate:g}": summary(draws, lambda each: each.overhead_s) for rate, draws in sorted(found.items())},
        [
            holds("ATS takes BTS's decisions, so only the cost of control would set it apart",
                  [each["ats"].decisions == each["bts"].decisions for each in every], "runs"),
            holds("one decision per tuple is the same at each lambda where nothing is dropped (taat), and fewer where "
                  "it is (taat1)",
                  [after["taat"].decisions == before["taat"].decisions
                   and after["taat1"].decisions < before["taat1"].decisions for before, after in pairs]),
        ],
        f"15 % of the length. {AS}",
        seeds,
        [plotted("figure 7", found, "overhead, s", lambda each: each.overhead_s)],
    )  # fmt: skip


def figure10(found: Runs, fixed: Draws, seeds: list[int]) -> Figure:
    """Random selectivity; figure 8's draws at the largest lambda beside it."""
    first, last = (found[of(found)] for of in (min, max))
    gap, before = less(last, "ats", "bts"), less(fixed, "ats", "bts")
    printed = {"taat": 40, "bts": 10, "ats": 5}
    return Figure(
        "figure 10: random selectivity (SDMR, %)",
        [
            *(value(f"{name.upper()} {points} at 0.4", missed(first, name), points)
              for name, points in printed.items()),
            value("ATS 30 points below TAAT at 0.8", less(last, "ats", "taat"), 30),
            value("ATS 10 points below BTS at 0.8", gap, 10),
            holds("ATS further below BTS than in figure 8 (at 0.8)", [gap.median > before.median], "comparisons"),
            nearest([each for draws in found.values() for each in draws]),
        ],
        {f"lambda {rate:g}": summary(draws) for rate, draws in sorted(found.items())}
        | {"BTS - ATS at 0.8": str(gap), "figure 8's": str(before)},
        [],
        AS,
        seeds,
        [sdmr("figure 10", found, tuple(
            Curve(f"{name}, printed", [0.4], [float(points)], printed=True) for name, points in printed.items()))],
    )  # fmt: skip


def nearest(draws: Draws) -> Claim:
    """Of TAAT, BTS and ATS."""
    return holds(
        "ATS nearest to Ideal",
        [
            abs(each["ats"].missed - each["ideal"].missed)
            < min(abs(each[name].missed - each["ideal"].missed) for name in ("taat", "bts"))
            for each in draws
        ],
        "runs",
    )


def above(name: str, says: str, random: Draws, fixed: Draws, means: Sequence[float], seeds: list[int]) -> Figure:
    """Random selectivity against fixed: other trees, so every draw of the one is compared with every one of the
    other. means: of the operators' selectivities in each draw."""
    return Figure(
        name,
        [
            *(holds(f"{each.upper()} {says}",
                    [ours[each].missed > other[each].missed for ours in random for other in fixed], "pairs of draws")
              for each in ("taat", "bts", "ats")),
            value("mean selectivity 0.55", Band.of(means), 0.55),
        ],
        {f"{each}: random, fixed": f"{missed(random, each)}, {missed(fixed, each)}" for each in SOME},
        [holds("a selectivity between 0.01 and 1 is 0.505 on average: 0.55 is further from that than the median draw",
               [abs(Band.of(means).median - 0.505) < 0.045], "comparisons")],
        f"Both at the largest lambda and of one length. {AS}",
        seeds,
    )  # fmt: skip


def three_hundred(name: str, found: Runs, seeds: list[int]) -> Figure:
    """Figures 12 and 13."""
    every = [each for draws in found.values() for each in draws]
    first = found[min(found)]
    return Figure(
        name,
        [
            holds("every algorithm misses from the start", [each[of].missed > 0 for each in first for of in SOME],
                  "runs"),
            value("ATS 15 to 20 points below TAAT", less(every, "ats", "taat"), 15, 20),
            value("ATS 5 to 15 points below BTS", less(every, "ats", "bts"), 5, 15),
            holds("TAAT misses the most", [each["taat"].missed > max(each["bts"].missed, each["ats"].missed)
                                           for each in every], "runs"),
            nearest(every),
        ],
        {f"lambda {rate:g}": summary(draws) for rate, draws in sorted(found.items())}
        | {f"CPU at {min(found):g} (%)": summary(first, lambda each: each.cpu),
           "TAAT - ATS": str(less(every, "ats", "taat")), "BTS - ATS": str(less(every, "ats", "bts"))},
        [holds(f"at lambda = {min(found):g} batches are not overloaded from the start: BTS leaves some of the CPU",
               [each["bts"].cpu < FULL for each in first])],
        f"Values: over all lambda; a fifth of the length. {AS}",
        seeds,
        [sdmr(name, found)],
    )  # fmt: skip


def full(fixed: Runs, random: Runs, seeds: list[int]) -> Figure:
    """4.2's sentence in the place of a figure of the CPU for 300 queries."""
    return Figure(
        "4.2: CPU used by 300 queries (%)",
        [holds("100 % from the start, at any lambda",
               [each[name].cpu >= FULL for found in (fixed, random) for draws in found.values() for each in draws
                for name in SOME], "runs")],
        {f"{kind} selectivity, lambda {rate:g}": summary(draws, lambda each: each.cpu)
         for kind, found in (("fixed", fixed), ("random", random)) for rate, draws in sorted(found.items())},
        [holds("one task at a time is full from the start", [each["taat"].cpu >= FULL for found in (fixed, random)
                                                              for each in found[min(found)]])],
        f"Full: at least {FULL} % of the time from the first tuple to the last. The runs of figures 12 and 13.",
        seeds,
    )  # fmt: skip


def all_trees(draws: Draws, seeds: list[int]) -> Figure:
    """Figure 8 with 100 distinct trees in every draw."""
    return Figure(
        "figure 8 with 100 distinct trees in every draw, lambda = 0.5 (SDMR, %)",
        printed8(draws),
        values8(draws),
        [holds("BTS misses some in every draw: 100 trees are overloaded", [each["bts"].missed > 0 for each in draws])],
        f"The printed machine, a million tuples per run, other trees for every seed. {WORDS}",
        seeds,
    )
