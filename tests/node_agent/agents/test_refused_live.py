"""What a source client is told and what the trace says of refused tuples are the same, killed or not."""

import os
import signal
import socket
import time
from collections import Counter
from pathlib import Path
from threading import Thread

from node_agent.client.client import Admitted, Refused, Source
from node_agent.host.clock import clock_domain, now_ns
from node_agent.runtime.in_process import in_process
from node_agent.runtime.loop import Runtime
from node_agent.wire import frames
from node_agent.wire.plan_message import core_plan
from protos import records as rec
from protos.records import Record, unpack_records
from tests.node_agent.live import Agent, chain_plan, spooled, store

MS = 1_000_000
MINUTE = 60_000 * MS
OLD_MS = 20 * 60_000.0  # twice what is allowed: no pause of the machine makes anything so old
SOURCE = {"id": 1, "name": "in", "stream": 1, "max_age_ns": 10 * MINUTE}


def counted(found: list[Record]) -> Counter[str]:
    """Refused tuples by reason; every source's records follow one another."""
    upto: Counter[tuple[int, int, int]] = Counter()
    by_reason: Counter[str] = Counter()
    for record in found:
        if isinstance(record, rec.Refused):
            key = record.flags, record.source, record.epoch
            assert record.seq == upto[key]
            upto[key] += record.tuples
            by_reason[rec.REASONS[record.reason]] += record.tuples
    return by_reason


def run_while(runtime: Runtime, client: Thread) -> list[Record]:
    """Step until the client is done; the records."""
    client.start()
    while client.is_alive():
        runtime.step(wait=False)
    client.join()
    while runtime.step(wait=False):
        pass
    runtime.shared.refusals.write()
    runtime.facts.publish()
    return list(unpack_records(runtime.facts.ring.take(1 << 26)))


def test_every_reason_has_a_record_and_none_has_another_count(tmp_path: Path) -> None:
    with in_process(core_plan(chain_plan(sources=[SOURCE]), 1, 1), tmp_path) as runtime:
        assert runtime.acceptor is not None
        address = "{}:{}".format(*runtime.acceptor.address)
        told: list[Admitted | Refused] = []

        def send() -> None:
            with Source(address, "in") as client:
                told.extend(client.send_aged([({"v": i}, (0.0, 20.0, OLD_MS)[i % 3]) for i in range(300)]))
                told.append(client.send({"v": 0}, age_ms=(OLD_MS, OLD_MS + 10)))
                runtime.backpressure.held_bytes = 1 << 40
                told.append(client.send({"v": 1}))
                runtime.backpressure.held_bytes = 0

        found = run_while(runtime, Thread(target=send))
        refused = [each for each in told if isinstance(each, Refused)]
        assert len(told) == 302 and len(refused) == 102
        assert counted(found) == {"too_old": 101, "full": 1}
        assert sum(isinstance(record, rec.Admitted) for record in found) == 200
        route = next(iter(runtime.plans.by_hash.values())).loaded.source_routes[1]
        assert (route.admitted, route.refused) == (200, 102)
        (age_lo_ns, age_hi_ns) = next((r.age_lo_ns, r.age_hi_ns) for r in found if isinstance(r, rec.Refused))
        assert 20 * MINUTE <= age_lo_ns <= age_hi_ns < 25 * MINUTE


def test_what_comes_when_the_plan_is_stopped_is_refused_under_it_while_it_drains(tmp_path: Path) -> None:
    with in_process(core_plan(chain_plan(sources=[SOURCE]), 1, 1), tmp_path) as runtime:
        assert runtime.acceptor is not None
        address = "{}:{}".format(*runtime.acceptor.address)

        def send() -> None:
            with Source(address, "in") as client:
                client.send({"v": 1})
                (plan_hash,) = runtime.plans.by_hash
                runtime.plans.drain(plan_hash)
                client.send_many([{"v": 2}] * 5)

        found = run_while(runtime, Thread(target=send))
        assert counted(found)["stopped"] == 5


def raw_tuple(payload: bytes) -> bytes:
    return frames.encode_tuple((0, 0, 0, 0, now_ns(), now_ns()), 0, 0, payload)


def test_what_cannot_be_read_is_refused_and_counted(tmp_path: Path) -> None:
    with in_process(core_plan(chain_plan(sources=[SOURCE]), 1, 1), tmp_path) as runtime:
        assert runtime.acceptor is not None
        with socket.create_connection(runtime.acceptor.address) as end:
            hello = frames.Hello("source:in", clock_domain(), 77, 0, 0, 50, 0, "")
            end.sendall(frames.encode_hello(hello) + frames.encode_batch(1, now_ns, [raw_tuple(b"{"), raw_tuple(b"1")]))
            until = time.monotonic() + 10
            while runtime.shared.counters["tuples_refused"] < 1 and time.monotonic() < until:
                runtime.step(wait=False)
        runtime.shared.refusals.write()
        runtime.facts.publish()
        assert counted(list(unpack_records(runtime.facts.ring.take(1 << 20)))) == {"unreadable": 1}


def test_a_flood_one_by_one_leaves_few_records_and_loses_none(tmp_path: Path) -> None:
    """Frames of one tuple each, far more than the trace may have records for."""
    n = 5_000
    with in_process(core_plan(chain_plan(sources=[SOURCE]), 1, 1), tmp_path) as runtime:
        assert runtime.acceptor is not None
        old_ns = now_ns() - 20 * MINUTE
        data = frames.encode_tuple((0, 0, 0, 0, old_ns, old_ns), 0, 0, b"1")

        def send() -> None:
            assert runtime.acceptor is not None
            with socket.create_connection(runtime.acceptor.address) as end:
                hello = frames.Hello("source:in", clock_domain(), 77, 0, 0, 50, 0, "")
                end.sendall(frames.encode_hello(hello))
                for number in range(1, n + 1):
                    end.sendall(frames.encode_batch(number, now_ns, [data]))
                end.shutdown(socket.SHUT_WR)
                while end.recv(1 << 16):
                    pass

        began = time.monotonic()
        found = run_while(runtime, Thread(target=send))
        took_s = time.monotonic() - began
        refusals = [record for record in found if isinstance(record, rec.Refused)]
        assert counted(found) == {"too_old": n}
        assert len(refusals) <= 256 + 1000 * took_s + 2, "256 at once, then a thousand a second"


def test_a_runtime_that_is_killed_in_a_flood_has_counted_what_it_told(tmp_path: Path) -> None:
    """Answers leave after the records that they stand in; what was not answered comes again and counts there."""
    state = tmp_path / "state"
    store(state, chain_plan(sources=[SOURCE]))
    told: list[Admitted | Refused] = []
    with Agent(state, "--data", "127.0.0.1:0", "--control", "127.0.0.1:0") as agent, Source(agent.data, "in") as client:
        for number in range(60):
            if number in (20, 40):
                os.kill(agent.runtime(), signal.SIGKILL)
            told += client.send_aged([({"v": i}, OLD_MS * (i % 2)) for i in range(50)])
    refused = sum(isinstance(each, Refused) for each in told)
    recorded = counted(spooled(state))
    assert refused == 1500, "every second one"
    again = 2 * 50  # a burst whose records were written and whose answers had not left, at each kill
    assert refused <= recorded["too_old"] <= refused + again
