"""What one call of an operator yields, and how whole instances run: single values, Many, failures, batches, yields."""

from collections.abc import Callable
from typing import Any

import pytest

from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine
from node_agent.core.facts import MemoryFacts
from node_agent.core.lineage import Lineage
from node_agent.core.model import Calls, CompiledPlan
from node_agent.core.policies import policy
from node_agent.runtime.executor import Executor, OutputsError, results
from node_agent.sdk import At, Many
from protos import records
from tests.traces import Kind, of

ORIGIN: Lineage = (1, 0, 1, 0, 0, 0)


class Recorder:
    """Keeps what is delivered; nothing is sent."""

    def __init__(self) -> None:
        self.delivered: list[tuple[int, int, Any]] = []
        self.instants_ns: list[int] = []  # of what was delivered

    def send(self, at_ns: int, loaded: CompiledPlan, peer: int, stream: int, lineage: Lineage, payload: Any) -> None:
        raise AssertionError("nothing leaves this node")

    def deliver(self, at_ns: int, loaded: CompiledPlan, output: plans.Output, lineage: Lineage, payload: Any) -> None:
        self.delivered.append((output.id, lineage[3], payload))
        self.instants_ns.append(at_ns)


class Node:
    """One engine and one executor; each reading of the clock is one nanosecond later."""

    def __init__(self, *calls: Callable[..., Any], policy_name: str = "edf", batch: int = 1) -> None:
        count = len(calls)
        plan = plans.Plan(
            query="q", node="a", index=0, hash=1, epoch=1, policy=policy_name, largest_batch=batch,
            streams=tuple(plans.Stream(i, f"s{i}", "json") for i in range(count + 1)),
            sources=(plans.Source(1, "in", 0),),
            operators=tuple(plans.Operator(i, f"O{i}", "x", (i - 1,), i, 1) for i in range(1, count + 1)),
            units=(plans.Unit(1, tuple(range(1, count + 1)), 10, 100, exits=(1, count) if count > 1 else (1,)),),
            outputs=tuple(plans.Output(i, f"out{i}", i, 100) for i in {1, count}),
        )  # fmt: skip
        self.commands, self.facts, self.now_ns = Recorder(), MemoryFacts(), 0
        self.engine = Engine(policy(policy_name, batch), self.facts, self.commands)
        bound: Calls = {number: (call, True) for number, call in enumerate(calls, 1)}
        self.loaded = self.engine.load(plan, bound)
        self.errors: list[Exception] = []
        self.executor = Executor(self.engine, self.clock, failed=lambda _, error: self.errors.append(error))

    def clock(self) -> int:
        self.now_ns += 1
        return self.now_ns

    def run(self, *payloads: Any) -> list[tuple[int, int, Any]]:
        """Admit the payloads as one burst, run until nothing is ready; what was delivered."""
        for seq, payload in enumerate(payloads, 1):
            self.engine.admit(0, self.loaded.source_routes[1], (1, 0, seq, 0, 0, 0), payload, 0)
        job = self.engine.next(0)
        while job is not None:
            job = self.executor.run(job)
        return self.commands.delivered

    def facts_of(self, kind: type[Kind]) -> list[Kind]:
        return of(kind, records.unpack_records(self.facts.data()))


def test_ordinals_of_several_results_tell_paths_apart() -> None:
    first = results(ORIGIN, Many("a", "b"))
    assert [each[0][3] for each in first] == [1, 2]
    second = [lineage[3] for lineage, _ in results(first[1][0], Many("x", "y"))]
    assert second == [2 * 256 + 1, 2 * 256 + 2]
    assert results(ORIGIN, None) == [] and results(ORIGIN, Many()) == []
    with pytest.raises(OutputsError):
        results(ORIGIN, Many(*range(256)))
    with pytest.raises(OutputsError):
        results((1, 0, 1, 1 << 28, 0, 0), Many(1))


def test_a_chain_delivers_at_each_exit_when_that_operator_ends() -> None:
    node = Node(lambda x: x + 1, lambda x: x * 10)
    assert node.run(4) == [(1, 0, 5), (2, 0, 50)]
    ran = node.facts_of(records.Ran)
    outputs = node.facts_of(records.Output)
    assert outputs[0].at_ns < outputs[1].at_ns <= ran[0].end_ns
    assert records.per_exit(ran[0].outputs, 2) == (1, 1)


def test_many_runs_the_rest_of_the_chain_for_each_value() -> None:
    node = Node(lambda x: Many(x, x + 1, x + 2), lambda x: None if x == 5 else -x)
    assert node.run(4) == [(1, 1, 4), (1, 2, 5), (1, 3, 6), (2, 1, -4), (2, 3, -6)]
    (ran,) = node.facts_of(records.Ran)
    assert records.per_exit(ran.outputs, 2) == (3, 2)


def test_many_of_many_beyond_the_count_loses_the_tuple_only() -> None:
    node = Node(lambda x: Many(*range(x)), lambda _: Many(*range(20)))
    node.run(20, 2)
    assert [(each.seq, each.cause) for each in node.facts_of(records.Lost)] == [(1, records.CAUSE_ORDINALS)]
    assert [each.seq for each in node.facts_of(records.Ran)] == [2]


@pytest.mark.parametrize(("policy_name", "batch"), [("edf", 1), ("edf-op", 1), ("edf-e2e", 1), ("edf", 0)])
def test_an_operator_that_raises_costs_its_tuple_only(policy_name: str, batch: int) -> None:
    node = Node(lambda x: x, lambda x: 1 // x, policy_name=policy_name, batch=batch)
    delivered = node.run(1, 0, 1)
    assert [each for each in delivered if each[0] == 2] == [(2, 0, 1), (2, 0, 1)]
    (lost,) = node.facts_of(records.Lost)
    assert (lost.seq, lost.cause) == (2, records.CAUSE_OPERATOR_ERROR)
    assert isinstance(node.errors[0], ZeroDivisionError)
    ended = [each.seq for each in node.facts_of(records.Ran) if not each.unfinished]
    assert ended == [1, 3]


@pytest.mark.parametrize(("policy_name", "batch"), [("edf", 1), ("edf-op", 1), ("edf", 0)])
def test_an_operator_that_raises_is_told_to_have_run(policy_name: str, batch: int) -> None:
    node, spent = Node(lambda x: 1 // x, policy_name=policy_name, batch=batch), list[tuple[int, bool]]()
    node.executor.spend = lambda step, lineage, raised: spent.append((lineage[2], raised))
    node.run(1, 0, 1)
    assert spent == [(1, False), (2, True), (3, False)]


def test_a_batch_runs_operator_by_operator() -> None:
    order: list[tuple[str, int]] = []

    def note(name: str) -> Callable[[int], int]:
        return lambda x: order.append((name, x)) or x  # type: ignore[func-returns-value]

    Node(note("first"), note("second"), batch=0).run(1, 2)
    assert order == [("first", 1), ("first", 2), ("second", 1), ("second", 2)]


def test_what_follows_several_results_yields_as_one_instance() -> None:
    node = Node(lambda x: Many(x, x + 1), lambda x: x * 2, policy_name="edf-op")
    assert node.run(4) == [(1, 1, 4), (1, 2, 5), (2, 1, 8), (2, 2, 10)]
    assert [each.unfinished for each in node.facts_of(records.Ran)] == [True, False]


def test_an_operator_may_read_the_time_and_its_side_inputs() -> None:
    seen: list[tuple[tuple[Any, ...], dict[str, Any], At]] = []

    def look(inputs: tuple[Any, ...], sides: dict[str, Any], at: At) -> Any:
        seen.append((inputs, sides, at))
        return inputs[0]

    plan = plans.Plan(
        query="q", node="a", index=0, hash=1, epoch=1, policy="edf", largest_batch=1,
        streams=tuple(plans.Stream(i, f"s{i}", "json") for i in range(1, 4)),
        sources=(plans.Source(1, "in", 1), plans.Source(2, "state", 2)),
        operators=(plans.Operator(1, "O", "x", (1,), 3, 1, sides=(("ego", 2),)),),
        units=(plans.Unit(1, (1,), 5, 100, exits=(3,)),),
        outputs=(plans.Output(1, "out", 3, 100),),
    )  # fmt: skip
    engine = Engine(policy("edf"), MemoryFacts(), Recorder())
    loaded = engine.load(plan, {1: (look, False)})
    engine.admit(7, loaded.source_routes[2], (2, 0, 1, 0, 7, 7), "ego", 0)
    engine.admit(8, loaded.source_routes[1], (1, 0, 1, 0, 3, 4), "car", 0)
    job = engine.next(8)
    assert job is not None
    Executor(engine, lambda: 9).run(job)
    ((inputs, sides, at),) = seen
    assert (inputs, sides) == (("car",), {"ego": "ego"})
    assert (at.now_ns, at.origin_ns, at.deadline_ns) == (9, (3, 4), 103)


@pytest.mark.parametrize(("policy_name", "batch"), [("edf", 1), ("edf-op", 1), ("edf", 0)])
def test_the_time_that_an_operator_reads_is_the_start_of_its_instance(policy_name: str, batch: int) -> None:
    """In a batch, and behind several results of one input, as in virtual time."""
    read: list[int] = []

    def look(inputs: tuple[Any, ...], sides: dict[str, Any], at: At) -> Any:
        read.append(at.now_ns)
        return inputs[0]

    node = Node(lambda x: Many(x, x), str, policy_name=policy_name, batch=batch)
    (second,) = (step for unit in node.loaded.units for step in unit.chain if step.operator_id == 2)
    second.call, second.plain = look, False
    node.run(1)
    starts = [each.start_ns for each in node.facts_of(records.Ran) if not each.unfinished]
    assert read == starts * 2


def test_several_results_beyond_the_limit_of_the_queues_lose_the_tuple_only() -> None:
    node = Node(lambda x: Many(*range(x)), lambda x: x)
    node.engine.limit_to(9)
    node.run(12, 3)
    assert [(each.seq, each.cause) for each in node.facts_of(records.Lost)] == [(1, records.CAUSE_QUEUE_FULL)]
    assert [each.seq for each in node.facts_of(records.Ran)] == [2]


@pytest.mark.parametrize("result", [1, Many(1)], ids=["one", "many"])
@pytest.mark.parametrize(("policy_name", "batch"), [("edf", 1), ("edf-op", 1), ("edf", 0)])
def test_what_an_operator_triggers_is_released_after_it_has_run(policy_name: str, batch: int, result: Any) -> None:
    ran_ns: list[int] = []

    def run(payload: Any) -> Any:
        ran_ns.append(node.now_ns)
        return result

    node = Node(run, run, policy_name=policy_name, batch=batch)
    assert len(node.run(0)) == 2
    first_ns, second_ns = node.commands.instants_ns
    assert ran_ns[0] < first_ns and ran_ns[1] < second_ns
