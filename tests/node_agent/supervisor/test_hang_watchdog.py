"""When the supervisor takes an instance for hung, on plain values of the cell that names it."""

from dataclasses import dataclass
from typing import cast

import pytest

from node_agent.host.trace_ring import Ring, RunningInstance
from node_agent.supervisor.watchdog import GRACE_NS, hung

HANG_NS = 300_000_000
RUNNING = RunningInstance(1_000, HANG_NS, unit=2, flags=0, source=1, epoch=1, seq=7, ordinal=0)
LATEST_NS = RUNNING.start_ns + HANG_NS + GRACE_NS


@dataclass
class Cell:
    """What each reading of the ring's cell gives, in order; the last one from then on."""

    readings: list[RunningInstance | None]

    def running_instance(self) -> RunningInstance | None:
        """The instance, None: nothing runs."""
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]


def watched(at_ns: int, *readings: RunningInstance | None) -> RunningInstance | None:
    return hung(cast(Ring, Cell(list(readings))), at_ns)


@pytest.mark.parametrize("at_ns", [0, RUNNING.start_ns, LATEST_NS])
def test_up_to_its_limit_and_the_grace_an_instance_runs_on(at_ns: int) -> None:
    assert watched(at_ns, RUNNING) is None


def test_beyond_them_it_hangs() -> None:
    assert watched(LATEST_NS + 1, RUNNING) == RUNNING


def test_the_limit_is_the_instance_s_own() -> None:
    patient = RUNNING._replace(hang_ns=2 * HANG_NS)
    assert watched(LATEST_NS + 1, patient) is None
    assert watched(LATEST_NS + HANG_NS + 1, patient) == patient


def test_where_nothing_runs_nothing_hangs() -> None:
    assert watched(1 << 62, None) is None


@pytest.mark.parametrize("after", [None, RUNNING._replace(seq=8), RUNNING._replace(start_ns=RUNNING.start_ns + 1)])
def test_a_cell_that_changes_while_it_is_read_is_not_of_a_hung_instance(after: RunningInstance | None) -> None:
    assert watched(LATEST_NS + 1, RUNNING, after) is None
