"""Bounds that know how large payloads are: small tuples wait for a chunk, large ones for all, and bandwidths hold."""

from typing import Any

import pytest

from coordinator.calculus.curves import Bursts
from coordinator.errors import BadInputError, CoordinatorError
from coordinator.guarantee import link_delay
from coordinator.guarantee.streams import Flow
from coordinator.guarantee.system import Link
from coordinator.spec.runtime_charges import (
    CHUNK_BYTES,
    MEASURED,
    NOTHING,
    READ_BYTES,
    UNREAD_BYTES,
    UNSENT_BYTES,
    chunks,
    on_wire,
)
from node_agent.host import network
from node_agent.link import limits
from node_agent.runtime.links import socket_connection
from tests.coordinator.guarantee.written_plans import MS, written

MIB = 1 << 20
QUERY = """shimekiri: 1
query: robot
sources:
  image: {at: a, type: numpy, max_size: SIZE, arrival: {period: 500 ms}, max_age: 1 ms}
  odometry: {at: a, type: json, arrival: {period: 100 ms}, max_age: 1 ms}
operators:
  see: {run: pass, in: image, cost: 1 us, nodes: [b]}
  drive: {run: pass, in: odometry, cost: 1 us, nodes: [b]}
outputs:
  seen: {from: see, at: b, deadline: 400 ms}
  driven: {from: drive, at: b, deadline: 90 ms}
"""
CLUSTER = """shimekiri: 1
nodes: {a: {address: "127.0.0.1:7700", speed: 1MEMORY}, b: {address: "127.0.0.1:7710", speed: 1}}
links: [{between: [a, b], latency: 1 ms, bandwidth: BANDWIDTH}]
operators: operators.json
security: insecure-loopback
"""


def planned(size: str, bandwidth: str = "100 Mbit/s", memory: str = "", **choices: Any) -> Any:
    cluster = CLUSTER.replace("BANDWIDTH", bandwidth).replace("MEMORY", f", memory: {memory}" if memory else "")
    return written(QUERY.replace("SIZE", size), cluster, **choices)


def test_small_tuples_wait_for_a_chunk_and_large_ones_take_their_time() -> None:
    claims = planned("1 MiB").guarantee
    small, large = claims["driven"].from_admission_ns, claims["seen"].from_admission_ns
    chunk_ns = on_wire(CHUNK_BYTES + UNSENT_BYTES, 1500) * 80
    assert 1 * MS + chunk_ns < small < 1 * MS + chunk_ns + MS
    image_ns = on_wire(MIB, 1500) * 80
    assert 1 * MS + image_ns < large < 1 * MS + image_ns + MS
    assert small < 11 * MS and large > 80 * MS


def test_without_a_declared_size_nothing_changes() -> None:
    before = planned("1 KiB").guarantee["driven"].from_admission_ns
    assert before is not None and before < 2 * MS


def test_each_chunk_waits_until_the_sockets_are_written_and_read() -> None:
    free, charged = (planned("1 MiB", charges=each).guarantee for each in (NOTHING, MEASURED))
    pauses_ns = 2 * chunks(MIB) * MEASURED.drain_every_ns
    assert charged["seen"].from_admission_ns > free["seen"].from_admission_ns + pauses_ns
    assert charged["seen"].guaranteed and charged["driven"].guaranteed


def test_a_link_that_cannot_carry_the_images_is_refused() -> None:
    with pytest.raises(CoordinatorError):
        planned("8 MiB", "100 Mbit/s", model="sound")


def test_a_payload_that_no_queue_of_its_node_can_hold_is_said_beforehand() -> None:
    with pytest.raises(BadInputError) as refused:
        planned("8 MiB", "1 Gbit/s", memory="4 MiB")
    assert [each.mistake.code for each in refused.value.problems] == ["payload_above_memory"]


def test_of_several_connections_over_one_wire_each_waits_for_all() -> None:
    flows = [Flow.of(Bursts(1, 10**9), Bursts(1, 10**9), {}, size) for size in (0, MIB)]
    alone, shared = (Link(0, 10**8, pairs) for pairs in ((), (("a", "b"), ("a.1", "b"))))
    assert link_delay.delay_ns(alone, flows, NOTHING) < 10 * MS
    assert link_delay.delay_ns(shared, flows, NOTHING) > 80 * MS


def test_the_bounds_know_the_chunks_of_the_agents() -> None:
    assert CHUNK_BYTES == limits.CHUNK_BYTES and UNSENT_BYTES == network.UNSENT_BYTES
    assert UNREAD_BYTES == network.UNREAD_BYTES and READ_BYTES == socket_connection.READ_BYTES
    head = limits.MESSAGE_HEAD_BYTES + limits.TUPLE_FIELDS_BYTES
    frames = -(-(8 * MIB + limits.MESSAGE_HEAD_BYTES) // limits.CHUNK_BYTES)
    assert chunks(8 * MIB) >= frames
    assert on_wire(8 * MIB, 1500) > 8 * MIB + head + frames * 64 + 8 * MIB // 1400 * 60
