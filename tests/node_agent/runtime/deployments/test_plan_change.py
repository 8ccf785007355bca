"""A running node gets another plan: what is handed over, in which steps it is loaded, and what holds nothing up."""

import gc
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from node_agent.core import plan as core
from node_agent.core.incremental import Incremental, finish
from node_agent.core.lineage import Lineage
from node_agent.host import ipc
from node_agent.host.files import plan_files
from node_agent.host.files.state_dir import StateDir
from node_agent.host.network import SocketListener
from node_agent.host.settings import Settings
from node_agent.host.trace_ring import Ring
from node_agent.operators.registry import Registry
from node_agent.runtime.background import SLICE_NS, WAIT_NS, BackgroundWork
from node_agent.runtime.deployments.deployed_plan import COMMITTED, DRAINING, NONE, PREPARED
from node_agent.runtime.in_process import in_process, queue
from node_agent.runtime.links.outbox import Outbox
from node_agent.runtime.loop import Runtime
from node_agent.runtime.process import Process
from node_agent.wire.plan_message import core_plan
from protos import plan_pb2, records
from tests.node_agent.live import chain_plan

SECOND = 10**9
OPERATORS = '''
from node_agent.sdk import operator

made = []

@operator("t.count", inputs={"in": "json"}, output="json")
class Count:
    """How many it has seen."""

    def __init__(self, start: int = 0) -> None:
        made.append(self)
        self.n = start

    def __call__(self, value):
        self.n += 1
        if value == "raise":
            raise ValueError("told to")
        return self.n

@operator("t.broken", inputs={"in": "json"}, output="json")
class Broken:
    """Cannot be made."""

    def __init__(self) -> None:
        raise OSError("no model here")

    def __call__(self, value):
        return value

@operator("t.leaves", inputs={"in": "json"}, output="json")
class Leaves(Broken):
    """Wants to end the process."""

    def __init__(self) -> None:
        raise SystemExit("no model here")
'''


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    (tmp_path / "operators.py").write_text(OPERATORS)
    return Registry([tmp_path / "operators.py"])


def _made(registry: Registry) -> int:
    """How many counters there have been."""
    import sys

    return len(sys.modules[registry.signature("t.count").implementation.__module__].made)


def _count_plan(**changes: Any) -> plan_pb2.LocalPlan:
    return chain_plan(run="t.count", **changes)


def _longer(run: str = "t.count") -> plan_pb2.LocalPlan:
    """The same, and a second operator behind the first one."""
    plan = _count_plan(query="q+r")
    plan.streams.add(id=3, name="O2", codec="json", deadline_ns=10**9)
    plan.operators.add(id=2, name="O2", run=run, inputs=[2], output=3, hang_ns=10**9)
    plan.units.add(id=2, operators=[2], sub_deadline_ns=10**8, deadline_ns=10**9, exits=[3])
    plan.outputs.add(id=2, name="second", stream=3, deadline_ns=10**9)
    return plan


class Delivered:
    """The engines' commands; results stay here."""

    def __init__(self, outbox: Outbox, results: list[Any]) -> None:
        self.send, self._results = outbox.send, results

    def deliver(self, at_ns: int, loaded: Any, output: core.Output, lineage: Lineage, payload: object) -> None:
        self._results.append((output.name, payload))


class Node:
    """A runtime in the test, with plans in files."""

    def __init__(self, runtime: Runtime, folder: Path) -> None:
        self.runtime, self.folder, self.results = runtime, folder, list[Any]()
        runtime.plans.commands = commands = Delivered(runtime.outbox, self.results)
        for engine_slot in runtime.plans.engine_slots:
            engine_slot.engine._commands = commands

    def write(self, message: plan_pb2.LocalPlan, number: int) -> str:
        hash_ = f"{number:02x}" * 32
        plan_files.local_path(self.folder, hash_).write_bytes(message.SerializeToString())
        return hash_

    def work(self, hash_: str, epoch: int, done: list[tuple[bool, str]]) -> Incremental[None]:
        answer = yield from self.runtime.plans.preparing(self.folder, hash_, epoch)
        if answer[0]:
            assert self.runtime.add_plan(self.runtime.plans.by_hash[hash_], ()) == ""
        done.append(answer)

    def prepare(self, message: plan_pb2.LocalPlan, number: int) -> str:
        """At once."""
        hash_, done = self.write(message, number), list[tuple[bool, str]]()
        finish(self.work(hash_, number, done))
        assert done == [(True, "")]
        return hash_

    def change(self, message: plan_pb2.LocalPlan, number: int) -> str:
        hash_ = self.prepare(message, number)
        assert self.runtime.plans.commit(hash_) == (True, "")
        return hash_

    def run(self) -> None:
        while self.runtime.step(wait=False):
            pass

    def admit(self, hash_: str, *values: Any) -> None:
        deployed = self.runtime.plans.by_hash[hash_]
        for value in values:
            deployed.engine_slot.engine.admit(1, deployed.loaded.source_routes[1], (1, 1, 1, 0, 1, 1), value, 0)

    def records(self) -> list[records.Record]:
        self.runtime.facts.publish()
        return list(records.unpack_records(self.runtime.facts.ring.take(1 << 24)))


@contextmanager
def _node(folder: Path, registry: Registry, first: plan_pb2.LocalPlan | None = None) -> Iterator[Node]:
    plan = core_plan(first or _count_plan(), 1 << 60, 1)
    with in_process(plan, folder / "ring", registry) as runtime:
        yield Node(runtime, folder)


FIRST = f"{1 << 60:016x}".ljust(64, "0")


def test_a_counter_counts_on_and_no_tuple_is_lost(tmp_path: Path, registry: Registry) -> None:
    with _node(tmp_path, registry) as node:
        queue(node.runtime, 100)
        new = node.change(_longer(), 2)
        assert node.runtime.plans.state(FIRST) == DRAINING and node.runtime.plans.state(new) == COMMITTED
        queue(node.runtime, 50)
        node.run()
        assert [n for name, n in node.results if name == "out"] == list(range(1, 151))
        assert [n for name, n in node.results if name == "second"] == list(range(1, 51))
        assert _made(registry) == 2, "what is handed over is not made a second time"
        node.runtime.tick(10**15)
        assert list(node.runtime.plans.by_hash) == [new], "the old plan has drained and is gone"
        queue(node.runtime, 1)
        node.run()
        assert node.results[-2:] == [("out", 151), ("second", 51)]


def test_fresh_starts_anew(tmp_path: Path, registry: Registry) -> None:
    with _node(tmp_path, registry) as node:
        queue(node.runtime, 3)
        node.run()
        message = _count_plan()
        message.operators[0].fresh = True
        node.change(message, 2)
        queue(node.runtime, 2)
        node.run()
        assert [n for _, n in node.results] == [1, 2, 3, 1, 2]


def test_an_aborted_plan_leaves_the_instance_alone(tmp_path: Path, registry: Registry) -> None:
    with _node(tmp_path, registry) as node:
        queue(node.runtime, 3)
        new = node.prepare(_longer(), 2)
        assert node.runtime.plans.abort(new) == (True, "")
        node.run()
        queue(node.runtime, 1)
        node.run()
        assert [n for _, n in node.results] == [1, 2, 3, 4]


def test_an_error_under_one_plan_leaves_the_instance_to_both(tmp_path: Path, registry: Registry) -> None:
    with _node(tmp_path, registry) as node:
        node.admit(FIRST, 0, "raise", 0)
        new = node.change(_longer(), 2)
        node.admit(new, "raise", 0)
        node.run()
        assert [n for name, n in node.results if name == "out"] == [1, 3, 5]
        assert node.runtime.shared.counters["operator_errors"] == 2


def test_three_plans_in_a_row_have_one_instance(tmp_path: Path, registry: Registry) -> None:
    """The second is committed when the third is prepared already, as after a race of two coordinators."""
    with _node(tmp_path, registry) as node:
        second, third = node.prepare(_count_plan(), 2), node.prepare(_longer(), 3)
        for hash_ in (FIRST, second, third):
            node.runtime.plans.commit(hash_)
            node.admit(hash_, 0, 0)
        node.run()
        assert [n for name, n in node.results if name == "out"] == [1, 2, 3, 4, 5, 6]
        assert _made(registry) == 2


def test_instances_of_a_plan_that_was_stopped_meanwhile_go_on_where_they_were_promised(
    tmp_path: Path, registry: Registry
) -> None:
    with _node(tmp_path, registry) as node:
        queue(node.runtime, 3)
        node.run()
        new = node.prepare(_longer(), 2)
        node.runtime.plans.drain(FIRST)
        node.runtime.tick(10**15)
        assert node.runtime.plans.state(FIRST) == NONE
        assert node.runtime.plans.commit(new) == (True, "")
        queue(node.runtime, 1)
        node.run()
        assert ("out", 4) in node.results


def test_a_plan_that_is_deployed_after_a_stop_starts_anew(tmp_path: Path, registry: Registry) -> None:
    with _node(tmp_path, registry) as node:
        queue(node.runtime, 3)
        node.run()
        node.runtime.plans.drain(FIRST)
        node.change(_longer(), 2)
        queue(node.runtime, 1)
        node.run()
        assert node.results[-2:] == [("out", 1), ("second", 1)]


def test_a_commit_that_comes_late_runs_what_is_under_way_and_drains(tmp_path: Path, registry: Registry) -> None:
    with _node(tmp_path, registry) as node:
        late, newest = node.prepare(_count_plan(), 2), node.prepare(_longer(), 3)
        node.runtime.plans.commit(newest)
        node.runtime.plans.proven(node.runtime.plans.by_hash[late])
        assert [node.runtime.plans.state(each) for each in (late, newest)] == [DRAINING, COMMITTED]
        node.admit(late, 0)
        queue(node.runtime, 1)
        node.run()
        assert [n for name, n in node.results if name == "out"] == [1, 2]


def test_the_end_of_a_plan_keeps_a_second_away_from_the_commit_that_ended_it(
    tmp_path: Path, registry: Registry
) -> None:
    with _node(tmp_path, registry) as node:
        before = node.runtime.plans.by_hash[FIRST]
        node.change(_longer(), 2)
        at_ns = before.arrived_ns
        assert not node.runtime.plans.unload_drained(at_ns + SECOND - 1)
        assert node.runtime.plans.unload_drained(at_ns + SECOND) and FIRST not in node.runtime.plans.by_hash


def test_a_plan_with_nothing_for_this_node_ends_the_one_before(tmp_path: Path, registry: Registry) -> None:
    empty = plan_pb2.LocalPlan(
        version=1, query="r", node="a", policy=plan_pb2.Policy(name="edf", largest_batch=1), cpu=-1
    )
    with _node(tmp_path, registry) as node:
        queue(node.runtime, 5)
        new = node.change(empty, 2)
        node.run()
        node.runtime.tick(10**15)
        assert len(node.results) == 5 and list(node.runtime.plans.by_hash) == [new]
        assert node.runtime.plans.source("in") is None


# -- in slices


class Clock:
    """Goes on by what is done."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


def _steps(clock: Clock, *took_ns: int) -> Incremental[None]:
    for ns in took_ns:
        clock.ns += ns
        yield


def test_a_slice_ends_with_the_step_that_fills_it() -> None:
    clock, running = Clock(), [True]
    sliced = BackgroundWork(lambda: running[0], clock)
    sliced.add(_steps(clock, *[40_000] * 10, 5_000_000, 10))
    sliced.add(_steps(clock, 70_000))
    assert sliced.due_ns == WAIT_NS
    took = []
    while sliced.line:
        began_ns = clock.ns
        sliced.take()
        took.append(clock.ns - began_ns)
        assert sliced.due_ns == clock.ns + WAIT_NS
    assert took == [120_000] * 3 + [5_040_000, 10, 70_000] and SLICE_NS == 100_000
    assert sliced.longest_ns == 5_040_000
    running[0] = False
    sliced.add(_steps(clock, 9_000_000))
    sliced.take()
    assert sliced.longest_ns == 5_040_000, "nothing ran that could have been held up"


def test_what_is_asked_while_a_plan_is_loaded_comes_after_it() -> None:
    clock, order = Clock(), list[str]()

    def told(what: str, steps: int) -> Incremental[None]:
        yield from _steps(clock, *[SLICE_NS] * steps)
        order.append(what)

    sliced = BackgroundWork(lambda: True, clock)
    sliced.at_once(told("commit", 1))
    assert order == ["commit"]
    sliced.add(told("prepare", 3))
    sliced.at_once(told("abort", 0))
    assert order == ["commit"]
    while sliced.line:
        sliced.take()
    assert order == ["commit", "prepare", "abort"]


def test_a_busy_node_loads_a_slice_in_twenty_milliseconds_and_an_idle_one_at_once(
    tmp_path: Path, registry: Registry
) -> None:
    with _node(tmp_path, registry) as node:
        runtime, done = node.runtime, list[tuple[bool, str]]()
        runtime.sliced.add(node.work(node.write(_longer(), 2), 2, done))
        runtime.sliced.due_ns = 1 << 62  # not late yet
        queue(runtime, 1000)
        assert runtime.step(wait=False) and not done and len(node.results) == 1000
        while runtime.step(wait=False):
            pass
        assert done == [(True, "")] and not runtime.sliced.line
        runtime.sliced.add(node.work(node.write(_longer(), 3), 3, done))
        taken = 0
        while runtime.sliced.line:  # late every time
            queue(runtime, 10)
            runtime.sliced.due_ns = 0
            assert runtime.step(wait=False)
            taken += 1
        assert len(done) == 2 and len(node.results) == 1000 + 10 * taken
        assert runtime.sliced.longest_ns > 0


def test_what_cannot_be_loaded_leaves_no_trace(tmp_path: Path, registry: Registry) -> None:
    with _node(tmp_path, registry) as node:
        done: list[tuple[bool, str]] = []
        node.runtime.sliced.add(node.work(node.write(_longer("t.broken"), 2), 2, done))
        node.runtime.sliced.add(node.work("3" * 64, 3, done))
        other = _count_plan()
        other.policy.name = "ideal"
        node.runtime.sliced.add(node.work(node.write(other, 4), 4, done))
        node.runtime.sliced.add(node.work(node.write(_longer("t.leaves"), 5), 5, done))
        node.run()
        assert [accepted for accepted, _ in done] == [False] * 4
        assert "O2: t.leaves: SystemExit: no model here" in done[3][1]
        assert "O2: t.broken: OSError: no model here" in done[0][1]
        assert "cannot be read" in done[1][1] and "its decisions cost nothing" in done[2][1]
        plans = node.runtime.plans
        assert len(plans.by_hash) == len(plans.by_stamp) == len(plans.by_loaded) == len(plans.engine_slots) == 1
        assert len(plans.meter.costs) == 1 and not [
            each for each in node.records() if isinstance(each, records.Plan) and each.plan_epoch > 1
        ]


def test_the_plan_before_may_drain_and_go_while_its_successor_is_loaded(tmp_path: Path, registry: Registry) -> None:
    for stop_after in range(1, 40, 3):
        with _node(tmp_path, registry) as node:
            queue(node.runtime, 2)
            node.run()
            done: list[tuple[bool, str]] = []
            hash_ = node.write(_longer(), 2)
            work = node.work(hash_, 2, done)
            for _ in range(stop_after):
                next(work, None)
            node.runtime.plans.drain(FIRST)
            node.runtime.tick(10**15)
            finish(work)
            assert done == [(True, "")] and node.runtime.plans.commit(hash_) == (True, "")
            queue(node.runtime, 1)
            node.run()
            assert node.results[-1] in {("second", 1)} and node.results[-2][1] in {1, 3}


def test_loading_beside_a_running_plan_collects_no_garbage(tmp_path: Path, registry: Registry) -> None:
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            seen.append(1)

    with _node(tmp_path, registry) as node:
        gc.callbacks.append(note)
        try:
            node.change(_longer(), 2)
            assert not seen
        finally:
            gc.callbacks.remove(note)


# -- in the runtime process


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[[], Process]]:
    """start(): a runtime on the state directory `s` that has resumed what is there."""
    (tmp_path / "operators.py").write_text(OPERATORS)
    state, made = StateDir(tmp_path / "s"), list[Any]()
    state.plans.mkdir(parents=True, exist_ok=True)

    def start() -> Process:
        boot = 71 + len(made)
        ring = Ring.create(tmp_path / f"{boot}.ring", records.Header("a", 0, boot, "clock", 50, 1, 2))
        listener = socket.create_server(("127.0.0.1", 0))
        settings = Settings("a", ("127.0.0.1", 0), ("127.0.0.1", 0), state, clock="clock", rt=False)
        ends = ipc.Channel.pair(), ipc.Channel.pair()
        registry = Registry([tmp_path / "operators.py"])
        process = Process(settings, ends[0][0], ends[1][0], SocketListener(listener), ring, 1, registry, False)
        made.append((listener, ends, process))
        process.ends = ends  # type: ignore[attr-defined]
        return process

    yield start
    for listener, _, _ in made:
        listener.close()


def _asked(process: Process, *messages: ipc.Message) -> list[ipc.Message]:
    """What control hears when it has asked that, all at once."""
    control: ipc.Channel = process.ends[1][1]  # type: ignore[attr-defined]
    for message in messages:
        control.send(message)
    got: list[ipc.Message] = []
    while len(got) < len(messages):
        process.runtime.step(wait=False)
        got += [message for message, _ in control.receive()]
    return got


def test_answers_come_in_order_though_loading_takes_its_time(process: Callable[[], Process], tmp_path: Path) -> None:
    one, plans = process(), tmp_path / "s" / "plans"
    hashes = [f"{number:02x}" * 32 for number in (1, 2, 3)]
    for hash_, message in zip(hashes, (_count_plan(), _longer(), _longer("t.broken")), strict=True):
        plan_files.local_path(plans, hash_).write_bytes(message.SerializeToString())
    first, second, broken = hashes
    answers = _asked(
        one, ipc.Prepare(1, first, 1, ()), ipc.Commit(2, first, 1), ipc.Prepare(3, second, 2, ()),
        ipc.Abort(4, second), ipc.Prepare(5, second, 3, ()), ipc.Prepare(6, broken, 4, ()),
    )  # fmt: skip
    found = [(each.id, each.accepted, each.state) for each in answers if isinstance(each, ipc.PlanAnswer)]
    assert found == [
        (1, True, PREPARED), (2, True, COMMITTED), (3, True, PREPARED), (4, True, NONE), (5, True, PREPARED),
        (6, False, NONE),
    ]  # fmt: skip
    (status,) = _asked(one, ipc.AskStatus(7))
    assert isinstance(status, ipc.Status) and status.longest_hold_ns > 0


def test_a_plan_that_was_left_prepared_is_deployed_after_a_later_one(
    process: Callable[[], Process], tmp_path: Path
) -> None:
    """A coordinator was killed between prepare and commit, another plan came, and then the first one again."""
    one, plans = process(), tmp_path / "s" / "plans"
    left, other = "01" * 32, "02" * 32
    for hash_, message in ((left, _longer()), (other, _count_plan())):
        plan_files.local_path(plans, hash_).write_bytes(message.SerializeToString())
    _asked(one, ipc.Prepare(1, left, 1, ()), ipc.Prepare(2, other, 2, ()), ipc.Commit(3, other, 2))
    again, *_ = _asked(one, ipc.Prepare(4, left, 3, ()))
    assert isinstance(again, ipc.PlanAnswer) and again.accepted and again.state == PREPARED
    _asked(one, ipc.Commit(5, left, 3))
    assert one.runtime.plans.state(other) == DRAINING
    deployed = one.runtime.plans.committed
    assert deployed is not None and (deployed.hash, deployed.plan.epoch, deployed.loaded.flags) == (left, 3, 3)
    assert set(one.runtime.outbox.by_loaded) == {each.loaded for each in one.runtime.plans.by_hash.values()}


def test_plans_that_are_here_together_have_the_memory_of_one(tmp_path: Path, registry: Registry) -> None:
    with _node(tmp_path, registry, _count_plan(memory_bytes=1 << 20)) as node:
        for number in (2, 3):
            node.change(_count_plan(memory_bytes=1 << 20, query=f"q{number}"), number)
        assert len(node.runtime.plans.by_hash) == 3 and node.runtime.plans.limit_bytes == 1 << 20


def test_an_answer_goes_to_who_asked_and_to_nobody_else(process: Callable[[], Process], tmp_path: Path) -> None:
    """Control is started again while a plan is loaded: its successor counts its questions anew."""
    one, hash_ = process(), "01" * 32
    plan_files.local_path(tmp_path / "s" / "plans", hash_).write_bytes(_count_plan().SerializeToString())
    one._ask(ipc.Prepare(1, hash_, 1, ()))
    mine, its = ipc.Channel.pair()
    one.shared.network.remove(one.control.fileno())
    one.control.close()
    one.control = its
    while one.runtime.step(wait=False):
        pass
    assert one.runtime.plans.state(hash_) == PREPARED and not mine.receive()


def test_after_a_crash_a_draining_plan_counts_with_the_one_that_admits(
    process: Callable[[], Process], tmp_path: Path
) -> None:
    """State is lost with the process; but there is one instance again, not one per plan."""
    from node_agent.control.deployment import Deployment, Durable, State
    from node_agent.control.plan_store import PlanStore

    store = PlanStore(tmp_path / "s" / "plans")
    old, new = "01" * 32, "02" * 32
    for hash_, message in ((old, _count_plan()), (new, _longer())):
        store.put_plan(hash_, b"whole", {0: message.SerializeToString()})
    deployments = (Deployment(old, 1, State.DRAINING, "q"), Deployment(new, 2, State.COMMITTED, "q+r"))
    store.write(Durable(2, 0, deployments))
    one = process()
    one.resume()
    plans = one.runtime.plans
    assert (plans.state(old), plans.state(new)) == (DRAINING, COMMITTED)
    calls = [deployed.loaded.steps[0].call for deployed in plans.by_hash.values()]
    assert calls[0] == calls[1]
