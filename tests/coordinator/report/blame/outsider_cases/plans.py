"""What a plan cannot hold; operators that fail, queues that are full; and nothing at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.coordinator.report.blame.constructed import Expected
from tests.coordinator.report.blame.outsider_cases.case import ALL, Case
from tests.coordinator.report.blame.outsider_world import Setting, Strike


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
    "blocked": _blocked,
    "short deadline": _short_deadline,
    "overload": _overload,
    "batch": _batch,
    "last fails": _last_fails,
    "branch fails": _branch_fails,
    "full": _full,
    "quiet": _quiet,
    "harmless": _harmless,
}
