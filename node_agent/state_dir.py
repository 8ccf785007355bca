"""The agent's state directory: what survives a restart, and where each file is.

lock           held by the supervisor as long as the agent runs
starts         how often a runtime was started here (text); its value modulo 65536 is the lineage epoch
plans/         plan files and their states (plan_files.py); written by control
spool/         drained trace records until the coordinator holds them; control's
rings/         the trace rings, where there is no memory file system; else they are there (ring_directory.py)
"""

import fcntl
import os
from pathlib import Path

from node_agent.ring_directory import RingDirectory


class StateError(Exception):
    """The state directory cannot be used; one sentence with the mend."""


class StateDir:
    """Paths below one state directory. Creating it makes the directories, nothing else."""

    def __init__(self, root: Path) -> None:
        self.root = root = root.resolve()
        self.plans, self.spool = root / "plans", root / "spool"
        self.rings = RingDirectory(root)
        self._lock = -1
        try:
            for directory in (root, self.plans, self.spool):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = "it is a file" if isinstance(error, FileExistsError) else error.strerror
            raise StateError(f"cannot use the state directory {root}: {why}; give another with --state") from None

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
        self.rings.hold()

    def unlock(self) -> None:
        """For a child that was forked with the locks: drop its copies, so that only the supervisor's life counts."""
        self.rings.release()
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
