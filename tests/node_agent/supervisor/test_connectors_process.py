"""The rules for the process of the connectors: when there is one, and that nothing of it reaches the others."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import pytest

from node_agent.host import ipc
from node_agent.supervisor.child_process import SupervisedProcess
from node_agent.supervisor.connectors_process import ConnectorsProcess
from node_agent.supervisor.process_host import Ended, ProcessHost

MS, SECOND = 10**6, 10**9
PLANS = ipc.Connect((("ab" * 32, True),))
NOBODY = ipc.Connect(())


class Child:
    """`ChildProcess` that ends when it is told to."""

    def __init__(self) -> None:
        self.ended: Ended | None = None
        self.killed = False

    def reap(self) -> Ended | None:
        ended, self.ended = self.ended, None
        return ended

    def kill(self) -> None:
        self.killed = True


class World:
    """A clock, and the processes that were started. `theirs`: the other end of the newest one's channel."""

    def __init__(self) -> None:
        self.at_ns = SECOND
        self.started: list[Child] = []
        self.said: list[str] = []
        self.full = False
        self.rules = ConnectorsProcess(cast(ProcessHost, self), self.begin, lambda event, text: self.said.append(text))

    def begin(self, child: SupervisedProcess, plans: ipc.Connect) -> None:
        if self.full:
            raise OSError(12, "Cannot allocate memory")
        ours, self.theirs = ipc.Channel.pair()
        self.started.append(Child())
        child.started(self.started[-1], ours, self.at_ns)

    def now_ns(self) -> int:
        return self.at_ns

    def sleep(self, ns: int) -> None:
        self.at_ns += ns

    def step(self, after_ns: int = 20 * MS) -> ipc.Connectors | None:
        self.at_ns += after_ns
        return self.rules.step(self.at_ns)

    def go_on(self, ns: int) -> list[ipc.Connectors]:
        """Looks as often as a supervisor does; what control was told."""
        return [told for _ in range(ns // (20 * MS)) if (told := self.step()) is not None]


@pytest.fixture
def world() -> World:
    return World()


def counted(n: int) -> ipc.Connectors:
    return ipc.Connectors((("in", "from", "mqtt", True, (("received", n),), True, 0, ""),), 77)


def test_there_is_one_while_a_plan_has_connectors(world: World) -> None:
    assert world.go_on(SECOND) == [] and world.started == []
    world.rules.connect(PLANS)
    world.step()
    assert len(world.started) == 1
    world.rules.connect(ipc.Connect((("cd" * 32, True),)))
    world.rules.connect(NOBODY)
    world.step()
    assert [message for message, _ in world.theirs.receive()] == [ipc.Connect((("cd" * 32, True),)), ipc.Stop()]
    world.started[0].ended = Ended(0, "exit code 0")
    assert world.go_on(SECOND) == [ipc.Connectors((), 0, 0)]
    assert len(world.started) == 1 and world.said == []


def test_one_that_does_not_stop_is_killed(world: World) -> None:
    world.rules.connect(PLANS)
    world.step()
    world.rules.connect(NOBODY)
    world.go_on(3 * SECOND)
    assert world.started[0].killed and len(world.started) == 1
    world.rules.connect(PLANS)
    world.go_on(SECOND)
    assert len(world.started) == 2


def test_one_that_ends_is_started_again_with_growing_pauses(world: World) -> None:
    world.rules.connect(PLANS)
    began = []
    for number in range(1, 6):
        while len(world.started) < number:
            world.step()
        began.append(world.at_ns)
        world.started[-1].ended = Ended(-9, "killed by SIGKILL")
    pauses = [later - earlier for earlier, later in pairwise(began)]
    assert pauses == sorted(pauses) and pauses[0] < 100 * MS < pauses[-1]
    assert world.said[0] == "connectors crashed: killed by SIGKILL; they are started again"


def test_counts_are_handed_on_and_told_anew_to_a_new_control(world: World) -> None:
    world.rules.connect(PLANS)
    world.step()
    world.theirs.send(counted(3))
    assert world.step() == counted(3)
    assert world.step() is None
    world.rules.tell_anew()
    assert world.step() == counted(3)
    world.started[0].ended = Ended(1, "exit code 1")
    told = world.step()
    assert told is not None and told.restarts == 1
    world.go_on(SECOND)
    world.theirs.send(counted(1))
    assert world.step() == counted(1)._replace(restarts=1)


def test_connectors_whose_process_has_ended_are_there_and_not_connected(world: World) -> None:
    world.rules.connect(PLANS)
    world.step()
    world.theirs.send(counted(3))
    world.step()
    for restarts in (1, 2):
        world.go_on(SECOND)
        world.started[-1].ended = Ended(-11, "killed by SIGSEGV")
        told = world.step()
        assert told is not None
        ((*of, connected, events, was_connected, apart_ns, why),) = told.rows
        assert (of, connected, events, was_connected) == (["in", "from", "mqtt"], False, (("received", 3),), True)
        assert restarts * SECOND < apart_ns < (restarts + 1) * SECOND and "SIGSEGV" in why
        assert (told.pid, told.restarts) == (0, restarts)


def test_one_that_stands_still_is_killed_and_started_again(world: World) -> None:
    world.rules.connect(PLANS)
    world.step()
    for _ in range(20):
        world.theirs.send(counted(1))
        world.go_on(SECOND)
    assert not world.started[0].killed
    world.go_on(15 * SECOND)
    assert world.started[0].killed and len(world.started) == 2
    assert "stood still" in world.said[0]


def test_a_machine_without_room_tries_again_later(world: World) -> None:
    world.full = True
    world.rules.connect(PLANS)
    world.go_on(SECOND)
    assert world.started == [] and "cannot be started now" in world.said[0]
    world.full = False
    world.go_on(3 * SECOND)
    assert len(world.started) == 1


def test_at_the_end_it_is_asked_to_stop_and_killed_if_it_does_not(world: World) -> None:
    world.rules.connect(PLANS)
    world.step()
    world.rules.end()
    assert world.started[0].killed
    assert [message for message, _ in world.theirs.receive()] == [ipc.Stop()]
