"""More than declared, or older."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.coordinator.report.blame.constructed import Expected
from tests.coordinator.report.blame.outsider_cases.case import TUPLE_POLICIES, Case, cost_of
from tests.coordinator.report.blame.outsider_world import Setting, Strike


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
        cost_of("x", "line", "out"),
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


RUNS: Mapping[str, Callable[[Random], Case]] = {
    "flood": _flood,
    "own flood": _own_flood,
    "flood over link": _flood_over_link,
    "flood elsewhere": _flood_elsewhere,
    "some old": _some_old,
    "old at join": _old_at_join,
    "policed": _policed,
    "rate": _rate,
}
