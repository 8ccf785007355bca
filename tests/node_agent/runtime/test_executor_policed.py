"""Results beyond a declared selectivity, in every way that an instance can run; arrivals beyond their curve."""

from collections.abc import Callable
from typing import Any

import pytest

from node_agent.core import plan as plans
from node_agent.core.engine.engine import Engine
from node_agent.core.facts import MemoryFacts
from node_agent.core.policies import policy
from node_agent.runtime.executor import Executor
from node_agent.sdk import Many
from protos import records
from tests.node_agent.runtime.test_executor import Recorder
from tests.traces import Kind, of

Pairs = tuple[tuple[int, int], ...]


class Node:
    """Operators 1, 2, ... in one unit; the last one's results are delivered. at_most: by operator."""

    def __init__(
        self, at_most: dict[int, Pairs], *calls: Callable[[Any], Any], policy_name: str = "edf", batch: int = 1
    ) -> None:
        count = len(calls)
        plan = plans.Plan(
            query="q", node="a", index=0, hash=1, epoch=1, policy=policy_name, largest_batch=batch,
            streams=tuple(plans.Stream(i, f"s{i}", "json") for i in range(count + 1)),
            sources=(plans.Source(1, "in", 0),),
            operators=tuple(
                plans.Operator(i, f"O{i}", "x", (i - 1,), i, 1, at_most=at_most.get(i, ()))
                for i in range(1, count + 1)
            ),
            units=(plans.Unit(1, tuple(range(1, count + 1)), 10, 100, exits=(count,)),),
            outputs=(plans.Output(1, "out", count, 100),),
        )  # fmt: skip
        self.recorder, self.facts, self.now_ns = Recorder(), MemoryFacts(), 0
        self.engine = Engine(policy(policy_name, batch), self.facts, self.recorder)
        self.loaded = self.engine.load(plan, {number: (call, True) for number, call in enumerate(calls, 1)})
        self.executor = Executor(self.engine, self.clock)

    def clock(self) -> int:
        self.now_ns += 1
        return self.now_ns

    def run(self, *payloads: Any) -> list[Any]:
        """Admit them as one burst, run until nothing is ready; what was delivered."""
        for seq, payload in enumerate(payloads, 1):
            self.engine.admit(0, self.loaded.source_routes[1], (1, 0, seq, 0, 0, 0), payload, 0)
        job = self.engine.next(0)
        while job is not None:
            job = self.executor.run(job)
        return [payload for _, _, payload in self.recorder.delivered]

    def facts_of(self, kind: type[Kind]) -> list[Kind]:
        return of(kind, records.unpack_records(self.facts.data()))

    def shed(self) -> list[tuple[int, int, int, int]]:
        """(policy, seq, ordinal, operator) of each."""
        return [(each.policy, each.seq, each.ordinal, each.operator) for each in self.facts_of(records.Shed)]

    def surplus(self) -> list[int]:
        """What each instance says that was shed in it."""
        return [each.policed_results for each in self.facts_of(records.Ran)]


def same(value: Any) -> Any:
    return value


def twice(value: Any) -> Any:
    return Many(value, value)


def fragile(value: Any) -> Any:
    if value == "bad":
        raise ValueError
    return value


HALF: Pairs = ((1, 1), (2, 1))
SELECTIVITY = records.POLICY_SELECTIVITY
EVERY_WAY = [("edf", 1), ("edf", 3), ("edf-op", 1)]


@pytest.mark.parametrize(("policy_name", "batch"), EVERY_WAY)
def test_one_result_too_many_ends_within_its_unit(policy_name: str, batch: int) -> None:
    node = Node({1: HALF}, same, same, policy_name=policy_name, batch=batch)
    assert node.run(*"abcd") == ["a", "c"]
    assert node.shed() == [(SELECTIVITY, 2, 0, 1), (SELECTIVITY, 4, 0, 1)]
    assert sum(node.surplus()) == 2 and not node.facts_of(records.Lost)
    ended = [each for each in node.facts_of(records.Ran) if not each.unfinished]
    assert [records.per_exit(each.outputs, 1) for each in ended] == [(1,), (0,), (1,), (0,)]
    assert node.loaded.policed() == {"results.O1": 2}


@pytest.mark.parametrize(("policy_name", "batch"), EVERY_WAY)
def test_of_several_results_the_last_ones_are_shed(policy_name: str, batch: int) -> None:
    node = Node(
        {1: ((1, 1),), 2: ((1, 3), (2, 3))}, twice, lambda v: Many(v, v, v), policy_name=policy_name, batch=batch
    )
    assert node.run("a", "b") == ["a", "a", "a"]
    first = [(SELECTIVITY, seq, 2, 1) for seq in (1, 2)]
    then = [(SELECTIVITY, 2, 257 + i, 2) for i in range(3)]
    assert sorted(node.shed()) == sorted([*first, *then]) and sum(node.surplus()) == 5


def test_more_results_may_be_shed_in_one_instance_than_a_signed_half_word_holds() -> None:
    node = Node({2: ((1, 3), (200, 3))}, lambda v: Many(*[v] * 200), lambda v: Many(*[v] * 200))
    assert node.run("a") == ["a", "a", "a"] and node.surplus() == [40_000 - 3]
    (ran,) = node.facts_of(records.Ran)
    assert 0 <= ran.decision_ns <= node.now_ns and len(node.shed()) == 40_000 - 3


def test_an_operator_that_gives_nothing_or_fails_uses_up_an_input_all_the_same() -> None:
    node = Node({1: HALF}, lambda value: None if value == "no" else fragile(value))
    assert node.run("a", "no", "b", "bad", "c", "d") == ["a", "b", "c"]
    assert node.shed() == [(SELECTIVITY, 6, 0, 1)]


@pytest.mark.parametrize("batch", [1, 2])
def test_a_loss_after_a_shed_result_says_both(batch: int) -> None:
    node = Node({1: ((1, 2),)}, lambda value: Many(value, value, "more"), fragile, batch=batch)
    assert node.run("bad", "ok") == ["ok", "ok"]
    (lost,) = node.facts_of(records.Lost)
    assert (lost.cause, lost.policed_results) == (records.CAUSE_OPERATOR_ERROR, 1)
    assert len(node.shed()) == 2 and node.surplus() == [1]


def test_a_decision_is_still_to_be_read_beside_what_was_shed() -> None:
    node = Node({1: ((2, 1),)}, same)
    node.run("a", "b")
    taken = [each.decision_ns for each in node.facts_of(records.Ran)]
    assert node.surplus() == [0, 1] and all(0 <= each < 10 for each in taken)


def arrivals(joined: bool) -> tuple[plans.Plan, dict[int, Any]]:
    """A source to O1; with `joined` to O2 as well, and both to a join."""
    operators = [plans.Operator(1, "O1", "x", (1,), 2, 1)]
    units = [plans.Unit(1, (1,), 10, 100, (2,))]
    if joined:
        operators += [plans.Operator(2, "O2", "x", (1,), 3, 1), plans.Operator(3, "O3", "x", (2, 3), 4, 1, join=True)]
        units += [plans.Unit(2, (2,), 10, 100, (3,)), plans.Unit(3, (3,), 10, 100, (4,))]
    source = plans.Source(1, "in", 1, paces=(plans.Pace(2, 100, 0),))
    plan = plans.Plan(
        query="q", node="a", index=0, hash=1, epoch=1, policy="edf", largest_batch=1,
        streams=tuple(plans.Stream(i, f"s{i}", "json", marked=joined and i < 4) for i in range(1, 5)),
        sources=(source,), operators=tuple(operators), units=tuple(units),
        outputs=(plans.Output(1, "out", 4 if joined else 2, 100),),
    )  # fmt: skip
    calls: dict[int, Any] = {1: (same, True), 2: (same, True), 3: (lambda inputs, sides, at: inputs[0], False)}
    return plan, {operator.id: calls[operator.id] for operator in operators}


@pytest.mark.parametrize("joined", [False, True])
def test_a_tuple_beyond_the_declared_arrivals_is_admitted_and_goes_nowhere(joined: bool) -> None:
    facts, recorder = MemoryFacts(), Recorder()
    engine = Engine(policy("edf"), facts, recorder)
    plan, calls = arrivals(joined)
    loaded = engine.load(plan, calls)
    for seq, at_ns in enumerate((0, 0, 0, 99, 100), 1):
        engine.admit(at_ns, loaded.source_routes[1], (1, 0, seq, 0, at_ns, at_ns), seq, 0)
    job = engine.next(100)
    while job is not None:
        job = Executor(engine, lambda: 101).run(job)
    found = list(records.unpack_records(facts.data()))
    assert sum(isinstance(each, records.Admitted) for each in found) == 5
    shed = [
        (each.ref, each.at_ns, each.policy, each.seq, each.stream) for each in found if isinstance(each, records.Shed)
    ]
    assert shed == [(records.NO_REF, at, records.POLICY_ARRIVALS, seq, 1) for seq, at in ((3, 0), (4, 99))]
    assert [payload for _, _, payload in recorder.delivered] == [1, 2, 5]
    assert loaded.waiting == 0, "no branch has it, so nothing waits and no mark is needed"
    assert loaded.policed() == {"arrivals.in": 2}
