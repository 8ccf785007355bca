"""Operators that take longer than planned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.coordinator.report.blame.constructed import Expected
from tests.coordinator.report.blame.outsider_cases.case import TUPLE_POLICIES, Case, cost_of
from tests.coordinator.report.blame.outsider_world import Setting, Strike


def _middle(random: Random) -> Case:
    ms = random.uniform(38, 60)
    return Case(
        f"y takes {ms:.0f} ms, 1 is planned",
        cost_of("y", "line", "out"),
        Setting(("line", "fan")),
        (Strike(dear={"y": ms}),),
    )


def _barely(random: Random) -> Case:
    """Just enough: 34.6 ms are left."""
    ms = random.uniform(34.5, 36.5)
    return Case(
        f"z takes {ms:.1f} ms, 1 is planned",
        cost_of("z", "line", "out"),
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
        cost_of("h", "busy", "out"),
        setting,
        (Strike(dear={"h": times}, policy=policy),),
    )


def _busy_but_innocent(random: Random) -> Case:
    """h takes half the core, all day, as planned."""
    ms = random.uniform(38, 50)
    setting = Setting(("line", "busy"), {"n": 12, "done": 98})
    return Case(
        f"y takes {ms:.0f} ms beside a neighbour that is busy as planned",
        cost_of("y", "line", "out"),
        setting,
        (Strike(dear={"y": ms}),),
    )


def _side_operator(random: Random) -> Case:
    ms = random.uniform(45, 70)
    setting = Setting(("line", "sided"), phases={"g": 4, "s": 1})
    return Case(
        f"gg, of a side input, takes {ms:.0f} ms on z's core",
        cost_of("gg", "sided", "out"),
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
        cost_of("right", "joined", "pair"),
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


RUNS: Mapping[str, Callable[[Random], Case]] = {
    "middle": _middle,
    "barely": _barely,
    "all dear": _all_dear,
    "neighbour": _neighbour,
    "busy but innocent": _busy_but_innocent,
    "side operator": _side_operator,
    "fork": _fork,
    "before fork": _before_fork,
    "branch": _branch,
    "closing": _closing,
    "given up": _given_up,
    "slack": _slack,
}
