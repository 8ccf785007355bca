"""More load than there is time for: what `coordinator plan --best-effort` misses of the urgent class, beside a bare EDF
loop.

    .venv/bin/python -m infra.bench.shedding.best_effort [SEED] [NUMBER]

Two minutes with one seed. Two queries are urgent (a tuple every 20 ms, 0.8 ms of work, a short deadline), four are bulk
(Poisson arrivals, five operators of 1 ms, a long deadline); all together ask for 1.2 times what the nodes have, as they
declare. In virtual time; costs are drawn, the same for everybody.

The bare loop is a heap by end-to-end deadline on every node, with each query where its source is. It runs whole queries
or operator by operator and is never interrupted, as the plan's units are not. `all` runs everything, `drop` leaves out
what would be late by its mean cost. Goal: nothing urgent is missed wherever `all` or `drop` misses nothing urgent.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count, product
from pathlib import Path
from random import Random
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from rich.console import Console
from rich.table import Table

from coordinator.model.choices import Choices
from coordinator.solve import planner
from infra.bench.figures import Figure
from node_agent.virtual.cost_model import Costs, parse_jitter
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario, virtual_plan
from node_agent.virtual.world import Admission, Delivery, Offer
from protos.plan_document import Plan

MS = 1_000_000
SEED, NUMBER = 1001, 3
URGENT_MS, URGENT_US, JITTER_MS = 20, 400, 5.0  # period, cost of an operator, how much later a tuple may come
BULK, BULK_US, LOAD = 4, 1000, 1.12
LENGTH = {"urgent": 2, "bulk": 5}  # operators of a query
DEADLINES = ((30, 500), (15, 200), (30, 2000))
JITTERS = ("none", "uniform:0.5,1.5", "lognormal:cv=1")
POLICIES = ("edf", "slack")
Units = Literal["path", "operator"]


@dataclass(frozen=True)
class Overload:
    """A workload. Deadlines in ms; `units`: whole queries or operators; `drops`: whether bulk says `on_late: drop`."""

    nodes: int
    urgent_ms: int
    bulk_ms: int
    jitter: str = "none"
    units: Units = "path"
    drops: bool = False
    seconds: float = 4.0

    @property
    def names(self) -> str:
        """Of the nodes."""
        return "abc"[: self.nodes]

    @property
    def bulk_period_ms(self) -> float:
        """Of a bulk source, on average."""
        return round(BULK * LENGTH["bulk"] * BULK_US / 1000 / LOAD / self.nodes, 3)

    def home(self, query: str) -> str:
        """The node that a query's source is on."""
        return self.names[0] if query.startswith("urgent") else self.names[int(query[-1]) % self.nodes]

    def due_ns(self, query: str) -> int:
        """Its deadline."""
        return MS * (self.urgent_ms if query.startswith("urgent") else self.bulk_ms)


class Missed(NamedTuple):
    """In % of what came."""

    urgent: float
    bulk: float


QUERIES = ("urgent0", "urgent1", *(f"bulk{number}" for number in range(BULK)))


def _query(of: Overload, name: str) -> str:
    kind = name.rstrip("0123456789")
    period = f"{URGENT_MS} ms" if kind == "urgent" else f"{of.bulk_period_ms} ms"
    late = ", on_late: drop" if of.drops and kind == "bulk" else ""
    cost_us = URGENT_US if kind == "urgent" else BULK_US
    chain = [f"{name}_{number}" for number in range(LENGTH[kind])]
    operators = [
        f"  {one}: {{run: pass, in: {before}, cost: {cost_us} us{late}}}"
        for before, one in zip([f"{name}_in", *chain], chain, strict=False)
    ]
    source = f"{{at: {of.home(name)}, type: json, arrival: {{burst: 1, period: {period}}}, tolerance: 1 s}}"
    output = f"{{from: {chain[-1]}, at: {of.home(name)}, deadline: {of.due_ns(name) // MS} ms}}"
    lines = ["shimekiri: 1", f"query: {name}", "sources:", f"  {name}_in: {source}", "operators:", *operators]
    return "\n".join([*lines, "outputs:", f"  {name}: {output}"]) + "\n"


def planned(of: Overload) -> Plan:
    """The plan of all queries, with the load that they declare."""
    nodes = [f'  {name}: {{address: "127.0.0.1:77{number}0"}}' for number, name in enumerate(of.names)]
    links = ["links: [{between: [a, b], latency: 1 ms}]"] if of.nodes > 1 else []
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text("\n".join(["shimekiri: 1", "nodes:", *nodes, *links]) + "\n")
        for query in QUERIES:
            (folder / f"{query}.yaml").write_text(_query(of, query))
        paths = [folder / f"{query}.yaml" for query in QUERIES]
        return planner.make_plan(paths, folder / "cluster.yaml", Choices(units=of.units, best_effort=True))


class Arrival(NamedTuple):
    """A tuple of a query comes."""

    at_ns: int
    query: str


def arrivals(of: Overload, seed: int) -> list[Arrival]:
    """In order: periods with jitter of what is urgent, Poisson of bulk."""
    random = Random(seed)
    found = []
    for query in QUERIES:
        at_ms = random.random() * URGENT_MS
        if query.startswith("urgent"):
            found += [
                Arrival(round((at_ms + number * URGENT_MS + random.random() * JITTER_MS) * MS), query)
                for number in range(int(of.seconds * 1000 / URGENT_MS))
            ]
            continue
        while at_ms < of.seconds * 1000:
            found.append(Arrival(round(at_ms * MS), query))
            at_ms += random.expovariate(1 / of.bulk_period_ms)
    return sorted(found)


@dataclass
class Given:
    """A world that admits these tuples and nothing else."""

    tuples: Sequence[Arrival]

    def begin(self, trial: int) -> Sequence[Admission]:
        """All of them."""
        return [Admission(one.at_ns, f"{one.query}_in", (Offer({}),)) for one in self.tuples]

    def offer(self, source: str, seq: int, at_ns: int) -> Offer | None:
        """Nothing more."""
        return None

    def deliver(self, delivery: Delivery) -> None:
        """Counted elsewhere."""


def _missed(came: Sequence[Arrival], met: Mapping[str, int]) -> Missed:
    shares = []
    for kind in ("urgent", "bulk"):
        every = sum(one.query.startswith(kind) for one in came)
        shares.append(100 * (1 - sum(number for query, number in met.items() if query.startswith(kind)) / every))
    return Missed(*shares)


def ours(of: Overload, made: Plan, policy: str, seed: int) -> Missed:
    """What the plan misses under a policy."""
    came = arrivals(of, seed)
    scenario = Scenario(policy=policy, jitter=parse_jitter(of.jitter), seed=seed)
    done = simulate(made, scenario, world=Given(came), trace=False)
    return _missed(came, {name: output.met for name, output in done.outputs.items()})


@dataclass(order=True)
class _Job:
    """What is left of a tuple on the bare loop."""

    due_ns: int
    number: int
    query: str = field(compare=False)
    left: list[tuple[int, int]] = field(compare=False)  # units: what each takes, and by its mean cost


def bare(of: Overload, made: Plan, drops: bool, seed: int) -> Missed:
    """What a heap by deadline on each node misses, with the costs that the plan's operators have on these tuples."""
    came = arrivals(of, seed)
    met = dict.fromkeys(QUERIES, 0)
    for node in of.names:
        for query in edf_loop(of, made, [one for one in came if of.home(one.query) == node], drops, seed):
            met[query] += 1
    return _missed(came, met)


def edf_loop(of: Overload, made: Plan, came: Sequence[Arrival], drops: bool, seed: int) -> Iterator[str]:
    """The queries of the tuples that are met on a node."""
    drawn, numbers, ready = _Drawn(of, made, seed), count(), list[_Job]()
    waiting, at_ns = list(reversed(came)), 0
    while waiting or ready:
        if not ready:
            at_ns = max(at_ns, waiting[-1].at_ns)
        while waiting and waiting[-1].at_ns <= at_ns:
            one = waiting.pop()
            left = drawn.units(one.query)
            heappush(ready, _Job(one.at_ns + of.due_ns(one.query), next(numbers), one.query, left))
        job = heappop(ready)
        if drops and at_ns + sum(mean_ns for _, mean_ns in job.left) > job.due_ns:
            continue
        at_ns += job.left.pop(0)[0]
        if job.left:
            heappush(ready, job)
        elif at_ns <= job.due_ns:
            yield job.query


class _Drawn:
    """Costs of each query's tuples in the order in which they come, as the virtual cluster draws them."""

    def __init__(self, of: Overload, made: Plan, seed: int) -> None:
        plan, jitter = virtual_plan(made), parse_jitter(of.jitter)
        self._units, self._seen = of.units, dict.fromkeys(QUERIES, 0)
        self._sources = {source.name: source.id for source in plan.sources}
        self._operators = {
            operator.name: (Costs(local, 1.0, jitter, 1.0, seed, 1), operator.id, operator.cost_ns)
            for local in plan.nodes
            for operator in local.operators
        }

    def units(self, query: str) -> list[tuple[int, int]]:
        """Of the query's next tuple."""
        self._seen[query] += 1
        lineage = (self._sources[f"{query}_in"], 1, self._seen[query], 0, 0, 0)
        kind = query.rstrip("0123456789")
        chain = [self._operators[f"{query}_{number}"] for number in range(LENGTH[kind])]
        each = [(costs.cost_ns(operator, lineage), mean_ns) for costs, operator, mean_ns in chain]
        whole = (sum(cost_ns for cost_ns, _ in each), sum(mean_ns for _, mean_ns in each))
        return each if self._units == "operator" else [whole]


@dataclass(frozen=True)
class Row:
    """One workload and seed. `edf`, `slack`: of the plan; `bare`, `dropping`: of the loop."""

    of: Overload
    bare: Missed
    dropping: Missed
    edf: Missed
    slack: Missed

    @property
    def excess(self) -> float:
        """The most that is missed of the urgent class where a bare loop misses nothing of it."""
        if min(self.bare.urgent, self.dropping.urgent) > 0:
            return 0.0
        return max(self.edf.urgent, self.slack.urgent)


def row(of: Overload, seed: int) -> Row:
    """All of one workload on one seed's tuples."""
    made = planned(of)
    return Row(
        of, bare(of, made, False, seed), bare(of, made, True, seed), *(ours(of, made, one, seed) for one in POLICIES)
    )


def workloads(jitters: Sequence[str] = JITTERS) -> list[Overload]:
    """All that are measured."""
    units: tuple[Units, ...] = ("path", "operator")
    every = product((1, 2), DEADLINES, jitters, units)
    return [Overload(nodes, urgent, bulk, jitter, one) for nodes, (urgent, bulk), jitter, one in every]


def best_effort(seed: int = SEED) -> list[Figure]:
    """The goal over all workloads of a seed."""
    rows = [row(of, seed) for of in workloads()]
    how = (
        f"the most over {len(rows)} workloads at 1.2 times the load, one and two nodes, edf and slack, whole queries "
        f"and operator by operator, where a bare EDF loop misses nothing urgent; seed {seed}"
    )
    worst = max(max(each.edf.urgent, each.slack.urgent) for each in rows)
    return [
        Figure("best_effort.urgent_missed", max(each.excess for each in rows), "%", 0.0, how),
        Figure(
            "best_effort.urgent_missed_anywhere", worst, "%", None, "the same wherever a bare loop misses some as well"
        ),
    ]


def _cells(missed: Missed) -> str:
    return f"{missed.urgent:.2f} / {missed.bulk:.1f}"


def main() -> int:
    """Prints one table: missed in %, urgent / bulk."""
    given = [int(each) for each in sys.argv[1:]]
    seed, number = (given + [SEED, NUMBER][len(given) :])[:2]
    seeds = range(seed, seed + number)
    table = Table(title=f"missed in %, urgent / bulk, load 1.2, {number} samples from seed {seed}", box=None)
    for heading in ("nodes", "deadlines, ms", "costs", "units"):
        table.add_column(heading)
    for heading in ("bare EDF", "bare, dropping", "plan, edf", "plan, slack"):
        table.add_column(heading, justify="right")
    excess = 0.0
    for of in workloads():
        rows = [row(of, each) for each in seeds]
        excess = max(excess, *(each.excess for each in rows))
        columns = [[each.bare for each in rows], [each.dropping for each in rows], [each.edf for each in rows]]
        columns.append([each.slack for each in rows])
        means = [Missed(mean(one.urgent for one in each), mean(one.bulk for one in each)) for each in columns]
        deadlines = f"{of.urgent_ms}, {of.bulk_ms}"
        table.add_row(str(of.nodes), deadlines, of.jitter, of.units, *(_cells(each) for each in means))
    console = Console(width=130)
    console.print(table)
    console.print(f"urgent, where a bare loop misses nothing urgent: at most {excess:.2f} % (goal 0)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
