"""Large payloads and the memory of a node: each counts once, for as long as anything has it, and the cap holds."""

from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from node_agent.client.client import Admitted, Refused, Sink, Source
from node_agent.core import plan as core
from node_agent.core.shedding.memory_limit import size_estimate
from node_agent.host.clock import now_ns
from node_agent.runtime.in_process import in_process
from node_agent.runtime.large_payloads import LARGE_BYTES, LargePayloads, is_large
from node_agent.runtime.loop import Runtime
from node_agent.wire import frames
from node_agent.wire.plan_error import PlanError
from node_agent.wire.plan_message import core_plan
from protos import records
from tests.node_agent.live import chain_plan

MIB = 1 << 20


def plan(codec: str = "numpy", max_bytes: int = 3 * MIB, units: int = 2, **changes: Any) -> core.Plan:
    """in -> O1, in -> O2, ...: each a unit that reads the same stream; O1 -> out."""
    numbers = range(1, units + 1)
    message = chain_plan(
        streams=[
            {"id": each, "name": f"s{each}", "codec": codec, "deadline_ns": 10**10, "max_bytes": max_bytes}
            for each in range(1, units + 2)
        ],
        operators=[{"id": i, "name": f"O{i}", "run": "pass", "inputs": [1], "output": 1 + i} for i in numbers],
        units=[
            {"id": i, "operators": [i], "sub_deadline_ns": 10**8, "deadline_ns": 10**10, "exits": [1 + i]}
            for i in numbers
        ],
        **changes,
    )  # fmt: skip
    return core_plan(message, 1, 1)


def admit(runtime: Runtime, number: int, payload: object) -> None:
    deployed, at_ns = runtime.plans.committed, now_ns()
    assert deployed is not None
    size = size_estimate(payload)
    runtime.backpressure.arrived(size, payload)
    lineage = (1, 1, number, 0, at_ns, at_ns)
    deployed.engine_slot.engine.admit(at_ns, deployed.loaded.source_routes[1], lineage, payload, size)


def array(size: int = 2 * MIB) -> np.ndarray:
    return np.zeros(size, np.uint8)


def test_a_payload_in_several_queues_counts_once_and_until_the_last_has_run(tmp_path: Path) -> None:
    with in_process(plan(units=4, memory_bytes=64 * MIB), tmp_path) as runtime:
        for number in range(1, 4):
            admit(runtime, number, array())
        assert runtime.backpressure.ready == 12
        assert 3 * 2 * MIB <= runtime.backpressure.queue_bytes < 3 * 2 * MIB + 50_000
        runtime.backpressure.measure(now_ns() + 10**9)
        assert 3 * 2 * MIB <= runtime.backpressure.queue_bytes < 3 * 2 * MIB + 50_000
        while runtime.step(wait=False):
            pass
        assert runtime.backpressure.queue_bytes < 1000


@pytest.mark.parametrize(
    "make", [lambda: bytes(MIB), array, lambda: array()[::2], lambda: pa.table({"x": np.zeros(MIB)})]
)  # fmt: skip
def test_what_nothing_refers_to_any_more_is_let_go(make: Any) -> None:
    large, value = LargePayloads(now_ns), make()
    assert is_large(value)
    held = [value, value]
    large.add(value)
    large.add(value)
    first = large.bytes
    assert first >= MIB
    del value
    assert large.bytes == first
    held.clear()
    assert large.bytes == 0


def test_a_part_of_an_array_counts_as_its_owner_and_holds_it() -> None:
    large, owner = LargePayloads(now_ns), array()
    parts = [owner[: MIB // 2], owner[MIB:], memoryview(owner)[:100_000]]
    for part in parts:
        large.add(part)
    del owner, part
    assert 2 * MIB <= large.bytes < 2 * MIB + 1000
    del parts[1:]
    assert large.bytes >= 2 * MIB
    parts.clear()
    assert large.bytes == 0


def test_the_limit_of_one_queue_knows_how_large_arrays_are() -> None:
    data = bytes(2 * MIB)
    assert size_estimate(np.frombuffer(data, np.uint8)) > 2 * MIB
    assert size_estimate(pa.table({"x": np.zeros(MIB)})) >= 8 * MIB
    assert not is_large(bytes(LARGE_BYTES - 1))


def send(source: Source, value: object, found: list[object]) -> None:
    found.append(source.send(value))


def served(runtime: Runtime, *threads: Thread) -> None:
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads):
        runtime.step(wait=False)
    for each in threads:
        each.join()


def test_what_has_no_room_or_is_too_large_is_refused_and_all_else_goes_on(tmp_path: Path) -> None:
    with in_process(plan(units=1, memory_bytes=4 * MIB), tmp_path) as runtime:
        assert runtime.acceptor is not None
        host, port = runtime.acceptor.address
        made: list[Source] = []
        served(runtime, Thread(target=lambda: made.append(Source(f"{host}:{port}", "in", timeout=20))))
        (source,) = made
        outcomes: list[Any] = []
        elsewhere = bytes(2 * MIB)
        runtime.shared.large.add(elsewhere)
        served(runtime, Thread(target=send, args=(source, array(3 * MIB), outcomes)))
        assert runtime.backpressure.held_bytes == 0
        del elsewhere
        for size in (7 * MIB, 3 * MIB + 1, 3 * MIB, 100):
            served(runtime, Thread(target=send, args=(source, array(size), outcomes)))
        source.close()
        full, huge, large, fits, small = outcomes
        assert isinstance(full, Refused) and isinstance(large, Refused)
        assert isinstance(huge, Refused) and "the query allows 3145728: declare a larger 'max_size:'" in huge.why
        assert isinstance(fits, Admitted) and isinstance(small, Admitted)
        runtime.facts.publish()
        facts = list(records.unpack_records(runtime.facts.ring.take(1 << 24)))
        reasons = [fact.reason for fact in facts if isinstance(fact, records.Refused)]
        assert reasons[0] == records.REASON_FULL and set(reasons[1:]) == {records.REASON_TOO_LARGE}
        assert runtime.backpressure.queue_bytes < 1000


def test_what_was_cut_off_in_the_middle_is_not_held(tmp_path: Path) -> None:
    with in_process(plan(units=1, memory_bytes=8 * MIB), tmp_path) as runtime:
        assert runtime.acceptor is not None
        host, port = runtime.acceptor.address
        made: list[Source] = []
        served(runtime, Thread(target=lambda: made.append(Source(f"{host}:{port}", "in", timeout=20))))
        (source,) = made
        whole = frames.encode_large((0, 0, 0, 0, 0, 0), 0, 0, (bytes(2 * MIB),))
        assert not isinstance(whole, bytes) and source._connection is not None
        source._connection.write(frames.encode_chunk(0, 0, whole, 0), now_ns() + 10**9)
        while not runtime.backpressure.held_bytes:
            runtime.step(wait=False)
        assert runtime.backpressure.held_bytes == 2 * MIB
        source.close()
        while runtime.backpressure.held_bytes:
            runtime.step(wait=False)


def test_a_plan_whose_payloads_fit_no_queue_is_not_loaded(tmp_path: Path) -> None:
    with pytest.raises(PlanError), in_process(plan(max_bytes=8 * MIB, memory_bytes=4 * MIB), tmp_path):
        pass


def test_a_result_goes_to_several_sinks_and_counts_once(tmp_path: Path) -> None:
    with in_process(plan(units=1, memory_bytes=32 * MIB), tmp_path) as runtime:
        assert runtime.acceptor is not None
        address, made = "{}:{}".format(*runtime.acceptor.address), list[Sink]()
        served(runtime, *(Thread(target=lambda: made.append(Sink(address, "out", timeout=20))) for _ in range(3)))
        admit(runtime, 1, np.arange(3 * MIB // 8))
        runtime.step(wait=False)
        assert 3 * MIB <= runtime.backpressure.queue_bytes < 4 * MIB
        got: list[Any] = []
        served(runtime, *(Thread(target=lambda sink=sink: got.append(next(sink).value)) for sink in made))
        assert [each.sum() for each in got] == [np.arange(3 * MIB // 8).sum()] * 3
        assert not runtime.shared.counters["sink_tuples_dropped"]
        for sink in made:
            sink.close()


def test_large_payloads_that_a_batch_policy_shed_are_held_by_nobody(tmp_path: Path) -> None:
    """Else a node that they fill lets nothing in any more."""
    late = core.Plan(
        query="q", node="a", index=0, hash=3, epoch=1, policy="bts1", largest_batch=1, memory_bytes=16 * MIB,
        streams=(core.Stream(1, "s", "bytes", deadline_ns=1), core.Stream(2, "o", "bytes", deadline_ns=1)),
        sources=(core.Source(1, "in", 1),), operators=(core.Operator(1, "O1", "pass", (1,), 2, 1),),
        units=(core.Unit(1, (1,), 1, 1, (2,)),), outputs=(core.Output(1, "out", 2, 1),),
    )  # fmt: skip
    with in_process(late, tmp_path) as runtime:
        deployed = runtime.plans.committed
        assert deployed is not None
        route, at_ns = deployed.loaded.source_routes[1], now_ns()
        for _ in range(8):
            runtime.context.admit(route, 1, at_ns, at_ns, bytes(MIB), MIB)
        runtime.context.arrivals.apply(at_ns)
        while runtime.step(wait=False):
            pass
        assert deployed.engine_slot.engine.ledger.shed_by and not runtime.shared.large.bytes
