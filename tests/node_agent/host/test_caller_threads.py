"""Calls on threads of their own: they hold up nobody, their ends are told where the network is waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from node_agent.host.clock import now_ns
from node_agent.host.network import SocketNetwork
from node_agent.host.threads.caller_threads import CallerThreads
from node_agent.ports import Returned

LONG_S = 20.0


def _until(network: SocketNetwork, done: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG_S
    while not done() and time.monotonic() < end:
        network.wait(0.05)
    assert done()


def test_a_call_that_blocks_holds_up_neither_another_nor_the_one_that_waits() -> None:
    network, told, held = SocketNetwork(), list[tuple[str, object]](), threading.Event()
    callers = CallerThreads(network, now_ns)
    slow = callers.open("slow", lambda end: told.append(("slow", end.value)))
    quick = callers.open("quick", lambda end: told.append(("quick", end.value)))
    slow.call(lambda: held.wait(LONG_S))
    for number in range(3):
        quick.call(lambda number=number: number)  # type: ignore[misc]
        _until(network, lambda: not quick.busy)
    assert told == [("quick", 0), ("quick", 1), ("quick", 2)] and slow.busy
    held.set()
    _until(network, lambda: not slow.busy)
    assert told[-1] == ("slow", True)
    slow.close()
    quick.close()


def test_what_a_call_raises_is_told_with_the_instant_of_its_end() -> None:
    network, ends = SocketNetwork(), list[Returned]()
    caller = CallerThreads(network, now_ns).open("odd", ends.append)

    def leaves() -> None:
        raise SystemExit("wants to end the process")

    before_ns = now_ns()
    caller.call(leaves)
    _until(network, lambda: bool(ends))
    assert isinstance(ends[0].error, SystemExit) and before_ns <= ends[0].at_ns <= now_ns()
    caller.close()


def test_a_caller_that_is_closed_tells_nothing_and_its_thread_ends() -> None:
    network, ends, held = SocketNetwork(), list[Returned](), threading.Event()
    caller = CallerThreads(network, now_ns).open("gone", ends.append)
    caller.call(lambda: held.wait(LONG_S))
    named = [thread for thread in threading.enumerate() if thread.name == "source gone"]
    assert len(named) == 1 and named[0].daemon, "it keeps no process from its end"
    caller.close()
    held.set()
    named[0].join(LONG_S)
    network.wait(0)
    assert not named[0].is_alive() and not ends


def test_a_wait_of_less_than_a_millisecond_is_never_too_short() -> None:
    network = SocketNetwork()
    for _ in range(20):
        began_ns = now_ns()
        assert network.wait(0.0002) - began_ns >= 200_000
