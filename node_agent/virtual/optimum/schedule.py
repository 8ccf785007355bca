"""A schedule of the whole system that knows every cost beforehand: how few results can be missed, from above.

`miss_bound` gives a bound from below, by leaving constraints out. Here none is left out: operators are not
interrupted, tuples come over links, tasks wait for those before them on any node. So the optimum lies between both, and
where they are equal it is known.

1. For a set of results, every node runs the task first whose latest end is the earliest (Jackson's rule), idle only
   where nothing is there. Every result of the set has to be met.
2. Where one is late, the result that takes most of that node's time, of those that it has worked on since it was last
   idle, leaves the set (Moore and Hodgson's rule, on more than one node a heuristic), until the rest is met.
3. What left is tried again, the cheapest first.

A result that leaves or comes changes nothing before its first task is there, so the schedule goes on from the last
checkpoint before that.
"""

from bisect import bisect_left
from heapq import heappop, heappush
from operator import attrgetter

from node_agent.virtual.optimum.miss_bound import Workload, is_hopeless

EVERY = 24  # tasks between two checkpoints
RECENT = 1000  # tasks of a node among which the dearest is looked for
STEPS = 300_000  # tasks that may be run to try again what left


def fewest_missed(workload: Workload, steps: int = STEPS) -> int | None:
    """How many results the schedule that is found misses. None: the workload has tasks of which it is not known on what
    they wait, so no schedule of it can be told to be right. steps: of trying again what left."""
    if not workload.whole:
        return None
    search = _Search(workload)
    left = search.drop_late()
    search.try_again(left, steps)
    return len(workload.results) - len(search.chosen)


class _State:
    """The nodes at an instant. given: how many of a node's tasks that wait for no other have come. coming: (instant,
    task) that cannot start before; ready: (latest end, task). waits: tasks that some of those before have ended for:
    how many have not, and when they are there."""

    __slots__ = ("at_ns", "coming", "free_ns", "given", "ready", "since_ns", "waits")

    def __init__(self, nodes: int) -> None:
        self.at_ns = -1
        self.given, self.free_ns, self.since_ns = [0] * nodes, [0] * nodes, [0] * nodes
        self.coming: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
        self.ready: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
        self.waits: dict[int, tuple[int, int]] = {}

    def copy(self) -> "_State":
        made = _State(0)
        made.at_ns, made.given, made.free_ns = self.at_ns, self.given[:], self.free_ns[:]
        made.since_ns = self.since_ns[:]
        made.coming, made.ready = [each[:] for each in self.coming], [each[:] for each in self.ready]
        made.waits = dict(self.waits)
        return made


_at_ns = attrgetter("at_ns")


class _Search:
    """chosen: the results that are met."""

    def __init__(self, workload: Workload) -> None:
        self._tasks, self._results = workload.tasks, workload.results
        names = sorted({task.node for task in self._tasks})
        self._node = [names.index(task.node) for task in self._tasks]
        self._given: list[list[tuple[int, int]]] = [[] for _ in names]  # what waits for no other task, by instant
        self._after: list[list[tuple[int, int]]] = [[] for _ in self._tasks]
        for number, task in enumerate(self._tasks):
            if not task.comes:
                self._given[self._node[number]].append((task.earliest_ns, number))
            for before, hop_ns in task.comes:
                self._after[before].append((number, hop_ns))
        for each in self._given:
            each.sort()
        self._users: list[list[tuple[int, int]]] = [[] for _ in self._tasks]  # (latest end, result)
        for i, result in enumerate(self._results):
            for need in result.needs:
                self._users[need.task].append((need.latest_ns, i))
        self.chosen: set[int] = set()
        self._latest_ns: dict[int, int] = {}
        for i, result in enumerate(self._results):
            if not is_hopeless(self._tasks, result):
                self._choose(i)
        self._work = [dict[int, float]() for _ in self._results]
        for number, users in enumerate(self._users):
            there = [i for _, i in users if i in self.chosen]
            for i in there:
                mine = self._work[i]
                mine[self._node[number]] = mine.get(self._node[number], 0) + self._tasks[number].cost_ns / len(there)
        self._checkpoints = [_State(len(names))]
        self._idle_ns: list[int] = []  # when something comes and every node is idle
        self._steps = 0

    def _choose(self, result: int) -> None:
        self.chosen.add(result)
        for need in self._results[result].needs:
            task, latest_ns = need.task, need.latest_ns
            self._latest_ns[task] = min(latest_ns, self._latest_ns.get(task, latest_ns))

    def _discard(self, result: int) -> None:
        self.chosen.discard(result)
        for task in [need.task for need in self._results[result].needs]:
            left = [latest_ns for latest_ns, i in self._users[task] if i in self.chosen]
            if left:
                self._latest_ns[task] = min(left)
            else:
                del self._latest_ns[task]

    def drop_late(self) -> list[int]:
        """Leaves out results until the others are met; the ones that left."""
        left: list[int] = []
        ran: list[list[tuple[int, int]]] = [[] for _ in self._given]
        late = self._run(self._checkpoints[0].copy(), ran)
        while late is not None:
            node, since_ns = late
            recent = [task for at_ns, task in ran[node][-RECENT:] if at_ns >= since_ns]
            there = {i for task in recent for _, i in self._users[task] if i in self.chosen}
            dearest = max(sorted(there), key=lambda i: self._work[i][node])
            self._discard(dearest)
            left.append(dearest)
            state = self._before(dearest)
            for each in ran:
                del each[bisect_left(each, (state.at_ns, -1)) :]
            late = self._run(state, ran)
        return left

    def try_again(self, left: list[int], steps: int) -> None:
        """Those that left, the cheapest first, as long as no more than so many tasks have been run for it."""
        self._steps = 0
        for i in sorted(left, key=lambda i: sum(self._work[i].values())):
            if self._steps > steps:
                return
            checkpoints, idle_ns = self._checkpoints, self._idle_ns
            self._choose(i)
            if self._run(self._before(i), None, i, (checkpoints, idle_ns)) is not None:
                self._checkpoints, self._idle_ns = checkpoints, idle_ns
                self._discard(i)

    def _before(self, result: int) -> _State:
        """The last checkpoint before anything of that result is there; the later ones are forgotten."""
        first_ns = min(self._tasks[need.task].earliest_ns for need in self._results[result].needs)
        self._checkpoints = self._checkpoints[: max(1, bisect_left(self._checkpoints, first_ns, key=_at_ns))]
        state = self._checkpoints[-1].copy()
        self._idle_ns = self._idle_ns[: bisect_left(self._idle_ns, state.at_ns)]
        for node, given in enumerate(self._given):
            state.given[node] = min(state.given[node], bisect_left(given, (first_ns, -1)))
        return state

    def _run(
        self, state: _State, ran: list[list[tuple[int, int]]] | None, tried: int = -1,
        old: tuple[list[_State], list[int]] | None = None,
    ) -> tuple[int, int] | None:  # fmt: skip
        """Goes on until a result is late: on which node, and since when that has not been idle. None: all are met.

        ran: by node, start and task, is kept up to date. tried: a result that was not in the set when the `old`
        checkpoints were made: where nothing of it is left and all is idle as it was then, the rest is as it was.
        """
        tasks, latest_ns, nodes = self._tasks, self._latest_ns, range(len(self._given))
        free_ns = state.free_ns
        unended = {need.task for need in self._results[tried].needs} if old is not None else set()
        number = 0
        while True:
            starts = [(at_ns, node) for node in nodes if (at_ns := self._starts_ns(state, node)) is not None]
            if not starts:
                return None
            first_ns, first = min(starts)
            if first_ns > max(free_ns) and not any(state.ready) and not any(state.coming):
                if old is not None and not unended and self._as_before(first_ns, *old):
                    return None
                self._idle_ns.append(first_ns)
            if not number % EVERY and first_ns > self._checkpoints[-1].at_ns:
                state.at_ns = first_ns
                self._checkpoints.append(state.copy())
            number += 1
            self._steps += 1
            if first_ns > free_ns[first]:
                state.since_ns[first] = first_ns
            task = self._take(state, first, first_ns)
            free_ns[first] = ends_ns = first_ns + tasks[task].cost_ns
            if ran is not None:
                ran[first].append((first_ns, task))
            unended.discard(task)
            if ends_ns > latest_ns[task]:
                return first, state.since_ns[first]
            for following, hop_ns in self._after[task]:
                if following in latest_ns:
                    self._ended(state, following, ends_ns + hop_ns)

    def _starts_ns(self, state: _State, node: int) -> int | None:
        """When the node can start its next task; None: it has none."""
        if state.ready[node]:
            return state.free_ns[node]
        given, place = self._given[node], state.given[node]
        while place < len(given) and given[place][1] not in self._latest_ns:
            place += 1
        state.given[node] = place
        dues = [given[place][0]] if place < len(given) else []
        if state.coming[node]:
            dues.append(state.coming[node][0][0])
        return max(min(dues), state.free_ns[node]) if dues else None

    def _as_before(self, at_ns: int, checkpoints: list[_State], idle_ns: list[int]) -> bool:
        place = bisect_left(idle_ns, at_ns)
        if place == len(idle_ns) or idle_ns[place] != at_ns:
            return False
        self._idle_ns += idle_ns[place:]
        self._checkpoints += checkpoints[bisect_left(checkpoints, at_ns, key=_at_ns) :]
        return True

    def _take(self, state: _State, node: int, at_ns: int) -> int:
        """The task that the node starts then."""
        latest_ns, ready, coming = self._latest_ns, state.ready[node], state.coming[node]
        given, place = self._given[node], state.given[node]
        while place < len(given) and given[place][0] <= at_ns:
            task = given[place][1]
            if task in latest_ns:
                heappush(ready, (latest_ns[task], task))
            place += 1
        state.given[node] = place
        while coming and coming[0][0] <= at_ns:
            task = heappop(coming)[1]
            heappush(ready, (latest_ns[task], task))
        return heappop(ready)[1]

    def _ended(self, state: _State, following: int, at_ns: int) -> None:
        """One of those that a task waits for has ended, and is there at that instant."""
        left, ready_ns = state.waits.pop(following, (len(self._tasks[following].comes), 0))
        ready_ns = max(ready_ns, at_ns, self._tasks[following].earliest_ns)
        if left > 1:
            state.waits[following] = left - 1, ready_ns
        else:
            heappush(state.coming[self._node[following]], (ready_ns, following))
