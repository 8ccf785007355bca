"""One node in virtual time with windows, and shedders at their doors: for tests, and for longer runs by hand.

.venv/bin/python tests/node_agent/core/simulated/shedding_node.py [SEED]: shares of windows by load and
shedder, 600 s each.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Any

from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine, Settings
from node_agent.core.facts import MemoryFacts
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan, Job, Step
from node_agent.core.policies import policy as named
from node_agent.core.shedding.entry_shedders import Shedder
from node_agent.core.windows.aggregates import Users
from node_agent.core.windows.allocator import Grid
from node_agent.core.windows.results import Collecting, result
from node_agent.core.windows.window_operator import grid_of
from node_agent.runtime.executor import Executor
from protos.records import ADMITTED, LOST, RAN, SHED, Ran, Record, Shed, per_exit, unpack_records
from tests.node_agent.core.simulated.best_share_of_windows import best_share

SECOND, MS = 1_000_000_000, 1_000_000
FROM_NS = 1000 * SECOND  # instants are well above 0, as on a node
EPOCH = 3
FILTER, ADDS, CLOSES, ENDS = 10, 20, 40, 60  # ids: the filter's, and the first of each kind
POLICIES = ("window-aware", "front", "random", "drop-tail")


class Names:
    """An aggregate that gives the names of its tuples, by source in the order of their numbers."""

    def start(self) -> list[Any]:
        return []

    def add(self, state: list[Any], payload: Any) -> list[Any]:
        state.append(payload)
        return state

    def result(self, state: list[Any]) -> list[Any]:
        return state


@dataclass(frozen=True)
class Setting:
    """Windows over sources, and what tuples cost. filter_ns: the first source's pass a filter of their own unit, which
    the doors are then at; 0: there is none. beside_ns, beside_every_ns: other work of the node."""

    windows: tuple[plans.Window, ...]
    policy: str | None
    add_ns: int = 8 * MS
    close_ns: int = 0
    filter_ns: int = 0
    sources: int = 1
    most: int = 3000
    target_ns: int = SECOND
    period_ns: int = SECOND // 2
    beat_ns: int = SECOND // 20
    max_age_ns: int = 0
    order: str = "edf"
    batch: int = 1
    apart: bool = False  # every window has a shedding of its own
    declared_ns: int = 0  # cost of adding as declared; 0: as it is


@dataclass(frozen=True)
class Offer:
    """A tuple: when it is admitted, how old it is then, its source from 1, whether the filter lets it through."""

    at_ns: int
    age_ns: int = 0
    source: int = 1
    passes: bool = True


@dataclass
class Given:
    """A window's result: the operator from 0, which window, its tuples, and when it was delivered."""

    operator: int
    window: int
    names: list[tuple[int, int]]
    at_ns: int


@dataclass
class Run:
    """What became of it all."""

    engine: Engine
    loaded: CompiledPlan
    facts: MemoryFacts
    given: list[Given] = field(default_factory=list)
    origins: dict[tuple[int, int], tuple[int, bool]] = field(default_factory=dict)  # (source, number)
    busy_ns: int = 0
    ended_ns: int = 0
    peak: int = 0  # tuples that a shedder had waiting, at most

    @property
    def records(self) -> list[Record]:
        """All facts."""
        return list(unpack_records(self.facts.data()))


def plan_of(setting: Setting) -> plans.Plan:
    """Sources -> (filter ->) W.add -> W -> output."""
    count, filtered = len(setting.windows), setting.filter_ns > 0
    streams = [plans.Stream(i, f"s{i}", "json", marked=True, counted=True) for i in range(1, setting.sources + 1)]
    operators, units = [], []
    sub_ns = 10 * SECOND
    if filtered:
        streams.append(plans.Stream(FILTER, "F", "json", marked=True, counted=True))
        operators.append(plans.Operator(FILTER, "F", "keep", (1,), FILTER, setting.filter_ns))
        units.append(plans.Unit(FILTER, (FILTER,), sub_ns, 3600 * SECOND, (FILTER,)))
    sources = [
        plans.Source(i, f"s{i}", i, setting.max_age_ns, beat_ns=setting.beat_ns) for i in range(1, setting.sources + 1)
    ]
    for i, window in enumerate(setting.windows):
        add, close, end = ADDS + i, CLOSES + i, ENDS + i
        inputs = tuple(FILTER if filtered and source == 1 else source for source, _ in window.feeds)
        streams += [plans.Stream(add, f"W{i}.add", "json"), plans.Stream(end, f"W{i}", "json")]
        sources.append(plans.Source(add, f"W{i}.add", add, window=add))
        declared_ns = setting.declared_ns or setting.add_ns
        operators += [
            plans.Operator(add, f"W{i}.add", "aggregate", inputs, add, declared_ns, window=replace(window, source=add)),
            plans.Operator(close, f"W{i}", "close", (add,), end, setting.close_ns, closes=add),
        ]
        units += [
            plans.Unit(add, (add,), sub_ns, 3600 * SECOND),
            plans.Unit(close, (close,), SECOND, 3600 * SECOND, (end,)),
        ]
    outputs = tuple(plans.Output(ENDS + i, f"out{i}", ENDS + i, 3600 * SECOND) for i in range(count))
    return plans.Plan(
        query="q", node="a", index=0, hash=1, epoch=1, policy=setting.order, largest_batch=setting.batch,
        streams=tuple(streams), sources=tuple(sources), operators=tuple(operators), units=tuple(units), outputs=outputs,
        sheddings=_sheddings(setting),
    )  # fmt: skip


def _sheddings(setting: Setting) -> tuple[plans.Shedding, ...]:
    if setting.policy is None:
        return ()
    adds = [ADDS + i for i in range(len(setting.windows))]
    rows = [[each] for each in adds] if setting.apart else [adds]
    return tuple(
        plans.Shedding(
            setting.policy,
            (FILTER,) if setting.filter_ns else tuple(row),
            tuple(row),
            setting.most,
            setting.target_ns,
            setting.period_ns,
            (FILTER, *row) if setting.filter_ns else tuple(row),
        )
        for row in rows
    )


def _kept(payload: Any) -> Any:
    return payload if payload[2] else None


def _joined(inputs: Any, sides: Any, at: Any) -> Any:
    return inputs[0]


class Node:
    """Plays offers and heartbeats through an engine; what runs takes its cost."""

    def __init__(self, setting: Setting, plan: plans.Plan | None = None) -> None:
        self.setting, self.now_ns = setting, FROM_NS
        facts = MemoryFacts()
        engine = Engine(named(setting.order, setting.batch), facts, self, Settings(EPOCH))
        self.costs = {FILTER: setting.filter_ns}
        made = plan_of(setting) if plan is None else plan
        calls: dict[int, Any] = {each.id: (_joined if each.join else _kept, not each.join) for each in made.operators}
        for i, window in enumerate(setting.windows):
            collecting = Collecting(Users(Names(), len(window.feeds)))
            calls[ADDS + i], calls[CLOSES + i] = (collecting, False), (result, True)
            self.costs[ADDS + i], self.costs[CLOSES + i] = setting.add_ns, setting.close_ns
        self.run = Run(engine, engine.load(made, calls), facts)
        self.engine = engine
        self.executor = Executor(engine, lambda: self.now_ns, self._spend)
        self.executor.drain = self._drain
        self.numbers = dict.fromkeys(range(1, setting.sources + 1), 0)
        self._pending: list[tuple[int, int, Offer | int]] = []

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        """Nothing leaves."""
        raise AssertionError

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        """A window's result."""
        names = [(each[0], each[1]) for each in payload["result"]]
        self.run.given.append(Given(output.id - ENDS, payload["window"], names, at_ns))

    def play(self, offers: Sequence[Offer]) -> Run:
        """All offers, in their order; heartbeats until the last one is old; then all that is still queued."""
        setting = self.setting
        events: list[tuple[int, int, Offer | int]] = [(each.at_ns, 1, each) for each in offers]
        longest = max(window.length for window in setting.windows if window.kind != "count") if any(
            window.kind != "count" for window in setting.windows
        ) else SECOND  # fmt: skip
        until_ns = max((each.at_ns for each in offers), default=FROM_NS) + setting.max_age_ns + longest + 2 * SECOND
        for at_ns in range(FROM_NS, until_ns, setting.beat_ns):
            events += [(at_ns, 0, source) for source in self.numbers]
        self._pending = sorted(events, key=lambda event: event[:2], reverse=True)
        job: Job | None = None
        while True:
            if job is None:
                self._drain(self.now_ns)
                job = self.engine.next(self.now_ns)
            if job is not None:
                job = self.executor.run(job)
            elif self._pending:
                self.now_ns = max(self.now_ns, self._pending[-1][0])
            else:
                break
        while (due_ns := self.engine.due_ns) is not None:
            self.engine.expire(max(due_ns, self.now_ns))
            while (job := self.engine.next(max(due_ns, self.now_ns))) is not None:
                self.executor.run(job)
        self.run.ended_ns = self.now_ns
        return self.run

    def _spend(self, step: Step, lineage: Lineage, raised: bool) -> None:
        self.now_ns += self.costs[step.operator_id]
        self.run.busy_ns += self.costs[step.operator_id]

    def _drain(self, until_ns: int) -> None:
        pending = self._pending
        while pending and pending[-1][0] <= until_ns:
            at_ns, _, what = pending.pop()
            due_ns = self.engine.due_ns
            if due_ns is not None and due_ns <= at_ns:
                self.engine.expire(at_ns)
            if isinstance(what, int):
                upto = self.numbers[what]
                origin_ns = at_ns - self.setting.max_age_ns
                self.engine.heartbeat(at_ns, self.run.loaded, what, EPOCH, upto, 0, origin_ns)
            else:
                self._admit(at_ns, what)
        self.executor.due_ns = pending[-1][0] if pending else 1 << 62

    def _admit(self, at_ns: int, offer: Offer) -> None:
        source, origin_ns = offer.source, offer.at_ns - offer.age_ns
        self.numbers[source] = number = self.numbers[source] + 1
        number -= 1
        self.run.origins[source, number] = origin_ns, offer.passes or not self.setting.filter_ns or source != 1
        lineage = (source, EPOCH, number, 0, origin_ns, origin_ns)
        self.engine.admit(at_ns, self.run.loaded.source_routes[source], lineage, (source, number, offer.passes), 0)
        for shedder in self.run.loaded.shedders:
            assert isinstance(shedder, Shedder)
            shedder.backlog.look()
            self.run.peak = max(self.run.peak, shedder.backlog.load.queued)


def exact(setting: Setting, run: Run, operator: int) -> dict[int, list[tuple[int, int]]]:
    """What the windows of an operator have to hold, from what was admitted alone."""
    window = setting.windows[operator]
    grid, fed = grid_of(window), {source for source, _ in window.feeds}
    found, youngest = dict[int, list[tuple[int, int]]](), dict.fromkeys(fed, 0)
    for name, (origin_ns, passes) in sorted(run.origins.items()):
        source, number = name
        if source not in fed:
            continue
        late = window.kind != "count" and origin_ns < youngest[source] - window.lateness_ns
        youngest[source] = max(youngest[source], origin_ns)
        if passes and not late:
            for each in grid.of(number if window.kind == "count" else origin_ns):
                found.setdefault(each, []).append(name)
    return found


def check(setting: Setting, run: Run) -> int:
    """Every result is exact, every tuple ends once, queues are empty; how many windows were given."""
    engine = run.engine
    if setting.policy not in (None, "front") and not setting.filter_ns:  # `front` sheds once per period
        assert run.peak <= setting.most, "behind a filter there are sources that no shedder stands before"
    assert not engine.queued and engine.most_urgent() is None
    exacts = [exact(setting, run, operator) for operator in range(len(setting.windows))]
    for given in run.given:
        assert given.names == exacts[given.operator].get(given.window, []), given
    assert len({(each.operator, each.window) for each in run.given}) == len(run.given)
    ended: dict[tuple[int, int, int], int] = {}  # by unit that collects, source and number
    shed: dict[int, int] = {}
    fed = [(ADDS + i, source) for i, window in enumerate(setting.windows) for source, _ in window.feeds]
    for record in run.records:
        if isinstance(record, Shed):
            shed[record.policy] = shed.get(record.policy, 0) + 1
        assert record.kind != LOST
        units = [record.ref]
        gone = record.kind == SHED or (isinstance(record, Ran) and not per_exit(record.outputs, 1)[0])
        if record.ref == FILTER and record.kind in (SHED, RAN):
            units = [unit for unit, source in fed if source == 1] if gone else []
        if record.kind in (RAN, SHED) and record.source < FILTER:
            for unit in units:
                key = unit, record.source, record.seq
                ended[key] = ended.get(key, 0) + 1
    expected = {(unit, *name): 1 for unit, source in fed for name in run.origins if name[0] == source}
    assert ended == expected
    assert engine.ledger.shed_by == {policy: n for policy, n in shed.items() if n}
    assert sum(record.kind == ADMITTED for record in run.records if record.source < FILTER) == len(run.origins)
    return len(run.given)


def steady(load: float, cost_ns: int, seconds: int, seed: int) -> list[Offer]:
    """Poisson arrivals."""
    random, at_ns, offers = Random(seed), FROM_NS, list[Offer]()
    while at_ns < FROM_NS + seconds * SECOND:
        at_ns += int(random.expovariate(load / cost_ns))
        offers.append(Offer(at_ns))
    return offers


def share(
    load: float, policy: str, seconds: int = 600, seed: int = 1, cost_ns: int = 8 * MS,
    windows: tuple[int, int, int] = (5, 4, 5), **others: Any,
) -> tuple[float, float, Run]:  # fmt: skip
    """Of windows (Z, H, L in s) of one source: the part that is given in time, and f*. And the run. Each is exact."""
    length, hop, latency = (each * SECOND for each in windows)
    window = plans.Window("time", length, hop, 0, ((1, 0),), useful_ns=latency, wait_ns=SECOND)
    setting = Setting((window,), policy, cost_ns, **others)
    run = Node(setting).play(steady(load, cost_ns, seconds, seed))
    grid = Grid(length, hop)
    all_ = range(grid.from_(FROM_NS + SECOND), grid.first(FROM_NS + seconds * SECOND))
    timely = sum(each.window in all_ and each.at_ns <= grid.end(each.window) + latency for each in run.given)
    check(setting, run)
    best = best_share(Fraction(load).limit_denominator(1000), *(Fraction(each) for each in windows))
    return timely / len(all_), float(best), run


def main() -> None:
    """Prints shares and how busy the node was, by load and shedder."""
    for load in (0.9, 1.1, 1.3, 1.6):
        for policy in POLICIES:
            part, best, run = share(load, policy, 600, int(sys.argv[1]) if len(sys.argv) > 1 else 1)
            busy = run.busy_ns / (run.ended_ns - FROM_NS)
            print(f"load {load}  {policy:12}  in time {part:.3f}  f* {best:.3f}  busy {busy:.3f}")


if __name__ == "__main__":
    main()
