"""The rules of the supervisor on a simulated machine: what is replaced, when, and what is written down of it."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from node_agent.core.lineage import Lineage
from node_agent.operators.registry import Registry
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.simulated_clock import SimulatedClock
from node_agent.virtual.simulated.simulated_machine import SimulatedMachine
from node_agent.virtual.simulated.simulated_network import SimulatedHost, Wires
from node_agent.virtual.simulated.virtual_time import VirtualTime

MS, SECOND = 1_000_000, 1_000_000_000


def _nobody(node: str, epoch: int, at_ns: int, lineage: Lineage, payload: Any) -> None:
    """No results."""


@pytest.fixture
def machine() -> SimulatedMachine:
    """It has been on for two seconds."""
    time = VirtualTime()
    host = SimulatedHost(Wires(time, Draws(1)), "127.0.0.1")
    made = SimulatedMachine(time, "a", host, SimulatedClock(time, "c", 50, 7 * SECOND), Draws(2), Registry, _nobody)
    made.start()
    time.run_until(2 * SECOND)
    assert made.agent is not None and not made.failures
    return made


def after(machine: SimulatedMachine, ns: int) -> None:
    machine.time.run_until(machine.time.now_ns + ns)
    assert not machine.failures


def processes(machine: SimulatedMachine) -> tuple[object, object]:
    assert machine.agent is not None
    return machine.agent.runtime, machine.agent.control


@pytest.mark.parametrize("which", ["runtime", "control"])
def test_a_process_that_stands_still_is_replaced_and_the_other_is_not(machine: SimulatedMachine, which: str) -> None:
    runtime, control = processes(machine)
    assert machine.freeze(which) is not None
    after(machine, 2 * SECOND)
    assert not machine.counts["stood_still"]
    after(machine, 10 * SECOND)
    assert machine.counts["stood_still"] == 1 and not machine.counts["crashed"]
    now = processes(machine)
    assert (now[0] is runtime, now[1] is control) == (which == "control", which == "runtime")


def test_a_process_that_stands_still_for_a_moment_stays(machine: SimulatedMachine) -> None:
    before = processes(machine)
    for which in ("runtime", "control"):
        go_on = machine.freeze(which)
        assert go_on is not None
        after(machine, 2 * SECOND)
        go_on()
        after(machine, 2 * SECOND)
    assert processes(machine) == before and not machine.counts["stood_still"]


@pytest.mark.parametrize("how", ["suspend", "stop all"])
def test_a_machine_that_stood_still_as_a_whole_goes_on_as_it_was(machine: SimulatedMachine, how: str) -> None:
    before = processes(machine)
    if how == "suspend":
        machine.suspend()
        after(machine, 100 * SECOND)
        machine.go_on()
    else:
        going = [machine.freeze(which) for which in ("supervisor", "runtime", "control")]
        after(machine, 9 * SECOND)  # beyond it the service manager ends the supervisor
        for go_on in going:  # the supervisor first: it finds the others as silent as they were
            assert go_on is not None
            go_on()
            after(machine, 500 * MS)
    after(machine, 20 * SECOND)
    assert processes(machine) == before and not machine.counts["stood_still"]


@pytest.mark.parametrize(
    "kill", [SimulatedMachine.kill_runtime, SimulatedMachine.kill_control], ids=["runtime", "control"]
)
def test_what_crashes_again_and_again_is_restarted_ever_more_rarely(
    machine: SimulatedMachine, kill: Callable[[SimulatedMachine], bool]
) -> None:
    deaths: list[int] = []
    while machine.time.now_ns < 22 * SECOND:
        if kill(machine):
            deaths.append(machine.time.now_ns)
        after(machine, MS)
    pauses = [later - earlier for earlier, later in itertools.pairwise(deaths)]
    assert pauses[0] < 200 * MS and pauses[-1] >= 2 * SECOND and pauses == sorted(pauses)


def test_an_agent_whose_supervisor_dies_is_started_again_and_loses_no_count(machine: SimulatedMachine) -> None:
    assert machine.kill_supervisor()
    assert machine.agent is None and not machine.rings.open(machine.rings.paths()[0]).cells[3]
    after(machine, 4 * SECOND)
    assert machine.agent is not None and machine.counts["agents"] == 2
    assert machine.rings.paths() and len(machine.rings.paths()) == 1  # control has drained the one before


def test_an_agent_ends_in_order(machine: SimulatedMachine) -> None:
    machine.stop()
    after(machine, 5 * SECOND)
    assert machine.agent is None and machine.counts["ended"] == 1 and not machine.rings.paths()
