"""The bound on missed results against brute force: all orders of all subsets of tasks, on one node and on two."""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.virtual.optimum.miss_bound import (
    Bound,
    Job,
    Need,
    Result,
    Task,
    Workload,
    late_jobs,
    least_missed,
    search,
)
from node_agent.virtual.optimum.schedule import fewest_missed
from tests.sampling import examples

EXAMPLES = settings(max_examples=examples(150, 4), deadline=None, print_blob=True)


class Stage(NamedTuple):
    """A task as it is: where, what it costs, after which one, when it is there if after none."""

    node: str
    cost: int
    after: int | None
    release: int


class System(NamedTuple):
    """Stages, each after an earlier one or none, and results: (last stage, due)."""

    stages: list[Stage]
    results: list[tuple[int, int]]
    hop: int


@st.composite
def systems(draw: st.DrawFn, nodes: str = "ab") -> System:
    stages: list[Stage] = []
    for number in range(draw(st.integers(1, 5))):
        after = draw(st.one_of(st.none(), st.integers(0, number - 1))) if number else None
        release = 0 if after is not None else draw(st.integers(0, 6))
        stages.append(Stage(draw(st.sampled_from(nodes)), draw(st.integers(1, 5)), after, release))
    ends = draw(st.lists(st.integers(0, len(stages) - 1), min_size=1, max_size=5))
    return System(stages, [(end, draw(st.integers(1, 22))) for end in ends], draw(st.sampled_from([0, 0, 1, 3])))


def path(system: System, last: int) -> list[int]:
    """From its first stage to it."""
    found = [last]
    while (after := system.stages[found[-1]].after) is not None:
        found.append(after)
    return found[::-1]


def between(system: System, one: int, other: int) -> int:
    return 0 if system.stages[one].node == system.stages[other].node else system.hop


def workload(system: System) -> Workload:
    """As the bound sees it: earliest starts and latest ends if nothing ever waits."""
    tasks: list[Task] = []
    for number, stage in enumerate(system.stages):
        if stage.after is None:
            tasks.append(Task(stage.node, stage.cost, stage.release))
        else:
            before = tasks[stage.after]
            earliest = before.earliest_ns + before.cost_ns + between(system, stage.after, number)
            here = (stage.after,) if before.node == stage.node else ()
            comes = ((stage.after, between(system, stage.after, number)),)
            tasks.append(Task(stage.node, stage.cost, earliest, here, comes))
    results = []
    for last, due in system.results:
        needs, latest, after = [], due, None
        for number in reversed(path(system, last)):
            if after is not None:
                latest -= system.stages[after].cost + between(system, number, after)
            needs.append(Need(number, latest))
            after = number
        results.append(Result("out", tuple(needs)))
    return Workload(tuple(tasks), tuple(results))


def ends(system: System, order: Sequence[int]) -> dict[int, int] | None:
    """When stages end that are run in that order, each as early as the ones before it allow; None: not possible."""
    free: dict[str, int] = {}
    found: dict[int, int] = {}
    for number in order:
        node, cost, after, start = system.stages[number]
        if after is not None:
            if after not in found:
                return None
            start = found[after] + between(system, after, number)
        found[number] = free[node] = max(start, free.get(node, 0)) + cost
    return found


def schedules(count: int) -> Iterator[tuple[int, ...]]:
    for length in range(count + 1):
        yield from permutations(range(count), length)


def brute(system: System) -> int:
    """The least number of missed results over all schedules of the whole system."""
    least = len(system.results)
    for order in schedules(len(system.stages)):
        found = ends(system, order)
        if found is not None:
            least = min(least, sum(found.get(last, due + 1) > due for last, due in system.results))
    return least


@EXAMPLES
@given(systems())
def test_no_schedule_of_two_nodes_misses_less_than_the_bound(system: System) -> None:
    least = brute(system)
    assert least_missed(workload(system)).missed <= least
    assert least_missed(workload(system), states=0).missed <= least


@EXAMPLES
@given(systems("a"))
def test_on_one_node_the_search_finds_the_optimum(system: System) -> None:
    assert least_missed(workload(system)) == Bound(brute(system), True)


@EXAMPLES
@given(systems())
def test_the_schedule_that_is_found_is_one(system: System) -> None:
    """On two nodes: never better than the best of all schedules, so never below the bound."""
    found = fewest_missed(workload(system))
    assert found is not None and found >= brute(system)


def test_of_a_burst_the_schedule_leaves_out_what_is_dear() -> None:
    """In 10 everything but the 7 can be met, in any order of arrival."""
    costs = [2, 7, 3, 5]
    tasks = tuple(Task("a", cost, 0) for cost in costs)
    results = tuple(Result("out", (Need(number, 10),)) for number in range(len(costs)))
    assert fewest_missed(Workload(tasks, results)) == least_missed(Workload(tasks, results)).missed == 1
    assert fewest_missed(Workload(tasks, results, whole=False)) is None


def test_over_a_link_a_task_waits_for_the_one_before() -> None:
    """3 on a, 2 on the way, 4 on b: in time at 9, late at 8; by then b has worked on nothing else that is due later."""
    tasks = (Task("a", 3, 0), Task("b", 4, 5, (), ((0, 2),)), Task("b", 1, 0))
    for due, missed in ((9, 0), (8, 1)):
        results = (Result("out", (Need(0, due - 6), Need(1, due))), Result("out", (Need(2, 20),)))
        assert fewest_missed(Workload(tasks, results)) == missed


jobs = st.builds(Job, st.integers(0, 12), st.integers(1, 24), st.integers(1, 6))


@EXAMPLES
@given(st.lists(jobs, max_size=6))
def test_the_relaxation_is_below_the_optimum_of_independent_jobs(given_jobs: list[Job]) -> None:
    tasks = [Task("a", job.cost_ns, job.release_ns) for job in given_jobs]
    needs = [(Need(number, job.due_ns),) for number, job in enumerate(given_jobs)]
    exact = search(tasks, needs, 0, 100_000)
    assert exact is not None
    relaxed = late_jobs(given_jobs)
    assert relaxed <= exact
    if len({job.release_ns for job in given_jobs}) == 1:
        assert relaxed == exact, "with equal releases the rule is exact"


def test_bursts_that_cannot_be_met_add_up() -> None:
    """Three jobs of 4 within 10, then three again later: one late each time, though the first one's could run on."""
    burst = [Job(0, 10, 4)] * 3
    assert late_jobs(burst) == 1
    assert late_jobs(burst + [Job(100, 110, 4)] * 3) == 2


def test_a_task_that_several_results_need_is_done_once() -> None:
    tasks = (Task("a", 10, 0), Task("a", 1, 10, (0,)), Task("a", 1, 10, (0,)))
    results = tuple(Result("out", (Need(0, 11), Need(last, 12))) for last in (1, 2))
    assert least_missed(Workload(tasks, results)) == Bound(0, True)


def test_a_result_that_is_late_even_alone_is_missed_and_takes_nothing_from_others() -> None:
    tasks = (Task("a", 10, 0), Task("a", 5, 0))
    found = least_missed(Workload(tasks, (Result("out", (Need(0, 9),)), Result("out", (Need(1, 5),)))))
    assert found == Bound(1, True)


def test_a_search_that_takes_too_long_leaves_the_relaxation() -> None:
    """Not interrupted, one of the two is late; interrupted, none is."""
    tasks = (Task("a", 10, 0), Task("a", 1, 2))
    both = Workload(tasks, (Result("out", (Need(0, 11),)), Result("out", (Need(1, 3),))))
    assert least_missed(both) == Bound(1, True)
    assert least_missed(both, states=0) == Bound(0, False)


@pytest.mark.parametrize("count", [200])
def test_many_jobs_are_bounded_from_chosen_instants(count: int) -> None:
    """Ten jobs of 3 every 20, due 20 later: at most 7 or so of each burst can be met however they are looked at."""
    many = [Job(20 * (number // 10), 20 * (number // 10) + 20, 3) for number in range(count)]
    assert late_jobs(many) == 4 * count // 10
