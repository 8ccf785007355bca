"""Necessary conditions of a guaranteed plan at any placement and sub-deadlines: rows that no such plan can break.

They follow from one thing that the declarations allow to happen. All sources begin a densest conforming run at one
instant; operators use their worst costs; of m inputs in a row an operator passes as many as it may, the last among
them. Then the last job of an operator leads to a result at each output behind it, units are first in first out, and
so all its jobs of that run have to be done in time for that result. A bound is at least what does happen, so a plan
that breaks a row has an output whose bound is beyond its deadline. What is not certain in this story counts for
nothing: a join of anything but all tuples of one source, a filter behind a union (whose last job may be another's).

Demand: of node n, between h and u = T + L after that instant, the work of operators that no tuple reaches before h
and that have to be through L after an admission, for what is admitted in the first T, is at most u - h. Utilisation:
in the worst case at most 1. Ways: age, costs and link latencies of one tuple alone are within the deadline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from coordinator.calculus.selectivity import Selectivity, UndeclaredError, declared
from coordinator.errors import Mistake
from coordinator.guarantee.system import arrival_curve
from coordinator.model.flows import mean_selectivity
from coordinator.model.problem import Problem, deadlines, tuple_cost_ns
from coordinator.spec import graph
from coordinator.spec.cluster import Cluster
from coordinator.spec.query import Operator, Query, Source
from protos.plan.arrivals import Arrival, BurstArrival, JcpArrival, RateArrival, TraceArrival

MOST_TUPLES = 20_000
MOST_LOOKS = 60
LARGE = 200  # operators from which only the first run is looked at


@dataclass(frozen=True)
class Row:
    """On a node, between `after_ns` and `by_ns`: `terms` (operator, jobs, work in ns on that node)."""

    node: int
    after_ns: int
    by_ns: int
    terms: tuple[tuple[str, int, int], ...]


class Passing:
    """How many of the first k inputs pass where each passes as many as the declaration lets it: attained, unlike
    sigma(k), which is only a bound where several pairs are declared. Backwards it is a run whose last input passes."""

    def __init__(self, selectivity: Selectivity) -> None:
        self.pairs = selectivity.pairs
        self.windows = [(limit, deque([0] * (length - 1)), [0]) for length, limit in self.pairs]
        self.totals = [0]

    def __call__(self, k: int) -> int:
        """Outputs of k inputs in a row; of no more than MOST_TUPLES."""
        while len(self.totals) <= min(k, MOST_TUPLES):
            room = max(0, min((limit - used[0] for limit, _, used in self.windows), default=0))
            for _, window, used in self.windows:
                window.append(room)
                used[0] += room - window.popleft()
            self.totals.append(self.totals[-1] + room)
        return self.totals[min(k, MOST_TUPLES)]

    @property
    def last(self) -> bool:
        """Whether the last input may pass."""
        return self(1) >= 1

    @property
    def every(self) -> bool:
        """Whether all inputs may pass."""
        return bool(self.pairs) and all(limit >= length for length, limit in self.pairs)


@dataclass
class NecessaryConditions:
    """Of a checked query on a cluster. `unbounded`: what has no worst case at all."""

    query: Query
    cluster: Cluster
    problem: Problem
    unbounded: list[Mistake] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.order = graph.order(self.query)
        self.led = deadlines(self.query)  # 0: leads to no output
        self.by_name = {operator.name: operator for operator in self.order}
        self.kind = {one.name: graph.kind(one, self.cluster.catalog) for one in self.order}
        self.sigma = {operator.name: self._selectivity(operator) for operator in self.order}
        self.passing = {name: Passing(sigma) for name, sigma in self.sigma.items()}
        self.readers: dict[str, list[Operator]] = {one.name: [] for one in self.query.producers}
        for operator in self.order:
            for name in operator.inputs:
                self.readers[name].append(operator)
        item_of = self.problem.item_of()
        self.item = {name: item_of[name] for name in self.by_name}
        nodes = self.problem.nodes
        self.cost_ns = {
            name: {node: tuple_cost_ns(self.by_name[name], nodes[node]) for node in self.problem.items[item].nodes}
            for name, item in self.item.items()
        }
        for index, node in self.problem.held.items():
            for name in self.problem.items[index].members:
                self.cost_ns[name] = {node: self.cost_ns[name][node]}
        self.least_ns = {name: min(costs.values()) for name, costs in self.cost_ns.items()}
        self._counts: dict[int, dict[str, int]] = {}

    def _selectivity(self, operator: Operator) -> Selectivity:
        """Of a window nothing: no run of tuples has to close one, and what does not happen need not be in time."""
        if operator.window is not None:
            return Selectivity(())
        given, at_most = operator.selectivity, []
        if given is not None:
            at_most = [list(pair) for pair in given.at_most]
        elif operator.run == "filter":
            at_most = [[operator.parameters.get("of", 2), operator.parameters.get("keep", 1)]]
        try:
            return declared(at_most, mean_selectivity(operator))
        except UndeclaredError as error:
            if self.led[operator.name]:  # else only what shares a node with it has no bound
                text = f"operator {operator.name} {error}"
                self.unbounded.append(Mistake("unbounded_outputs", text, "declare 'at_most'", operator.name))
            return Selectivity(())

    @cached_property
    def reach(self) -> dict[str, frozenset[str]]:
        """The sources whose lateness counts in each stream: of a join, those that all its inputs have in common."""
        found = {source.name: frozenset((source.name,)) for source in self.query.sources}
        for operator in self.order:
            inputs = [found[name] for name in operator.inputs]
            gather = frozenset.intersection if self.kind[operator.name] == "join" else frozenset.union
            found[operator.name] = gather(*inputs)
        return found

    @cached_property
    def whole(self) -> dict[str, bool]:
        """Streams that carry every tuple of one source, once."""
        found = {source.name: True for source in self.query.sources}
        for operator in self.order:
            alike = all(found[name] for name in operator.inputs) and self.kind[operator.name] != "union"
            one = len(frozenset.union(*(self.reach[name] for name in operator.inputs))) == 1
            found[operator.name] = alike and one and self.sigma[operator.name].pairs == ((1, 1),)
        return found

    @cached_property
    def head_ns(self) -> dict[str, int]:
        """The least time from admission to the release of an operator."""
        found = {source.name: 0 for source in self.query.sources}
        after = dict(found)
        for operator in self.order:
            first = max if self.kind[operator.name] == "join" else min
            found[operator.name] = first(after[name] for name in operator.inputs)
            after[operator.name] = found[operator.name] + self.least_ns[operator.name]
        return {name: found[name] for name in self.by_name}

    @cached_property
    def due_ns(self) -> dict[str, int]:
        """By when after its admission the last tuple of a run has to be through an operator; no entry: nothing asks."""
        last: dict[str, int] = {}
        every: dict[str, int] = {}
        for operator in reversed(self.order):
            name = operator.name
            ends = [output.deadline_ns for output in self.query.outputs if output.origin == name]
            for found, certain in ((last, self.passing[name].last), (every, self.passing[name].every)):
                if not certain:
                    continue
                then = list(ends)
                for reader in self.readers[name]:
                    kind = self.kind[reader.name]
                    if kind == "fusion" or (kind == "join" and not all(self.whole[each] for each in reader.inputs)):
                        continue  # it may go without a result
                    behind = every if kind == "union" else found
                    if reader.name in behind:
                        then.append(behind[reader.name] - self.least_ns[reader.name])
                if then:
                    found[name] = min(then)
        ages = {source.name: source.max_age_ns for source in self.query.sources}
        return {name: due - min(ages[source] for source in self._from(name)) for name, due in last.items()}

    def _from(self, name: str) -> frozenset[str]:
        return self.reach[name] or frozenset(source.name for source in self.query.sources)

    def counts(self, within_ns: int) -> dict[str, int]:
        """Jobs of every operator, of tuples admitted in the first `within_ns` of the run."""
        if within_ns in self._counts:
            return self._counts[within_ns]
        found = {source.name: passed(source, within_ns) for source in self.query.sources}
        jobs: dict[str, int] = {}
        for operator in self.order:
            name, entering = operator.name, [found[each] for each in operator.inputs]
            if self.kind[name] == "fusion":  # as late inputs come, there may be none
                jobs[name] = 0
            elif self.kind[name] == "join":
                jobs[name] = min(entering) if all(self.whole[each] for each in operator.inputs) else 0
            else:
                jobs[name] = sum(entering)
            found[name] = self.passing[name](jobs[name])
        self._counts[within_ns] = jobs
        return jobs

    def rows(self) -> list[Row]:
        """Demand rows of every node that can be broken at all, tightest looks first."""
        found = []
        for node in self.problem.nodes:
            here = [name for name in self.due_ns if node.index in self.cost_ns[name]]
            for after_ns in sorted({self.head_ns[name] for name in here})[:MOST_LOOKS]:
                late = [name for name in here if self.head_ns[name] >= after_ns]
                for within_ns, due_ns in self._looks(late):
                    row = self._row(node.index, late, after_ns, within_ns, due_ns)
                    if sum(work for _, _, work in row.terms) > row.by_ns - after_ns:
                        found.append(row)
        return found

    def _looks(self, names: Sequence[str]) -> list[tuple[int, int]]:
        """How long the run is, and the deadline after an admission: all tuples of one run, so that it is one story."""
        runs = {0}
        dues = {self.due_ns[name] for name in names}
        if len(self.order) <= LARGE and dues:
            for source in self.query.sources:
                runs.update(arrivals(source.arrival.written, max(dues)))
        return sorted(((run, due) for run in runs for due in dues), key=lambda pair: (sum(pair), pair))[:MOST_LOOKS]

    def _row(self, node: int, names: Sequence[str], after_ns: int, within_ns: int, due_ns: int) -> Row:
        jobs = self.counts(within_ns)
        terms = tuple(
            (name, jobs[name], jobs[name] * self.cost_ns[name][node])
            for name in names
            if self.due_ns[name] <= due_ns and jobs[name]
        )
        return Row(node, after_ns, within_ns + due_ns, terms)

    @cached_property
    def rates(self) -> dict[str, Fraction]:
        """Jobs per ns of every operator, in the worst case, in the long run."""
        found: dict[str, Fraction] = {}
        for source in self.query.sources:
            try:
                found[source.name] = arrival_curve(source.arrival.written).rate
            except ValueError as error:
                if any(self.led[reader.name] for reader in self.readers[source.name]):
                    text = f"the arrivals of source {source.name} are unbounded: {error}"
                    self.unbounded.append(Mistake("unbounded_arrivals", text, subject=source.name))
                found[source.name] = Fraction(0)
            if source.limit is not None:  # how many pass in the end depends on how they come
                found[source.name] = Fraction(0)
        jobs: dict[str, Fraction] = {}
        for operator in self.order:
            gather = min if self.kind[operator.name] == "join" else sum
            jobs[operator.name] = Fraction(gather(found[name] for name in operator.inputs))
            if self.kind[operator.name] == "fusion":
                jobs[operator.name] = Fraction(0)
            found[operator.name] = jobs[operator.name] * self.sigma[operator.name].rate
        return jobs


def passed(source: Source, within_ns: int) -> int:
    """As `admitted`; of a source that is limited, those that certainly pass, in the first burst of the limit."""
    found = admitted(source.arrival.written, within_ns)
    return min(found, source.limit.tuples) if source.limit is not None else found


def admitted(arrival: Arrival, within_ns: int) -> int:
    """Tuples in the first `within_ns` (closed) of a densest run. Of a recording one burst: its curve holds for every
    window, but not for all of them in one run."""
    match arrival:
        case BurstArrival():
            return arrival.burst * (within_ns // arrival.period_ns + 1)
        case JcpArrival():
            count = (within_ns + arrival.early_ns + arrival.late_ns) // arrival.period_ns + 1
            return min(count, within_ns // arrival.min_gap_ns + 1) if arrival.min_gap_ns else count
        case RateArrival():
            return arrival.burst + int(within_ns * Fraction(str(arrival.rate_per_s)) / 10**9)
        case TraceArrival():
            return arrival.burst


def arrivals(arrival: Arrival, until_ns: int) -> list[int]:
    """Instants of a densest run at which tuples come, the first few."""
    found = [0]
    if isinstance(arrival, BurstArrival):
        found = [arrival.period_ns * i for i in range(MOST_LOOKS)]
    elif isinstance(arrival, JcpArrival):
        period, gap, early = arrival.period_ns, arrival.min_gap_ns, arrival.early_ns + arrival.late_ns
        found = [max(0, i * gap, i * period - early) for i in range(MOST_LOOKS)]
    return [at for at in found if at <= until_ns]
