"""A runtime on ports of a test: a clock that moves where the loop waits, calls that take as long as the test says."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count
from pathlib import Path

from node_agent.core import plan as core
from node_agent.host.trace_ring import Ring, RingFacts
from node_agent.operators.registry import Registry
from node_agent.ports import READABLE, Handler, Ports, Returned, Stream, Suspended
from node_agent.runtime.context import Shared
from node_agent.runtime.deployments.deployed_plan import ENDED, Deployed
from node_agent.runtime.links.acceptor import Acceptor
from node_agent.runtime.loop import Runtime
from protos import records

RING_RECORDS = 1 << 14


class SteppedWorld:
    """Clock, network without streams, listener, machine and callers of one runtime.

    now: of its clock, ns. takes: how long the next call takes, None: for ever. under_way: calls at this instant.
    """

    drift_ppm = 0
    domain = "0" * 32

    def __init__(self, now: int = 10**12) -> None:
        self.now, self.under_way = now, 0
        self.takes: Callable[[], int | None] = lambda: 0
        self._ends: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()

    # -- clock

    @property
    def now_ns(self) -> Callable[[], int]:
        return lambda: self.now

    cpu_ns = now_ns

    def suspended(self) -> Suspended | None:
        return None

    # -- network

    def dial(self, host: str, port: int) -> Stream:
        raise OSError("nobody is there")

    def add(self, descriptor: int, handler: Handler, mask: int = READABLE) -> None:
        """The listener alone is ever waited for, and nobody comes."""

    give = change = remove = add  # type: ignore[assignment]

    address = ("127.0.0.1", 1)

    def fileno(self) -> int:
        return 3

    def accept(self) -> tuple[Stream, tuple[str, int]]:
        raise BlockingIOError

    def wait(self, seconds: float) -> int:
        """To the end of the first call, if it comes before."""
        until_ns = self.now + round(seconds * 1e9)
        if self._ends and self._ends[0][0] <= until_ns:
            until_ns = max(self.now, self._ends[0][0])
        self.now = until_ns
        while self._ends and self._ends[0][0] <= self.now:
            heappop(self._ends)[2]()
        return self.now

    # -- machine

    @property
    def real_time_share(self) -> float:
        """No such class."""
        return 0

    def real_time(self, wanted: bool) -> None:
        """Nothing."""

    def resident_bytes(self) -> int:
        return 0

    def pin(self, cpu: int) -> bool:
        return True

    def settle(self) -> None:
        """Nothing to collect."""

    # -- callers

    def open(self, name: str, returned: Callable[[Returned], None], paced: bool = False) -> SteppedCaller:
        return SteppedCaller(self, returned)

    def end_at(self, at_ns: int, end: Callable[[], None]) -> None:
        heappush(self._ends, (at_ns, next(self._numbers), end))


class SteppedCaller:
    """`ports.Caller`."""

    def __init__(self, world: SteppedWorld, returned: Callable[[Returned], None]) -> None:
        self._world, self._returned, self.busy, self.closed = world, returned, False, False

    def call(self, function: Callable[[], object]) -> None:
        assert not self.busy and not self.closed
        self.busy, takes_ns = True, self._world.takes()
        self._world.under_way += 1
        if takes_ns is not None:
            self._world.end_at(self._world.now + takes_ns, lambda: self._end(function))

    def _end(self, function: Callable[[], object]) -> None:
        self.busy = False
        self._world.under_way -= 1
        value, error = None, None
        try:
            value = function()
        except Exception as raised:
            error = raised
        if not self.closed:
            self._returned(Returned(self._world.now, value, error))

    def close(self) -> None:
        self.closed = True


def runtime_in(world: SteppedWorld, registry: Registry) -> Runtime:
    """A runtime without plans, whose ring nobody empties."""
    memory = mmap.mmap(-1, Ring.size_bytes(RING_RECORDS))
    packed = records.pack_header(records.Header("a", 0, 1, world.domain, 0, world.now, 0))
    memory[: len(packed)] = packed
    facts = RingFacts(Ring(Path("stepped.ring"), memory))
    shared = Shared("a", Ports(world, world, world, world), 1, 1, facts)

    def changed(deployed: Deployed, why: str) -> None:
        if deployed.state == ENDED:
            runtime.outbox.remove(deployed.loaded)

    runtime = Runtime(shared, facts, registry, changed)
    runtime.attach(Acceptor(runtime.context, world))
    return runtime


def deploy(runtime: Runtime, plan: core.Plan) -> Deployed:
    """Prepared and committed."""
    plan_hash = f"{plan.hash:016x}".ljust(64, "0")
    deployed = runtime.plans.load(plan, plan_hash)
    assert not runtime.add_plan(deployed, ())
    assert runtime.plans.commit(plan_hash) == (True, "")
    return deployed


def run_until(runtime: Runtime, world: SteppedWorld, at_ns: int) -> None:
    """Steps until the clock shows that instant at least."""
    while world.now < at_ns:
        runtime.step()


def written(runtime: Runtime) -> Iterator[records.Record]:
    """What the runtime has recorded since it was asked last."""
    runtime.shared.refusals.write()
    runtime.facts.publish()
    yield from records.unpack_records(runtime.facts.ring.take(1 << 30))


__all__ = ["SteppedWorld", "deploy", "run_until", "runtime_in", "written"]
