"""A scenario as a set of tasks, for schedules that know every cost and arrival beforehand."""

from __future__ import annotations

from infra.bench.scheduling.scenarios import LINK_NS, Query, Scenario
from node_agent.virtual.optimum.miss_bound import Need, Result, Task, Workload


def workload(scenario: Scenario) -> Workload:
    """Tasks and results of all its tuples. Decisions cost nothing."""
    tasks: list[Task] = []
    results: list[Result] = []
    for number, query in enumerate(scenario.queries):
        for seq in range(len(query.at_ns)):
            results.append(_add(query, f"q{number}", seq, tasks))
    return Workload(tuple(tasks), tuple(results))


def _add(query: Query, output: str, seq: int, tasks: list[Task]) -> Result:
    first, at_ns = len(tasks), query.at_ns[seq]
    for place, each in enumerate(query.operators):
        comes = tuple(
            (first + before, LINK_NS if query.operators[before].node != each.node else 0) for before in each.reads
        )
        earliest_ns = max((tasks[b].earliest_ns + tasks[b].cost_ns + hop for b, hop in comes), default=at_ns)
        here = tuple(before for before, hop in comes if not hop)
        tasks.append(Task(f"n{each.node}", query.costs_ns[place][seq], earliest_ns, here, comes))
    latest_ns = [at_ns + query.deadline_ns] * len(query.operators)
    for place in reversed(range(len(query.operators))):
        for before, hop_ns in tasks[first + place].comes:
            starts_ns = latest_ns[place] - tasks[first + place].cost_ns - hop_ns
            latest_ns[before - first] = min(latest_ns[before - first], starts_ns)
    return Result(output, tuple(Need(first + place, due_ns) for place, due_ns in enumerate(latest_ns)))
