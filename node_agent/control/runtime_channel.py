"""Questions to one incarnation of the runtime and its answers, over the channel of node_agent/host/ipc.py."""

import asyncio
from collections import deque
from collections.abc import Callable

from node_agent.host import ipc
from node_agent.host.channel_end import ChannelEnd

MOST_OUTGOING = 256

Question = Callable[[int], ipc.Message]  # from the id that comes back in the answer


class RuntimeLink:
    """Dies with its incarnation: every question that is open then has the answer None.

    changed: called with each PlanChanged, in order with the answers.
    """

    def __init__(self, boot: int, channel: ChannelEnd, changed: Callable[[ipc.PlanChanged], None]) -> None:
        self.boot, self.channel, self.changed = boot, channel, changed
        self.alive = True
        self._loop = asyncio.get_running_loop()
        self._ids = 0
        self._open: dict[int, asyncio.Future[ipc.Message | None]] = {}
        self._outgoing: deque[ipc.Message] = deque()
        self._loop.add_reader(channel.fileno(), self._readable)

    def ask(self, question: Question) -> "asyncio.Future[ipc.Message | None]":
        """The answer, later; None where there is none because the runtime is gone or reads nothing."""
        answer: asyncio.Future[ipc.Message | None] = self._loop.create_future()
        if not self.alive or len(self._outgoing) >= MOST_OUTGOING:
            answer.set_result(None)
            return answer
        self._ids += 1
        self._open[self._ids] = answer
        self._outgoing.append(question(self._ids))
        self._flush()
        return answer

    async def ask_within(self, question: Question, seconds: float) -> ipc.Message | None:
        """As `ask`, None after that time as well."""
        answer = self.ask(question)
        await asyncio.wait((answer,), timeout=seconds)
        return answer.result() if answer.done() else None

    def close(self) -> None:
        """The incarnation is over."""
        if self.alive:
            self.alive = False
            self._loop.remove_reader(self.channel.fileno())
            self._loop.remove_writer(self.channel.fileno())
            self.channel.close()
            self._outgoing.clear()
            for answer in self._open.values():
                if not answer.done():
                    answer.set_result(None)
            self._open.clear()

    def _flush(self) -> None:
        while self._outgoing:
            if not self.channel.send(self._outgoing[0]):
                if self.channel.closed:
                    self.close()
                else:
                    self._loop.add_writer(self.channel.fileno(), self._writable)
                return
            self._outgoing.popleft()

    def _writable(self) -> None:
        self._loop.remove_writer(self.channel.fileno())
        self._flush()

    def _readable(self) -> None:
        for message, _ in self.channel.receive():
            if isinstance(message, ipc.PlanChanged):
                self.changed(message)
            elif isinstance(message, (ipc.PlanAnswer, ipc.Status, ipc.Profile, ipc.Operators)):
                answer = self._open.pop(message.id, None)
                if answer is not None and not answer.done():
                    answer.set_result(message)
        if self.channel.closed:
            self.close()
