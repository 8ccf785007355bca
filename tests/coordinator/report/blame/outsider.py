"""Runs by an outsider, who had not read the rules of blame: two causes at once, bystanders that look guilty.

A run tells what is struck, and by what. Where it has two strikes, the first is the larger one. What the strikes do is
tried by leaving them out: `test_outsider.py` has that the run misses nothing without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from tests.coordinator.report.blame.constructed import Constructed, Expected
from tests.coordinator.report.blame.outsider_world import Setting, Strike, drawn_phases, play

ALL = ("line", "busy", "fan", "joined", "sided", "windowed", "merged", "tight")
TUPLE_POLICIES = (None, "fifo", "edf-e2e", "slack")


@dataclass(frozen=True)
class Case:
    """said: the strikes in words; planned: the plan itself cannot hold, so without strikes it misses too."""

    said: str
    expected: Expected | None
    setting: Setting
    strikes: tuple[Strike, ...] = ()
    planned: bool = False

    @property
    def strike(self) -> Strike:
        """All that happens."""
        made = Strike()
        for each in reversed(self.strikes):
            made = made.with_(each)
        return made


def _cost(who: str, query: str, *outputs: str) -> Expected:
    return Expected(("cost_above_plan",), (who,), query, outputs)


def _link(way: str, *outputs: str) -> Expected:
    return Expected(("link",), (way,), "", outputs)


# -- costs


def _middle(random: Random) -> Case:
    ms = random.uniform(38, 60)
    return Case(
        f"y takes {ms:.0f} ms, 1 is planned",
        _cost("y", "line", "out"),
        Setting(("line", "fan")),
        (Strike(dear={"y": ms}),),
    )


def _barely(random: Random) -> Case:
    """Just enough: 34.6 ms are left."""
    ms = random.uniform(34.5, 36.5)
    return Case(
        f"z takes {ms:.1f} ms, 1 is planned",
        _cost("z", "line", "out"),
        Setting(("line",), jitter="none"),
        (Strike(dear={"z": ms}),),
    )


def _all_dear(random: Random) -> Case:
    times = random.uniform(12.5, 16)
    expected = Expected(("cost_above_plan",), ("x", "y", "z"), "line", ("out",))
    return Case(
        f"x, y and z cost {times:.0f} times as much",
        expected,
        Setting(("line",)),
        (Strike(dear=dict.fromkeys("xyz", times)),),
    )


def _neighbour(random: Random) -> Case:
    times, policy = random.uniform(8.5, 12), random.choice(TUPLE_POLICIES)
    setting = Setting(
        ("line", "busy"), {"n": 1, "done": 95}, model=random.choice(["paper", "sound"]), phases={"n": 3, "s": 1}
    )
    return Case(
        f"h, less urgent, costs {times:.0f} times as much ({policy or 'edf'})",
        _cost("h", "busy", "out"),
        setting,
        (Strike(dear={"h": times}, policy=policy),),
    )


def _busy_but_innocent(random: Random) -> Case:
    """h takes half the core, all day, as planned."""
    ms = random.uniform(38, 50)
    setting = Setting(("line", "busy"), {"n": 12, "done": 98})
    return Case(
        f"y takes {ms:.0f} ms beside a neighbour that is busy as planned",
        _cost("y", "line", "out"),
        setting,
        (Strike(dear={"y": ms}),),
    )


def _side_operator(random: Random) -> Case:
    ms = random.uniform(45, 70)
    setting = Setting(("line", "sided"), phases={"g": 4, "s": 1})
    return Case(
        f"gg, of a side input, takes {ms:.0f} ms on z's core",
        _cost("gg", "sided", "out"),
        setting,
        (Strike(dear={"gg": ms}),),
    )


def _fork(random: Random) -> Case:
    ms = random.uniform(22, 30)
    return Case(
        f"fast takes {ms:.0f} ms, the other branch is well",
        Expected(("cost_above_plan",), ("fast", "cut..fast"), "fan", ("quick",)),
        Setting(("fan", "line")),
        (Strike(dear={"fast": 2 * ms}),),
    )


def _before_fork(random: Random) -> Case:
    ms = random.uniform(22, 40)
    return Case(
        f"cut takes {ms:.0f} ms, before both branches",
        Expected(("cost_above_plan",), ("cut", "cut..fast"), "fan", ("quick",)),
        Setting(("fan",)),
        (Strike(dear={"cut": 2 * ms}),),
    )


def _branch(random: Random) -> Case:
    ms = random.uniform(36, 48)
    return Case(
        f"right takes {ms:.0f} ms, left waits for it",
        _cost("right", "joined", "pair"),
        Setting(("joined", "fan")),
        (Strike(dear={"right": ms / 2}),),
    )


def _closing(random: Random) -> Case:
    ms = random.uniform(130, 200)
    expected = Expected(("cost_above_plan",), ("mean",), "windowed", ("sums",))
    return Case(
        f"closing a window takes {ms:.0f} ms, 2 are planned",
        expected,
        Setting(("windowed",)),
        (Strike(dear={"mean": ms / 2}),),
    )


def _given_up(random: Random) -> Case:
    ms = random.uniform(50, 80)
    setting = Setting(("line",), {"z_more": ", on_late: drop"})
    return Case(
        f"y takes {ms:.0f} ms, z drops what is late",
        Expected(("cost_above_plan",), ("y",), "line", ("out",)),
        setting,
        (Strike(dear={"y": ms}),),
    )


def _slack(random: Random) -> Case:
    """Given up before the deadline, as it could not be met any more. Costs and links are those that nodes know of."""
    ms = random.uniform(34, 39)
    said = f"every 3rd tuple of s is {ms:.0f} ms old, under slack on all nodes"
    expected = Expected(("admission_age",), ("s",), "line", ("out",))
    return Case(said, expected, Setting(("line", "busy")), (Strike(old={"s": (ms, 3)}, policy="slack"),))


# -- links


def _second_link(random: Random) -> Case:
    """The first one takes long as well, as it is declared."""
    ms = random.uniform(25, 60)
    return Case(
        f"b -> c takes {ms:.0f} ms longer, a -> b the declared 12 ms",
        _link("b -> c", "out"),
        Setting(("line",), {"ab": 12}),
        (Strike(slow={("b", "c"): ms}),),
    )


def _thin(random: Random) -> Case:
    bps = random.randint(8_000, 11_000)
    return Case(
        f"a -> b has {bps} bit/s, 100 Mbit/s are declared",
        _link("a -> b", "out"),
        Setting(("line",)),
        (Strike(thin={("a", "b"): bps}),),
    )


def _late_branch(random: Random) -> Case:
    ms = random.uniform(34, 60)
    return Case(
        f"a -> b takes {ms:.0f} ms longer, behind it a join",
        _link("a -> b", "pair"),
        Setting(("joined", "busy")),
        (Strike(slow={("a", "b"): ms}),),
    )


def _one_of_two(random: Random) -> Case:
    ms = random.uniform(30, 60)
    return Case(
        f"c -> b takes {ms:.0f} ms longer, one source of a union",
        _link("c -> b", "wide"),
        Setting(("merged", "line")),
        (Strike(slow={("c", "b"): ms}),),
    )


def _link_and_ages(random: Random) -> Case:
    ms = random.uniform(8, 14)
    setting = Setting(("line",), {"s_more": ", max_age: 30 ms"}, ages={"s": 28}, jitter="none")
    return Case(
        f"a -> b takes {ms:.0f} ms longer, tuples are 28 ms old as ever",
        _link("a -> b", "out"),
        setting,
        (Strike(slow={("a", "b"): ms}),),
    )


def _fork_link(random: Random) -> Case:
    ms = random.uniform(58, 90)
    return Case(
        f"a -> b takes {ms:.0f} ms longer, on one branch",
        _link("a -> b", "later"),
        Setting(("fan",)),
        (Strike(slow={("a", "b"): ms}),),
    )


def _window_link(random: Random) -> Case:
    ms = random.uniform(150, 300)
    return Case(
        f"a -> b takes {ms:.0f} ms longer, before windows",
        Expected(("link", "window"), ("a -> b", "mean"), "", ("sums",)),
        Setting(("windowed",)),
        (Strike(slow={("a", "b"): ms}),),
    )


def _lossy(random: Random) -> Case:
    loss = random.uniform(0.1, 0.4)
    expected = Expected(("link",), ("a -> b", "b -> c"), "", ("out",), parts=("a -> b", "c -> b", "b -> c"))
    return Case(f"{loss:.0%} lost on all links", expected, Setting(("line", "fan")), (Strike(loss=loss),))


def _lossy_join(random: Random) -> Case:
    loss = random.uniform(0.1, 0.4)
    expected = Expected(("link",), ("a -> b",), "", ("pair",))
    return Case(f"{loss:.0%} lost on the links before a join", expected, Setting(("joined",)), (Strike(loss=loss),))


# -- bursts and ages


def _flood(random: Random) -> Case:
    n = random.randint(14, 25)
    setting = Setting(("line", "busy"), {"h": 4000}, phases={"s": 1})
    return Case(
        f"{n} tuples of n at once in place of 3, by fifo",
        Expected(("burst",), ("n",), "busy", ("out",)),
        setting,
        (Strike(more={"n": ((401, n), (801, n))}, policy="fifo"),),
    )


def _own_flood(random: Random) -> Case:
    n, policy = random.randint(60, 90), random.choice(TUPLE_POLICIES[:3])
    return Case(
        f"{n} tuples of s at once in place of 1 ({policy or 'edf'})",
        Expected(("burst",), ("s",), "line", ("out",)),
        Setting(("line", "busy")),
        (Strike(more={"s": ((401, n),)}, policy=policy),),
    )


def _flood_over_link(random: Random) -> Case:
    n = random.randint(22, 28)
    setting = Setting(("line", "tight"), {"x": 200, "y": 2000, "z": 200, "out": 300})
    return Case(
        f"{n} tuples of s flood b, behind a link, by fifo",
        Expected(("burst",), ("s",), "line", ("soon",)),
        setting,
        (Strike(more={"s": ((401, n), (801, n))}, policy="fifo"),),
    )


def _flood_elsewhere(random: Random) -> Case:
    """A burst of n harms nobody under edf but done, which is not late either; x is dear."""
    ms, n = random.uniform(38, 50), random.randint(3, 5)
    return Case(
        f"x takes {ms:.0f} ms; {n} tuples of n too many at once",
        _cost("x", "line", "out"),
        Setting(("line", "busy"), {"done": 90}),
        (Strike(dear={"x": ms}), Strike(more={"n": ((401, n),)})),
    )


def _some_old(random: Random) -> Case:
    ms, every = random.uniform(38, 90), random.randint(2, 6)
    return Case(
        f"every {every}th tuple of s is {ms:.0f} ms old",
        Expected(("admission_age",), ("s",), "line", ("out",)),
        Setting(("line", "busy")),
        (Strike(old={"s": (ms, every)}),),
    )


def _old_at_join(random: Random) -> Case:
    ms = random.uniform(32, 60)
    return Case(
        f"every 4th tuple of u is {ms:.0f} ms old, before a join",
        Expected(("admission_age",), ("u",), "joined", ("pair",)),
        Setting(("joined", "tight")),
        (Strike(old={"u": (ms, 4)}),),
    )


def _policed(random: Random) -> Case:
    n = random.randint(2, 8)
    setting = Setting(("line", "busy"), {"s_more": ", max_age: 5 ms"}, model="sound")
    return Case(
        f"{n} tuples of s too many, policed",
        Expected(("policed",), ("s",), "line", ("out",)),
        setting,
        (Strike(more={"s": ((403, n), (803, n))}),),
    )


def _rate(random: Random) -> Case:
    n = random.randint(5, 9)
    setting = Setting(("busy", "line"), {"n_more": f", max_rate: {{tuples: {n}, per: 1 s}}"})
    return Case(
        f"30 tuples of n a second, {n} are let in",
        Expected(("rate",), ("n",), "busy", ("done",)),
        setting,
        planned=True,
    )


# -- what a plan cannot hold


def _blocked(random: Random) -> Case:
    us = random.randint(38_000, 50_000)
    setting = Setting(("line", "busy"), {"h": us, "n": 1, "n_period": 200, "done": 190}, phases={"n": 0.1, "s": 0.5})
    return Case(
        f"h takes {us / 1000:.0f} ms, as planned",
        Expected(("blocked",), ("h",), "busy", ("out",)),
        setting,
        planned=True,
    )


def _short_deadline(random: Random) -> Case:
    us = random.randint(16_000, 30_000)
    setting = Setting(("line", "fan"), {"y": us, "x": us // 2, "z": us // 2, "out": 30, "s": 1})
    return Case(
        f"{us / 500:.0f} ms of planned work, most in y",
        Expected(("running",), ("y",), "line", ("out",)),
        setting,
        planned=True,
    )


def _overload(random: Random) -> Case:
    use = random.uniform(1.2, 1.8)
    many = "many: {run: outsider.thrice, in: n, cost: 50 us, nodes: [b]}\n  "
    figures = {"many": many, "h_in": "many", "h": round(use * 10_000 / 3), "n": 1, "n_period": 10, "done": 30}
    return Case(
        f"h asks for {use:.0%} of a core",
        Expected(("overloaded_core",), ("h",), "busy", ("done",)),
        Setting(("busy", "line"), figures, "operator"),
        planned=True,
    )


def _batch(random: Random) -> Case:
    n, policy = (
        random.randint(14, 20),
        random.choice([None, "fifo", "bts:phi=200ms", "bts1:phi=200ms", "ats:phi=200ms", "adaptive:share=5%"]),
    )
    setting = Setting(("line", "busy"), {"n": n, "n_period": 400, "done": 390}, phases={"n": 0.1, "s": 0.3})
    batch = "burst" if policy in {None, "fifo"} else None
    strike = Strike(policy=policy, batch=batch)
    return Case(
        f"{n} tuples of n run at once ({policy or 'edf'})",
        Expected(("batch",), ("",), "", ("out",), nodes=("b",)),
        setting,
        (strike,),
    )


# -- operators and queues


def _last_fails(random: Random) -> Case:
    setting = Setting(("line", "busy"), {"z_run": "outsider.fails"})
    return Case(
        "z raises on every third tuple", Expected(("operator_failed",), ("z",), "line", ("out",)), setting, planned=True
    )


def _branch_fails(random: Random) -> Case:
    setting = Setting(("joined", "line"), {"left_run": "outsider.fails"})
    return Case(
        "left raises, right waits in vain",
        Expected(("operator_failed",), ("left",), "joined", ("pair",)),
        setting,
        planned=True,
    )


def _full(random: Random) -> Case:
    n = random.randint(25, 40)
    setting = Setting(
        ("line", "busy"), {"y": 2000, "y_more": ", queue: {most: 3000 B, on_full: drop-tail}", "out": 300}
    )
    return Case(
        f"{n} tuples of s meet a queue of 3000 bytes",
        Expected(("queue_full", "burst"), ("y", "s", "b"), "line", ("out",)),
        setting,
        (Strike(more={"s": ((401, n), (801, n))}),),
    )


# -- two at once


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
        _cost("right", "joined", "pair"),
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
        _cost("y", "line", "out"),
        setting,
        (Strike(dear={"y": times}),),
    )


def _cost_and_ages(random: Random) -> Case:
    ms = random.uniform(9, 14)
    setting = Setting(("line",), {"s_more": ", max_age: 30 ms"}, ages={"s": 27}, jitter="none")
    return Case(
        f"y takes {ms:.0f} ms, tuples are 27 ms old as ever",
        _cost("y", "line", "out"),
        setting,
        (Strike(dear={"y": ms}),),
    )


def _window_neighbour(random: Random) -> Case:
    ms = random.uniform(130, 200)
    setting = Setting(("windowed", "busy"), {"n": 1, "n_period": 400, "done": 390}, phases={"n": 399, "m": 2})
    return Case(
        f"h takes {ms:.0f} ms as a window closes", _cost("h", "busy", "sums"), setting, (Strike(dear={"h": ms / 4}),)
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
        _link("a -> b", "out"),
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


# -- nothing


def _quiet(random: Random) -> Case:
    return Case("all queries, as planned", None, Setting(ALL, model=random.choice(["paper", "sound", "operator"])))


def _harmless(random: Random) -> Case:
    strikes = Strike(slow={("c", "b"): random.uniform(5, 10)}, dear={"h": 1.3}, more={"n": ((431, 2),)})
    return Case(
        "a side's link is slow, h a little dearer, n a little more: all in time",
        None,
        Setting(("sided", "busy", "line")),
        (strikes,),
    )


RUNS: Mapping[str, Callable[[Random], Case]] = {
    "middle": _middle, "barely": _barely, "all dear": _all_dear, "neighbour": _neighbour,
    "busy but innocent": _busy_but_innocent, "side operator": _side_operator, "fork": _fork,
    "before fork": _before_fork, "branch": _branch, "closing": _closing, "given up": _given_up, "slack": _slack,
    "second link": _second_link, "thin": _thin, "late branch": _late_branch, "one of two": _one_of_two,
    "link and ages": _link_and_ages, "fork link": _fork_link, "window link": _window_link, "lossy": _lossy,
    "lossy join": _lossy_join, "flood": _flood, "own flood": _own_flood, "flood over link": _flood_over_link,
    "flood elsewhere": _flood_elsewhere, "some old": _some_old, "old at join": _old_at_join, "policed": _policed,
    "rate": _rate, "blocked": _blocked, "short deadline": _short_deadline, "overload": _overload, "batch": _batch,
    "last fails": _last_fails, "branch fails": _branch_fails, "full": _full, "link beats cost": _link_beats_cost,
    "cost beats link": _cost_beats_link, "cost beats cost": _cost_beats_cost, "burst beats link": _burst_beats_link,
    "branches": _branches, "age and burst": _age_and_burst, "little": _little, "cost and ages": _cost_and_ages,
    "window neighbour": _window_neighbour, "adding": _adding, "window lossy": _window_lossy,
    "window old": _window_old, "steady flood": _steady_flood, "urgent beside flood": _urgent_beside_flood,
    "flood then cost": _flood_then_cost, "degrades": _degrades, "both links": _both_links,
    "age beats cost": _age_beats_cost, "varied ages": _varied_ages, "decisions": _decisions,
    "slow as declared": _slow_as_declared, "forgotten burst": _forgotten_burst, "shared": _shared,
    "varied costs": _varied_costs, "quiet": _quiet, "harmless": _harmless,
}  # fmt: skip


def drawn_case(cause: str, seed: int) -> Case:
    """Its intensity drawn from the seed."""
    random = Random(f"{cause} {seed}")
    case = RUNS[cause](random)
    setting = replace(drawn_phases(case.setting, random), trials=random.choice([1, 1, 2]))
    return replace(case, setting=setting)


def construct(cause: str, seed: int, folder: Path) -> Constructed:
    """A run in which that happens."""
    case = drawn_case(cause, seed)
    return Constructed(cause, case.said, case.expected, play(case.setting, case.strike, folder, seed))
