"""A child process as the supervisor's rules know it: its channel, its restarts, its end."""

from node_agent.host import ipc
from node_agent.host.channel_end import ChannelEnd
from node_agent.link.backoff import Backoff
from node_agent.supervisor.process_host import ChildProcess, Ended
from node_agent.supervisor.watchdog import Silence


class SupervisedProcess:
    """One child process and the channel to it. process: None while there is none."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process: ChildProcess | None = None
        self.channel: ChannelEnd | None = None
        self.started_ns = 0
        self.backoff = Backoff(50_000_000, 2_000_000_000)
        self.ready = False
        self.failed = ""  # why it cannot start
        self.silence = Silence()
        self.due_ns = 0  # when it is to be heard of again at the latest
        self.replaced = 0  # how many of it stood still

    def started(self, process: ChildProcess, channel: ChannelEnd, at_ns: int) -> None:
        """There is a new one, at the other end of this channel."""
        if self.channel is not None:
            self.channel.close()
        self.process, self.channel, self.started_ns, self.ready = process, channel, at_ns, False

    def reap(self) -> Ended | None:
        """How it ended if it has, told once."""
        if self.process is None:
            return None
        ended = self.process.reap()
        if ended is not None:
            self.process, self.ready = None, False
        return ended

    def kill(self) -> None:
        """At once, and reaped."""
        if self.process is not None:
            self.process.kill()
            self.process, self.ready = None, False

    def say(self, message: ipc.Message, descriptor: int | None = None) -> bool:
        """False: it is not there, or does not read."""
        return self.process is not None and self.channel is not None and self.channel.send(message, descriptor)

    def ask_to_stop(self) -> None:
        """Say Stop."""
        self.say(ipc.Stop())
