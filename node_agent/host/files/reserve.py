"""Room on the agent's disk that is kept for what it has to write though the disk is full.

The file `plans/reserve` has its blocks allocated. A write that finds the disk full takes them, and leaves them for a
reserve again, since what it replaces goes. Where others were quicker, the reserve comes back as soon as there is room.
"""

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from node_agent.host.system_disk import SYSTEM_DISK
from node_agent.ports import Disk

FILE, BYTES = "reserve", 128 << 10
FULL = {errno.ENOSPC, errno.EDQUOT}

Written = TypeVar("Written")


@dataclass(slots=True)
class Reserve:
    """The reserve in one directory. taken: whether a write had to take it since somebody looked last."""

    directory: Path
    disk: Disk = SYSTEM_DISK
    taken: bool = False

    def write(self, write: Callable[[], Written]) -> Written:
        """Do it, on a full disk in the reserve's room. It is done once more then. Raises OSError where that does not do
        either."""
        try:
            return write()
        except OSError as error:
            if error.errno not in FULL:
                raise
            with suppress(FileNotFoundError):
                self.disk.remove(self._path)
            self.taken = True
            return write()
        finally:
            self.fill()

    def fill(self) -> None:
        """Have it, or have it again, where there is room."""
        with suppress(OSError):
            if not self.disk.exists(self._path) or self.disk.size(self._path) < BYTES:
                self.disk.allocate(self._path, BYTES)

    @property
    def _path(self) -> Path:
        return self.directory / FILE
