"""The agent's state directory: what survives a restart, and where each file is.

    lock           held by the supervisor as long as the agent runs
    starts         how often a runtime was started here (text); its value modulo 65536 is the lineage epoch
    plans/         plan files and their states (plan_files.py); written by control
    spool/         drained trace records until the coordinator holds them; control's
    rings/         the trace rings, where there is no memory file system; else they are in /dev/shm/shimekiri-*

The ring directory is named after the state directory, so an agent that starts again finds the rings of one that was
killed: the supervisor marks them crashed, control drains them, then removes them.
"""

import contextlib
import fcntl
import hashlib
import os
import tempfile
from pathlib import Path

from node_agent.ring import STATE, Ring
from protos.records import STATE_CRASHED

MEMORY = Path("/dev/shm")  # noqa: S108 - shared memory, not a temporary file
RING_SUFFIX = ".ring"


class StateError(Exception):
    """The state directory cannot be used; one sentence with the mend."""


class StateDir:
    """Paths below one state directory. Creating it makes the directories, nothing else."""

    def __init__(self, root: Path) -> None:
        self.root = root = root.resolve()
        self.plans, self.spool = root / "plans", root / "spool"
        self._lock = -1
        try:
            for directory in (root, self.plans, self.spool):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.rings = self._ring_directory()
        except OSError as error:
            raise StateError(
                f"cannot use the state directory {root}: {error.strerror}; give another with --state"
            ) from None

    def _ring_directory(self) -> Path:
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return MEMORY / f"shimekiri-{name}" if os.access(MEMORY, os.W_OK) else self.root / "rings"

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

    def unlock(self) -> None:
        """For a child that was forked with the lock: drop its copy, so that only the supervisor's life counts."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

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

    def tidy(self) -> None:
        """Remove the ring directory where control has drained every ring; memory is not to be littered."""
        with contextlib.suppress(OSError):
            self.rings.rmdir()

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


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file's content so that a crash leaves the old or the new, and the new is on disk on return."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
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
