"""Links that are slow, thin or lossy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.coordinator.report.blame.constructed import Expected
from tests.coordinator.report.blame.outsider_cases.case import Case, link_of
from tests.coordinator.report.blame.outsider_world import Setting, Strike


def _second_link(random: Random) -> Case:
    """The first one takes long as well, as it is declared."""
    ms = random.uniform(25, 60)
    return Case(
        f"b -> c takes {ms:.0f} ms longer, a -> b the declared 12 ms",
        link_of("b -> c", "out"),
        Setting(("line",), {"ab": 12}),
        (Strike(slow={("b", "c"): ms}),),
    )


def _thin(random: Random) -> Case:
    bps = random.randint(8_000, 11_000)
    return Case(
        f"a -> b has {bps} bit/s, 100 Mbit/s are declared",
        link_of("a -> b", "out"),
        Setting(("line",)),
        (Strike(thin={("a", "b"): bps}),),
    )


def _late_branch(random: Random) -> Case:
    ms = random.uniform(34, 60)
    return Case(
        f"a -> b takes {ms:.0f} ms longer, behind it a join",
        link_of("a -> b", "pair"),
        Setting(("joined", "busy")),
        (Strike(slow={("a", "b"): ms}),),
    )


def _one_of_two(random: Random) -> Case:
    ms = random.uniform(30, 60)
    return Case(
        f"c -> b takes {ms:.0f} ms longer, one source of a union",
        link_of("c -> b", "wide"),
        Setting(("merged", "line")),
        (Strike(slow={("c", "b"): ms}),),
    )


def _link_and_ages(random: Random) -> Case:
    ms = random.uniform(8, 14)
    setting = Setting(("line",), {"s_more": ", max_age: 30 ms"}, ages={"s": 28}, jitter="none")
    return Case(
        f"a -> b takes {ms:.0f} ms longer, tuples are 28 ms old as ever",
        link_of("a -> b", "out"),
        setting,
        (Strike(slow={("a", "b"): ms}),),
    )


def _fork_link(random: Random) -> Case:
    ms = random.uniform(58, 90)
    return Case(
        f"a -> b takes {ms:.0f} ms longer, on one branch",
        link_of("a -> b", "later"),
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


RUNS: Mapping[str, Callable[[Random], Case]] = {
    "second link": _second_link,
    "thin": _thin,
    "late branch": _late_branch,
    "one of two": _one_of_two,
    "link and ages": _link_and_ages,
    "fork link": _fork_link,
    "window link": _window_link,
    "lossy": _lossy,
    "lossy join": _lossy_join,
}
