"""A result that several units, joins, outputs and links take: one object, kept until the last of them has had it; and
what happens where one of them changes it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import StringValue

from node_agent.client.client import Admitted, Source
from node_agent.core import plan as core
from node_agent.core.engine.engine import Engine
from node_agent.core.facts import MemoryFacts
from node_agent.core.plan import Parameters
from node_agent.core.policies import POLICIES, policy
from node_agent.core.shedding.memory_limit import JOB_BYTES
from node_agent.operators.mutation_check import ChangedError
from node_agent.operators.registry import Registry
from node_agent.runtime.executor import Executor
from node_agent.runtime.in_process import in_process
from node_agent.runtime.links.peer_link import TUPLE_BYTES
from protos import records
from tests.node_agent.core.simulated.shared_node import FIRST, Box, Graph, Play
from tests.node_agent.live import Agent, chain_plan, spooled, store
from tests.sentences import Wording

SAID = Wording("operators", "changed values")

FAR = 10**6


class Value(dict[str, Any]):
    """JSON that can be referred to weakly."""


# Operator 1 is shared by three queries, one of which joins it with another branch; operator 6 runs after all of them.
GRAPH = Graph(
    (
        Box((1,), 2, sub_ns=8),
        Box((FIRST + 1,), 2, (20,), sub_ns=12),
        Box((FIRST + 1,), 2, (FAR,), sub_ns=92),
        Box((1,), 2, sub_ns=200),
        Box((FIRST + 1, FIRST + 4), 2, (FAR,), sub_ns=300, join=True),
        Box((2,), 2, (2 * FAR,), sub_ns=900),
    )
)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_result_is_kept_until_the_last_query_has_taken_it(name: str) -> None:
    """The object that every consumer gets is the one that operator 1 made, it lives while one of them waits, and it is
    gone before anything else runs."""
    made: list[weakref.ref[Value]] = []
    taken: dict[int, bool] = {}

    def make(unit: int, value: Any) -> Any:
        if unit == 1:
            result = Value(lane=1)
            made.append(weakref.ref(result))
            return result
        if unit in (2, 3, 5):
            mine = value[0] if unit == 5 else value
            taken[unit] = mine is made[0]()
        if unit == 6:
            taken[unit] = made[0]() is None
        return None

    found = Play(GRAPH, policy(name, parameters=Parameters(phi_ns=1)), make)
    found.admit(1, 1, 0, value={})
    found.go(0)
    assert made[0]() is None
    found.admit(2, 2, 200)
    found.go(200)
    assert taken == {2: True, 3: True, 5: True, 6: True}


def executor(graph: Graph, calls: dict[int, Callable[[Any], Any]], name: str) -> tuple[Executor, Play]:
    """The live loop's executor, with these operators; the rest hands on."""
    driver = Play(graph, policy(name))
    engine = Engine(policy(name), MemoryFacts(), driver)
    same: Callable[[Any], Any] = lambda value: value  # noqa: E731
    driver.engine = engine
    driver.loaded = engine.load(graph.plan(), {i: (calls.get(i, same), True) for i in range(1, len(graph.boxes) + 1)})
    clock = iter(range(1, 10**6))
    return Executor(engine, lambda: next(clock)), driver


@pytest.mark.parametrize("name", ["edf", "edf-e2e", "edf-op", "slack", "bts"])
def test_the_executor_keeps_nothing_of_an_instance_that_has_ended(name: str) -> None:
    graph = Graph((Box((1,), 1), Box((FIRST + 1,), 1, (FAR,), sub_ns=9), Box((FIRST + 1,), 1, (2 * FAR,), sub_ns=99)))
    made: list[weakref.ref[Value]] = []
    alive: list[bool] = []

    def first(_: Any) -> Value:
        alive.extend(each() is not None for each in made)
        result = Value()
        made.append(weakref.ref(result))
        return result

    def last(value: Any) -> None:
        assert value is made[-1]()

    run, driver = executor(graph, {1: first, 2: last, 3: last}, name)
    for seq in (1, 2, 3):
        driver.admit(1, seq, 0, value={})
        job = run.engine.next(0)
        while job is not None:
            job = run.run(job)
    assert alive == [False, False, False] and made[-1]() is None


def test_what_was_sent_is_not_kept_by_who_sent_it(tmp_path: Path) -> None:
    """The encoding is kept for the links of one result, and no longer."""
    plan = core.Plan(
        "q", "a", 0, 1 << 60, 1, "edf", 1,
        (core.Stream(1, "in", "json", False, FAR), core.Stream(2, "O1", "json", False, FAR)),
        (core.Source(1, "in", 1),), (core.Operator(1, "O1", "pass", (1,), 2, 0),),
        (core.Unit(1, (1,), FAR, FAR, (2,)),),
    )  # fmt: skip
    away = replace(plan, hash=2 << 60, epoch=2, sends=((2, 1), (2, 2)), peers=(core.Peer(1, "b"), core.Peer(2, "c")))
    with in_process(plan, tmp_path) as runtime:
        plan_hash = f"{away.hash:016x}".ljust(64, "0")
        deployed = runtime.plans.load(away, plan_hash)
        runtime.add_plan(deployed, ((1, "b", "127.0.0.1:1"), (2, "c", "127.0.0.1:1")))
        runtime.plans.commit(plan_hash)
        value = Value(speed=3)
        kept = weakref.ref(value)
        deployed.engine_slot.engine.admit(1, deployed.loaded.source_routes[1], (1, 1, 1, 0, 1, 1), value, 0)
        del value
        while runtime.step(wait=False):
            pass
        assert kept() is None
        data = len(runtime.outbox.links["b"].sender._waiting[0][0])
        assert [link.sender.held_bytes for link in runtime.outbox.links.values()] == [data, data]  # once per link
        assert runtime.backpressure.held_bytes == 2 * (data + TUPLE_BYTES)


def test_a_link_resends_and_a_node_drains_for_the_last_query(tmp_path: Path) -> None:
    """Of a stream that leads to outputs after 1 ms and after 8 s: it is given up 8 s after its origin, and a node that
    drains waits for so long, and a second, for what peers may still send."""
    near, far = 10**6, 8 * 10**9
    plan = core.Plan(
        "q", "a", 0, 1 << 60, 1, "edf", 1,
        (core.Stream(1, "in", "json", False, near, (2,), far), core.Stream(2, "O1", "json", False, near, (), far)),
        (core.Source(1, "in", 1),), (core.Operator(1, "O1", "pass", (1,), 2, 0),),
        (core.Unit(1, (1,), FAR, near, (2,), last_deadline_ns=far),),
    )  # fmt: skip
    away = replace(plan, hash=2 << 60, epoch=2, sends=((2, 1),), peers=(core.Peer(1, "b"), core.Peer(2, "c")))
    with in_process(plan, tmp_path) as runtime:
        plan_hash = f"{away.hash:016x}".ljust(64, "0")
        deployed = runtime.plans.load(away, plan_hash)
        runtime.add_plan(deployed, ((1, "b", "127.0.0.1:1"),))
        runtime.plans.commit(plan_hash)
        origin_ns = 1 << 61  # later than any clock here: nothing is late yet
        deployed.engine_slot.engine.admit(
            1, deployed.loaded.source_routes[1], (1, 1, 1, 0, origin_ns, origin_ns + 5), {}, 0
        )
        while runtime.step(wait=False):
            pass
        sender = runtime.outbox.links["b"].sender
        assert (len(sender), sender.due_ns()) == (1, origin_ns + 5 + far + 1), (
            "the first instant at which it is too late"
        )
        assert deployed.quiet_ns() == far + 10**9


def test_queued_bytes_count_a_result_once_for_each_task_that_waits_for_it(tmp_path: Path) -> None:
    """An estimate on the safe side: the object is there once, and three instances hold it."""
    plan = core.Plan(
        "q", "a", 0, 1 << 60, 1, "edf", 1,
        (core.Stream(1, "in", "json", False, FAR), *(core.Stream(i, f"O{i}", "json", False, FAR) for i in (2, 3, 4))),
        (core.Source(1, "in", 1),),
        tuple(core.Operator(i, f"O{i}", "pass", (1,), i, 0) for i in (2, 3, 4)),
        tuple(core.Unit(i, (i,), FAR, FAR, ()) for i in (2, 3, 4)),
    )  # fmt: skip
    with in_process(plan, tmp_path) as runtime:
        (deployed,) = runtime.plans.by_hash.values()
        assert runtime.backpressure.queue_bytes == 0
        deployed.engine_slot.engine.admit(1, deployed.loaded.source_routes[1], (1, 1, 1, 0, 1, 1), "x" * 64, 64)
        assert runtime.backpressure.ready == 3
        assert runtime.backpressure.queue_bytes == 3 * (
            JOB_BYTES + 64
        )  # the mean before anything has arrived is 64 bytes


# -- operators that change what others read

OPERATORS = '''
from node_agent.sdk import Many, operator

@operator("test.spoils")
class Spoils:
    def __call__(self, value):
        value["seen"] = True
        return value

@operator("test.table")
class Table:
    """Gives out its own state."""
    def __init__(self):
        self.table = {}
    def __call__(self, value):
        self.table[str(len(self.table))] = value["n"]
        return self.table

@operator("test.beside", side={"other": "json"})
class Beside:
    def __call__(self, value, *, other):
        other.clear()
        return {}

@operator("test.both", inputs={"one": "json", "two": "json"})
def both(one, two):
    two["n"] += 1
    return one

@operator("test.code", inputs={"code": "any"})
def code(code):
    code.value += "2"
    return None

@operator("test.good")
class Good:
    """Keeps state, gives new values; several of them."""
    def __init__(self):
        self.seen = []
    def __call__(self, value):
        self.seen.append(value)
        return Many({**value, "count": len(self.seen)}, value)
'''


def registry(folder: Path, checks: bool) -> Registry:
    """With the operators above."""
    file = folder / "spoiling.py"
    file.write_text(OPERATORS)
    return Registry([file], checks=checks)


def test_nothing_prevents_an_operator_from_changing_its_input_for_the_other_queries(tmp_path: Path) -> None:
    """Against the rule of docs/how_to/operators.md: the near operator changes the object that the far one gets."""
    spoils = registry(tmp_path, checks=False).make("test.spoils").call
    graph = Graph((Box((1,), 1), Box((FIRST + 1,), 1, (20,), sub_ns=9), Box((FIRST + 1,), 1, (100,), sub_ns=99)))
    seen: list[Any] = []
    run, driver = executor(graph, {2: spoils, 3: seen.append}, "edf")
    driver.admit(1, 1, 0, value={"n": 1})
    job = run.engine.next(0)
    while job is not None:
        job = run.run(job)
    assert seen == [{"n": 1, "seen": True}]


def test_a_registry_that_checks_says_which_operator_did_it_and_loses_its_tuple(tmp_path: Path) -> None:
    spoils = registry(tmp_path, checks=True).make("test.spoils").call
    graph = Graph((Box((1,), 1), Box((FIRST + 1,), 1, (20,), sub_ns=9)))
    run, driver = executor(graph, {2: spoils}, "edf")
    said: list[str] = []
    run.failed = lambda step, error: said.append(str(error))
    driver.admit(1, 1, 0, value={"n": 1})
    job = run.engine.next(0)
    while job is not None:
        job = run.run(job)
    assert said == ["test.spoils changed its input, which others read as well: give a new value instead"]
    facts = run.engine.facts
    assert isinstance(facts, MemoryFacts)
    lost = [each for each in records.unpack_records(facts.data()) if isinstance(each, records.Lost)]
    assert [(each.unit, each.cause) for each in lost] == [(2, records.CAUSE_OPERATOR_ERROR)]


def test_inputs_sides_and_results_are_checked(tmp_path: Path) -> None:
    made = registry(tmp_path, checks=True)
    table = made.make("test.table").call
    table({"n": 1})
    with SAID.refuses("result_changed test.table", kind=ChangedError):
        table({"n": 2})
    with SAID.refuses("side_input_changed test.beside", kind=ChangedError):
        made.make("test.beside").call(({},), {"other": {"speed": 3}}, None)
    with SAID.refuses("input_changed test.both", kind=ChangedError):
        made.make("test.both").call(({"n": 1}, {"n": 2}), {}, None)
    with SAID.refuses("input_changed test.code", kind=ChangedError):
        made.make("test.code").call(StringValue(value="1"))


def test_who_changes_nothing_is_not_found_to(tmp_path: Path) -> None:
    made = registry(tmp_path, checks=True)
    good = made.make("test.good").call
    for n in range(3):
        assert good({"n": n}).values == ({"n": n, "count": n + 1}, {"n": n})
    handed = made.make("pass").call
    value = {"n": 1}
    assert handed(value) is value and handed(value) is value
    assert made.make("join", inputs=["a", "b"]).call(({"n": 1}, {"n": 2}), {}, None) == {"a": {"n": 1}, "b": {"n": 2}}


def test_an_agent_that_checks_operators_says_which_one_did_it(tmp_path: Path) -> None:
    registry(tmp_path, checks=False)  # writes the file
    store(tmp_path / "s", chain_plan(run="test.spoils"))
    with Agent(tmp_path / "s", "--operators", str(tmp_path / "spoiling.py"), "--check-operators") as agent:
        with Source(agent.data, "in") as source:
            assert isinstance(source.send({"n": 1}), Admitted)
        assert agent.stop() == 0
    lost = [record for record in spooled(agent.state) if isinstance(record, records.Lost)]
    assert [records.CAUSES[record.cause] for record in lost] == ["operator_error"]
    assert "test.spoils changed its input" in agent.log.read_text()
