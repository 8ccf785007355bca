"""The simulated world behaves as the real one where the runtime looks: order, silence, refusal, clocks that stand."""

import pytest

from node_agent.ports import FAILED, READABLE, WRITABLE
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.simulated_clock import SimulatedClock
from node_agent.virtual.simulated.simulated_network import (
    WINDOW_BYTES,
    SimulatedHost,
    SimulatedNetwork,
    SimulatedStream,
    Wires,
)
from node_agent.virtual.simulated.virtual_time import Process, VirtualTime

MS, SECOND = 1_000_000, 1_000_000_000


class Two:
    """Two hosts; b listens at port 7."""

    def __init__(self) -> None:
        self.time = VirtualTime()
        self.wires = Wires(self.time, Draws(1), latency_ns=10 * MS, jitter_ns=5 * MS)
        self.a, self.b = SimulatedHost(self.wires, "a"), SimulatedHost(self.wires, "b")
        self.listener = self.b.listen(7)
        self.here, self.there = (SimulatedNetwork(host, lambda: 0, lambda due_ns: None) for host in (self.a, self.b))
        self.there.listen(self.listener)

    def connected(self) -> tuple[SimulatedStream, SimulatedStream]:
        """Both ends."""
        near = self.here.dial("b", 7)
        self.pass_(SECOND)
        far, address = self.listener.accept()
        assert address == ("a", 7) and near.ready == WRITABLE
        return near, far

    def pass_(self, ns: int) -> None:
        """Let time go by."""
        self.time.run_until(self.time.now_ns + ns)


def test_what_was_sent_arrives_in_order_also_after_a_cut_and_losses() -> None:
    two = Two()
    near, far = two.connected()
    way = two.wires.way("a", "b")
    way.loss = 0.3
    for number in range(200):
        near.send(bytes([number]))
        if number == 50:
            way.cut()
        if number == 100:
            two.pass_(5 * SECOND)
            before = far.recv(1000)
            assert before == bytes(range(len(before))) and len(before) <= 50
            way.heal()
        two.pass_(MS)
    two.pass_(100 * SECOND)
    assert before + far.recv(1000) == bytes(range(200))


def test_a_full_buffer_takes_nothing_until_the_other_end_reads() -> None:
    two = Two()
    near, far = two.connected()
    assert near.send(bytes(2 * WINDOW_BYTES)) == WINDOW_BYTES and not near.ready & WRITABLE
    with pytest.raises(BlockingIOError):
        near.send(b"x")
    two.pass_(SECOND)
    assert len(far.recv(100)) == 100 and near.ready & WRITABLE and near.send(bytes(1000)) == 100


def test_nobody_listens_and_the_power_is_off() -> None:
    two = Two()
    refused = two.here.dial("b", 8)
    two.pass_(SECOND)
    assert refused.ready & FAILED
    with pytest.raises(ConnectionResetError):
        refused.recv(1)
    near, _ = two.connected()
    two.b.power_off()
    silent = two.here.dial("b", 7)
    near.send(b"lost")
    two.pass_(10 * SECOND)
    assert not silent.ready and not near.ready & READABLE, "nobody says anything"
    two.b.power_on()
    near.send(b"known to nobody")
    two.pass_(SECOND)
    assert near.ready & FAILED, "the host has forgotten the connection"


def test_what_was_sent_before_a_close_arrives_and_what_was_not_read_is_a_reset() -> None:
    two = Two()
    near, far = two.connected()
    near.send(b"last words")
    near.close()
    two.pass_(SECOND)
    assert far.recv(100) == b"last words" and far.recv(100) == b""
    near, far = two.connected()
    far.send(b"never read")
    two.pass_(SECOND)
    near.close()
    two.pass_(SECOND)
    assert far.ready & FAILED


def test_a_clock_drifts_stands_still_and_says_so() -> None:
    time = VirtualTime()
    clock = SimulatedClock(time, "a", 50, offset_ns=1000, rate_ppm=40)
    time.run_until(SECOND)
    assert clock.now_ns() == 1000 + SECOND + 40_000 and clock.suspended() is None
    assert clock.true_ns(clock.now_ns() + 1_000_040) == SECOND + 1_000_000
    clock.stop()
    time.run_until(61 * SECOND)
    clock.go_on()
    time.run_until(62 * SECOND)
    found = clock.suspended()
    assert clock.now_ns() == 1000 + 2 * SECOND + 80_000 and found is not None and found.slept_ns == 60 * SECOND
    assert clock.suspended() is None
    clock.drift(-50)
    before = clock.now_ns()
    time.run_until(63 * SECOND)
    assert clock.now_ns() - before == SECOND - 50_000


def test_a_process_waits_wakes_stands_still_and_dies() -> None:
    time, seen = VirtualTime(), list[int]()

    def body() -> None:
        for wakeable in (True, False, True):
            process.sleep_until(time.now_ns + 10 * MS, wakeable)
            seen.append(time.now_ns // MS)
        process.sleep_until(SECOND)
        seen.append(-1)

    process = Process(time, body)
    time.at(4 * MS, process.wake)
    time.at(6 * MS, process.wake)  # does not wait for that
    time.at(20 * MS, process.pause)
    time.at(40 * MS, process.go_on)
    time.run_until(500 * MS)
    assert seen == [4, 14, 40]
    process.kill()
    time.run_until(2 * SECOND)
    assert seen == [4, 14, 40] and not process.alive
