"""[S]: the agents' shedders before one queue with one server, in virtual time: a tenth of the work of `window_node`.

The shedder, its measurements and its queue are the product's. Windows are judged by their tuples alone: one is given if
all of them have run, and the last was done in time. The engine closes windows by heartbeats, so it gives the same ones
or, where a result would come within 50 ms of its deadline, one less; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from infra.papers.shedding.offline_optimum import Workload
from infra.papers.shedding.window_node import FAR_NS, S, Setting, local_plan
from node_agent.core.engine.compiler import compile_plan
from node_agent.core.model import Effect, Job, StreamShedder, Unit, Withdrawal, new_job
from node_agent.core.policies import policy
from node_agent.core.windows.allocator import Grid
from node_agent.operators.registry import Registry


@dataclass(frozen=True)
class Served:
    """Of one run of one query. windows: that lie within the stream. admitted: windows that `window-aware` let in as
    they opened; another shedder: 0. given: exact and in time; incomplete: admitted, of the windows counted, and not
    given. ran, shed: tuples. peak: the most that waited."""

    windows: int
    given: int
    admitted: int
    ran: int
    shed: int
    peak: int


class _Server:
    """One unit's queue and what runs. done_ns: when each tuple was done, by place; None: it was shed."""

    def __init__(self, unit: Unit, workload: Workload) -> None:
        self._unit, self._cost_ns = unit, workload.cost_ns
        self.done_ns: list[int | None] = [None] * len(workload.at_ns)
        self._running: Job | None = None
        self._end_ns = 0

    def serve(self, until_ns: int) -> None:
        """Everything that ends by then, and what begins by that."""
        queue, meter = self._unit.queue, self._unit.utilisation
        assert meter is not None
        while True:
            if self._running is not None:
                if self._end_ns > until_ns:
                    return
                place = self._running.lineage[2] - 1
                self.done_ns[place] = self._end_ns
                meter.add(self._cost_ns[place], self._end_ns, 0, True)
                self._running = None
            if not queue:
                return
            self._running = job = queue.popleft()
            self._end_ns = max(self._end_ns, job.release_ns) + self._cost_ns[job.lineage[2] - 1]

    def apply(self, effects: Iterable[Effect]) -> None:
        """What a shedder takes out of the queue."""
        for effect in effects:
            if isinstance(effect, Withdrawal):
                left = [job for job in self._unit.queue if job.lineage not in effect.lineages]
                while self._unit.queue:
                    self._unit.queue.popleft()
                for job in left:
                    self._unit.queue.append(job)


def run(setting: Setting, workload: Workload, shedder: str) -> Served:
    """All tuples of the first query. Raises ValueError where there are several."""
    (grid,) = setting.grids
    plan, registry = local_plan(setting, shedder), Registry()
    calls = {each.id: registry.calls(each, ["s"]) for each in plan.operators}
    loaded = compile_plan(plan, calls, policy("edf", 1, plan.parameters))
    (entry,) = loaded.routes[plan.sources[0].stream].stream_shedders
    (unit,) = (each for each in loaded.units if each.id == plan.sheddings[0].units[0])
    server = _Server(unit, workload)
    peak = _offer(server, entry, unit, workload.at_ns)
    ran = sum(each is not None for each in server.done_ns)
    given, windows = _given(setting, grid, workload.at_ns, server.done_ns), len(setting.counted(grid))
    counts = loaded.shedding_counts()
    admitted = counts.get("windows.W0.decided", 0) - counts.get("windows.W0.denied", 0)
    return Served(windows, given, admitted, ran, len(workload.at_ns) - ran, peak)


def _offer(server: _Server, entry: StreamShedder, unit: Unit, at_ns: Sequence[int]) -> int:
    """Returns the most tuples that waited."""
    shedder, queue, peak = entry.shedder, unit.queue, 0
    for number, now in enumerate(at_ns, 1):
        server.serve(now)
        if now >= shedder.due_ns:
            server.apply(shedder.tick(now))
        lineage = (1, 1, number, 0, now, now)
        kept, effects = entry.decide(now, lineage)
        server.apply(effects)
        if kept:
            queue.append(new_job(now, now, number, unit, lineage, None))
            server.serve(now)
            peak = max(peak, len(queue))
    server.serve(FAR_NS)
    return peak


def _given(setting: Setting, grid: Grid, at_ns: Sequence[int], done_ns: Sequence[int | None]) -> int:
    """Windows that are counted, of which every tuple is done in time."""
    missing, last_ns = dict[int, int](), dict[int, int]()
    for at, done in zip(at_ns, done_ns, strict=True):
        for window in grid.of(at):
            if done is None:
                missing[window] = missing.get(window, 0) + 1
            else:
                last_ns[window] = done
    return sum(
        window not in missing and last_ns.get(window, 0) <= grid.end(window) + setting.latency_s * S
        for window in setting.counted(grid)
    )


__all__ = ["Served", "run"]
