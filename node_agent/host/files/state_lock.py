"""The lock on a state directory: one agent uses it, as long as its supervisor lives. Simulated machines have none."""

import fcntl
import os
from pathlib import Path

from node_agent.host.files.reserve import Reserve
from node_agent.problems import ProblemError

LOCK_FILE = "lock"


OPTION = "--state"


class StateError(ProblemError):
    """The state directory cannot be used."""


class StateLock:
    """The file `lock` below `root`, with the process id of the agent that holds it, or of the last one that did."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._descriptor = -1

    def take(self) -> bool:
        """For the life of this process. False where no agent has ever got as far as `write_owner`. Raises StateError
        where another agent holds it, OSError where the disk is full."""
        descriptor = os.open(self._root / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            text = f"another agent (pid {pid}) uses the state directory {self._root}"
            raise StateError("in_use", text, f"stop it or give another with {OPTION}", subject=OPTION) from None
        self._descriptor = descriptor
        return os.fstat(descriptor).st_size > 0

    def write_owner(self, reserve: Reserve) -> None:
        """Write down which process holds it. Raises OSError where the disk is full beyond the reserve."""
        owner = f"{os.getpid()}\n".encode()
        reserve.write(lambda: os.pwrite(self._descriptor, owner, 0))
        os.ftruncate(self._descriptor, len(owner))

    def release(self) -> None:
        """Drop this process's copy."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
