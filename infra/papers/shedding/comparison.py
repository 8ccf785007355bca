"""[S]: the shedding comparison: which windows each policy gives exactly and in time, and the optimum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from infra.papers.pool import spread
from infra.papers.reproduction import Curve, Effort, Figure, Plot, Tell
from infra.papers.shedding.window_node import Outcome, Setting
from infra.papers.shedding.window_node import run as simulate

POLICIES = ("front", "random", "drop-tail", "window-aware")
LOADS = (0.9, 1.1, 1.3, 1.6, 2.0)
TOLD = (1.1, 1.3, 1.6)  # in tables
STRONG = ((10, 1),)
SEVERAL = ((5, 4), (4, 3))  # [S] 2.2.3
PERIODS_MS = (500, 2000, 5000, 10_000, 20_000)
READING = (
    "One server, 8 ms per tuple, Poisson arrivals, L = 5 s after a window's end, M = 3000 tuples, a control period of "
    "0.5 s, target L / 2. 140 s of each seed; windows of the first 40 s are not counted: queues fill. The optimum "
    "is of the same runs, all arrivals and costs known before. The paper names no load, no cost and no control law; "
    "these are ours."
)
Table = dict[tuple[str, float], Outcome]


def share(outcome: Outcome) -> float:
    """Windows that were exact and in time, %."""
    return 100 * outcome.given / max(1, outcome.windows)


def best(outcome: Outcome) -> float:
    """The most that any choice of tuples gives on those arrivals, %."""
    return 100 * outcome.best / max(1, outcome.windows)


def compare(
    setting: Setting, loads: Sequence[float], seeds: Sequence[int], policies: Sequence[str] = POLICIES
) -> Table:
    """Every policy on the same arrivals, over all seeds."""
    cases = [(policy, load) for load in loads for policy in policies]
    work = [(replace(setting, load=load, seed=seed), policy) for policy, load in cases for seed in seeds]
    found = iter(spread(simulate, work))
    return {case: reduce(Outcome.add, [next(found) for _ in seeds]) for case in cases}


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Shares, exactness and utilisation; strong overlap; several queries; a bursty stream."""
    seconds = {"tiny": 25, "quick": 80, "full": 140}[effort]
    seeds = [1, 2, 3] if effort == "full" else [1]
    loads = {"tiny": (1.3,), "quick": TOLD, "full": LOADS}[effort]
    setting = Setting(1.0, seconds=seconds, warm_s=5 if effort == "tiny" else 40)
    tell("windows of 5 s every 4 s")
    table = compare(setting, loads, seeds)
    yield _shares(setting, table, loads, seeds)
    yield _exact(table, seeds)
    yield _utilisation(table, loads, seeds)
    tell("how often `front` sheds")
    yield _periods(setting, [load for load in loads if load in TOLD], seeds[:1], effort)
    tell("windows of 10 s every second")
    few = [load for load in loads if load in TOLD]
    strong = replace(setting, windows=STRONG)
    yield _strong(strong, compare(strong, few, seeds[:1], ("front", "window-aware")), few, seeds[:1])
    tell("two queries")
    both = replace(setting, windows=SEVERAL)
    yield _several(both, compare(both, few, seeds[:1]), few, seeds[:1])
    tell("a bursty stream")
    bursty = replace(setting, phases=((10, 2.0), (20, 0.8)))
    yield _bursty(bursty, compare(bursty, [1.2], seeds), seeds)


def _row(table: Table, load: float, policies: Sequence[str] = POLICIES) -> str:
    return ", ".join(f"{policy} {share(table[policy, load]):.1f}" for policy in policies)


def _row_of_best(table: Table, load: float, policies: Sequence[str] = POLICIES) -> str:
    first = table[policies[0], load]
    return f"{_row(table, load, policies)}; optimum {'at most ' if first.bounds else ''}{best(first):.1f}"


def _optimum(table: Table, loads: Sequence[float]) -> dict[str, list[float | None]]:
    return {"optimum": [best(table["window-aware", load]) for load in loads]}


def _plot(title: str, y: str, loads: Sequence[float], curves: dict[str, list[float | None]]) -> Plot:
    return Plot(title, "load (rho)", y, [Curve(name, list(loads), ys) for name, ys in curves.items()])


def _curves(table: Table, loads: Sequence[float], policies: Sequence[str] = POLICIES) -> dict[str, list[float | None]]:
    return {policy: [share(table[policy, load]) for load in loads] for policy in policies}


def _shares(setting: Setting, table: Table, loads: Sequence[float], seeds: list[int]) -> Figure:
    over = [load for load in loads if load > 1]
    below = {load: best(table["window-aware", load]) - share(table["window-aware", load]) for load in over}
    front = all(
        share(table["front", load]) >= share(table[other, load]) for load in over for other in ("random", "drop-tail")
    )
    worst = max(below, key=lambda load: below[load])
    says = "is better than the others" if front else "is no better than the others"
    return Figure(
        "shedding: windows exact and in time (%, Z = 5 s, H = 4 s)",
        {"miss ratio": "better than other methods"},
        {f"load {load:g}": _row_of_best(table, load) for load in loads}
        | {"wrong results": sum(each.wrong for each in table.values())},
        front,
        f"In lasting overload [S]'s shedder (`front`) {says}: under smooth control each takes a little of every "
        "window, and so ruins all of them. `window-aware`, which decides on a window as a whole when it opens, is "
        f"{max(0.0, below[worst]):.1f} points below the optimum at worst (load {worst:g}).",
        READING,
        seeds,
        [_plot("windows exact and in time, Z = 5 s, H = 4 s", "share, %", loads,
               _curves(table, loads) | _optimum(table, loads))],
    )  # fmt: skip


def _exact(table: Table, seeds: list[int]) -> Figure:
    wrong = sum(each.wrong for each in table.values())
    given = sum(each.given + each.late for each in table.values())
    printed = {policy: _total([each for (name, _), each in table.items() if name == policy]) for policy in POLICIES}
    emitted, bad = sum(each.printed for each in printed.values()), sum(each.printed_wrong for each in printed.values())
    return Figure(
        "shedding: results that are not the exact ones",
        {"results": "a subset of the exact ones"},
        {"completed rule": f"{wrong} of {given}", "printed rule": f"{bad} of {emitted}"}
        | {f"printed rule, {policy}": f"{each.printed_wrong} of {each.printed}" for policy, each in printed.items()},
        wrong == 0 and bad == 0,
        "By the printed rule the first survivor behind a shed range abandons the windows that are open when it comes; "
        "one that ended inside the range is closed before, as if it had lost nothing. The completed rule abandons all "
        "windows that the range meets. How often it matters depends on how long the runs are (the row on periods).",
        "Both rules see the same survivors. A result is right when its count and the sum of its numbers' squares are.",
        seeds,
    )


def _total(outcomes: Sequence[Outcome]) -> Outcome:
    return reduce(Outcome.add, outcomes, Outcome())


def _utilisation(table: Table, loads: Sequence[float], seeds: list[int]) -> Figure:
    runs = len(seeds)
    useful = {policy: [table[policy, load].useful / runs for load in loads] for policy in POLICIES}
    busy = {policy: [table[policy, load].busy / runs for load in loads] for policy in POLICIES}
    over = [index for index, load in enumerate(loads) if load > 1]
    better = all(useful["front"][i] >= useful[other][i] for i in over for other in ("random", "drop-tail"))
    shown = [index for index, load in enumerate(loads) if load in TOLD]
    return Figure(
        "shedding: CPU utilisation (%)",
        {"CPU utilisation": "better than other methods"},
        {f"load {loads[i]:g}: useful (busy)": ", ".join(
            f"{policy} {useful[policy][i]:.1f} ({busy[policy][i]:.1f})" for policy in POLICIES) for i in shown},
        better,
        ("As printed, if utilisation is work that became a result in time: " if better
         else "Not as printed, if utilisation is work that became a result in time: ")
        + "busy is nearly the same for all in overload, and says nothing: work on windows that are lost keeps a CPU as "
        "busy as any other.",
        "Useful: the work of the tuples of windows that were given in time, each once. Busy counts until the queue is "
        "empty, so it may exceed 100.",
        seeds,
        [_plot("useful work", "% of the CPU's time", loads, {name: [*ys] for name, ys in useful.items()}),
         _plot("busy", "% of the CPU's time", loads, {name: [*ys] for name, ys in busy.items()})],
    )  # fmt: skip


def _periods(setting: Setting, loads: Sequence[float], seeds: list[int], effort: Effort) -> Figure:
    every = PERIODS_MS if effort == "full" else PERIODS_MS[::2]
    tables = {each: compare(replace(setting, period_ms=each), loads, seeds, ("front",)) for each in every}
    shares = {load: [share(tables[each]["front", load]) for each in every] for load in loads}
    told = {}
    for each, table in tables.items():
        bad, emitted = (sum(getattr(one, name) for one in table.values()) for name in ("printed_wrong", "printed"))
        row = ", ".join(f"load {load:g} {share(table['front', load]):.1f}" for load in loads)
        told[f"every {each / 1000:g} s"] = f"{row}; printed rule wrong: {bad} of {emitted}"
    return Figure(
        "shedding: how often `front` sheds (% of windows exact and in time)",
        {},
        told | {"wrong results": sum(one.wrong for table in tables.values() for one in table.values())},
        None,
        "The paper does not say how long a shedding period is. Control that is fast enough to be smooth takes a little "
        "of every window, and so ruins all of them; the fewer and longer its runs, the more windows lie between them. "
        "The longer the runs, the more often one crosses a window's end, where the printed rule gives what is wrong.",
        READING,
        seeds,
        [Plot("`front`: share by the control's period", "period, s", "share, %",
              [Curve(f"load {load:g}", [each / 1000 for each in every], [*ys]) for load, ys in shares.items()])],
    )  # fmt: skip


def _strong(setting: Setting, table: Table, loads: Sequence[float], seeds: list[int]) -> Figure:
    policies = ("front", "window-aware")
    return Figure(
        "shedding: strong overlap (%, Z = 10 s, H = 1 s)",
        {},
        {f"load {load:g}": _row_of_best(table, load, policies) for load in loads}
        | {"wrong results": sum(each.wrong for each in table.values())},
        None,
        "The paper has no such case. A single window out of a row saves nothing, since its neighbours need its tuples, "
        "so whole runs of windows are shed: k windows in a row cost (k - 1) H + Z of the stream.",
        READING,
        seeds,
        [_plot("strong overlap, Z = 10 s, H = 1 s", "share, %", loads,
               _curves(table, loads, policies) | _optimum(table, loads))],
    )  # fmt: skip


def _several(setting: Setting, table: Table, loads: Sequence[float], seeds: list[int]) -> Figure:
    return Figure(
        "shedding: two queries over one stream (%, windows of 5 s every 4 s and 4 s every 3 s)",
        {"results": "a subset of the exact ones"},
        {f"load {load:g}": _row(table, load) for load in loads}
        | {"wrong results": sum(each.wrong for each in table.values())},
        sum(each.wrong for each in table.values()) == 0,
        "The paper's own two queries (2.2.3). A tuple is shed only when no window of either query needs it, and what "
        "is shed counts against the windows of both. The optimum is computed for one query only, so none stands here.",
        f"Each query costs half of a tuple's 8 ms. {READING}",
        seeds,
        [_plot("two queries", "share, %", loads, _curves(table, loads))],
    )


def _bursty(setting: Setting, table: Table, seeds: list[int]) -> Figure:
    return Figure(
        "shedding: a bursty stream (%, mean load 1.2)",
        {"miss ratio": "better than other methods"},
        {policy: f"{share(table[policy, 1.2]):.1f}" for policy in POLICIES}
        | {"optimum": f"{best(table['window-aware', 1.2]):.1f}",
           "wrong results": sum(each.wrong for each in table.values())},
        all(share(table["front", 1.2]) >= share(table[other, 1.2]) for other in ("random", "drop-tail")),
        "10 s at load 2, then 20 s at 0.8, over and over. The optimum knows when a burst ends; what shedders "
        "measure lags behind each change.",
        READING,
        seeds,
    )  # fmt: skip


__all__ = ["compare", "run"]
