"""The runtime's memory: what queues hold, what happens at the limit, and what the process itself says of it."""

import socket
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from node_agent.client.client import Admitted, Refused, Source
from node_agent.core import plan as core
from node_agent.core.shedding.memory_limit import JOB_BYTES, size_estimate
from node_agent.host.clock import now_ns
from node_agent.host.live_ports import ThisMachine
from node_agent.link.outcomes import OutcomeLog
from node_agent.operators.registry import Registry
from node_agent.runtime.in_process import in_process, queue
from node_agent.runtime.links import credit as loads
from node_agent.runtime.links import socket_connection as connections
from node_agent.runtime.links.acceptor import MOST_OUTCOMES
from node_agent.runtime.links.credit import MEASURE_NS
from node_agent.runtime.links.sink_role import SinkRole
from node_agent.runtime.links.socket_connection import Connection
from node_agent.runtime.loop import Runtime
from node_agent.sdk import operator
from node_agent.wire import frames
from node_agent.wire.plan_message import core_plan
from protos import plan_pb2
from protos.records import DEGRADED, POLICY_MEMORY, SHED, unpack_records
from tests.node_agent.live import chain_plan

MIB = 1 << 20


def plan(**changes: Any) -> core.Plan:
    """in -> O1 -> out."""
    return core_plan(chain_plan(**changes), 1, 1)


def two_units(**changes: Any) -> core.Plan:
    """in -> O1 -> O2 -> out, a unit each."""
    streams = [{"id": i, "name": name, "codec": "json", "deadline_ns": 10**9} for i, name in enumerate("iab", 1)]
    return plan(
        streams=streams,
        operators=[
            {"id": 1, "name": "O1", "run": "test.large", "inputs": [1], "output": 2, "hang_ns": 10**9},
            {"id": 2, "name": "O2", "run": "pass", "inputs": [2], "output": 3, "hang_ns": 10**9},
        ],
        units=[
            {"id": i, "operators": [i], "sub_deadline_ns": 10**8 * i, "deadline_ns": 10**9, "exits": [1 + i]}
            for i in (1, 2)
        ],
        outputs=[{"id": 1, "name": "out", "stream": 3, "deadline_ns": 10**9}],
        **changes,
    )


@operator("test.large", inputs={"value": "json"}, output="json")
def large(value: Any) -> Any:
    """Ten thousand times as large as what comes."""
    return ["x" * 100_000, value]


def registry() -> Registry:
    return Registry(operators=[large])


def kinds(runtime: Runtime) -> Counter[int]:
    """How many facts of each kind there are that have not been taken yet."""
    runtime.facts.publish()
    return Counter(each.kind for each in unpack_records(runtime.facts.ring.take(1 << 24)))


@contextmanager
def pairs(count: int) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    """Connected TCP sockets, the first of each not blocking."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = [(socket.create_connection(listener.getsockname()), listener.accept()[0]) for _ in range(count)]
        for one, _ in made:
            one.setblocking(False)
        try:
            yield made
        finally:
            for each in chain.from_iterable(made):
                each.close()


def at_rest(runtime: Runtime) -> None:
    while runtime.step(wait=False):
        pass


# -- the estimate


PAYLOADS: dict[str, Callable[[int], Any]] = {
    "fields": lambda i: {"speed": i * 1.5, "lane": i, "car": f"car {i}"},
    "list": lambda i: [i + each / 7 for each in range(50)],
    "text": lambda i: f"{i}" * 300,
}


@pytest.mark.parametrize("kind", PAYLOADS)
def test_queued_bytes_are_about_what_the_queues_take_in_memory(kind: str, tmp_path: Path) -> None:
    with in_process(plan(memory_bytes=64 * MIB), tmp_path) as runtime:
        tracemalloc.start()
        try:
            for i in range(3000):
                deployed, engine = runtime.plans.committed, runtime.plans.engine_slots[0].engine
                assert deployed is not None
                payload, at_ns = PAYLOADS[kind](i + 1000), now_ns()
                runtime.backpressure.arrived(50, payload)
                engine.admit(at_ns, deployed.loaded.source_routes[1], (1, 1, i, 0, at_ns - 1, at_ns), payload, 50)
            taken = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert 0.75 * taken < runtime.backpressure.queue_bytes < 1.7 * taken
        at_rest(runtime)
        assert runtime.backpressure.queue_bytes == 0


def test_results_of_operators_count_as_what_they_are(tmp_path: Path) -> None:
    """Each is a hundred thousand bytes, of arrivals of eight: seen at the next measurement."""
    with in_process(two_units(memory_bytes=MIB), tmp_path, registry()) as runtime:
        queue(runtime, 40, {"v": 1})
        lane = runtime.plans.engine_slots[0]
        job = lane.engine.next(now_ns())
        for _ in range(20):  # O1 is more urgent than O2
            assert job is not None and job.unit.id == 1
            job = lane.executor.run(job)
        assert runtime.backpressure.queue_bytes < 100_000 and not runtime.backpressure.full
        runtime.backpressure.measure(now_ns() + MEASURE_NS)
        left = len(lane.engine.loaded[0].units[1].queue)
        assert 100_000 * left < runtime.backpressure.queue_bytes <= MIB and 6 <= left <= 10, (
            "what is beyond the limit is shed"
        )
        assert runtime.shared.counters["memory_relieved"] == 20 - left == lane.engine.ledger.shed_by[POLICY_MEMORY]
        assert runtime.backpressure.credit(1) == 0
        lane.parked = job
        at_rest(runtime)
        assert not runtime.backpressure.full and len(runtime.plans.engine_slots[0].engine.loaded[0].units[1].queue) == 0


def test_the_first_arrival_tells_how_much_credit_is_for_what_the_queues_may_hold(tmp_path: Path) -> None:
    """Else a burst that comes soon after is more than they hold, and is shed."""
    with in_process(plan(memory_bytes=64 << 10), tmp_path) as runtime:
        runtime.backpressure.arrived(8, {"n": 1})
        encoded = 8 + loads.FIELDS_BYTES
        assert runtime.backpressure.credit(1) == runtime.backpressure.room() * encoded
        assert runtime.backpressure.room() == (64 << 10) // (JOB_BYTES + size_estimate({"n": 1}))


# -- the process's own memory


def test_a_process_that_has_grown_by_more_than_the_limit_is_full_until_its_queues_are_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resident = 100 * MIB
    monkeypatch.setattr(ThisMachine, "resident_bytes", lambda _: resident)
    with in_process(plan(memory_bytes=8 * MIB), tmp_path) as runtime:
        load, at_ns = runtime.backpressure, now_ns()

        def measure() -> None:
            nonlocal at_ns
            at_ns += MEASURE_NS
            load.measure(at_ns)

        measure()  # a plan has been loaded
        measure()
        queue(runtime, 2000, "x" * 64)
        resident += 9 * MIB
        measure()
        known = load.queue_bytes
        assert not load.full and known >= 2000 * JOB_BYTES, "within the limit, it is believed"
        resident += 2 * MIB
        measure()
        assert load.full and load.queue_bytes >= 11 * MIB
        assert runtime.shared.counters["memory_beyond_queues"] == 1
        at_rest(runtime)
        measure()
        assert not load.full and load.queue_bytes == 0
        resident -= MIB  # some of it is kept for later
        queue(runtime, 2000, "x" * 64)
        measure()
        assert load.full, "what was found out is not forgotten at once"
        at_rest(runtime)
        for _ in range(8):
            at_ns += loads.FORGET_NS
            measure()
        queue(runtime, 2000, "x" * 64)
        assert load.queue_bytes < 2 * known


def test_it_is_looked_at_seldom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    monkeypatch.setattr(ThisMachine, "resident_bytes", lambda _: looked.append(1) or 1)
    with in_process(plan(), tmp_path) as runtime:
        at_ns = now_ns() + 10 * MEASURE_NS
        looked.clear()
        for i in range(1000):
            runtime.backpressure.measure(at_ns + i * MEASURE_NS // 100)
    assert len(looked) == 10


# -- at the limit


@pytest.mark.parametrize("memory_bytes", [1 << 40, (1 << 63) - 1, (1 << 64) - 1])
def test_a_plan_that_allows_more_memory_than_there_is(memory_bytes: int, tmp_path: Path) -> None:
    with in_process(plan(memory_bytes=memory_bytes), tmp_path) as runtime:
        runtime.backpressure.arrived(1 << 24, b"x")
        assert runtime.plans.limit_bytes == 1 << 40
        assert runtime.backpressure.credit(1) > 0 and runtime.backpressure.room() > 0


@pytest.mark.parametrize("memory_bytes", [32 << 10, JOB_BYTES, 1])
def test_a_node_with_little_memory_grants_credit_and_has_room_when_nothing_waits(
    memory_bytes: int, tmp_path: Path
) -> None:
    """Also once it is known how small tuples are: else a link to it stands still for ever."""
    with in_process(plan(memory_bytes=memory_bytes), tmp_path) as runtime:
        for _ in range(200):
            runtime.backpressure.arrived(8, {"v": 1})
        assert runtime.backpressure.credit(1) > 0 and runtime.backpressure.credit(40) > 0
        assert runtime.backpressure.room() > 0
        queue(runtime, 100, {"v": 1})
        assert runtime.backpressure.credit(1) == 0 == runtime.backpressure.room()
        at_rest(runtime)
        assert runtime.backpressure.credit(1) > 0 and runtime.backpressure.room() > 0


@pytest.mark.parametrize(("on_full", "oldest"), [("drop-tail", 1), ("front", 1000)])
def test_a_source_that_sheds_admits_when_full(on_full: str, oldest: int, tmp_path: Path) -> None:
    source = {"id": 1, "name": "in", "stream": 1, "on_full": on_full}
    with in_process(plan(memory_bytes=MIB, sources=[source]), tmp_path) as runtime:
        queue(runtime, 6000, "x" * 64)
        assert MIB * 0.9 < runtime.backpressure.queue_bytes <= MIB + JOB_BYTES + 200
        runtime.plans.count_policed(1)
        assert runtime.shared.counters["shed.memory"] > 3000
        assert runtime.backpressure.credit(1, sheds=True) >= 1 << 16, "it is never kept from sending"
        (unit,) = runtime.plans.engine_slots[0].engine.loaded[0].units
        assert unit.queue[0].lineage[2] >= oldest and (unit.queue[-1].lineage[2] == 6000) == (on_full == "front")
        at_rest(runtime)


def test_more_jobs_than_memory_for_them_are_lost_wherever_they_come_from(tmp_path: Path) -> None:
    with in_process(plan(memory_bytes=MIB), tmp_path) as runtime:
        (lane,) = runtime.plans.engine_slots
        limit_jobs = MIB // JOB_BYTES
        assert lane.engine.has_room(limit_jobs) and not lane.engine.has_room(limit_jobs + 1)
        queue(runtime, limit_jobs + 5)
        assert lane.engine.ready.released == limit_jobs


def test_the_limit_of_a_queue_and_lateness_are_counted_by_policy_and_operator(tmp_path: Path) -> None:
    unit = {
        "id": 1,
        "operators": [1],
        "sub_deadline_ns": 10**8,
        "deadline_ns": 10**9,
        "exits": [2],
        "queue_bytes": 5000,
    }
    late = {"late_ns": 10**12, "run": "test.large"}
    operators = [{"id": 1, "name": "O1", "run": "pass", "inputs": [1], "output": 2, "hang_ns": 10**9, "late": late}]
    with in_process(plan(units=[unit], operators=operators), tmp_path, registry()) as runtime:
        queue(runtime, 20, "x")
        at_rest(runtime)
        deployed = runtime.plans.committed
        assert deployed is not None
        at_ns = now_ns()
        deployed.engine_slot.engine.admit(
            at_ns, deployed.loaded.source_routes[1], (1, 1, 99, 0, 0, at_ns - 10**12 - 1), "x", 1
        )
        at_rest(runtime)
        runtime.plans.count_policed(1)
        runtime.plans.count_policed(2)
        counters = runtime.shared.counters
        written = kinds(runtime)
        assert counters["shed.memory"] == written[SHED] == 20 - 5000 // (JOB_BYTES + size_estimate("x"))
        assert counters["degraded.O1"] == written[DEGRADED] == 1
        runtime.plans.abort(deployed.hash)
        runtime.plans.unload(deployed, now_ns(), 4)
        assert counters["shed.memory"] == written[SHED], "counted once, for each tuple that goes"
        assert not runtime.plans.meter.costs


# -- what else is held


def test_all_sinks_together_have_a_part_of_the_memory(tmp_path: Path) -> None:
    with in_process(plan(memory_bytes=MIB), tmp_path) as runtime, pairs(4) as ends:
        sinks = []
        for number, (one, _) in enumerate(ends):
            hello = frames.Hello("sink:out", runtime.shared.clock.domain, number + 1, 0, 0, 50, 0, "json")
            connection = Connection(runtime.shared, one, runtime)  # type: ignore[arg-type]  # nobody is ever told
            sinks.append(SinkRole(runtime.context, connection, hello))
        for sink in sinks:
            for _ in range(50):
                sink.deliver(b"x" * 1000)
        assert runtime.backpressure.held_bytes == runtime.backpressure.sink_bytes <= MIB // 8
        assert runtime.shared.counters["sink_tuples_dropped"] >= 200 - MIB // 8 // 1000
        for sink in sinks:
            sink.close()
            sink.connection.close()
        assert runtime.backpressure.held_bytes == runtime.backpressure.sink_bytes == 0


def test_what_sockets_do_not_take_is_counted_and_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ALL_UNWRITTEN", 3 * MIB)
    with in_process(plan(), tmp_path) as runtime, pairs(3) as ends:
        for end in chain.from_iterable(ends):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        held = [Connection(runtime.shared, one, runtime) for one, _ in ends]  # type: ignore[arg-type]
        for each in held[:2]:
            each.write(bytes(MIB + 400_000))
        kept = sum(len(each.unwritten) for each in held)
        assert 2 * MIB < runtime.shared.unwritten_bytes == kept == runtime.backpressure.queue_bytes
        held[2].write(bytes(2 * MIB))
        assert held[2].closed and not held[0].closed
        assert ends[0][1].recv(1 << 20)
        held[0].flush()
        assert runtime.shared.unwritten_bytes == sum(len(each.unwritten) for each in held)
        for each in held:
            each.close()
        assert runtime.shared.unwritten_bytes == 0


def test_outcomes_of_sources_that_are_gone_are_forgotten_beyond_a_number(tmp_path: Path) -> None:
    with in_process(plan(), tmp_path) as runtime:
        acceptor = runtime.acceptor
        assert acceptor is not None
        for boot in range(8):
            answers = OutcomeLog()
            answers.recall((n, 1, n, None) for n in range(16_384))
            acceptor._keep("source:in", boot, answers)
        kept = list(acceptor._outcome_logs)
        assert [boot for _, boot in kept] == [4, 5, 6, 7] and sum(
            map(len, acceptor._outcome_logs.values())
        ) <= MOST_OUTCOMES


# -- a plan in place of another


def test_what_runs_in_an_operators_place_goes_on_with_it(tmp_path: Path) -> None:
    made = []

    @operator("test.counting", inputs={"value": "json"}, output="json")
    class Counting:
        def __init__(self) -> None:
            made.append(self)

        def __call__(self, value: Any) -> Any:
            return value

    known = Registry(operators=[Counting])

    def degrading(late_ns: int, **with_: Any) -> core.Plan:
        late = {"late_ns": late_ns, "run": "test.counting", **with_}
        operators = [{"id": 1, "name": "O1", "run": "pass", "inputs": [1], "output": 2, "hang_ns": 10**9, "late": late}]
        found: plan_pb2.LocalPlan = chain_plan(operators=operators, query=f"q{late_ns}")
        return core_plan(found, late_ns, late_ns)

    with in_process(degrading(1), tmp_path, known) as runtime:
        assert len(made) == 1
        runtime.plans.load(degrading(2), "2" * 64)
        runtime.plans.commit("2" * 64)
        assert len(made) == 1, "the same one, at another age"
        (step,) = runtime.plans.by_hash["2" * 64].loaded.steps
        assert step.late is not None and step.late.late_ns == 2 and not step.plain


@pytest.mark.parametrize("on_full", ["refuse", "drop-tail", "front"])
def test_a_client_is_refused_or_its_tuples_are_shed(on_full: str, tmp_path: Path) -> None:
    """In one burst more comes than there is room for; a refused tuple was not admitted, a shed one was."""
    source = {"id": 1, "name": "in", "stream": 1, "on_full": on_full}
    with in_process(plan(memory_bytes=256 << 10, sources=[source]), tmp_path) as runtime:
        assert runtime.acceptor is not None
        host, port = runtime.acceptor.address
        told: list[Admitted | Refused] = []

        def send() -> None:
            with Source(f"{host}:{port}", "in") as client:
                told.extend(client.send_many([{"v": number} for number in range(1500)]))

        client = Thread(target=send)
        client.start()
        while client.is_alive():
            runtime.step(wait=False)
        client.join()
        at_rest(runtime)
        runtime.plans.count_policed(1)
        refused = [each for each in told if isinstance(each, Refused)]
        shed = runtime.shared.counters["shed.memory"]
        assert len(told) == 1500 and runtime.backpressure.queue_bytes == 0
        assert runtime.shared.counters["tuples_refused"] == len(refused)
        if on_full == "refuse":
            assert not shed and all("full" in each.why for each in refused)
        else:
            assert not refused
        assert runtime.plans.engine_slots[0].engine.ready.released <= 1500
