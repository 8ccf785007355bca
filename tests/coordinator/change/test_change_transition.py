"""The bounds of a change, against a node simulated exactly while both plans are there and the next one loads."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from typing import Any

import pytest

from coordinator.calculus import demand
from coordinator.calculus.curves import Bursts, Jcp, Spanned
from coordinator.calculus.demand import Task, UnboundedError
from coordinator.calculus.flow import total
from coordinator.calculus.response import load_responses
from coordinator.calculus.selectivity import ONE
from coordinator.change import transition
from coordinator.errors import AuditError
from coordinator.model import incumbent
from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec.runtime_charges import NOTHING
from protos.plan.queries import QueryPart
from protos.plan_document import Plan
from tests.sentences import Wording
from tests.simulation.guarantees.edf_node import Job, instants
from tests.whole_plans import hashed

SAID = Wording("deploy", "between two plans")

EVERY = 20
Files = Callable[[str, str], tuple[Path, Path]]


def simulated(
    jobs: Sequence[Job], deadlines: Sequence[int], stretches: list[int], begins: int, commit: tuple[int, int]
) -> dict[int, int]:
    """The longest response of every unit on a node that takes a stretch of loading, from `begins` on, when nothing is
    ready, and one at least every EVERY in any case; as edf_node.run otherwise, one job at a time. `commit`: when it is
    asked for, and how long it takes."""
    waiting: list[deque[Job]] = [deque() for _ in deadlines]
    heads: list[tuple[int, int, int, int]] = []
    worst: dict[int, int] = {}
    arrivals, position, now, due = sorted(jobs, key=lambda job: job.release), 0, 0, begins + EVERY
    while position < len(arrivals) or heads:
        while position < len(arrivals) and arrivals[position].release <= now:
            job = arrivals[position]
            heappush(heads, (job.release + deadlines[job.unit], job.release, position, job.unit))
            waiting[job.unit].append(job)
            position += 1
        loading = bool(stretches) and now >= begins
        if commit[1] and now >= commit[0]:
            now, commit = now + commit[1], (0, 0)
        elif loading and (not heads or now >= due):
            now += stretches.pop()
            due = now + EVERY
        elif heads:
            *_, unit = heappop(heads)
            job = waiting[unit].popleft()
            now += job.cost
            worst[unit] = max(worst.get(unit, 0), now - job.release)
        else:
            later = [arrivals[position].release] + ([begins] if stretches and begins > now else [])
            now = max(now, min(later))
    return worst


def arrivals(task: Task, draw: Random) -> list[int]:
    """Instants that keep the unit's curve, as dense as it allows or a little less so."""
    assert isinstance(task.curve, Spanned)
    lazy = draw.choice([0, 0, 5])
    return instants(task.curve.span, 600, lambda: draw.randint(0, lazy))


def test_no_response_exceeds_the_bounds_of_the_larger_plan_with_loading() -> None:
    """Jobs of before run the beginning of a unit only, or do not exist; the instant and the stretches are drawn."""
    checked, tight = 0, 0.0
    for seed in range(120):
        draw = Random(seed)
        longest, count = draw.randint(1, 6), draw.randint(2, 4)
        tasks, before = [], []
        for number in range(count):
            period, size = draw.choice([20, 30, 50, 80]), draw.randint(1, 3)
            curve: Spanned = draw.choice(
                [Jcp(period, draw.randint(0, 9), draw.randint(0, 60)), Bursts(size, size * period)]
            )
            cost = max(2, round(0.7 / count * period * draw.uniform(0.3, 1.5)))
            first = draw.randint(1, cost - 1)
            stages = ((first, ONE), (cost - first, ONE))
            tasks.append(Task(f"{number}", curve, draw.randint(cost, 5 * period), stages))
            before.append(draw.choice([0, first, cost]))  # not there, its beginning, the same
        often = total([Bursts(1, EVERY), Bursts(1, 10**6)])
        chore = Task("loading", often, 0, ((longest, ONE),), chore=True)
        try:
            bounds = load_responses(demand.load([*tasks, chore]))
        except UnboundedError:
            continue
        for trial in range(4):
            change, reverse = draw.randint(0, 300), draw.random() < 0.5
            jobs = []
            for number, task in enumerate(tasks):
                whole, after = int(sum(cost for cost, _ in task.stages)), 0 if trial == 0 else number
                for at in arrivals(task, draw):
                    smaller = (after + at < change) != reverse
                    if cost := before[number] if smaller else whole:
                        jobs.append(Job(after + at, number, cost))
            stretches = [
                draw.randint(1, longest) if draw.random() < 0.5 else longest for _ in range(draw.randint(1, 9))
            ]
            dues = [int(task.deadline) for task in tasks]
            worst = simulated(jobs, dues, stretches, max(0, change - draw.randint(0, 60)), (change, longest))
            for unit, response in worst.items():
                bound = bounds[f"{unit}"].end
                assert response <= bound, f"seed {seed}: unit {unit} took {response}, its bound is {bound}"
                tight = max(tight, float(response / bound))
            checked += 1
    assert checked > 200 and tight > 0.9, "some case comes near its bound"


CLUSTER = """
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700"}
  b: {address: "127.0.0.1:7701"}
"""
FIRST = """
shimekiri: 1
query: q
sources:
  s: {at: a, type: json, arrival: {burst: 10, period: 100 ms}, max_age: 1 ms}
operators:
  A: {run: pass, in: s, cost: 100 us, nodes: [a]}
  B: {run: pass, in: A, cost: 100 us, nodes: [a]}
outputs:
  out: {from: B, at: a, deadline: 50 ms}
"""


@pytest.fixture
def plans(files: Files) -> tuple[Plan, Plan]:
    """A plan, and one with more beside it."""
    first = planner.make_plan(*files(FIRST, CLUSTER), Choices())
    more = FIRST.replace("outputs:", "  X: {run: pass, in: A, cost: 1 ms, nodes: [a]}\noutputs:")
    grown = files(more + "  x: {from: X, at: a, deadline: 40 ms}\n", CLUSTER)
    stays = incumbent.read(first, set(first.placement), first.hash)
    second = planner.make_plan(*grown, Choices(incumbent=stays))
    more_ = QueryPart(sources=(), operators=(), outputs=(), sha256="")
    return first, replace(second, queries={**second.queries, "more": more_}).sealed()


def test_the_larger_plan_bounds_a_change_in_both_directions(plans: tuple[Plan, Plan]) -> None:
    first, second = plans
    there, back = transition.during(first, second), transition.during(second, first)
    assert there == back and there.loading_ns == transition.LOADING_NS
    for name, claim in there.claims.items():
        alone_ns = second.guarantee[name].bound_ns
        assert claim.bound_ns and alone_ns and claim.bound_ns > alone_ns, "loading costs something"


def test_nothing_is_charged_where_the_runtime_costs_nothing(files: Files) -> None:
    plan = planner.make_plan(*files(FIRST, CLUSTER), Choices(charges=NOTHING))
    found = transition.during(plan, plan)
    assert found.loading_ns == 0
    assert {name: claim.bound_ns for name, claim in found.claims.items()} == {
        name: claim.bound_ns for name, claim in plan.guarantee.items()
    }


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda plan: plan["placement"].update(A="b"), "place"),
        (
            lambda plan: plan["graph"]["operators"]["B"].update(cost_ns=1),
            "cost",
        ),
        (lambda plan: plan["graph"]["sources"]["s"].update(max_age_ns=9), "source"),
        (lambda plan: plan["graph"]["outputs"].pop("out"), "output"),
        (lambda plan: plan["cluster"]["nodes"]["a"].update(speed=2.0), "cluster"),
        (lambda plan: plan["tasks"]["a"][0].update(sub_deadline_ns=7), "sub-deadline"),
        (lambda plan: plan["tasks"]["a"][0].update(operators=["A"]), "unit"),
        (lambda plan: plan["nodes"]["a"].pop("sends", None), "stream"),
        (lambda plan: plan["analysis"]["policing"]["s"].update(jitter_ns=0), "jitter"),
    ],
)
def test_what_is_not_as_it_was_is_found(
    plans: tuple[Plan, Plan], change: Callable[[dict[str, Any]], object], what: str
) -> None:
    first, second = plans
    if what == "stream":  # in the smaller plan a stream goes somewhere
        values = first.to_json()
        values["nodes"]["a"]["sends"] = [{"stream": first.graph.streams["A"].id, "peer": 1}]
        first = hashed(values)
    changed = second.to_json()
    change(changed)
    with pytest.raises(AuditError) as refused:
        transition.during(first, hashed(changed))
    assert {each.code for each in refused.value.mistakes} == {"violated_constraint"}
    SAID.check(what, refused.value.violations)
