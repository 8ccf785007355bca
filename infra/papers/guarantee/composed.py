"""[Q] 4.2 with the product's own queries: a branch that several queries have in common runs once in the composed plan;
how many queries a node then guarantees, and what they miss when they run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

from coordinator.calculus.curves import Bursts
from coordinator.calculus.service import DelayBound
from coordinator.calculus.theorems import QosQuery, sharper
from coordinator.errors import InfeasibleError, OutOfTimeError
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.solve import planner
from coordinator.spec.runtime_charges import NOTHING
from infra.papers.claims import always
from infra.papers.guarantee.random_queries import MS
from infra.papers.one_node import Query, Workload
from infra.papers.one_node import run as alone
from infra.papers.policies import POLICIES
from infra.papers.pool import spread
from infra.papers.reproduction import Curve, Effort, Figure, Plot, Tell
from node_agent.operators.registry import Registry
from node_agent.virtual.run import simulate
from node_agent.virtual.scenario import Scenario
from protos.plan_document import Plan

BURST, PERIOD_MS = 3, 20
TASK_US = 1000  # of a tuple in one query, the branch included
BRANCHES_US = (100, 500, 800)
BURSTS = 50  # that are run
SECONDS = 5.0  # of a search for sub-deadlines
ROOM = 1.1  # of the limit: queries beyond it that are run as well

CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", memory: 1 GiB, cap: 1}
links: []
operators: operators.json
security: insecure-loopback
"""

QUERY = """
shimekiri: 1
query: q{number}
sources:
  tuples: {{at: a, type: json, arrival: {{burst: {burst}, period: {period} ms}}, max_age: 1 us}}
operators:
  branch: {{run: pass, in: tuples, cost: {branch} us}}
  rest{number}: {{run: pass, in: branch, cost: {rest} ns}}
outputs:
  out{number}: {{from: rest{number}, at: a, deadline: {deadline} ms}}
"""


def query(number: int, branch_us: int) -> str:
    """A branch that all have, and what only this one has: a ns of cost sets those operators apart."""
    return QUERY.format(
        number=number, burst=BURST, period=PERIOD_MS, branch=branch_us,
        rest=1000 * (TASK_US - branch_us) + number, deadline=deadline_ms(number),
    )  # fmt: skip


def deadline_ms(number: int) -> int:
    """Five of them by turns."""
    return 20 + number % 5


def composed(count: int, branch_us: int, share: bool, best_effort: bool = False) -> Plan:
    """The plan of that many queries on one node, model `sound`, no charges for the runtime."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text(CLUSTER)
        (folder / "operators.json").write_text(json.dumps(Registry().describe()))
        paths = [folder / f"q{number}.yaml" for number in range(count)]
        for number, path in enumerate(paths):
            path.write_text(query(number, branch_us))
        choices = Choices(
            charges=NOTHING, quick=True, limits=Limits(seconds=SECONDS), best_effort=best_effort
        )  # fmt: skip
        return planner.make_plan(paths, folder / "cluster.yaml", choices, share=share)


def guaranteed(count: int, branch_us: int, share: bool) -> bool:
    """Whether every output is."""
    if _used(count, branch_us if share else 0) >= 1:
        return False
    try:
        made = composed(count, branch_us, share)
    except (InfeasibleError, OutOfTimeError):
        return False
    return all(claim.guaranteed for claim in made.guarantee.values())


def _used(count: int, shared_us: int) -> Fraction:
    """Share of the CPU, the branch once."""
    return Fraction(BURST, 1000 * PERIOD_MS) * (shared_us + count * (TASK_US - shared_us))


def tested(count: int, branch_us: int) -> bool:
    """[Q] 4.2, the sharper test: one deadline per query; the first that needs the branch runs it."""
    stream = Bursts(BURST, PERIOD_MS * MS)
    four = [
        QosQuery(f"q{each}", stream, DelayBound(deadline_ms(each) * MS), TASK_US * 1000 + each) for each in range(count)
    ]
    return sharper(four, count if branch_us else 0, branch_us * 1000).admitted


def most(admits: Callable[[int], bool]) -> int:
    """The most queries that are admitted together."""
    low, high = 1, 2
    while admits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if admits(middle) else (low, middle)
    return low


def most_composed(branch_us: int, share: bool) -> int:
    """By the product's planner."""
    return most(lambda count: guaranteed(count, branch_us, share))


def missed_composed(count: int, branch_us: int) -> float:
    """% of the outputs that are late when the composed plan runs in virtual time, guaranteed or not."""
    outputs = simulate(composed(count, branch_us, True, True), Scenario(bursts=BURSTS), trace=False).outputs.values()
    return 100 - 100 * sum(each.met for each in outputs) / (count * BURST * BURSTS)


def missed_alone(count: int, branch_us: int, share: bool) -> float:
    """% missed under `qed` on one node, a unit per query; `share`: the first that needs the branch runs it."""
    at = [burst * PERIOD_MS * MS for burst in range(BURSTS) for _ in range(BURST)]
    tuples = sorted((at_ns, number, nth) for number in range(count) for nth, at_ns in enumerate(at))
    queries = [Query(deadline_ms(number) * MS, TASK_US * 1000) for number in range(count)]
    workload = Workload(
        queries,
        [at_ns for at_ns, _, _ in tuples],
        [number for _, number, _ in tuples],
        [TASK_US * 1000 + number for _, number, _ in tuples],
        [at_ns + deadline_ms(number) * MS for at_ns, number, _ in tuples],
        [nth for _, _, nth in tuples] if share else (),
        branch_us * 1000,
    )
    return alone(POLICIES["qed"], workload).missed


def run(effort: Effort, tell: Tell) -> Iterator[Figure]:
    """Queries that are guaranteed over the cost of the branch, and what runs miss at and beyond the limit."""
    branches = list(BRANCHES_US) if effort == "full" else [700]
    tell("queries that are guaranteed together")
    if effort == "tiny":  # whether so many are, not how many
        plans = [6 * guaranteed(6, 700, False), 8 * guaranteed(8, 700, True)]
    else:
        plans = spread(most_composed, [(500, False), *((each, True) for each in branches)])
    without, shared = plans[0], plans[1:]
    by_test = [most(lambda count, us=each: tested(count, us)) for each in branches]  # type: ignore[misc]
    test_without = most(lambda count: tested(count, 0))
    tell("runs at the limit")
    rows = {
        branch_us: Sharing(
            tested_,
            planned,
            missed_alone(tested_, branch_us, True),
            missed_composed(planned, branch_us),
            missed_alone(ceil(tested_ * ROOM), branch_us, True),
            missed_alone(tested_, branch_us, False),
        )
        for branch_us, tested_, planned in zip(branches, by_test, shared, strict=True)
    }
    yield compared(rows, test_without, without)


@dataclass(frozen=True)
class Sharing:
    """With a branch of one cost: queries by the test and by the planner; missed at the limits of both, beyond the
    test's, and there without sharing, %."""

    tested: int
    planned: int
    missed: float
    missed_planned: float
    above_limit: float
    apart: float


def compared(rows: dict[int, Sharing], test_without: int, planned_without: int) -> Figure:
    """By the cost of the branch in us; so many queries without sharing."""
    every = list(rows.values())
    xs = [each / 1000 for each in rows]
    return Figure(
        "section 4.2: queries that one node guarantees, with and without sharing",
        [
            always("with sharing more queries are schedulable, the more the larger the branch",
                   [b > a for a, b in pairwise([test_without, *(each.tested for each in every)])], "steps"),
            always("the test keeps its promise: nothing is missed at its limit",
                   [each.missed == 0 for each in every], "runs"),
        ],
        {"no sharing": f"test {test_without}, planner {planned_without}"}
        | {f"branch {us} us of {TASK_US}": f"test {each.tested} (limit of the CPU {_cpu_limit(us)}), planner "
           f"{each.planned}; missed {ROOM - 1:.0%} beyond the test's {each.above_limit:.1f} %, without sharing "
           f"{each.apart:.1f} %" for us, each in rows.items()},
        [
            always("the same queries without sharing miss", [each.apart > 0 for each in every], "runs"),
            always("the composed plan misses nothing at the planner's limit",
                   [each.missed_planned == 0 for each in every], "runs"),
            always("the planner guarantees fewer than the test: it divides the deadline between branch and rest",
                   [each.planned < each.tested for each in every], "costs"),
        ],
        f"{BURST} tuples every {PERIOD_MS} ms, deadlines {deadline_ms(0)} to {deadline_ms(4)} ms, {TASK_US} us per "
        f"tuple and query. Planner: model `sound`, no charges, at most {SECONDS:g} s per plan: a busy machine "
        f"finds fewer. {BURSTS} bursts in the "
        "virtual cluster. Test: theorem 5, sharper, under QED; the query that needs the branch first runs it.",
        [],
        [Plot("queries that are guaranteed together", "cost of the shared branch, ms of 1", "queries", [
            Curve("test, sharing", xs, [float(each.tested) for each in every]),
            Curve("planner, sharing", xs, [float(each.planned) for each in every]),
            Curve("test, no sharing", xs, [float(test_without)] * len(xs)),
            Curve("planner, no sharing", xs, [float(planned_without)] * len(xs)),
            Curve("limit of the CPU", xs, [float(_cpu_limit(each)) for each in rows]),
        ])],
    )  # fmt: skip


def _cpu_limit(branch_us: int) -> int:
    return most(lambda count: _used(count, branch_us) < 1)
