"""Room on the agent's disk that is kept for what it has to write though the disk is full.

The file `plans/reserve` has its blocks allocated. A write that finds the disk full takes them, and leaves them for a
reserve again, since what it replaces goes. Where others were quicker, the reserve comes back as soon as there is room.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

FILE, BYTES = "reserve", 128 << 10
FULL = {errno.ENOSPC, errno.EDQUOT}

Written = TypeVar("Written")


@dataclass(slots=True)
class Reserve:
    """The reserve in one directory. taken: whether a write had to take it since somebody looked last."""

    directory: Path
    taken: bool = False

    def write(self, write: Callable[[], Written]) -> Written:
        """Do it, on a full disk in the reserve's room. It is done once more then. Raises OSError where that does not do
        either."""
        try:
            return write()
        except OSError as error:
            if error.errno not in FULL:
                raise
            self._path.unlink(missing_ok=True)
            self.taken = True
            return write()
        finally:
            self.fill()

    def fill(self) -> None:
        """Have it, or have it again, where there is room."""
        with suppress(OSError):
            if self._path.exists() and self._path.stat().st_size >= BYTES:
                return
            with self._path.open("ab") as file:
                os.posix_fallocate(file.fileno(), 0, BYTES)

    @property
    def _path(self) -> Path:
        return self.directory / FILE
