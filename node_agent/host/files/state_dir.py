"""The agent's state directory: what survives a restart, and where each file is.

    lock           held by the supervisor as long as the agent runs
    starts         how often a runtime was started here, and once more in starts.copy (starts.py)
    plans/         plan files and their states (plan_files.py); written by control
    spool/         drained trace records until the coordinator holds them; control's
    rings/         the trace rings, where there is no memory file system; else they are there (ring_directory.py)

Each of these files has a checksum. One that is damaged is set aside as *.damaged, and the agent goes on with the rest.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from node_agent.host.files.reserve import Reserve
from node_agent.host.files.starts import Starts
from node_agent.host.ring_directory import RingDirectory
from protos.records import HEADER_BYTES, unpack_header


class StateError(Exception):
    """The state directory cannot be used; one sentence with the mend."""


class StateDir:
    """Paths below one state directory. Creating it makes the directories, nothing else."""

    def __init__(self, root: Path) -> None:
        self.root = root = root.resolve()
        self.plans, self.spool = root / "plans", root / "spool"
        self.reserve = Reserve(self.plans)
        self.rings, self.starts = RingDirectory(root), Starts(root, self.reserve)
        self._lock = -1
        try:
            for directory in (root, self.plans, self.spool):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = "it is a file" if isinstance(error, FileExistsError) else error.strerror
            raise StateError(f"cannot use the state directory {root}: {why}; give another with --state") from None

    def lock(self) -> None:
        """Take the lock for the life of this process. Raises StateError where another agent holds it, OSError where the
        disk or the memory is full."""
        new = not (self.root / "lock").exists()
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise StateError(
                f"another agent (pid {pid}) uses the state directory {self.root}; stop it or give another with --state"
            ) from None
        self._lock = descriptor
        told = f"{os.getpid()}\n".encode()
        self.reserve.write(lambda: os.pwrite(descriptor, told, 0))
        os.ftruncate(descriptor, len(told))
        self.rings.hold()
        self.starts.load(max(self._starts_told(), default=0), new)

    def _starts_told(self) -> Iterator[int]:
        """The start counts in the headers of traces that are here, in the spool and in memory."""
        for path in (*self.spool.glob("*/*"), *self.rings.paths()):
            with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
                yield unpack_header(file.read(HEADER_BYTES)).starts

    def unlock(self) -> None:
        """For a child that was forked with the locks: drop its copies, so that only the supervisor's life counts."""
        self.rings.release()
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1
