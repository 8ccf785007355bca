"""The agent's state directory: what survives a restart, and where each file is.

    lock           held by the supervisor as long as the agent runs
    starts         how often a runtime was started here (text); its value modulo 65536 is the lineage epoch
    plans/         plan files and their states (plan_files.py); written by control
    spool/         drained trace records until the coordinator holds them; control's
    rings/         the trace rings, where there is no memory file system; else they are in /dev/shm/shimekiri-*

The ring directory is named after the state directory, so an agent that starts again finds the rings of one that was
killed: the supervisor marks them crashed, control drains them, then removes them. It is memory, so it is not to be
littered: an agent holds a lock on its ring directory and removes it at its end where every ring was drained; `sweep`
removes those that nobody holds and that are empty or whose state directory (named in the file `of`) is gone. What stays
is at most MOST_RINGS rings for each state directory that still exists, and one per running runtime.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from node_agent.ring import PARTIAL_SUFFIX, STATE, Ring
from protos.records import STATE_CRASHED

MEMORY = Path("/dev/shm")  # noqa: S108 - shared memory, not a temporary file
RING_SUFFIX = ".ring"
RINGS_PREFIX = "shimekiri-"
OF_FILE = "of"
MOST_RINGS = 32


class StateError(Exception):
    """The state directory cannot be used; one sentence with the mend."""


class StateDir:
    """Paths below one state directory. Creating it makes the directories, nothing else."""

    def __init__(self, root: Path) -> None:
        self.root = root = root.resolve()
        self.plans, self.spool = root / "plans", root / "spool"
        self._lock = self._rings_lock = -1
        try:
            for directory in (root, self.plans, self.spool):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.rings = self._ring_directory()
        except OSError as error:
            why = "it is a file" if isinstance(error, FileExistsError) else error.strerror
            raise StateError(f"cannot use the state directory {root}: {why}; give another with --state") from None

    def _ring_directory(self) -> Path:
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return MEMORY / f"{RINGS_PREFIX}{name}" if os.access(MEMORY, os.W_OK) else self.root / "rings"

    def lock(self) -> None:
        """Take the lock for the life of this process. Raises StateError where another agent holds it."""
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise StateError(
                f"another agent (pid {pid}) uses the state directory {self.root}; stop it or give another with --state"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._lock = descriptor
        self._hold_rings()

    def _hold_rings(self) -> None:
        """Make the ring directory and lock it against `sweep`, which may be about to remove it."""
        while self._rings_lock < 0:
            self.rings.mkdir(mode=0o700, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                descriptor = os.open(self.rings, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is(descriptor, self.rings):
                    (self.rings / OF_FILE).write_bytes(os.fsencode(self.root))
                    self._rings_lock = descriptor
                else:
                    os.close(descriptor)

    def unlock(self) -> None:
        """For a child that was forked with the locks: drop its copies, so that only the supervisor's life counts."""
        for descriptor in (self._lock, self._rings_lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._lock = self._rings_lock = -1

    def count_start(self) -> int:
        """Count a start of the runtime, durably, before it admits anything: 1, 2, ..."""
        path = self.root / "starts"
        try:
            count = int(path.read_text()) + 1
        except FileNotFoundError:
            count = 1
        except ValueError:
            raise StateError(
                f"{path} is damaged: write the number of runtime starts into it, or a larger one"
            ) from None
        write_durably(path, f"{count}\n".encode())
        return count

    def ring_paths(self) -> list[Path]:
        """All rings, of this agent and of earlier ones that were not drained."""
        return sorted(self.rings.glob(f"*{RING_SUFFIX}"))

    def ring_path(self, boot: int) -> Path:
        """The ring of one incarnation; its directory is made."""
        self.rings.mkdir(mode=0o700, exist_ok=True)
        return self.rings / f"{boot:016x}{RING_SUFFIX}"

    def make_room(self, live: Sequence[Path] = ()) -> int:
        """Before another ring: where none was drained for long, the oldest go. How many went. live: not these, they
        are written to."""
        paths = [path for path in self.ring_paths() if path not in live]
        if len(paths) < MOST_RINGS:
            return 0
        excess = sorted(paths, key=_age)[: len(paths) + 1 - MOST_RINGS]
        for path in excess:
            path.unlink(missing_ok=True)
        return len(excess)

    def tidy(self) -> None:
        """Remove the ring directory where control has drained every ring."""
        _remove_if_drained(self.rings)

    def sweep(self) -> int:
        """Remove what agents that were killed and will not come again have left in memory. How many directories."""
        removed = 0
        for directory in MEMORY.glob(f"{RINGS_PREFIX}*"):
            if directory != self.rings:
                with contextlib.suppress(OSError):  # another one's, or gone meanwhile
                    removed += _sweep_one(directory)
        return removed

    def mark_abandoned(self) -> int:
        """Under the lock: rings that still say `live` belong to an agent that was killed. How many there were."""
        marked = 0
        for path in self.ring_paths():
            try:
                ring = Ring.open(path)
            except (ValueError, OSError):
                path.unlink(missing_ok=True)  # killed while it made the ring: it holds no record
                continue
            if ring.cells[STATE] == 0:
                ring.cells[STATE] = STATE_CRASHED
                marked += 1
            ring.close()
        return marked


def _age(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # drained meanwhile
        return 0


def _is(descriptor: int, path: Path) -> bool:
    """Whether the path still leads to what is open."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(descriptor))


def _sweep_one(directory: Path) -> bool:
    """Raises OSError where it may not be touched, BlockingIOError where an agent holds it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is(descriptor, directory):
            return False
        of = directory / OF_FILE
        if of.exists() and not Path(os.fsdecode(of.read_bytes())).exists():
            for path in directory.glob(f"*{RING_SUFFIX}"):
                path.unlink(missing_ok=True)
        return _remove_if_drained(directory)
    finally:
        os.close(descriptor)


def _remove_if_drained(directory: Path) -> bool:
    """Remove a ring directory without rings."""
    with contextlib.suppress(OSError):
        if not any(directory.glob(f"*{RING_SUFFIX}")):
            for path in (*directory.glob(f"*{PARTIAL_SUFFIX}"), directory / OF_FILE):  # killed while it made a ring
                path.unlink(missing_ok=True)
            directory.rmdir()
            return True
    return False


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file's content so that a crash leaves the old or the new, and the new is on disk on return."""
    temporary = path.parent / f".{path.name}.{os.getpid()}"  # one writer per process; a left-over is overwritten
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
