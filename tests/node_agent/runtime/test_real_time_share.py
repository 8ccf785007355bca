"""A busy runtime stays below its share of the real-time class, and one that waits is in it."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.host import scheduling
from node_agent.host.live_ports import ThisMachine
from node_agent.runtime.real_time_share import OUT_NS, RealTimeShare, real_time_share

SECOND, US = 1_000_000_000, 1_000


class Recorded:
    """A machine that writes down when it was in the class."""

    def __init__(self, share: float = 0.95) -> None:
        self.real_time_share, self.inside = share, True

    def real_time(self, wanted: bool) -> None:
        assert wanted != self.inside
        self.inside = wanted

    def resident_bytes(self) -> int:
        return 0

    def pin(self, cpu: int) -> bool:
        return True

    def settle(self) -> None:
        pass


@given(
    st.lists(st.tuples(st.integers(50, 12_000), st.booleans(), st.integers(0, 9_000)), min_size=1, max_size=400),
    st.sampled_from((0.5, 0.95)),
)
def test_in_no_second_it_has_more_than_its_share(steps: list[tuple[int, bool, int]], share: float) -> None:
    """Steps: us of work, whether it waits afterwards, and for how long."""
    machine, at_ns, worked = Recorded(share), 0, list[tuple[int, int]]()
    kept = RealTimeShare(machine, at_ns, share)
    for _ in range(max(1, 400 // len(steps))):
        for work_us, waits, wait_us in steps:
            if machine.inside:
                worked.append((at_ns, at_ns + work_us * US))
            at_ns += work_us * US
            if waits:
                kept.waits(at_ns)
                assert machine.inside
                at_ns += wait_us * US
                kept.idle(at_ns)
            else:
                kept.busy(at_ns)
    for first_ns, _ in worked[:: max(1, len(worked) // 50)]:
        last_ns = first_ns + SECOND
        used_ns = sum(
            min(end, last_ns) - max(begin, first_ns) for begin, end in worked if begin < last_ns and end > first_ns
        )
        assert used_ns <= share * SECOND


def test_who_is_always_busy_is_outside_for_a_few_milliseconds_at_a_time() -> None:
    machine, at_ns, outside = Recorded(), 0, list[int]()
    kept = RealTimeShare(machine, 0, 0.95)
    for _ in range(20_000):
        at_ns += 100 * US
        inside = machine.inside
        kept.busy(at_ns)
        if inside and not machine.inside:
            outside.append(0)
        elif outside and not machine.inside:
            outside[-1] += 100 * US
    assert 30 < len(outside) < 45, "in two seconds"
    assert max(outside) <= 1.1 * OUT_NS


@pytest.mark.parametrize("share", [0, 1])
def test_without_the_class_or_a_limit_nothing_is_kept(share: float) -> None:
    assert real_time_share(Recorded(share), 0) is None


def test_a_thread_leaves_the_class_and_comes_back() -> None:
    if not scheduling.fifo(scheduling.RUNTIME_PRIORITY):
        pytest.skip("no real-time class here")
    try:
        machine = ThisMachine(real_time=True)
        assert 0 < machine.real_time_share <= 1
        machine.real_time(False)
        assert os.sched_getscheduler(0) == os.SCHED_OTHER and not scheduling.has_fifo()
        machine.real_time(True)
        assert scheduling.has_fifo()
    finally:
        scheduling.ordinary()
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    assert ThisMachine().real_time_share == 0
