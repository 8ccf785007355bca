"""[S]: one node that aggregates a stream in windows, in virtual time: the agents' engine, windows and shedders.

The virtual cluster runs the same and writes every fact down; this driver keeps the order of its events and counts. The
rule of [S] as printed looks at the tuples that survive, beside the completed one that the engine follows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log, log1p, sqrt
from random import Random
from typing import Any

from infra.papers.shedding.offline_optimum import Constraints, Workload, optimum
from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine
from node_agent.core.facts import Facts
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Job, Unit
from node_agent.core.policies import policy
from node_agent.core.windows.allocator import Grid
from node_agent.operators.registry import Registry
from node_agent.runtime.executor import apply

MS, S = 1_000_000, 1_000_000_000
START_NS = 20 * S  # windows begin at multiples of their hop: the first ones at or after this
FAR_NS = 1 << 62
BEAT_NS = 50 * MS
RECORDS = bytearray(64 * 1024)


@dataclass(frozen=True)
class Setting:
    """windows: (length, hop) in seconds, of each query; their work shares cost_ns. latency_s: L. load: rho, the mean.
    phases: (seconds, load) that follow one another, over and over; none: the load is steady. most: M. period_ms: of the
    control. warm_s: windows that begin earlier are not counted: as long as a queue fills, every policy gives every
    window. cost_cv: coefficient of variation of a tuple's cost, which is lognormal with mean cost_ns; 0: all cost the
    same."""

    load: float
    windows: tuple[tuple[int, int], ...] = ((5, 4),)
    phases: tuple[tuple[int, float], ...] = ()
    seconds: int = 600
    warm_s: int = 40
    seed: int = 1
    cost_ns: int = 8 * MS
    cost_cv: float = 0.0
    latency_s: int = 5
    most: int = 3000
    period_ms: int = 500

    @property
    def grids(self) -> list[Grid]:
        """Of each query."""
        return [Grid(length * S, hop * S) for length, hop in self.windows]

    def constraints(self, grid: Grid) -> Constraints:
        """For the optimum of the query with that grid."""
        return Constraints(grid, self.latency_s * S, self.most)

    def counted(self, grid: Grid) -> range:
        """The windows of a grid that are counted: they lie within the stream, behind the warm-up."""
        return range(grid.from_(START_NS + self.warm_s * S), grid.first(START_NS + self.seconds * S))


@dataclass
class Outcome:
    """windows: that lie within the stream and are counted, of all queries; given: of them, exact and in time; late:
    exact, not in time. wrong: results that are not the exact ones, in time or not. printed, printed_wrong: what the
    rule as printed gives over the same survivors. best: windows that could have been given at most, of one query;
    bounds: runs of which it is a bound and no schedule's. peak: the most tuples that waited. busy: share of the time
    that the CPU worked; useful: on tuples of windows in time."""

    windows: int = 0
    given: int = 0
    late: int = 0
    wrong: int = 0
    printed: int = 0
    printed_wrong: int = 0
    shed: int = 0
    tuples: int = 0
    best: int = 0
    bounds: int = 0
    peak: int = 0
    busy: float = 0
    useful: float = 0

    def add(self, other: Outcome) -> Outcome:
        """Both runs as one; shares of runs of one length."""
        both = Outcome(*(mine + its for mine, its in zip(vars(self).values(), vars(other).values(), strict=True)))
        both.peak = max(self.peak, other.peak)
        return both


def arrivals(setting: Setting) -> list[int]:
    """Poisson: instants, ns."""
    random = Random(f"{setting.seed}, {setting.load}, {bool(setting.phases)}")
    found: list[int] = []
    at_ns, end_ns = float(START_NS), START_NS + setting.seconds * S
    while True:
        at_ns += random.expovariate(_load(setting, (at_ns - START_NS) / S) / setting.cost_ns)
        if at_ns >= end_ns:
            return found
        found.append(int(at_ns))


def _load(setting: Setting, after_s: float) -> float:
    """What is offered at that time."""
    left_s = after_s % (sum(seconds for seconds, _ in setting.phases) or 1)
    for seconds, load in setting.phases:
        left_s -= seconds
        if left_s < 0:
            return load
    return setting.load


def costs(setting: Setting, tuples: int) -> list[int]:
    """What each tuple costs, all queries together, ns."""
    if not setting.cost_cv:
        return [setting.cost_ns] * tuples
    random, variance = Random(f"{setting.seed}, costs"), log1p(setting.cost_cv**2)
    mean, deviation = log(setting.cost_ns) - variance / 2, sqrt(variance)
    return [max(1, int(random.lognormvariate(mean, deviation))) for _ in range(tuples)]


def workload(setting: Setting) -> Workload:
    """Arrivals and costs of a run."""
    at_ns = arrivals(setting)
    return Workload(at_ns, costs(setting, len(at_ns)))


def local_plan(setting: Setting, shedder: str, policy_name: str = "edf") -> plans.Plan:
    """Per query an operator that collects, and one that closes at no cost; one shedder before all that collect."""
    useful_ns = setting.latency_s * S
    streams = [plans.Stream(1, "s", "json", True, useful_ns, counted=True)]
    sources = [plans.Source(1, "s", 1, MS, beat_ns=BEAT_NS)]
    operators, units, outputs = [], [], []
    for number, grid in enumerate(setting.grids):
        collects, closes = 2 * number + 1, 2 * number + 2
        admitted, result, source = 2 * number + 2, 2 * number + 3, number + 2
        streams += [plans.Stream(admitted, f"W{number}.add", "json", False, useful_ns),
                    plans.Stream(result, f"W{number}", "json", False, useful_ns)]  # fmt: skip
        sources.append(plans.Source(source, f"W{number}.add", admitted, window=collects))
        window = plans.Window(
            "time", grid.length, grid.hop, source, ((1, 0),), useful_ns=useful_ns,
            wait_ns=setting.most * setting.cost_ns + 2 * useful_ns,
        )  # fmt: skip
        operators += [
            plans.Operator(
                collects, f"W{number}.add", "aggregate", (1,), admitted, setting.cost_ns // len(setting.windows),
                useful_ns - MS, with_json='{"n": "count", "v": "sum"}', window=window,
            ),
            plans.Operator(closes, f"W{number}", "aggregate", (admitted,), result, 0, MS, closes=collects),
        ]  # fmt: skip
        units += [plans.Unit(collects, (collects,), useful_ns - MS, useful_ns),
                  plans.Unit(closes, (closes,), MS, useful_ns, (result,))]  # fmt: skip
        outputs.append(plans.Output(number + 1, f"W{number}", result, useful_ns))
    collecting = tuple(operator.id for operator in operators if operator.window is not None)
    shedding = plans.Shedding(
        shedder, collecting, collecting, setting.most, useful_ns // 2, setting.period_ms * MS, collecting
    )
    return plans.Plan(
        query="shedding", node="a", index=0, hash=1, epoch=1, policy=policy_name, largest_batch=1,
        streams=tuple(streams), sources=tuple(sources), operators=tuple(operators), units=tuple(units),
        outputs=tuple(outputs), sheddings=() if shedder == "none" else (shedding,),
    )  # fmt: skip


class PrintedRule:
    """Windows by [S]'s algorithm with its punctuation only: a survivor behind a shed range abandons what is open
    *when it comes*, after what has ended was closed. {window: count, sum} of what it gives."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.open: dict[int, list[int]] = {}
        self.abandoned: set[int] = set()
        self.closed: dict[int, list[int]] = {}
        self._before = 0

    def survived(self, number: int, origin_ns: int) -> None:
        """Number 1 is the first."""
        marked, self._before = number != self._before + 1, number
        for window in [each for each in self.open if self.grid.end(each) <= origin_ns]:
            self.closed[window] = self.open.pop(window)
        for window in self.grid.of(origin_ns):
            if marked:
                self.abandoned.add(window)
                self.open.pop(window, None)
            elif window not in self.abandoned:
                state = self.open.setdefault(window, [0, 0])
                state[0] += 1
                state[1] += number * number


class _Results:
    """Where results go: (query, window) -> when, and what. The engine's commands."""

    def __init__(self) -> None:
        self.given: dict[tuple[int, int], tuple[int, int, int]] = {}

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        raise AssertionError("one node sends nothing")

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        self.given[output.id - 1, payload["window"]] = at_ns, payload["n"], payload["v"]


@dataclass
class _Node:
    """The engine, and what comes by itself: tuples, and heartbeats, with which overdue windows are looked at."""

    engine: Engine
    loaded: CompiledPlan
    at_ns: Sequence[int]
    waiting: Sequence[Unit]
    position: int = 0
    beat_ns: int = START_NS - S // 2  # windows begin when the source has been heard of
    end_ns: int = 0
    peak: int = 0

    def next_ns(self) -> int:
        """When something comes."""
        at_ns = self.at_ns[self.position] if self.position < len(self.at_ns) else FAR_NS
        return min(at_ns, self.beat_ns if self.beat_ns <= self.end_ns else FAR_NS)

    def advance(self, upto_ns: int) -> None:
        """Everything that comes by then."""
        engine, loaded = self.engine, self.loaded
        while (now := self.next_ns()) <= upto_ns:
            if self.beat_ns == now:
                engine.heartbeat(now, loaded, 1, 1, self.position + 1, 1, now - MS)
                engine.expire(now)
                self.beat_ns += BEAT_NS
            else:
                self.position = number = self.position + 1
                engine.admit(now, loaded.source_routes[1], (1, 1, number, 0, now, now), {"v": number * number}, 0)
                self.peak = max(self.peak, *(len(unit.queue) for unit in self.waiting))


def run(setting: Setting, shedder: str, policy_name: str = "edf") -> Outcome:
    """One run: all tuples, until the last window that one of them lies in is of no use any more."""
    plan, offered, results = local_plan(setting, shedder, policy_name), workload(setting), _Results()
    at_ns = offered.at_ns
    registry = Registry()
    engine = Engine(policy(policy_name, 1, plan.parameters), Facts(RECORDS, lambda: (0, len(RECORDS))), results)
    loaded = engine.load(plan, {each.id: registry.calls(each, ["s"]) for each in plan.operators})
    longest_ns = max(grid.length + grid.hop for grid in setting.grids)
    printed = {each.id: PrintedRule(grid) for each, grid in zip(plan.operators[::2], setting.grids, strict=True)}
    node = _Node(
        engine, loaded, at_ns, [unit for unit in loaded.units if unit.id in printed],
        end_ns=at_ns[-1] + longest_ns + setting.latency_s * S,
    )  # fmt: skip
    now = busy_ns = 0
    ran: Counter[int] = Counter()
    job: Job | None = None
    while True:
        if job is None:
            now = max(now, node.next_ns())
            if now == FAR_NS:
                break
            node.advance(now)
            job = engine.next(now)
            continue
        start, unit, lineage = now, job.unit, job.lineage
        (step,) = unit.chain
        made = apply(step, lineage, job.payload, start, unit.deadline_ns)
        if step.operator_id in printed:
            now += offered.cost_ns[lineage[2] - 1] // len(setting.windows)
        busy_ns += now - start
        node.advance(now)
        if step.operator_id in printed:
            printed[step.operator_id].survived(lineage[2], lineage[4])
            ran[lineage[2]] += 1
        if step.exit is not None:
            for each, value in made:
                engine.emit(now, step.exit, each, value)
        job = engine.step(start, now)
    done = Outcome(shed=len(at_ns) - len(ran), tuples=len(at_ns), busy=100 * busy_ns / S / setting.seconds)
    done.peak = node.peak
    if len(setting.grids) == 1:
        (grid,) = setting.grids
        found = optimum(offered, setting.constraints(grid), setting.counted(grid))
        done.best, done.bounds = found.windows, int(not found.exact)
    useful: set[int] = set()
    sums = [0, *accumulate(number * number for number in range(1, len(at_ns) + 1))]
    for query, (grid, rule) in enumerate(zip(setting.grids, printed.values(), strict=True)):
        _judge(done, setting, grid, query, at_ns, sums, results.given, rule, useful)
    done.useful = 100 * sum(offered.cost_ns[each] for each in useful) / S / (setting.seconds - setting.warm_s)
    return done


def _judge(
    done: Outcome, setting: Setting, grid: Grid, query: int, at_ns: Sequence[int], sums: Sequence[int],
    given: dict[tuple[int, int], tuple[int, int, int]], printed: PrintedRule, useful: set[int],
) -> None:  # fmt: skip
    """Windows of one query that lie within the stream, against what its tuples say."""

    def exact(window: int) -> tuple[int, int, int, int]:
        low, high = (bisect_left(at_ns, each) for each in (grid.begin(window), grid.end(window)))
        return high - low, sums[high] - sums[low], low, high

    for (number, window), (_, count, total) in given.items():
        if number == query:
            done.wrong += (count, total) != exact(window)[:2]
    for window in setting.counted(grid):
        done.windows += 1
        result = given.get((query, window))
        count, total, low, high = exact(window)
        if result is None or result[1:] != (count, total):
            continue
        if result[0] <= grid.end(window) + setting.latency_s * S:
            done.given += 1
            useful.update(range(low, high))
        else:
            done.late += 1
    done.printed += len(printed.closed)
    done.printed_wrong += sum(tuple(state) != exact(window)[:2] for window, state in printed.closed.items())


__all__ = ["Outcome", "Setting", "arrivals", "costs", "local_plan", "run", "workload"]
