"""One end of a channel between two processes of an agent: `ipc.Channel` is the real one, `virtual` has another."""

from collections.abc import Callable, Sequence
from typing import Protocol

from node_agent.host.ipc import Message


class ChannelEnd(Protocol):
    """Messages in order, each whole; nobody waits on it. closed: the other end is gone, or this one was closed."""

    closed: bool

    def fileno(self) -> int:
        """A number for those who wait for messages; -1 once closed here."""

    def send(self, message: Message, descriptor: int | None = None) -> bool:
        """descriptor: of an end that is passed beside it; the sender's own stays open. False: it was not sent, since
        the other end is gone (`closed`) or does not read. Raises IpcError where it is too long."""

    def receive(self) -> Sequence[tuple[Message, int | None]]:
        """All messages that have come, each with the descriptor beside it. Sets `closed` at the end."""

    def close(self) -> None:
        """Close this end."""


OpenEnd = Callable[[int], ChannelEnd]  # of a descriptor that came beside a message
