"""A machine that was suspended: one clock stood still and another went on."""

from node_agent.host.clock import now_ns
from node_agent.host.suspension import Suspension
from node_agent.ports import Suspended

MS = 1_000_000


class Machine:
    """Each reading takes some time; `suspend` moves only the clock that counts suspensions."""

    def __init__(self, reading_ns: int) -> None:
        self.at_ns, self.slept_ns, self.reading_ns = 5_000 * MS, 70_000 * MS, reading_ns

    def awake(self) -> int:
        self.at_ns += self.reading_ns
        return self.at_ns

    def through(self) -> int:
        return self.awake() + self.slept_ns


def test_a_suspension_is_told_once_with_the_instants_around_it() -> None:
    machine = Machine(reading_ns=300)
    suspension = Suspension(machine.awake, machine.awake, machine.through)
    assert suspension.look() is None and suspension.steady_since_ns is not None, "it slept before this process was"
    since_ns = machine.at_ns
    machine.at_ns += 20 * MS
    machine.slept_ns += 90 * MS
    found = suspension.look()
    assert isinstance(found, Suspended)
    assert found.since_ns == since_ns and found.until_ns == machine.at_ns
    assert 89 * MS < found.slept_ns <= 90 * MS and suspension.steady_since_ns == found.until_ns
    assert suspension.look() is None
    next_process = Suspension(machine.awake, machine.awake, machine.through)
    assert next_process.steady_since_ns is not None and found.until_ns < next_process.steady_since_ns <= machine.at_ns


def test_readings_that_take_long_are_no_suspension() -> None:
    machine = Machine(reading_ns=300)
    suspension = Suspension(machine.awake, machine.awake, machine.through)
    for reading_ns in (500 * MS, 300, 40 * MS, 2_000 * MS, 300):
        machine.reading_ns = reading_ns
        assert suspension.look() is None


def test_a_machine_that_never_slept_was_always_steady() -> None:
    machine = Machine(reading_ns=300)
    machine.slept_ns = 0
    assert Suspension(machine.awake, machine.awake, machine.through).steady_since_ns is None


def test_this_machine_is_awake() -> None:
    suspension = Suspension(now_ns)
    assert all(suspension.look() is None for _ in range(1000))
