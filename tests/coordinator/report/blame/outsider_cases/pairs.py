"""Two at once, of which one counts, and what only looks like a cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.coordinator.report.blame.constructed import Expected
from tests.coordinator.report.blame.outsider_cases.case import Case, cost_of, link_of
from tests.coordinator.report.blame.outsider_world import Setting, Strike


def _link_beats_cost(random: Random) -> Case:
    ms, times = random.uniform(40, 60), random.uniform(2, 5)
    return Case(
        f"b -> c takes {ms:.0f} ms longer, y costs {times:.1f} times as much",
        Expected(("link",), ("b -> c",), "", ("out",), parts=("y",)),
        Setting(("line",)),
        (Strike(slow={("b", "c"): ms}), Strike(dear={"y": times})),
    )


def _cost_beats_link(random: Random) -> Case:
    ms, more = random.uniform(40, 60), random.uniform(3, 12)
    return Case(
        f"y takes {ms:.0f} ms, a -> b {more:.0f} ms longer",
        Expected(("cost_above_plan",), ("y",), "line", ("out",), parts=("a -> b",)),
        Setting(("line", "fan")),
        (Strike(dear={"y": ms}), Strike(slow={("a", "b"): more})),
    )


def _cost_beats_cost(random: Random) -> Case:
    ms, times = random.uniform(45, 60), random.uniform(2, 7)
    return Case(
        f"h takes {ms:.0f} ms before y, z costs {times:.0f} times as much",
        Expected(("cost_above_plan",), ("h",), "busy", ("out",), parts=("z",)),
        Setting(("line", "busy"), {"n": 1, "done": 95}, phases={"n": 3, "s": 1}),
        (Strike(dear={"h": ms / 4}), Strike(dear={"z": times, "h": ms / 4})),
    )


def _burst_beats_link(random: Random) -> Case:
    n, ms = random.randint(16, 25), random.uniform(2, 8)
    setting = Setting(("line", "busy"), phases={"s": 1})
    return Case(
        f"{n} tuples of n at once by fifo, a -> b takes {ms:.0f} ms longer",
        Expected(("burst",), ("n",), "busy", ("out",), parts=("a -> b",)),
        setting,
        (Strike(more={"n": ((401, n), (801, n))}, policy="fifo"), Strike(slow={("a", "b"): ms}, policy="fifo")),
    )


def _branches(random: Random) -> Case:
    """left comes over a slow link, and is there long before right."""
    ms, more = random.uniform(38, 50), random.uniform(5, 15)
    return Case(
        f"right takes {ms:.0f} ms; left is {more:.0f} ms late on its link, and waits",
        cost_of("right", "joined", "pair"),
        Setting(("joined",)),
        (Strike(dear={"right": ms / 2}), Strike(slow={("a", "b"): more})),
    )


def _age_and_burst(random: Random) -> Case:
    """One result has an old tuple, others wait in a burst."""
    ms, n = random.uniform(45, 80), random.randint(16, 22)
    expected = Expected(("admission_age", "burst"), ("s", "n"), "", ("out",))
    return Case(
        f"every 6th tuple of s is {ms:.0f} ms old; {n} tuples of n once, by fifo",
        expected,
        Setting(("line", "busy")),
        (Strike(old={"s": (ms, 6)}, policy="fifo"), Strike(more={"n": ((411, n),)}, policy="fifo")),
    )


def _little(random: Random) -> Case:
    """Less than a tenth of the latency, and more than the result was late."""
    times = random.uniform(1.11, 1.14)
    setting = Setting(("line",), {"x": 8000, "y": 15_000, "z": 8000, "out": 36}, jitter="none")
    return Case(
        f"y costs {times:.2f} times as much, a little too much",
        cost_of("y", "line", "out"),
        setting,
        (Strike(dear={"y": times}),),
    )


def _cost_and_ages(random: Random) -> Case:
    ms = random.uniform(9, 14)
    setting = Setting(("line",), {"s_more": ", max_age: 30 ms"}, ages={"s": 27}, jitter="none")
    return Case(
        f"y takes {ms:.0f} ms, tuples are 27 ms old as ever",
        cost_of("y", "line", "out"),
        setting,
        (Strike(dear={"y": ms}),),
    )


def _window_neighbour(random: Random) -> Case:
    ms = random.uniform(130, 200)
    setting = Setting(("windowed", "busy"), {"n": 1, "n_period": 400, "done": 390}, phases={"n": 399, "m": 2})
    return Case(
        f"h takes {ms:.0f} ms as a window closes", cost_of("h", "busy", "sums"), setting, (Strike(dear={"h": ms / 4}),)
    )


def _adding(random: Random) -> Case:
    ms = random.uniform(21, 30)
    expected = Expected(("cost_above_plan",), ("mean.add", "mean"), "windowed", ("sums",))
    return Case(
        f"adding to a window takes {ms:.0f} ms every 20 ms",
        expected,
        Setting(("windowed",)),
        (Strike(dear={"mean.add": ms * 10}),),
    )


def _window_lossy(random: Random) -> Case:
    loss = random.uniform(0.15, 0.3)
    expected = Expected(("link", "window"), ("a -> b", "mean"), "", ("sums",))
    said = f"{loss:.0%} lost on the link before windows"
    return Case(said, expected, Setting(("windowed",)), (Strike(loss=loss),))


def _window_old(random: Random) -> Case:
    """Within its source's max_age, so heartbeats wait for it: nothing is late."""
    return Case(
        "every 3rd tuple of m is 45 ms old, as it may be", None, Setting(("windowed",)), (Strike(old={"m": (45, 3)}),)
    )


def _steady_flood(random: Random) -> Case:
    """Not at once: three times as often as declared."""
    every = random.randint(13, 17)
    more = tuple((at, 3) for at in range(200, 1000, every))
    setting = Setting(("busy", "line"), {"h": 6000})
    return Case(
        f"3 tuples of n every {every} ms in place of 100",
        Expected(("burst",), ("n",), "busy", ("done",)),
        setting,
        (Strike(more={"n": more}),),
    )


def _urgent_beside_flood(random: Random) -> Case:
    """n harms done alone under edf, since line is more urgent; out is late by y."""
    ms, n = random.uniform(42, 60), random.randint(20, 30)
    return Case(
        f"y takes {ms:.0f} ms; {n} tuples of less urgent n at once",
        Expected(("cost_above_plan",), ("y",), "line", ("out",), parts=("n",)),
        Setting(("line", "busy")),
        (Strike(dear={"y": ms}), Strike(more={"n": ((401, n),)})),
    )


def _flood_then_cost(random: Random) -> Case:
    """The burst is long over."""
    ms = random.uniform(42, 60)
    setting = Setting(("line", "tight"), {"s_more": ""}, phases={"s": 2})
    return Case(
        f"k has a burst of 12 at the start; one takes {ms:.0f} times as long all the time",
        Expected(("cost_above_plan",), ("one",), "tight", ("soon",)),
        setting,
        (Strike(dear={"one": ms}), Strike(more={"k": ((1, 5),)})),
    )


def _degrades(random: Random) -> Case:
    ms = random.uniform(50, 80)
    setting = Setting(("line",), {"z_more": ", on_late: {degrade: {run: pass, cost: 100 us}}"})
    return Case(
        f"a -> b takes {ms:.0f} ms longer, z is replaced by a cheaper one",
        link_of("a -> b", "out"),
        setting,
        (Strike(slow={("a", "b"): ms}),),
    )


def _both_links(random: Random) -> Case:
    """Each of them alone would do."""
    ms, more = random.uniform(60, 90), random.uniform(3, 20)
    return Case(
        f"a -> b takes {ms:.0f} ms longer, b -> c {more:.0f} ms",
        Expected(("link",), ("a -> b",), "", ("out",), parts=("b -> c",)),
        Setting(("line",)),
        (Strike(slow={("a", "b"): ms}), Strike(slow={("b", "c"): more, ("a", "b"): 0.0})),
    )


def _age_beats_cost(random: Random) -> Case:
    ms, times = random.uniform(50, 90), random.uniform(3, 10)
    return Case(
        f"every 4th tuple of s is {ms:.0f} ms old, z costs {times:.0f} times as much",
        Expected(("admission_age",), ("s",), "line", ("out",), parts=("z",)),
        Setting(("line", "busy")),
        (Strike(old={"s": (ms, 4)}), Strike(dear={"z": times})),
    )


def _varied_ages(random: Random) -> Case:
    """Within what is declared, some older than others: they alone are late, by the link."""
    ms = random.uniform(12, 14)
    setting = Setting(("line",), {"s_more": ", max_age: 30 ms"}, jitter="none")
    return Case(
        f"a -> b takes {ms:.0f} ms longer, every 3rd tuple is 25 ms old, as it may be",
        Expected(("link", "admission_age"), ("a -> b", "s"), "", ("out",)),
        setting,
        (Strike(slow={("a", "b"): ms}, old={"s": (25, 3)}), Strike(old={"s": (25, 3)}, slow={("a", "b"): 0.0})),
    )


def _decisions(random: Random) -> Case:
    """Nobody's operator has a part."""
    ms = random.uniform(14, 20)
    return Case(
        f"each decision takes {ms:.0f} ms",
        Expected(("cost_above_plan",), ("",), "", ("out",)),
        Setting(("line",)),
        (Strike(decision_us=round(ms * 1000)),),
    )


def _slow_as_declared(random: Random) -> Case:
    """The deadline is too short for the links, which are as declared: no operator has a part that counts."""
    ms = random.randint(20, 30)
    return Case(
        f"links take {ms} ms each as declared, for a deadline of 30",
        Expected(("link",), ("a -> b", "b -> c"), "", ("out",)),
        Setting(("line",), {"ab": ms, "bc": ms, "out": 30}),
        planned=True,
    )


def _forgotten_burst(random: Random) -> Case:
    """b has no lull from the burst on, and makes up for it within 100 ms: what is late comes half a second later."""
    us, n = random.randint(38_000, 45_000), random.randint(5, 8)
    figures = {"h": 8100, "n": 1, "n_period": 10, "done": 190, "slow": us, "p_period": 1200, "out": 38}
    setting = Setting(("line", "busy", "fan", "tight"), figures, jitter="none", phases={"n": 0.1, "p": 590, "s": 5})
    expected = Expected(("blocked",), ("slow",), "fan", ("soon", "out"))
    return Case(
        f"slow takes {us / 1000:.0f} ms as planned; {n} tuples of k at once, long before",
        expected,
        setting,
        (Strike(more={"k": ((151, n),)}),),
        planned=True,
    )


def _shared(random: Random) -> Case:
    ms = random.uniform(19, 28)
    return Case(
        f"y, of two queries, takes {ms:.0f} ms",
        Expected(("cost_above_plan",), ("y",), "", ("near",)),
        Setting(("line", "twin", "busy")),
        (Strike(dear={"y": ms}),),
    )


def _varied_costs(random: Random) -> Case:
    setting = Setting(("line",), {"y": 10_000, "out": 22}, jitter="lognormal:cv=1")
    return Case(
        "costs vary, 20 ms for 10 at times",
        Expected(("cost_above_plan",), ("y",), "line", ("out",), parts=("x", "z")),
        setting,
        planned=True,
    )


RUNS: Mapping[str, Callable[[Random], Case]] = {
    "link beats cost": _link_beats_cost,
    "cost beats link": _cost_beats_link,
    "cost beats cost": _cost_beats_cost,
    "burst beats link": _burst_beats_link,
    "branches": _branches,
    "age and burst": _age_and_burst,
    "little": _little,
    "cost and ages": _cost_and_ages,
    "window neighbour": _window_neighbour,
    "adding": _adding,
    "window lossy": _window_lossy,
    "window old": _window_old,
    "steady flood": _steady_flood,
    "urgent beside flood": _urgent_beside_flood,
    "flood then cost": _flood_then_cost,
    "degrades": _degrades,
    "both links": _both_links,
    "age beats cost": _age_beats_cost,
    "varied ages": _varied_ages,
    "decisions": _decisions,
    "slow as declared": _slow_as_declared,
    "forgotten burst": _forgotten_burst,
    "shared": _shared,
    "varied costs": _varied_costs,
}
