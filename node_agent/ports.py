"""What an agent needs of the world: clock, network, machine, disk, trace rings. `host` has the real ones, `virtual`
simulated ones.

The agent is the same code in both. The runtime reads no clock, opens no socket and asks nothing of the kernel but
through these. No part of the agent touches its state directory but through `Disk`, nor makes or removes trace rings but
through `Rings`.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from protos.records import Header

AnyRing_co = TypeVar("AnyRing_co", covariant=True)  # the trace ring is host's

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

    @property
    def steady_since_ns(self) -> int | None:
        """It has not stood still since then, as far as this process knows. None: never since the machine was booted."""

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


class Returned(NamedTuple):
    """The end of a call: when, on the node's clock, what it gave or raised, and how long it took: CPU time and time
    that went by; 0: nobody measures it."""

    at_ns: int
    value: object
    error: BaseException | None
    cpu_ns: int = 0
    elapsed_ns: int = 0


class Caller(Protocol):
    """Makes calls beside the scheduling thread, one at a time."""

    @property
    def busy(self) -> bool:
        """Whether a call has begun that has not ended."""

    def call(self, function: Callable[[], object]) -> None:
        """Begin a call; none is under way. Its end is told within `Network.wait`, or at once."""

    def close(self) -> None:
        """No call comes any more, and no end is told. One that never ends holds up nobody."""


class Callers(Protocol):
    """What blocks for long, or for ever, is called by them."""

    def open(self, name: str, returned: Callable[[Returned], None], paced: bool = False) -> Caller:
        """A caller; `returned` is told of each end. paced: a call ends when the world lets it, not when the work of it
        is done, as that of an iterator does."""


class Machine(Protocol):
    """The computer that the runtime's process has a part of."""

    def resident_bytes(self) -> int:
        """Memory of this process alone."""

    def pin(self, cpu: int) -> bool:
        """Stay on that core. False where there is none of that number."""

    @property
    def real_time_share(self) -> float:
        """The part of a core that threads of the real-time class may have. 0: this process has not that class."""

    def real_time(self, wanted: bool) -> None:
        """Put the calling thread into the real-time class, or into the ordinary one, before all others there."""

    def settle(self) -> None:
        """Nothing runs now: a good moment to collect garbage, and to leave out of later collections what is here."""


class Disk(Protocol):
    """The files of the state directory. Each method raises OSError as the operating system does.

    The end of a process loses nothing that was written. A loss of power may lose, tear or reorder all that was not
    synced: of a file its content, of a folder its entries, that is which files were made, renamed and removed in it.
    """

    def read(self, path: Path, most: int | None = None) -> bytes:
        """The file's content. most: bytes, its beginning."""

    def replace(self, path: Path, data: bytes) -> None:
        """Give a file this content. A crash leaves the old or the new one; on return the new one is on the disk."""

    def write(self, path: Path, data: bytes, at: int) -> None:
        """Write behind the first `at` bytes, all of it or nothing: on a full disk the file ends there. It is made where
        there is none."""

    def truncate(self, path: Path, size: int) -> None:
        """Keep its first `size` bytes."""

    def allocate(self, path: Path, size: int) -> None:
        """Have a file of that many bytes at least, with the room for them."""

    def rename(self, old: Path, new: Path) -> None:
        """Another name in the same folder; what had it is gone at that instant."""

    def remove(self, path: Path) -> None:
        """Remove a file."""

    def remove_folder(self, path: Path) -> None:
        """Remove a folder and what is in it, as far as that can be done. Raises nothing."""

    def make_folder(self, path: Path) -> bool:
        """Make it, and those above it, for this user only. False where it is there already."""

    def entries(self, folder: Path) -> Sequence[Path]:
        """What is in it, sorted."""

    def exists(self, path: Path) -> bool:
        """Whether there is a file or a folder."""

    def size(self, path: Path) -> int:
        """Of a file [bytes]."""

    def modified_ns(self, path: Path) -> int:
        """When a file was written last, on a clock of the disk: later where it was written later, or the same."""

    def age_ns(self, path: Path) -> int:
        """How long ago a file was written last; 0 where the disk has no clock."""

    def sync(self, paths: Iterable[Path]) -> None:
        """Bring the content of files and the entries of folders to the disk. What is not there any more is left out."""

    def free_bytes(self, folder: Path) -> int:
        """The room that is left where the folder is."""


class Rings(Protocol[AnyRing_co]):
    """The trace rings of one agent, in memory: they outlive its processes, and are gone with the power.

    A ring is called by a path, as `paths` gives it; it need not be one of the disk.
    """

    @property
    def parent(self) -> Path:
        """Where there has to be room for rings, for people to read."""

    def hold(self) -> None:
        """The agent begins. Raises OSError."""

    def release(self) -> None:
        """In a child that was forked: only the supervisor's life counts."""

    def create(self, header: Header) -> AnyRing_co:
        """A new ring, of a new incarnation. Raises OSError where there is no room."""

    def open(self, path: Path) -> AnyRing_co:
        """A ring that is there. Raises ValueError where it is none, OSError where it cannot be opened."""

    def remove(self, path: Path) -> None:
        """The ring goes, or is gone already. Raises OSError."""

    def paths(self) -> Sequence[Path]:
        """All rings, of this agent and of earlier ones that were not drained; the stem is the incarnation in 16 hex
        digits. Raises OSError."""

    def make_room(self, live: Sequence[Path] = ()) -> int:
        """Before another ring: where none was drained for long, the oldest go. How many went. live: not these, they
        are written to."""

    def mark_abandoned(self) -> int:
        """At the agent's start: rings that still say `live` were left by one that was killed. How many there were."""

    def tidy(self) -> None:
        """The agent ends: leave nothing where control has drained every ring."""

    def sweep(self) -> int:
        """Remove what agents that were killed and will not come again have left. How many places."""


class Ports(NamedTuple):
    """All of them, of one runtime."""

    clock: Clock
    network: Network
    machine: Machine
    callers: Callers
