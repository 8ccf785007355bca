"""Channels between the processes of a simulated machine: what they know of a pair of Unix sockets, in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from node_agent.host import ipc
from node_agent.ports import READABLE, WRITABLE
from node_agent.virtual.simulated.simulated_network import SimulatedNetwork, Wires

BUFFER_BYTES = 212_992  # of messages that were not read, one way; as Linux has it
MESSAGE_BYTES = 768  # that the kernel needs for each


class _Unread(NamedTuple):
    data: bytes
    beside: SimulatedEnd | None


class _Side:
    """One end, however many processes hold it."""

    def __init__(self) -> None:
        self.holders: list[SimulatedEnd] = []
        self.unread: deque[_Unread] = deque()
        self.unread_bytes = 0

    def notify(self) -> None:
        for each in self.holders:
            if each.network is not None:
                each.network.notify(each.fileno())


class Channels:
    """All channels of one machine. What is passed beside a message is found by its descriptor."""

    def __init__(self, wires: Wires) -> None:
        self._wires = wires
        self._held: dict[int, SimulatedEnd] = {}

    def pair(self) -> tuple[SimulatedEnd, SimulatedEnd]:
        """Both ends of a new channel."""
        one, other = _Side(), _Side()
        return self._hold(one, other), self._hold(other, one)

    def open_end(self, descriptor: int) -> SimulatedEnd:
        """The end that came beside a message, or any that is held."""
        return self._held[descriptor]

    def again(self, end: SimulatedEnd) -> SimulatedEnd:
        """Another holder of the same end, as a process that was forked is."""
        return self._hold(*end.sides)

    def _hold(self, own: _Side, far: _Side) -> SimulatedEnd:
        end = SimulatedEnd(self, self._wires.descriptor(), own, far)
        self._held[end.fileno()] = end
        own.holders.append(end)
        return end

    def let_go(self, end: SimulatedEnd, descriptor: int) -> None:
        """It was closed."""
        self._held.pop(descriptor, None)
        own, far = end.sides
        own.holders.remove(end)
        if own.holders:
            return
        while own.unread:
            if (beside := own.unread.popleft().beside) is not None:
                beside.close()
        far.notify()


class SimulatedEnd:
    """`ChannelEnd` of one process. network: of the process that waits for it."""

    def __init__(self, channels: Channels, descriptor: int, own: _Side, far: _Side) -> None:
        self._channels, self._descriptor, self.sides = channels, descriptor, (own, far)
        self.network: SimulatedNetwork | None = None
        self.closed = False
        self._read = False  # to the end
        self.refused = 0

    def fileno(self) -> int:
        """Its number; -1 once closed."""
        return self._descriptor

    @property
    def ready(self) -> int:
        """READABLE while a message waits or the other end is gone, WRITABLE while there is room."""
        own, far = self.sides
        mask = READABLE if own.unread or not far.holders else 0
        return mask | (WRITABLE if far.unread_bytes < BUFFER_BYTES // 2 else 0)

    def send(self, message: ipc.Message, descriptor: int | None = None) -> bool:
        """False where the other end is gone or the buffer is full."""
        data = ipc.encode(message)
        if len(data) > ipc.MOST_BYTES:
            raise ipc.IpcError(f"{type(message).__name__} takes {len(data)} bytes, at most {ipc.MOST_BYTES} fit")
        far = self.sides[1]
        if self._descriptor < 0 or not far.holders:
            self.closed = True
            return False
        if far.unread_bytes + len(data) + MESSAGE_BYTES > BUFFER_BYTES:
            self.refused += 1
            return False
        beside = None if descriptor is None else self._channels.again(self._channels.open_end(descriptor))
        far.unread.append(_Unread(data, beside))
        far.unread_bytes += len(data) + MESSAGE_BYTES
        far.notify()
        return True

    def receive(self) -> Sequence[tuple[ipc.Message, int | None]]:
        """All messages that have come."""
        if self._read:
            return ()
        own, far = self.sides
        found: list[tuple[ipc.Message, int | None]] = []
        while own.unread:
            data, beside = own.unread.popleft()
            own.unread_bytes -= len(data) + MESSAGE_BYTES
            found.append((ipc.decode(data), None if beside is None else beside.fileno()))
        if not far.holders:
            self.closed = self._read = True
        if found:
            far.notify()
        return found

    def close(self) -> None:
        """Of this process; the end is gone when nobody holds it any more."""
        self.closed = self._read = True
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        if self.network is not None:
            self.network.dropped(descriptor)
        self._channels.let_go(self, descriptor)
