"""What the runtime needs of the world: clock, network, machine. `host` has the real ones, `virtual` simulated ones.

The runtime is the same code in both. It reads no clock, opens no socket and asks nothing of the kernel but through
these.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

READABLE, WRITABLE, FAILED, HUNG_UP = 1, 4, 8, 16  # what a stream is ready for; the numbers are those of epoll
GONE = FAILED | HUNG_UP
FINISHED = 1  # to `Stream.shutdown`: nothing more is written; the number is that of sockets


class Suspended(NamedTuple):
    """The node's clock stood still at some instant of it between these two, for `slept_ns` at least."""

    since_ns: int
    until_ns: int
    slept_ns: int


class Clock(Protocol):
    """The node's clock. domain: 32 hex digits; clocks of one domain are one clock. drift_ppm: how far it may be off."""

    @property
    def domain(self) -> str:
        """The name of the clock. Instants of one domain compare without an offset."""

    @property
    def drift_ppm(self) -> int:
        """The most that the clock drifts against true time, parts per million."""

    @property
    def now_ns(self) -> Callable[[], int]:
        """Reads the clock, which is never set."""

    @property
    def cpu_ns(self) -> Callable[[], int]:
        """Reads the CPU time of the calling thread."""

    def suspended(self) -> Suspended | None:
        """Whether the clock stood still since this was asked before."""


class Handler(Protocol):
    """Handles a stream or a listener that is ready."""

    def on_ready(self, at_ns: int, mask: int) -> None:
        """mask: READABLE, WRITABLE, FAILED, HUNG_UP."""


class Stream(Protocol):
    """One end of a connection: the part of a non-blocking socket that the runtime uses, with its errors."""

    def fileno(self) -> int:
        """A number that no other open stream of this network has."""

    def recv(self, most: int, /) -> bytes:
        """What has come; nothing: the other end has closed. Raises BlockingIOError, OSError."""

    def send(self, data: bytes | bytearray, /) -> int:
        """How much was taken. Raises BlockingIOError, OSError."""

    def shutdown(self, how: int, /) -> None:
        """FINISHED: nothing more is written."""

    def close(self) -> None:
        """Close; what was sent still arrives."""


class Listener(Protocol):
    """Accepts streams at an address."""

    def fileno(self) -> int:
        """As of a stream."""

    def accept(self) -> tuple[Stream, tuple[str, int]]:
        """A stream and the address of its other end. Raises OSError where none is waiting."""

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: host, port."""


class Network(Protocol):
    """Streams, and waiting for them."""

    def dial(self, host: str, port: int) -> Stream:
        """Begin to connect; the stream is WRITABLE when it is connected. Raises OSError."""

    def add(self, descriptor: int, handler: Handler, mask: int = READABLE) -> None:
        """Begin to wait for a stream or a listener."""

    def give(self, descriptor: int, handler: Handler) -> None:
        """Another handler is told from now on."""

    def change(self, descriptor: int, mask: int) -> None:
        """Wait for something else."""

    def remove(self, descriptor: int) -> None:
        """Call before it is closed."""

    def wait(self, seconds: float) -> int:
        """Serve what is ready, after waiting for at most that long. Returns an instant by which all of it had been
        read, so that nothing which came in meanwhile is younger."""


class Machine(Protocol):
    """The computer that the runtime's process has a part of."""

    def resident_bytes(self) -> int:
        """Memory of this process alone."""

    def pin(self, cpu: int) -> bool:
        """Stay on that core. False where there is none of that number."""

    def settle(self) -> None:
        """Nothing runs now: a good moment to collect garbage, and to leave out of later collections what is here."""


class Ports(NamedTuple):
    """All of them, of one runtime."""

    clock: Clock
    network: Network
    machine: Machine
