"""Channels and loops of processes in virtual time: as Unix sockets and asyncio are, with nothing of this computer."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from node_agent.host import ipc
from node_agent.ports import READABLE
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.simulated_channel import Channels
from node_agent.virtual.simulated.simulated_loop import SimulatedLoop
from node_agent.virtual.simulated.simulated_network import SimulatedHost, SimulatedNetwork, Wires
from node_agent.virtual.simulated.virtual_time import Process, VirtualTime

MS = 1_000_000


class World:
    """Processes on one host, each with a network and a loop."""

    def __init__(self) -> None:
        self.time = VirtualTime()
        self.wires = Wires(self.time, Draws(1))
        self.host = SimulatedHost(self.wires, "127.0.0.1")
        self.channels = Channels(self.wires)
        self.failures: list[dict[str, Any]] = []

    def network(self, body: Callable[[SimulatedNetwork], None]) -> SimulatedNetwork:
        """Of a new process that does this."""

        def wait_until(at_ns: int) -> None:
            process.sleep_until(max(at_ns, self.time.now_ns + 1), wakeable=True)

        network = SimulatedNetwork(self.host, lambda: self.time.now_ns, wait_until)
        process = network.process = Process(self.time, lambda: body(network))
        return network

    def loop(self, main: Callable[[SimulatedNetwork], Coroutine[Any, Any, None]]) -> SimulatedNetwork:
        """A process that runs this in a loop of its own."""

        def body(network: SimulatedNetwork) -> None:
            loop = SimulatedLoop(network, lambda: self.time.now_ns, self.failures.append)
            loop.run_until_complete(main(network))

        return self.network(body)


@pytest.fixture
def world() -> World:
    return World()


def test_messages_arrive_in_order_with_the_end_beside_them(world: World) -> None:
    one, other = world.channels.pair()
    inner, passed = world.channels.pair()
    assert one.send(ipc.NewChannel(), passed.fileno()) and one.send(ipc.Stop())
    passed.close()  # the sender's; the one under way is another holder
    (first, descriptor), (second, nothing) = other.receive()
    assert (first, second, nothing) == (ipc.NewChannel(), ipc.Stop(), None)
    assert descriptor is not None
    assert world.channels.open_end(descriptor).send(ipc.Failed("x"))
    assert inner.receive() == [(ipc.Failed("x"), None)] and not inner.closed


def test_a_full_channel_refuses_and_takes_more_when_it_was_read(world: World) -> None:
    one, other = world.channels.pair()
    message = ipc.Failed("x" * 10_000)
    while one.send(message):
        pass
    assert one.refused == 1 and not one.closed
    taken = len(other.receive())
    assert 5 < taken < 30  # some 200 KiB
    assert one.send(message)
    with pytest.raises(ipc.IpcError):
        one.send(ipc.Failed("x" * ipc.MOST_BYTES))


def test_an_end_is_gone_when_nobody_holds_it_and_what_was_said_is_still_read(world: World) -> None:
    one, other = world.channels.pair()
    forked = world.channels.again(one)
    one.send(ipc.Stop())
    one.close()
    assert [message for message, _ in other.receive()] == [ipc.Stop()] and not other.closed
    forked.send(ipc.Stop())
    forked.close()
    assert other.ready & READABLE
    assert [message for message, _ in other.receive()] == [ipc.Stop()] and other.closed
    assert not other.send(ipc.Stop())


def test_an_end_that_was_under_way_to_a_process_that_died_is_gone(world: World) -> None:
    one, other = world.channels.pair()
    inner, passed = world.channels.pair()
    one.send(ipc.NewChannel(), passed.fileno())
    passed.close()
    other.close()
    assert not inner.receive() and inner.closed


def test_a_process_that_is_killed_closes_its_ends(world: World) -> None:
    one, other = world.channels.pair()
    network = world.network(lambda network: network.wait(10) and None)
    network.adopt(one)
    world.time.run_until(MS)
    assert network.process is not None
    network.process.kill()
    network.end()
    assert not other.receive() and other.closed


def test_loops_take_turns_and_each_is_the_running_one_of_its_own(world: World) -> None:
    seen: list[tuple[str, int]] = []

    def ticking(name: str, period_ms: int) -> Callable[[SimulatedNetwork], Coroutine[Any, Any, None]]:
        async def main(network: SimulatedNetwork) -> None:
            loop = asyncio.get_running_loop()
            for _ in range(3):
                await asyncio.sleep(period_ms / 1e3)
                assert asyncio.get_running_loop() is loop
                assert (await asyncio.to_thread(lambda: 7)) == 7
                seen.append((name, world.time.now_ns // MS))

        return main

    world.loop(ticking("a", 10))
    world.loop(ticking("b", 15))
    world.time.run_until(100 * MS)
    assert seen == [("a", 10), ("b", 15), ("a", 20), ("a", 30), ("b", 30), ("b", 45)] or seen == [
        ("a", 10), ("b", 15), ("a", 20), ("b", 30), ("a", 30), ("b", 45)
    ]  # fmt: skip
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
    assert not world.failures


def test_a_loop_wakes_for_a_message_and_for_room(world: World) -> None:
    one, other = world.channels.pair()
    heard: list[str] = []

    async def main(network: SimulatedNetwork) -> None:
        network.adopt(other)
        loop, over = asyncio.get_running_loop(), asyncio.Event()

        def read() -> None:
            heard.extend(message.why for message, _ in other.receive() if isinstance(message, ipc.Failed))
            if other.closed:
                loop.remove_reader(other.fileno())
                over.set()

        loop.add_reader(other.fileno(), read)
        await over.wait()

    world.loop(main)
    world.time.at(5 * MS, lambda: one.send(ipc.Failed("early")) and None)
    world.time.at(8 * MS, one.close)
    world.time.run_until(7 * MS)
    assert heard == ["early"]
    world.time.run_until(20 * MS)
    assert not world.failures


def test_what_a_callback_raises_is_told(world: World) -> None:
    async def main(network: SimulatedNetwork) -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(0.001)

    world.loop(main)
    world.time.run_until(MS * 10)
    assert isinstance(world.failures[0]["exception"], ZeroDivisionError)
