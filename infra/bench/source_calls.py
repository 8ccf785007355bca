"""How late a timer's ticks are admitted while a function of another source blocks, computes, or returns at once.

    .venv/bin/python -m infra.bench.source_calls            (chrt -f 50 before it: in the class that agents ask for)

Twenty seconds. One runtime in this process: a timer every 5 ms, and a function every 100 ms on a thread of its own that
takes 50 ms of the clock, or of CPU time in Python, which holds the interpreter's lock.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from node_agent.core import plan as core
from node_agent.host.clock import now_ns
from node_agent.operators.registry import Registry
from node_agent.runtime.in_process import in_process
from node_agent.sdk import source
from protos import records

MS, S = 1_000_000, 1_000_000_000
FOR_NS, TAKES_NS = 6 * S, 50 * MS
TIMER, FUNCTION = 1, 2
MOST_BYTES = 1 << 26


@source("bench.returns")
def returns() -> int:
    """At once."""
    return 1


@source("bench.blocks")
def blocks() -> int:
    """As a camera does."""
    time.sleep(TAKES_NS / S)
    return 1


@source("bench.computes")
def computes() -> int:
    """In Python."""
    end_ns = time.thread_time_ns() + TAKES_NS
    while time.thread_time_ns() < end_ns:
        pass
    return 1


def local_plan(run: str) -> core.Plan:
    """Two sources, an operator and an output for each."""
    names = {TIMER: "timer", FUNCTION: "function"}
    pulls = {TIMER: core.Pull(5 * MS), FUNCTION: core.Pull(100 * MS, 0, run)}
    return core.Plan(
        query="calls", node="a", index=0, hash=1 << 60, epoch=1, policy="edf", largest_batch=1,
        streams=tuple(
            core.Stream(i + more, f"{name}{more}", "json", False, S) for i, name in names.items() for more in (0, 2)
        ),
        sources=tuple(core.Source(i, names[i], i, pull=pulls[i]) for i in names),
        operators=tuple(core.Operator(i, f"O{i}", "pass", (i,), i + 2, 0) for i in names),
        units=tuple(core.Unit(i, (i,), S // 10, S, (i + 2,)) for i in names),
        outputs=tuple(core.Output(i, f"out{i}", i + 2, S) for i in names),
    )  # fmt: skip


def late_us(run: str) -> list[float]:
    """From each tick's instant to its admission, sorted."""
    functions = Registry(operators=(returns, blocks, computes))
    with tempfile.TemporaryDirectory() as folder, in_process(local_plan(run), Path(folder), functions) as runtime:
        end_ns = now_ns() + FOR_NS
        while now_ns() < end_ns:
            runtime.step()
        runtime.facts.publish()
        found = records.unpack_records(runtime.facts.ring.take(MOST_BYTES))
        ticks = (each for each in found if isinstance(each, records.Admitted) and each.source_id == TIMER)
        return sorted((each.at_ns - each.origin_lo_ns) / 1000 for each in ticks)


def main() -> int:
    """Prints the figures."""
    for run in ("bench.returns", "bench.blocks", "bench.computes"):
        late = late_us(run)
        print(f"{run:16} p50 {late[len(late) // 2]:7.0f} us  p99 {late[len(late) * 99 // 100]:7.0f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
