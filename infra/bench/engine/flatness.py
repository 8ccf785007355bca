"""Whether what a tuple costs stays the same with more units, queued tuples, streams and queries on a node.

CPU time of the thread, as a ratio of two neighbours in time: the engine called instance by instance, and a runtime in
this process whose sources get batches of 50 over a socket, through one operator each.
"""

import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import thread_time_ns

from infra.bench.engine.instance_cost import engine_ns
from infra.bench.figures import Figure, paired_ratio
from node_agent.core import plan as core
from node_agent.host.clock import clock_domain, now_ns
from node_agent.host.trace_ring import TAKEN, WRITTEN
from node_agent.runtime.in_process import in_process
from node_agent.runtime.loop import Runtime
from node_agent.wire import frames

GOAL = 1.2
REPETITIONS, INSTANCES, BATCHES, AT_ONCE = 9, 20_000, 20, 50
SECOND = 1_000_000_000


def flatness() -> list[Figure]:
    """Ratios: of the greater number to the lesser."""
    engines = {
        "units": ("10 to 1000 units", lambda: _cpu(units=1000), lambda: _cpu(units=10)),
        "queued": ("1 to 100 000 queued tuples", lambda: _cpu(in_flight=100_000), lambda: _cpu(in_flight=1)),
    }
    found = [_figure(name, how, more, fewer) for name, (how, more, fewer) in engines.items()]
    for name, number in (("queries", 50), ("streams", 1000)):
        with _Fed(1) as one, _Fed(number) as many:
            found.append(
                _figure(name, f"1 to {number} {name}, each with a source, an operator and an output", many, one)
            )
    return found


def _figure(name: str, how: str, more: Callable[[], float], fewer: Callable[[], float]) -> Figure:
    ratio, _ = paired_ratio(more, fewer, REPETITIONS)
    return Figure(f"flat_{name}", ratio, "x", GOAL, f"{how}: CPU time; median of {REPETITIONS} pairs")


def _cpu(units: int = 21, in_flight: int = 100) -> float:
    return engine_ns(INSTANCES, units=units, in_flight=in_flight, clock=thread_time_ns)


class _Fed:
    """A runtime with so many sources, of which the last one is fed. Called, it gives ns of CPU time per tuple."""

    def __init__(self, sources: int) -> None:
        self._plan, self._name, self._sent = _plan(sources), f"s{sources}", 0
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self) -> "_Fed":
        self._in_process = in_process(self._plan, Path(self._folder.name))
        self._runtime = runtime = self._in_process.__enter__()
        assert runtime.acceptor is not None
        self._end = socket.create_connection(runtime.acceptor.address)
        self._end.sendall(frames.encode_hello(frames.Hello(f"source:{self._name}", clock_domain(), 5)))
        return self

    def __exit__(self, *error: object) -> None:
        self._end.close()
        self._in_process.__exit__(None, None, None)
        self._folder.cleanup()

    def __call__(self) -> float:
        before_ns = thread_time_ns()
        for _ in range(BATCHES):
            at_ns = now_ns()
            tuples = [frames.encode_tuple((0, 0, 0, 0, at_ns, at_ns), 0, 0, b"5")] * AT_ONCE
            self._end.sendall(frames.encode_batch(self._sent + 1, at_ns, tuples))
            self._sent += AT_ONCE
            _run_until(self._runtime, self._sent)
            self._end.recv(1 << 20)
        return (thread_time_ns() - before_ns) / (BATCHES * AT_ONCE)


def _run_until(runtime: Runtime, sent: int) -> None:
    (deployed,) = runtime.plans.by_hash.values()
    engine, cells = deployed.engine_slot.engine, runtime.facts.ring.cells
    while engine.dispatched < sent:
        runtime.step(wait=False)
    runtime.facts.publish()
    cells[TAKEN] = cells[WRITTEN]


def _plan(sources: int) -> core.Plan:
    """Source i -> operator i -> output i."""
    numbers = range(1, sources + 1)
    return core.Plan(
        query="flat", node="a", index=0, hash=sources, epoch=1, policy="edf", largest_batch=1,
        streams=tuple(core.Stream(i, f"t{i}", "json", deadline_ns=SECOND) for i in range(1, 2 * sources + 1)),
        sources=tuple(core.Source(i, f"s{i}", i) for i in numbers),
        operators=tuple(core.Operator(i, f"O{i}", "pass", (i,), i + sources, 1) for i in numbers),
        units=tuple(core.Unit(i, (i,), SECOND, SECOND, (i + sources,)) for i in numbers),
        outputs=tuple(core.Output(i, f"out{i}", i + sources, SECOND) for i in numbers),
    )  # fmt: skip


if __name__ == "__main__":
    for figure in flatness():
        print(f"{figure.name:14} {figure.value:.2f}")
