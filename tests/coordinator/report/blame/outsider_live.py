"""Real agents on this machine, three of them, to which something happens: drawn by an outsider.

s -> x (a) -> y (b) -> z (c) -> out (c)        n -> h (b) -> done (b)
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.coordinator.report.blame import struck_agents
from tests.coordinator.report.blame.constructed import Constructed, Expected
from tests.coordinator.report.blame.outsider_world import Setting, plan_of
from tests.coordinator.report.blame.struck_agents import Feed, Strike, runtime_of

CALM: Mapping[str, object] = {
    "out": 150, "done": 900, "n": 2, "n_period": 200, "s_more": ", tolerance: 100 ms", "n_more": ", tolerance: 100 ms",
}  # fmt: skip


@dataclass(frozen=True)
class Happening:
    """n: tuples of n at once; age_ms: of tuples of s; strike: what happens to b."""

    said: str
    expected: Expected | None
    figures: Mapping[str, object] = field(default_factory=dict)
    n: int = 2
    age_ms: float = 0.0
    strike: Strike | None = None


def _pause(random: Random) -> Happening:
    seconds = random.uniform(0.4, 0.8)

    def strike(agent: struck_agents.LocalAgent) -> None:
        runtime = runtime_of(agent)
        os.kill(runtime, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(runtime, signal.SIGCONT)

    expected = Expected(("pause",), ("",), "", ("out",), nodes=("b",))
    return Happening(f"b, in the middle, stands still for {seconds * 1000:.0f} ms", expected, strike=strike)


def _killed(random: Random) -> Happening:
    """As it works, since y takes half of the time."""
    figures = {"y": 20_000, "y_run": "busy", "y_more": ", with: {cpu_us: 18000}"}
    expected = Expected(("restart", "clock"), ("", "a -> b", "b -> c", "s", "n"), "", ("out",))
    strike: Strike = lambda agent: os.kill(runtime_of(agent), signal.SIGKILL)  # noqa: E731
    return Happening("the runtime of b is killed", expected, figures, strike=strike)


def _cost(random: Random) -> Happening:
    ms = random.randint(160, 220)
    figures = {"z_run": "busy", "z_more": f", with: {{cpu_us: {ms * 1000}}}, hang: 5 s"}
    return Happening(f"z takes {ms} ms every 40 ms", Expected(("cost_above_plan",), ("z",), "line", ("out",)), figures)


def _flood(random: Random) -> Happening:
    n = random.randint(40, 60)
    figures = {"h": 10_000, "h_run": "busy", "h_more": ", with: {cpu_us: 9000}", "done": 100, "n_period": 1500}
    return Happening(f"{n} tuples of n in place of 2", Expected(("burst",), ("n",), "busy", ("done",)), figures, n=n)


def _age_beats_cost(random: Random) -> Happening:
    ms, age_ms = random.randint(12, 20), random.randint(250, 400)
    figures = {"y_run": "busy", "y_more": f", with: {{cpu_us: {ms * 1000}}}"}
    expected = Expected(("admission_age",), ("s",), "line", ("out",), parts=("y",))
    return Happening(f"tuples of s are {age_ms} ms old, y takes {ms} ms", expected, figures, age_ms=age_ms)


def _quiet(random: Random) -> Happening:
    return Happening("nothing", None, {"out": 2000, "done": 2000})


HAPPENS: Mapping[str, Callable[[Random], Happening]] = {
    "live middle pause": _pause, "live middle killed": _killed, "live last cost": _cost, "live flood": _flood,
    "live age beats cost": _age_beats_cost, "live quiet": _quiet,
}  # fmt: skip


def construct(cause: str, seed: int, folder: Path) -> Constructed:
    """A run in which that happens."""
    made = HAPPENS[cause](Random(f"{cause} {seed}"))
    plan = plan_of(folder, Setting(("line", "busy"), {**CALM, **made.figures}))
    period_s = int(str({**CALM, **made.figures}["n_period"])) / 1000
    feeds = [Feed("s", "a", 0.04, 1, made.age_ms), Feed("n", "b", period_s, made.n)]
    strike = None if made.strike is None else ("b", made.strike)
    return Constructed(cause, made.said, made.expected, struck_agents.run_of(plan, feeds, strike, folder), "live")
