"""A schedule of the whole system that knows every cost beforehand: how few results can be missed, from above.

`miss_bound` gives a bound from below, by leaving constraints out. Here none is left out: operators are not
interrupted, tuples come over links, tasks wait for those before them on any node. So the optimum lies between both, and
where they are equal it is known.

1. For a set of results, every node runs the task first whose latest end is the earliest (Jackson's rule), idle only
   where nothing is there. Every result of the set has to be met.
2. Where one is late, the result that takes most of that node's time, of those that it has worked on until then, leaves
   the set (Moore and Hodgson's rule, on more than one node a heuristic), until the rest is met.
3. What left is tried again, the cheapest first.
"""

from heapq import heappop, heappush

from node_agent.virtual.optimum.miss_bound import Workload, is_hopeless

Late = tuple[str, set[int]]  # a node, and the tasks that it has run until one of them was late


def fewest_missed(workload: Workload) -> int | None:
    """How many results the schedule that is found misses. None: the workload has tasks of which it is not known on what
    they wait, so no schedule of it can be told to be right."""
    if not workload.whole:
        return None
    chosen = {i for i, result in enumerate(workload.results) if not is_hopeless(workload.tasks, result)}
    work = _work(workload, chosen)
    left: list[int] = []
    while (late := _late(workload, chosen)) is not None:
        node, ran = late
        there = [i for i in sorted(chosen) if any(need.task in ran for need in workload.results[i].needs)]
        dearest = max(there, key=lambda i: work[i].get(node, 0))
        chosen.discard(dearest)
        left.append(dearest)
    for i in sorted(left, key=lambda i: sum(work[i].values())):
        if _late(workload, chosen | {i}) is None:
            chosen.add(i)
    return len(workload.results) - len(chosen)


def _work(workload: Workload, chosen: set[int]) -> dict[int, dict[str, float]]:
    """What a result takes of each node. Of a task that several need each bears an equal share."""
    users: dict[int, int] = {}
    for i in chosen:
        for need in workload.results[i].needs:
            users[need.task] = users.get(need.task, 0) + 1
    work: dict[int, dict[str, float]] = {}
    for i in chosen:
        mine = work[i] = {}
        for need in workload.results[i].needs:
            task = workload.tasks[need.task]
            mine[task.node] = mine.get(task.node, 0) + task.cost_ns / users[need.task]
    return work


class _Node:
    """coming: (instant, task) that cannot start before; ready: (latest end, task)."""

    def __init__(self, latest_ns: dict[int, int]) -> None:
        self._latest_ns = latest_ns
        self.coming: list[tuple[int, int]] = []
        self.ready: list[tuple[int, int]] = []
        self.free_ns = 0
        self.ran: set[int] = set()

    def starts_ns(self) -> int | None:
        """When it can start its next task; None: it has none."""
        if self.ready:
            return self.free_ns
        return max(self.free_ns, self.coming[0][0]) if self.coming else None

    def take(self, at_ns: int) -> int:
        """The task that it starts then."""
        while self.coming and self.coming[0][0] <= at_ns:
            task = heappop(self.coming)[1]
            heappush(self.ready, (self._latest_ns[task], task))
        return heappop(self.ready)[1]


def _late(workload: Workload, chosen: set[int]) -> Late | None:
    """Run everything that these results need; None: all of them are met."""
    tasks, latest_ns = workload.tasks, _latest(workload, chosen)
    nodes: dict[str, _Node] = {}
    waits: dict[int, int] = {}
    ready_ns: dict[int, int] = {}
    after: dict[int, list[tuple[int, int]]] = {}
    for number in latest_ns:
        task = tasks[number]
        node = nodes.setdefault(task.node, _Node(latest_ns))
        waits[number] = len(task.comes)
        ready_ns[number] = task.earliest_ns
        for before, hop_ns in task.comes:
            after.setdefault(before, []).append((number, hop_ns))
        if not task.comes:
            heappush(node.coming, (task.earliest_ns, number))
    while True:
        starts = [(at_ns, name) for name, node in nodes.items() if (at_ns := node.starts_ns()) is not None]
        if not starts:
            return None
        at_ns, name = min(starts)
        node = nodes[name]
        number = node.take(at_ns)
        node.free_ns = ends_ns = at_ns + tasks[number].cost_ns
        node.ran.add(number)
        if ends_ns > latest_ns[number]:
            return name, node.ran
        for following, hop_ns in after.get(number, ()):
            ready_ns[following] = max(ready_ns[following], ends_ns + hop_ns)
            waits[following] -= 1
            if not waits[following]:
                heappush(nodes[tasks[following].node].coming, (ready_ns[following], following))


def _latest(workload: Workload, chosen: set[int]) -> dict[int, int]:
    """When each task that is needed has to end."""
    latest_ns: dict[int, int] = {}
    for i in sorted(chosen):
        for need in workload.results[i].needs:
            latest_ns[need.task] = min(need.latest_ns, latest_ns.get(need.task, need.latest_ns))
    return latest_ns
