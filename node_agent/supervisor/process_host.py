"""What the supervisor's rules need of the world: clock, processes, channels. `supervisor.py` has the real one."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from node_agent.error_codes import Code
from node_agent.host import ipc
from node_agent.host.channel_end import ChannelEnd
from node_agent.host.settings import Settings
from node_agent.host.trace_ring import Inherited, Ring
from node_agent.problems import ProblemError


class StartError(ProblemError):
    """The agent cannot start: why, the mend, and the exit code."""

    def __init__(self, code: Code, text: str, mend: str = "", exit_code: int = 1, subject: str = "") -> None:
        super().__init__(code, text, mend, subject=subject)
        self.exit_code = exit_code


class Ended(NamedTuple):
    """How a process ended. code: of its exit, negative where a signal ended it; text: in words."""

    code: int
    text: str


class ChildProcess(Protocol):
    """A process that was started here."""

    def reap(self) -> Ended | None:
        """How it ended, told once; None: it runs."""

    def kill(self) -> None:
        """End it at once, also where it stands still, and reap it."""


class DataListener(Protocol):
    """A listening data socket, which outlives the runtimes that accept from it."""

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: host, port."""

    def close(self) -> None:
        """Listen no more."""


class RuntimeStart(NamedTuple):
    """What a new runtime is given. control: its end of the channel to control; starts: of runtimes here, with it."""

    settings: Settings
    control: ChannelEnd
    listener: DataListener
    ring: Ring
    starts: int
    taken_over: Sequence[Inherited]


class ControlStart(NamedTuple):
    """What a new control process is given."""

    settings: Settings


class ConnectorsStart(NamedTuple):
    """What a new process of the connectors is given. plans: those that have any."""

    settings: Settings
    plans: ipc.Connect


Start = RuntimeStart | ControlStart | ConnectorsStart


class ProcessHost(Protocol):
    """The machine, for one supervisor."""

    def now_ns(self) -> int:
        """Reads the node's clock, which stands still while the machine is suspended."""

    def wall_ns(self) -> int:
        """Reads the wall clock, for people only."""

    def new_boot(self) -> int:
        """A number for an incarnation, unlike every other one's; never 0."""

    def listen(self, host: str, port: int, near: bool = False) -> DataListener:
        """Begin to listen; port 0: any free one. near: other places of the agent connect there too. Raises
        StartError."""

    def pair(self) -> tuple[ChannelEnd, ChannelEnd]:
        """Both ends of a new channel."""

    def start(self, what: Start, channel: ChannelEnd, give_up: Callable[[], None]) -> ChildProcess:
        """Start a process. channel: its end of the one to the supervisor. give_up: closes what is the supervisor's, in
        a process that has copies. Raises OSError."""

    def sleep(self, ns: int) -> None:
        """Let that time go by."""
