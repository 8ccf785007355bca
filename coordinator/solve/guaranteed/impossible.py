"""Proofs without a search that no placement and no sub-deadlines help: an age, a path, a burst beyond a deadline.

Each is a lower bound of the analysis: a tuple has its age on admission, takes each operator's least cost and the links
between the nodes that suit it best, and waits for the heartbeat that ends a window; the last tuple of a burst waits for
those before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coordinator.errors import Mistake
from coordinator.model.problem import Problem
from coordinator.solve.guaranteed.necessary_conditions import NecessaryConditions
from coordinator.spec import windows
from coordinator.spec.query import Operator, Output, Source
from coordinator.units import counted, show_ns

LARGEST_MESH = 60
MOST_NAMES = 8


@dataclass(frozen=True)
class LeastPath:
    """The least that one tuple takes from its source to a node, with what of it are links and windows."""

    ns: int
    links_ns: int
    windows_ns: int
    path: tuple[str, ...]

    def over(self, link_ns: int) -> LeastPath:
        """And a link."""
        return LeastPath(self.ns + link_ns, self.links_ns + link_ns, self.windows_ns, self.path)

    def through(self, name: str, cost_ns: int, window_ns: int) -> LeastPath:
        """And an operator, or a window that it is collected in."""
        took_ns = self.ns + cost_ns + window_ns
        return LeastPath(took_ns, self.links_ns, self.windows_ns + window_ns, (*self.path, name))

    def said(self) -> str:
        """What it is made of."""
        names = self.path if len(self.path) <= MOST_NAMES else (*self.path[: MOST_NAMES - 2], "...", self.path[-1])
        parts = [f"{show_ns(self.ns - self.links_ns - self.windows_ns)} of costs"]
        parts += [f"{show_ns(self.links_ns)} of links"] if self.links_ns else []
        parts += [f"{show_ns(self.windows_ns)} until its window is complete"] if self.windows_ns else []
        return f"{', '.join(parts)} by way of {', '.join(names)}"


def impossible(conditions: NecessaryConditions) -> list[Mistake]:
    """Why no plan is guaranteed, with the mends; empty: nothing is proven this way."""
    return list(_paths_too_long(conditions)) or _bursts_too_long(conditions)


def _paths_too_long(conditions: NecessaryConditions) -> Iterator[Mistake]:
    """Outputs that one tuple alone misses wherever operators run."""
    apart = distances(conditions.problem, conditions)
    waits = _waits(conditions)
    for source in conditions.query.sources:
        outputs = [output for output in conditions.query.outputs if source.name in conditions.reach[output.origin]]
        paths = _paths(conditions, source, apart, waits) if outputs else {}
        for output in outputs:
            if why := _too_long(conditions, source, output, paths[output.origin], apart):
                yield why


def _too_long(
    conditions: NecessaryConditions,
    source: Source,
    output: Output,
    paths: Mapping[int, LeastPath],
    apart: Sequence[Sequence[int]],
) -> Mistake | None:
    """Why a source's tuples miss an output; None: nothing is proven."""
    deadline = show_ns(output.deadline_ns)
    if source.max_age_ns >= output.deadline_ns:
        text = (
            f"output {output.name}: {source.name} admits tuples of up to {show_ns(source.max_age_ns)} of age, "
            f"its deadline is {deadline}"
        )
        return Mistake("age_beyond_deadline", text, "declare a smaller 'max_age' or a longer deadline", output.name)
    to = next(node.index for node in conditions.problem.nodes if node.name == output.at)
    way = min((way.over(apart[node][to]) for node, way in paths.items()), key=_took_ns)
    least_ns = source.max_age_ns + way.ns
    if least_ns <= output.deadline_ns:
        return None
    aged = f" and its age of up to {show_ns(source.max_age_ns)}" if source.max_age_ns else ""
    text = (
        f"output {output.name}: one tuple of {source.name} alone takes {show_ns(way.ns)} even on the nodes that suit "
        f"it best ({way.said()}){aged}, its deadline is {deadline}"
    )
    mend = f"it needs at least {show_ns(least_ns)}, or less cost"
    return Mistake("tuple_beyond_deadline", text, mend, output.name)


def _paths(
    conditions: NecessaryConditions,
    source: Source,
    apart: Sequence[Sequence[int]],
    waits: Mapping[tuple[str, str], int],
) -> dict[str, dict[int, LeastPath]]:
    """Per operator that the source's tuples reach, and node that it may be on: the longest of the shortest paths."""
    at = next(node.index for node in conditions.problem.nodes if node.name == source.at)
    found: dict[str, dict[int, LeastPath]] = {source.name: {at: LeastPath(0, 0, 0, ())}}
    for operator in conditions.order:
        before = [found[name] for name in operator.inputs if name in found]
        if source.name not in conditions.reach[operator.name] or not before:
            continue
        wait_ns = waits.get((operator.name, source.name), 0)
        found[operator.name] = {
            node: _longest(before, node, apart).through(operator.name, cost_ns, wait_ns)
            for node, cost_ns in conditions.cost_ns[operator.name].items()
        }
    return found


def _longest(inputs: Sequence[Mapping[int, LeastPath]], node: int, apart: Sequence[Sequence[int]]) -> LeastPath:
    """Of the inputs of an operator on that node, each from where it is soonest there."""
    arrivals = [[way.over(apart[at][node]) for at, way in paths.items()] for paths in inputs]
    return max((min(each, key=_took_ns) for each in arrivals), key=_took_ns)


def _took_ns(way: LeastPath) -> int:
    return way.ns


def _waits(conditions: NecessaryConditions) -> dict[tuple[str, str], int]:
    """By what collects in windows, and source: how long a window waits at worst, beside its tuples' way. Its node has
    to hear that nothing older comes; where deadlines count from the oldest tuple, the whole window is before that."""
    collecting: list[Operator] = windows.collecting(conditions.query)
    if not collecting:
        return {}
    beats = windows.beats_ns(conditions.query, conditions.cluster.catalog)
    feeds = windows.paths(conditions.query, conditions.cluster.catalog)
    found = {}
    for operator in collecting:
        window = operator.window
        if window is None or window.kind == "count":
            continue
        length_ns = window.length if window.first or window.kind == "sized" else 0
        for source in windows.feeds(operator, feeds):
            found[operator.name, source] = length_ns + beats.get(source, 0)
    return found


def _bursts_too_long(conditions: NecessaryConditions) -> list[Mistake]:
    """The operator that one burst alone keeps busy for too long, wherever it runs; of several the worst."""
    jobs = conditions.counts(0)
    over_ns = {
        operator.name: jobs[operator.name] * conditions.least_ns[operator.name] - _room_ns(conditions, operator.name)
        for operator in conditions.order
        if operator.name in conditions.due_ns and jobs[operator.name] > 1
    }
    name = max(over_ns, key=lambda each: over_ns[each], default="")
    if not name or over_ns[name] <= 0:
        return []
    took_ns, room_ns = jobs[name] * conditions.least_ns[name], _room_ns(conditions, name)
    text = (
        f"operator {name}: {counted(jobs[name], 'tuple')} that come at once take {show_ns(took_ns)} even on the "
        f"fastest node, and the deadlines behind it leave {show_ns(max(room_ns, 0))}"
    )
    return [Mistake("burst_beyond_deadline", text, "declare smaller bursts, less cost, or longer deadlines", name)]


def _room_ns(conditions: NecessaryConditions, name: str) -> int:
    """Between the soonest that an operator may begin after an admission, and when it has to be through."""
    return conditions.due_ns[name] - conditions.head_ns[name]


def distances(problem: Problem, conditions: NecessaryConditions) -> list[list[int]]:
    """The least latency between any two nodes, over any relays, in ns; 0 where it is not worth computing."""
    count = len(problem.nodes)
    if count > LARGEST_MESH or not any(link.latency_ns for link in conditions.cluster.links):
        return [[0] * count for _ in range(count)]
    far = sum(link.latency_ns for link in conditions.cluster.links) + 1
    found = [[0 if m == n else far for n in range(count)] for m in range(count)]
    index = {node.name: node.index for node in problem.nodes}
    for link in conditions.cluster.links:
        one, other = (index[name] for name in link.between)
        found[one][other] = found[other][one] = link.latency_ns
    for via in range(count):
        for m in range(count):
            for n in range(count):
                found[m][n] = min(found[m][n], found[m][via] + found[via][n])
    return [[0 if latency >= far else latency for latency in row] for row in found]
