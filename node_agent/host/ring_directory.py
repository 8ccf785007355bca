"""The directory of an agent's trace rings: in memory, its own, under a name that nobody can foresee.

    /dev/shm/shimekiri-<32 random hex digits>/   of             the state directory whose rings these are
                                                 <boot>.ring    a ring per incarnation of a runtime

Everybody may write to /dev/shm, so what is there is believed only where it is a directory of this user that nobody
else may enter. An agent that starts again finds the rings of one that was killed by the file `of`; the supervisor marks
them crashed, control drains them, then removes them. Without such a file system (or where others could rename what is
in it) the directory is `rings` in the state directory.

It is memory, so it is not to be littered: an agent holds a lock on its directory and removes it at its end where every
ring was drained; `sweep` removes those that nobody holds and that are empty or whose state directory is gone. What
stays is at most MOST_RINGS rings for each state directory that still exists, and one per running runtime.
"""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from node_agent.host.trace_ring import PARTIAL_SUFFIX, Ring, open_own
from protos.records import Header

MEMORY = Path("/dev/shm")  # noqa: S108 - shared memory, not a temporary file
RING_SUFFIX = ".ring"
PREFIX = "shimekiri-"
OF_FILE = "of"
MOST_RINGS = 32
MOST_PATH_BYTES = 4096
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RingDirectory:
    """`ports.Rings` of this computer, for the agent with this state directory. Nothing is made before `hold`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._found: Path | None = None
        self._lock = -1

    @property
    def path(self) -> Path | None:
        """Where the rings are; None: this agent has no directory now."""
        if self._found is None or not self._found.exists():
            self._found = self._find()
        return self._found

    @property
    def parent(self) -> Path:
        """Where there has to be room for rings."""
        return MEMORY if _is_safe(MEMORY) else self.root

    def hold(self) -> None:
        """Make the directory and lock it against `sweep`, which may be about to remove it. Raises OSError."""
        while self._lock < 0:
            path = self.path or self._make()
            with contextlib.suppress(FileNotFoundError):
                descriptor = os.open(path, DIRECTORY)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is(descriptor, path):
                    _write_of(descriptor, self.root)
                    self._found, self._lock = path, descriptor
                else:
                    os.close(descriptor)

    def release(self) -> None:
        """In a child that was forked with the lock: drop its copy, so that only the supervisor's life counts."""
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1

    def paths(self) -> list[Path]:
        """All rings, of this agent and of earlier ones that were not drained."""
        path = self.path
        return sorted(path.glob(f"*{RING_SUFFIX}")) if path is not None else []

    def path_of(self, boot: int) -> Path:
        """The ring of one incarnation. Raises OSError where there is no directory and none can be made."""
        if self.path is None:  # it was removed: the lock was on what is no more
            self.release()
            self.hold()
        return (self.path or self.parent) / f"{boot:016x}{RING_SUFFIX}"

    def create(self, header: Header) -> Ring:
        """The ring of a new incarnation. Raises OSError where there is no room for it."""
        return Ring.create(self.path_of(header.boot), header)

    def open(self, path: Path) -> Ring:
        """A ring of this user. Raises ValueError where it is none, OSError where it cannot be mapped."""
        return Ring.open(path)

    def remove(self, path: Path) -> None:
        """One that is drained, or that no runtime has begun with. Raises OSError."""
        path.unlink(missing_ok=True)

    def make_room(self, live: Sequence[Path] = ()) -> int:
        """Before another ring: where none was drained for long, the oldest go. How many went. live: not these, they
        are written to."""
        paths = [path for path in self.paths() if path not in live]
        if len(paths) < MOST_RINGS:
            return 0
        excess = sorted(paths, key=_age)[: len(paths) + 1 - MOST_RINGS]
        for path in excess:
            path.unlink(missing_ok=True)
        return len(excess)

    def mark_abandoned(self) -> int:
        """Under the lock: rings that still say `live` belong to an agent that was killed. How many there were."""
        marked = 0
        for path in self.paths():
            try:
                ring = Ring.open(path)
            except (ValueError, OSError):
                path.unlink(missing_ok=True)  # killed while it made the ring: it holds no record
                continue
            marked += ring.mark_crashed()
            ring.close()
        return marked

    def tidy(self) -> None:
        """Remove the directory where control has drained every ring."""
        if (path := self.path) is not None:
            _remove_if_drained(path)

    def sweep(self) -> int:
        """Remove what agents that were killed and will not come again have left in memory. How many directories."""
        removed, own = 0, self.path
        for directory in _in_memory():
            if directory != own:
                with contextlib.suppress(OSError):  # another one's, or gone meanwhile
                    removed += _sweep_one(directory)
        return removed

    def _find(self) -> Path | None:
        if self.parent == self.root:
            return found if (found := self.root / "rings").is_dir() else None
        return next((each for each in _in_memory() if _of(each) == self.root), None)

    def _make(self) -> Path:
        path = self.root / "rings" if self.parent == self.root else MEMORY / f"{PREFIX}{os.urandom(16).hex()}"
        path.mkdir(mode=0o700)
        return path


def _in_memory() -> Iterator[Path]:
    return MEMORY.glob(f"{PREFIX}*")


def _is_safe(directory: Path) -> bool:
    """Whether one can write there, and others cannot rename what is one's own."""
    try:
        mode = directory.stat().st_mode
    except OSError:
        return False
    return os.access(directory, os.W_OK) and bool(mode & stat.S_ISVTX or not mode & 0o022)


def _of(directory: Path) -> Path | None:
    """Whose rings these are; None: not this user's, or nobody knows."""
    try:
        descriptor = os.open(directory, DIRECTORY)
    except OSError:
        return None
    try:
        return _of_open(descriptor)
    finally:
        os.close(descriptor)


def _of_open(directory: int) -> Path | None:
    status = os.fstat(directory)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        return None
    try:
        file = open_own(OF_FILE, os.O_RDONLY, directory)
    except OSError:
        return None
    try:
        return Path(os.fsdecode(os.read(file, MOST_PATH_BYTES)))
    finally:
        os.close(file)


def _write_of(directory: int, root: Path) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(OF_FILE, flags, 0o600, dir_fd=directory)
    try:
        os.write(file, os.fsencode(root))
    finally:
        os.close(file)


def _age(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # drained meanwhile
        return 0


def _is(descriptor: int, path: Path) -> bool:
    """Whether the path still leads to what is open."""
    try:
        found = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(descriptor))


def _sweep_one(directory: Path) -> bool:
    """Raises OSError where it may not be touched, BlockingIOError where an agent holds it."""
    descriptor = os.open(directory, DIRECTORY)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is(descriptor, directory):
            return False
        of = _of_open(descriptor)
        if of is not None and not of.exists():
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
