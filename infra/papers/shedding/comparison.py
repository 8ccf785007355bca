"""[S]: the shedding comparison: which windows each policy gives exactly and in time, beside the optimum of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from statistics import fmean

from infra.papers.claims import Band, always, holds, undetermined
from infra.papers.pool import spread
from infra.papers.reproduction import SEEDS, Curve, Effort, Figure, Plot, Tell
from infra.papers.shedding.window_node import Outcome, Setting
from infra.papers.shedding.window_node import run as simulate

POLICIES = ("front", "random", "drop-tail", "window-aware")
LOADS = (0.9, 1.1, 1.3, 1.6, 2.0)
FEW = (1.1, 1.3, 1.6)  # for what is beside the main comparison
BAR = 5.0  # points below the optimum that are allowed
STRONG = ((10, 1),)
SEVERAL = ((5, 4), (4, 3))  # [S] 2.2.3
BURSTS = ((10, 2.0), (20, 0.8))  # seconds, load
PERIODS_MS = (500, 5000, 20_000)
DRAWS = 5
LACKING = "rests on the gains and the period of the control and on the load, which are not printed"
OTHERS = ("random", "drop-tail")
READING = (
    "One server, 8 ms per tuple, Poisson arrivals, L = 5 s after a window's end, M = 3000 tuples, a control period of "
    "0.5 s, target L / 2. 140 s of each seed; windows of the first 40 s are not counted: queues fill. The optimum is "
    "the most that any choice of tuples gives on the same run, all arrivals and costs known before. The paper names no "
    "load, no cost and no control law; these are ours."
)
Table = Mapping[tuple[str, float], Sequence[Outcome]]  # by policy and load, of each draw


def share(outcome: Outcome) -> float:
    """Windows that were exact and in time, %."""
    return 100 * outcome.given / max(1, outcome.windows)


def best(outcome: Outcome) -> float:
    """The most that any choice of tuples gives on those arrivals, %; a bound of it where `outcome.bounds`."""
    return 100 * outcome.best / max(1, outcome.windows)


def compare(
    setting: Setting, loads: Sequence[float], seeds: Sequence[int], policies: Sequence[str] = POLICIES
) -> Table:
    """Every policy on the same arrivals."""
    cases = [(policy, load) for load in loads for policy in policies]
    work = [(replace(setting, load=load, seed=seed), policy) for policy, load in cases for seed in seeds]
    found = iter(spread(simulate, work))
    return {case: [next(found) for _ in seeds] for case in cases}


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Shares, exactness and utilisation; strong overlap; several queries; a bursty stream."""
    seconds = {"tiny": 25, "quick": 80, "full": 140}[effort]
    seeds = SEEDS[effort][:DRAWS]
    few = (1.3,) if effort == "tiny" else FEW
    setting = Setting(1.0, seconds=seconds, warm_s=5 if effort == "tiny" else 40)
    tell("windows of 5 s every 4 s")
    table = compare(setting, LOADS if effort == "full" else few, seeds)
    yield shares(table, seeds)
    yield exact(table, seeds)
    yield utilisation(table, seeds)
    tell("how often `front` sheds")
    by_period = {each: compare(replace(setting, period_ms=each), few, seeds[:1], ("front",)) for each in PERIODS_MS}
    yield periods(by_period, seeds[:1])
    tell("windows of 10 s every second")
    yield strong(compare(replace(setting, windows=STRONG), few, seeds[:1], ("front", "window-aware")), seeds[:1])
    tell("two queries")
    yield several(compare(replace(setting, windows=SEVERAL), few[:1], seeds[:1]), seeds[:1])
    tell("a bursty stream")
    yield bursty(compare(replace(setting, phases=BURSTS), [1.2], seeds), seeds)


def _all(outcomes: Sequence[Outcome]) -> Outcome:
    """All draws together."""
    return reduce(Outcome.add, outcomes, Outcome())


def _pooled(outcomes: Sequence[Outcome]) -> float:
    """All windows of all draws together."""
    return share(_all(outcomes))


def _loads(table: Table) -> list[float]:
    return list(dict.fromkeys(load for _, load in table))


def _over(table: Table) -> list[float]:
    """Loads that no server can carry."""
    return [load for load in _loads(table) if load > 1]


def _rows(table: Table) -> dict[str, str]:
    """Shares by load."""
    return {
        f"load {load:g}": ", ".join(
            f"{policy} {Band.of(map(share, each))}" for (policy, of), each in table.items() if of == load
        )
        for load in _loads(table)
    }


def _optimum(table: Table) -> dict[str, str]:
    """By load, over the draws; "at most": in some draw it is a bound and no schedule's."""
    return {
        f"optimum at {load:g}": f"{'at most ' if _all(outcomes).bounds else ''}{Band.of(map(best, outcomes))}"
        for load in _loads(table)
        for outcomes in [table["window-aware", load]]
    }


def _below(table: Table, load: float) -> float:
    """Points of `window-aware` below the optimum, all draws together."""
    every = _all(table["window-aware", load])
    return best(every) - share(every)


def _every(table: Table) -> list[Outcome]:
    return [each for outcomes in table.values() for each in outcomes]


def _plot(title: str, table: Table) -> Plot:
    loads = _loads(table)
    policies = dict.fromkeys(policy for policy, _ in table)
    curves = {policy: [_pooled(table[policy, load]) for load in loads] for policy in policies}
    curves["optimum"] = [best(_all(table["window-aware", load])) for load in loads]
    return Plot(title, "load (rho)", "share, %", [Curve(name, loads, [*ys]) for name, ys in curves.items()])


def _useful(outcomes: Sequence[Outcome]) -> float:
    """The mean of the draws, %."""
    return fmean(each.useful for each in outcomes)


def _no_better(table: Table) -> list[bool]:
    """Per draw and load above 1, whether `front` gives no more than the best of the others."""
    return [
        share(mine) <= max(share(table[other, load][draw]) for other in OTHERS)
        for load in _over(table)
        for draw, mine in enumerate(table["front", load])
    ]


def shares(table: Table, seeds: list[int]) -> Figure:
    """Against the optimum of each run, windows of 5 s every 4 s."""
    loads = _loads(table)
    return Figure(
        "shedding: windows exact and in time (%, Z = 5 s, H = 4 s)",
        [undetermined("miss ratio better than other methods", LACKING)],
        _rows(table) | _optimum(table)
        | {f"window-aware at {load:g}, points below the optimum, all draws": f"{_below(table, load):.1f}"
           for load in loads},
        [
            holds("in overload, with smooth control, [S]'s shedder (`front`) is no better than the best of random and "
                  "drop-tail: it takes a little of every window, and so ruins all of them", _no_better(table), "runs"),
            always(f"`window-aware`, which decides on whole windows when they open, is within {BAR:g} points of the "
                   "optimum", [_below(table, load) <= BAR for load in loads], "loads"),
            always("no run gives more than the optimum of its arrivals",
                   [each.given <= each.best for each in _every(table)], "runs"),
        ],
        READING,
        seeds,
        [_plot("windows exact and in time, Z = 5 s, H = 4 s", table)],
    )  # fmt: skip


def exact(table: Table, seeds: list[int]) -> Figure:
    """Results of the printed rule and of the completed one."""
    every = _every(table)
    bad, emitted = sum(each.printed_wrong for each in every), sum(each.printed for each in every)
    wrong, given = sum(each.wrong for each in every), sum(each.given + each.late for each in every)
    return Figure(
        "shedding: results that are not the exact ones",
        [always("results are a subset of the exact ones, by the printed rule",
                [not each.printed_wrong for each in every], "runs")],
        {"printed rule, wrong": f"{bad} of {emitted}", "completed rule, wrong": f"{wrong} of {given}"},
        [always("by the completed rule none is wrong", [not each.wrong for each in every], "runs")],
        "Both rules see the same survivors. A result is right when its count and the sum of its numbers' squares are. "
        "By the printed rule the first survivor behind a shed range abandons the windows that are open when it comes; "
        "one that ended inside the range is closed before, as if it had lost nothing. The completed rule abandons all "
        "windows that the range meets.",
        seeds,
    )  # fmt: skip


def utilisation(table: Table, seeds: list[int]) -> Figure:
    """Work that became a result in time, and work, in overload."""
    over = _over(table)
    busy = [each.busy for load in over for policy in ("front", *OTHERS) for each in table[policy, load]]
    return Figure(
        "shedding: CPU utilisation (%)",
        [undetermined("CPU utilisation better than other methods", LACKING)],
        {f"load {load:g}: useful (busy)": ", ".join(
            f"{policy} {Band.of(each.useful for each in table[policy, load])} "
            f"({Band.of(each.busy for each in table[policy, load])})" for policy in POLICIES) for load in over},
        [
            holds("in overload the CPU is busy (95 % and more) under [S]'s shedder and the others alike, so that says "
                  "nothing", [each >= 95 for each in busy], "runs"),
            holds("`window-aware` does the most useful work",
                  [each.useful >= max(table[other, load][draw].useful for other in POLICIES)
                   for load in over for draw, each in enumerate(table["window-aware", load])], "runs"),
        ],
        "Useful: the work of the tuples of windows that were given in time, each once. Busy counts until the queue is "
        "empty, so it may exceed 100.",
        seeds,
        [Plot("useful work in overload", "load (rho)", "% of the CPU's time",
              [Curve(policy, over, [_useful(table[policy, load]) for load in over]) for policy in POLICIES])],
    )  # fmt: skip


def periods(tables: Mapping[int, Table], seeds: list[int]) -> Figure:
    """`front`, by the period of its control in ms."""
    shortest, longest = tables[min(tables)], tables[max(tables)]
    loads = [load for _, load in shortest]

    def row(table: Table) -> str:
        return ", ".join(f"load {load:g} {_pooled(table['front', load]):.1f}" for load in loads)

    def bad(table: Table) -> str:
        every = _every(table)
        return f"{sum(each.printed_wrong for each in every)} of {sum(each.printed for each in every)}"

    return Figure(
        "shedding: how often `front` sheds (% of windows exact and in time)",
        [],
        {f"every {each / 1000:g} s": f"{row(table)}; printed rule wrong: {bad(table)}"
         for each, table in tables.items()},
        [
            always("smooth control gives less than the slowest: what `front` gives depends on its period",
                   [_pooled(shortest["front", load]) < _pooled(longest["front", load]) for load in loads],
                   "loads"),
            always("the slowest has results that are wrong by the printed rule: its runs cross windows' ends",
                   [any(each.printed_wrong for each in _every(longest))], "periods"),
            always("by the completed rule none is wrong",
                   [not each.wrong for table in tables.values() for each in _every(table)], "runs"),
        ],
        f"The paper does not say how long a shedding period is. {READING}",
        seeds,
        [Plot("`front`: share by the control's period", "period, s", "share, %",
              [Curve(f"load {load:g}", [each / 1000 for each in tables],
                     [_pooled(table["front", load]) for table in tables.values()]) for load in loads])],
    )  # fmt: skip


def strong(table: Table, seeds: list[int]) -> Figure:
    """Windows of which ten overlap."""
    return Figure(
        "shedding: strong overlap (%, Z = 10 s, H = 1 s)",
        [],
        _rows(table) | _optimum(table),
        [
            always("`window-aware` gives more than `front`, where the optimum gives anything: a single window out of a "
                   "row saves nothing, since its neighbours need its tuples, so it sheds whole runs",
                   [_pooled(table["window-aware", load]) > _pooled(table["front", load])
                    or not _all(table["window-aware", load]).best for load in _loads(table)], "loads"),
            always(f"`window-aware` is within {BAR:g} points of the optimum",
                   [_below(table, load) <= BAR for load in _loads(table)], "loads"),
            always("no result is wrong by the completed rule", [not each.wrong for each in _every(table)], "runs"),
        ],
        f"The paper has no such case. k windows in a row cost (k - 1) H + Z of the stream. {READING}",
        seeds,
        [_plot("strong overlap, Z = 10 s, H = 1 s", table)],
    )  # fmt: skip


def several(table: Table, seeds: list[int]) -> Figure:
    """[S]'s own two queries."""
    every = _every(table)
    return Figure(
        "shedding: two queries over one stream (%, windows of 5 s every 4 s and 4 s every 3 s)",
        [always("results are a subset of the exact ones, by the printed rule",
                [not each.printed_wrong for each in every], "runs")],
        _rows(table) | {"printed rule, wrong": f"{sum(each.printed_wrong for each in every)} of "
                        f"{sum(each.printed for each in every)}"},
        [
            always("by the completed rule none is wrong", [not each.wrong for each in every], "runs"),
            always("`window-aware` gives the most: it sheds a tuple only when no window of either query needs it",
                   [_pooled(table["window-aware", load]) >= _pooled(outcomes)
                    for (_, load), outcomes in table.items()], "runs"),
        ],
        "The paper's own two queries (2.2.3); each costs half of a tuple's 8 ms. The optimum is computed for one query "
        f"only, so none stands here. {READING}",
        seeds,
    )  # fmt: skip


def bursty(table: Table, seeds: list[int]) -> Figure:
    """Bursts in which the load is twice what the server can do, and less than that between them."""
    pooled = {policy: _pooled(table[policy, 1.2]) for policy in POLICIES}
    return Figure(
        "shedding: a bursty stream (%, mean load 1.2)",
        [undetermined("miss ratio better than other methods", LACKING)],
        {policy: str(Band.of(map(share, table[policy, 1.2]))) for policy in POLICIES}
        | _optimum(table)
        | {"window-aware, points below the optimum, all draws": f"{_below(table, 1.2):.1f}"},
        [
            always("`front` gives more than under a steady stream of load 1.1, where it gives next to nothing (10 %)",
                   [pooled["front"] > 10], "runs"),
            always("`window-aware` gives the most", [pooled["window-aware"] >= max(pooled.values())], "runs"),
            always(f"`window-aware` is within {BAR:g} points of the optimum", [_below(table, 1.2) <= BAR], "loads"),
            always("no result is wrong by the completed rule", [not each.wrong for each in _every(table)], "runs"),
        ],
        "10 s at load 2, then 20 s at 0.8, over and over. The optimum knows when a burst ends; what shedders measure "
        f"lags behind each change. {READING}",
        seeds,
    )  # fmt: skip


__all__ = ["compare", "run"]
