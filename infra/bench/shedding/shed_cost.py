"""Cost of shedding one tuple at the entry of windows, by shedder.

    .venv/bin/python -m infra.bench.shedding.shed_cost

A second. Nothing runs, so every tuple that comes is shed, or with `front` as many as come; heartbeats come every 50 ms.
CPU time from the admission of a tuple to the punctuation that its number travels in; beside it that of one that waits.
"""

from __future__ import annotations

import gc
import sys
from statistics import median
from time import thread_time_ns

from infra.bench.engine.instance_cost import NoCommands, ring_facts
from infra.bench.figures import Figure
from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine
from node_agent.core.policies import policy as named
from node_agent.core.windows.aggregates import Count, Together
from node_agent.core.windows.results import Collecting, result

MS, S = 1_000_000, 1_000_000_000
SHEDDERS = ("window-aware", "front", "random", "drop-tail")
MOST = 1000  # tuples that wait
COST_NS, GAP_NS, BEAT_NS, PERIOD_NS = 8 * MS, 4 * MS, 50 * MS, 500 * MS
BEFORE, TUPLES, REPETITIONS = 6000, 5000, 7
SOURCE, ADD, CLOSE, OUT = 1, 2, 3, 4


def local_plan(shedder: str | None) -> plans.Plan:
    """One source, windows of 5 s every 4 s; shedder None: everything is let in."""
    window = plans.Window("time", 5 * S, 4 * S, ADD, ((SOURCE, 0),), useful_ns=5 * S)
    shedding = plans.Shedding(shedder or "", (ADD,), (ADD,), MOST, S // 10, PERIOD_NS, (ADD,))
    return plans.Plan(
        query="shed", node="a", index=0, hash=1, epoch=1, policy="edf", largest_batch=1,
        streams=(
            plans.Stream(SOURCE, "s", "json", marked=True, counted=True), plans.Stream(ADD, "W.add", "json"),
            plans.Stream(OUT, "W", "json"),
        ),
        sources=(plans.Source(SOURCE, "s", SOURCE, beat_ns=BEAT_NS), plans.Source(ADD, "W.add", ADD, window=ADD)),
        operators=(
            plans.Operator(ADD, "W.add", "aggregate", (SOURCE,), ADD, COST_NS, S, window=window),
            plans.Operator(CLOSE, "W", "aggregate", (ADD,), OUT, MS, S, closes=ADD),
        ),
        units=(plans.Unit(ADD, (ADD,), S, 5 * S), plans.Unit(CLOSE, (CLOSE,), S, 5 * S, (OUT,))),
        sheddings=(shedding,) if shedder else (),
    )  # fmt: skip


class Offering:
    """Offers tuples to an engine that never runs one."""

    def __init__(self, shedder: str | None) -> None:
        self.engine = Engine(named("edf"), ring_facts(), NoCommands())
        collecting = Collecting(Together({"n": (Count, None)}))
        self.loaded = self.engine.load(local_plan(shedder), {ADD: (collecting, False), CLOSE: (result, True)})
        self.number, self.at_ns = 0, 1000 * S

    def offer(self, tuples: int) -> None:
        """So many, and the heartbeats between them."""
        engine, loaded = self.engine, self.loaded
        for _ in range(tuples):
            at_ns = self.at_ns = self.at_ns + GAP_NS
            if at_ns % BEAT_NS < GAP_NS:
                engine.heartbeat(at_ns, loaded, SOURCE, 1, self.number, 0, at_ns)
            engine.admit(at_ns, loaded.source_routes[SOURCE], (SOURCE, 1, self.number, 0, at_ns, at_ns), None, 0)
            self.number += 1

    def shed_us(self) -> float:
        """CPU time of one tuple; the rest is let in, if there is a rest."""
        shed = self.loaded.shedders[0].shed if self.loaded.shedders else 0
        began = thread_time_ns()
        self.offer(TUPLES)
        took = thread_time_ns() - began
        gone = self.loaded.shedders[0].shed - shed if self.loaded.shedders else TUPLES
        if gone < TUPLES - PERIOD_NS // GAP_NS:
            raise RuntimeError(f"{gone} of {TUPLES} tuples were shed: nothing is measured that way")
        return took / gone / 1000


def measured(shedder: str | None) -> float:
    """Median over repetitions, in us."""
    offering = Offering(shedder)
    offering.offer(BEFORE)
    return median(offering.shed_us() for _ in range(REPETITIONS))


def shed_cost() -> list[Figure]:
    """By shedder, and of a tuple that is let in where there is none."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        how = f"CPU time from admission on, facts and punctuation included, median of {REPETITIONS} x {TUPLES}, gc off"
        made = [Figure("wait_cost_us", measured(None), "us", None, f"a tuple that is queued, for comparison; {how}")]
        made += [Figure(f"shed_cost_us_{each}", measured(each), "us", None, how) for each in SHEDDERS]
    finally:
        gc.enable()
        gc.unfreeze()
    return made


def main() -> int:
    """Prints the figures."""
    for figure in shed_cost():
        print(f"{figure.name:28} {figure.value:6.2f} {figure.unit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
