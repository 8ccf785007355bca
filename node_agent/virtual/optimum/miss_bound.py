"""The least number of results that any schedule can miss, from below: what no policy can beat, clairvoyant or not.

Valid for every schedule of the whole system, because only constraints are left out, never added:

1. A task starts no earlier than if it and all before it had every node for themselves (`Task.earliest_ns`), and a
   result is met only if each of its tasks ends early enough for the rest of its path, nothing waiting
   (`Need.latest_ns`).
2. Then nodes are independent: on each one, which results can still be met together? Every result is counted at one
   node, so what is missed at the nodes adds up.
3. On one node, small sets are searched exactly: all orders of all subsets of tasks that are not interrupted, with idle
   time where it helps. Larger ones are relaxed: tasks may be interrupted, and from some instant on everything that
   arrives later is there at once. Of one machine with equal releases, Moore and Hodgson's rule gives the least number
   of late jobs; sets of jobs whose windows do not overlap add up.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

MOST_TASKS = 40  # of a set that is searched
STATES = 20_000  # of one search, after which the relaxation has to do
JOB_STARTS = 300_000  # jobs times instants that the relaxation looks from


@dataclass(frozen=True, slots=True)
class Task:
    """One operator on one tuple. before: tasks of the same node that end before it starts. comes: all such tasks, on
    any node, and how long what they give is on its way."""

    node: str
    cost_ns: int
    earliest_ns: int
    before: tuple[int, ...] = ()
    comes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Need:
    """That a task ends by then."""

    task: int
    latest_ns: int


@dataclass(frozen=True, slots=True)
class Result:
    """One result of an output, and all tasks that it needs, on any node."""

    output: str
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class Workload:
    """What a trial asks of the nodes; results name tasks by their place in `tasks`. whole: of every task it is known on
    which others it waits."""

    tasks: tuple[Task, ...]
    results: tuple[Result, ...]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Bound:
    """At least that many results are missed. exact: all sets were searched to their end, so on single nodes (the
    relaxation of step 1 given) no better bound exists."""

    missed: int
    exact: bool


def least_missed(workload: Workload, states: int = STATES) -> Bound:
    """The bound of a workload. states: 0: no search."""
    hopeless = {i for i, result in enumerate(workload.results) if is_hopeless(workload.tasks, result)}
    left = {i for i in range(len(workload.results)) if i not in hopeless}
    missed, exact = len(hopeless), True
    while left:
        by_node: dict[str, set[int]] = {}
        for i in left:
            for need in workload.results[i].needs:
                by_node.setdefault(workload.tasks[need.task].node, set()).add(i)
        if not by_node:
            break
        found = {node: _on_node(workload, node, sorted(there), states) for node, there in sorted(by_node.items())}
        worst = max(sorted(found), key=lambda node: found[node].missed)
        missed += found[worst].missed
        exact = exact and found[worst].exact
        left -= by_node[worst]
    return Bound(missed, exact)


def is_hopeless(tasks: Sequence[Task], result: Result) -> bool:
    """Late even alone."""
    return any(tasks[need.task].earliest_ns + tasks[need.task].cost_ns > need.latest_ns for need in result.needs)


@dataclass(frozen=True, slots=True)
class _Local:
    """A result's part on one node."""

    needs: tuple[Need, ...]
    earliest_ns: int
    latest_ns: int


def _on_node(workload: Workload, node: str, results: Iterable[int], states: int) -> Bound:
    tasks = workload.tasks
    parts = []
    for i in results:
        needs = tuple(need for need in workload.results[i].needs if tasks[need.task].node == node)
        earliest_ns = min(tasks[need.task].earliest_ns for need in needs)
        parts.append(_Local(needs, earliest_ns, max(need.latest_ns for need in needs)))
    missed, exact = 0, True
    for group in _apart(parts):
        relaxed = _relaxed(tasks, group)
        searched = search(tasks, [each.needs for each in group], relaxed, states)
        missed += relaxed if searched is None else searched
        exact = exact and searched is not None
    return Bound(missed, exact)


def _apart(parts: list[_Local]) -> list[list[_Local]]:
    """Groups whose windows do not overlap."""
    groups: list[list[_Local]] = []
    end_ns = 0
    for part in sorted(parts, key=lambda each: (each.earliest_ns, each.latest_ns)):
        if not groups or part.earliest_ns >= end_ns:
            groups.append([])
            end_ns = part.latest_ns
        groups[-1].append(part)
        end_ns = max(end_ns, part.latest_ns)
    return groups


# -- relaxed


def _relaxed(tasks: Sequence[Task], parts: Sequence[_Local]) -> int:
    """Every part as one job. Of a task that several need each bears an equal share: whichever of them are met, their
    shares are no more than the work that they need."""
    users: dict[int, int] = {}
    for part in parts:
        for need in part.needs:
            users[need.task] = users.get(need.task, 0) + 1
    jobs = [
        Job(part.earliest_ns, part.latest_ns, sum(tasks[need.task].cost_ns // users[need.task] for need in part.needs))
        for part in parts
    ]
    return late_jobs(jobs)


class Job(NamedTuple):
    """Work for one machine, which may interrupt it."""

    release_ns: int
    due_ns: int
    cost_ns: int


def late_jobs(jobs: Iterable[Job]) -> int:
    """At least that many of the jobs are late on one machine.

    most[s]: late jobs among those whose windows end by s. From s on, all jobs with later releases are there at once.
    """
    given = list(jobs)
    in_reach = (job for job in given if job.release_ns + job.cost_ns <= job.due_ns)
    ordered = sorted(in_reach, key=lambda job: job.due_ns)
    starts = sorted({job.release_ns for job in ordered})
    limit = max(8, JOB_STARTS // max(1, len(ordered)))
    if len(starts) > limit:
        starts = [starts[i * len(starts) // limit] for i in range(limit)]
    most = dict.fromkeys(starts, 0)
    least, alone = 0, len(given) - len(ordered)
    for number, start in enumerate(starts):
        if number:
            most[start] = max(most[start], most[starts[number - 1]])
        base, late, following = most[start], 0, number + 1
        time, running = start, list[int]()
        for release, due, cost in ordered:
            while following < len(starts) and starts[following] < due:
                most[starts[following]] = max(most[starts[following]], base + late)
                following += 1
            if release < start:
                continue
            time += cost
            heappush(running, -cost)
            if time > due:
                time += heappop(running)
                late += 1
        for after in starts[following:]:
            most[after] = max(most[after], base + late)
        least = max(least, base + late)
    return alone + least


# -- exact


def search(tasks: Sequence[Task], needs: Sequence[tuple[Need, ...]], at_least: int, states: int) -> int | None:
    """The least number of results that are missed on one node, whose tasks are not interrupted; None: not found within
    that many states. at_least: known to be missed."""
    numbers = sorted({need.task for each in needs for need in each})
    if len(numbers) > MOST_TASKS or not states:
        return None
    return _Search(tasks, numbers, needs, at_least, states).least()


class _Search:
    """Depth first over which task is next. What has been done (and which results are out of reach) at no earlier time
    than before is not looked at again: the earlier schedule can be continued in every way that this one can."""

    def __init__(
        self, tasks: Sequence[Task], numbers: list[int], needs: Sequence[tuple[Need, ...]], at_least: int, states: int
    ) -> None:
        place = {task: i for i, task in enumerate(numbers)}
        self._cost = [tasks[each].cost_ns for each in numbers]
        self._earliest = [tasks[each].earliest_ns for each in numbers]
        self._before = [sum(1 << place[b] for b in tasks[each].before if b in place) for each in numbers]
        self._uses: list[list[tuple[int, int]]] = [[] for _ in numbers]  # (latest, result) by task
        self._tasks_of = [sum(1 << place[need.task] for need in each) for each in needs]
        for result, each in enumerate(needs):
            for need in each:
                self._uses[place[need.task]].append((need.latest_ns, result))
        self._results, self._goal, self._states = len(needs), len(needs) - at_least, states
        self._seen: dict[tuple[int, int], int] = {}
        self._most = 0  # met
        dues = [max(latest for latest, _ in uses) for uses in self._uses]
        self._order = sorted(range(len(numbers)), key=lambda i: (dues[i], i))

    def least(self) -> int | None:
        """The number missed; None: given up."""
        first = min(self._earliest, default=0)
        return self._results - self._most if self._visit(0, 0, first) else None

    def _visit(self, done: int, dead: int, time: int) -> bool:
        """False: given up."""
        dead |= self._out_of_reach(done, dead, time)
        known = self._seen.get((done, dead))
        if known is not None and known <= time:
            return True
        if len(self._seen) >= self._states:
            return False
        self._seen[done, dead] = time
        met = sum(1 for r, each in enumerate(self._tasks_of) if not dead >> r & 1 and not each & ~done)
        self._most = max(self._most, met)
        if self._most >= self._goal or self._results - dead.bit_count() <= self._most:
            return True
        for task in self._order:
            if done >> task & 1 or self._before[task] & ~done:
                continue
            if all(dead >> result & 1 for _, result in self._uses[task]):
                continue
            end = max(time, self._earliest[task]) + self._cost[task]
            late = sum(1 << result for latest, result in self._uses[task] if end > latest)
            if not self._visit(done | 1 << task, dead | late, end):
                return False
            if self._most >= self._goal:
                return True
        return True

    def _out_of_reach(self, done: int, dead: int, time: int) -> int:
        """Results of which some task can no longer end in time, even if it were next."""
        found = 0
        for task, uses in enumerate(self._uses):
            if not done >> task & 1:
                end = max(time, self._earliest[task]) + self._cost[task]
                for latest, result in uses:
                    if end > latest and not dead >> result & 1:
                        found |= 1 << result
        return found


def by_output(workload: Workload, outputs: Mapping[str, object] | Iterable[str]) -> Workload:
    """Only the results of those outputs."""
    names = set(outputs)
    kept = tuple(each for each in workload.results if each.output in names)
    return Workload(workload.tasks, kept, workload.whole)
