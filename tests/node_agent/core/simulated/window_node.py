"""One node with a window operator behind a filter: source 1 (and 2) -> F -> W.add, its windows -> W -> out."""

from dataclasses import replace
from typing import Any

from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine, Settings
from node_agent.core.facts import MemoryFacts
from node_agent.core.lineage import Lineage
from node_agent.core.model import CompiledPlan
from node_agent.core.policies import policy
from node_agent.core.windows.accumulator import Aggregate
from node_agent.core.windows.aggregates import Count, Together
from node_agent.core.windows.results import Collecting, result
from node_agent.runtime.executor import Executor
from protos import records
from tests.traces import Kind, of

WINDOWS = 9  # the source of windows
COUNT = Together({"n": (Count, None)})


class Values:
    """The values of a window's tuples."""

    def __init__(self) -> None:
        self.xs: list[Any] = []

    def add(self, source: int, payload: Any) -> None:
        self.xs.append(payload["x"])

    def result(self) -> dict[str, Any]:
        return {"xs": list(self.xs)}


class Names:
    """An aggregate that gives the values of its tuples."""

    def start(self) -> Values:
        return Values()


def window(**changes: Any) -> plans.Window:
    made = {"kind": "time", "length": 10, "hop": 10, "source": WINDOWS, "feeds": ((1, 0),), "wait_ns": 50, **changes}
    return plans.Window(**made)


def windowed(spec: plans.Window | None = None, joined: bool = False, **changes: Any) -> plans.Plan:
    """F is operator and unit 1, W.add 2, W 3; with a second source its own filter is 4. joined: H, 5, stands beside F,
    and J, 6, joins their results by lineage."""
    spec = spec or window()
    two = len(spec.feeds) > 1
    stream = plans.Stream
    streams = [
        stream(1, "a", "json", True, counted=True), stream(2, "F", "json", True, counted=True),
        stream(3, "W.add", "json"), stream(4, "W", "json"),
    ]  # fmt: skip
    sources = [plans.Source(1, "a", 1, beat_ns=5), plans.Source(spec.source, "W.add", 3, window=2)]
    operators = [
        plans.Operator(1, "F", "filter", (1,), 2, 1),
        plans.Operator(2, "W.add", "aggregate", (2, 6) if two else (2,), 3, 1, window=spec),
        plans.Operator(3, "W", "aggregate", (3,), 4, 1, closes=2),
    ]
    units = [
        plans.Unit(1, (1,), 10, 100, exits=(2,)), plans.Unit(2, (2,), 10, 100),
        plans.Unit(3, (3,), 10, 100, exits=(4,)),
    ]  # fmt: skip
    if two:
        streams += [
            stream(5, "b", "json", True, counted=True), stream(6, "G", "json", True, counted=True),
        ]  # fmt: skip
        sources.append(plans.Source(2, "b", 5, beat_ns=5))
        operators.append(plans.Operator(4, "G", "filter", (5,), 6, 1))
        units.append(plans.Unit(4, (4,), 10, 100, exits=(6,)))
    if joined:  # F and H, both of source 1, meet in J
        streams += [stream(7, "H", "json", True, counted=True), stream(8, "J", "json", True, counted=True)]
        operators[1] = replace(operators[1], inputs=(8, *operators[1].inputs[1:]))
        operators += [
            plans.Operator(5, "H", "filter", (1,), 7, 1), plans.Operator(6, "J", "join", (2, 7), 8, 1, join=True)
        ]  # fmt: skip
        units += [plans.Unit(5, (5,), 7, 100, exits=(7,)), plans.Unit(6, (6,), 10, 100, exits=(8,))]
    made = plans.Plan(
        query="q", node="n", index=0, hash=1, epoch=1, policy="edf", largest_batch=1, streams=tuple(streams),
        sources=tuple(sources), operators=tuple(operators), units=tuple(units),
        outputs=(plans.Output(1, "out", 4, 100),),
    )  # fmt: skip
    return replace(made, **changes)


def keep(payload: Any) -> Any:
    """The filter; a tuple may also say that it breaks it."""
    if payload.get("breaks"):
        raise ValueError("a tuple that breaks its operator")
    return payload if payload.get("passes", True) else None


def keep_too(payload: Any) -> Any:
    """The one beside it."""
    if payload.get("breaks_too"):
        raise ValueError("a tuple that breaks its operator")
    return payload if payload.get("passes_too", True) else None


def first_of(inputs: tuple[Any, ...], sides: Any, at: Any) -> Any:
    """The join."""
    return inputs[0]


class Node:
    """An engine with an executor on a clock that the test turns."""

    def __init__(
        self, plan: plans.Plan, aggregate: Aggregate | None = None, size: Any = None, name: str = "edf", batch: int = 1,
        settings: Settings | None = None,
    ) -> None:  # fmt: skip
        self.at_ns = 0
        self.facts = MemoryFacts()
        self.engine = Engine(policy(name, batch), self.facts, self, settings)
        self.executor = Executor(self.engine, lambda: self.at_ns)
        self.collecting = Collecting(aggregate or Names(), size)
        self.loaded = self.load(plan)
        self.delivered: list[tuple[int, Any]] = []
        self.sent: list[tuple[int, int, Lineage, Any]] = []

    def load(self, plan: plans.Plan) -> CompiledPlan:
        """Beside the others."""
        calls: dict[int, tuple[Any, bool]] = {}
        for operator in plan.operators:
            if operator.window is not None:
                calls[operator.id] = self.collecting, False
            else:
                call = keep_too if operator.name == "H" else first_of if operator.join else keep
                calls[operator.id] = (result if operator.closes else call), not operator.join
        return self.engine.load(plan, calls)

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        """The engine's command, kept."""
        self.sent.append((at_ns, peer, lineage, payload))

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        """The engine's command, kept."""
        self.delivered.append((at_ns, payload))

    def admit(
        self, at_ns: int, number: int, origin_ns: int | None = None, source: int = 1, epoch: int = 0,
        loaded: CompiledPlan | None = None, **payload: Any,
    ) -> "Node":  # fmt: skip
        """A tuple whose value is its number, unless it says another one. It waits until `run`."""
        self.at_ns = max(self.at_ns, at_ns)
        origin_ns = at_ns if origin_ns is None else origin_ns
        lineage = (source, epoch, number, 0, origin_ns, origin_ns)
        self.engine.admit(at_ns, (loaded or self.loaded).source_routes[source], lineage, {"x": number, **payload}, 0)
        return self

    def beat(
        self, at_ns: int, upto: int, origin_ns: int | None = None, source: int = 1, epoch: int = 0, first: int = 0,
        loaded: CompiledPlan | None = None,
    ) -> "Node":  # fmt: skip
        """A heartbeat."""
        self.at_ns = max(self.at_ns, at_ns)
        origin_ns = at_ns if origin_ns is None else origin_ns
        self.engine.heartbeat(at_ns, loaded or self.loaded, source, epoch, upto, first or upto, origin_ns)
        return self

    def run(self) -> "Node":
        """Everything that is ready, in no time."""
        job = self.engine.next(self.at_ns)
        while job is not None:
            job = self.executor.run(job)
        return self

    def expire(self, at_ns: int) -> "Node":
        """Time passes."""
        self.at_ns = max(self.at_ns, at_ns)
        self.engine.expire(at_ns)
        return self

    @property
    def results(self) -> list[Any]:
        """Delivered, without their instants."""
        return [payload for _, payload in self.delivered]

    def records(self, kind: type[Kind]) -> list[Kind]:
        """Facts of these kinds."""
        return of(kind, records.unpack_records(self.facts.data()))

    def told(self) -> list[tuple[str, int, int, int, str, int]]:
        """WINDOW facts: state, number, start, end, cause, tuples."""
        return [
            (
                records.WINDOW_STATES[each.state],
                each.seq,
                each.start,
                each.end,
                records.WINDOW_CAUSES[each.cause],
                each.tuples,
            )
            for each in self.records(records.Window)
        ]

    def ends(self) -> list[tuple[str, int]]:
        """What became of windows: (state, number), without those that only opened."""
        return [(state, number) for state, number, *_ in self.told() if state != "opened"]

    def shed(self) -> list[tuple[int, int, int]]:
        """SHED facts: source, number, policy."""
        return [(each.source, each.seq, each.policy) for each in self.records(records.Shed)]
