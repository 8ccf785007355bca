"""Folders for what is not whole yet, and the removal of those that killed commands left.

The process that makes one holds a lock on it, which ends with the process: a folder without one is left over. A file
system that has no locks on folders keeps what is left.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EAGAIN
from pathlib import Path

MOST_TRIES = 10


@contextmanager
def scratch_folder(parent: Path, start: str) -> Iterator[Path]:
    """A folder of this process in `parent`, gone at the end. start: of its name; what is left over under
    such names goes before. Raises OSError."""
    for path in parent.glob(f"{start}*"):
        with suppress(OSError):  # of somebody else, or in use
            _sweep(path)
    path, descriptor = _made(parent, start)
    try:
        yield path
    finally:
        try:
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(descriptor)


def _sweep(path: Path) -> None:
    descriptor = _open(path)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def _made(parent: Path, start: str) -> tuple[Path, int]:
    """A new folder and what its lock hangs on. Another command may take it for left over until it is locked: then it
    is made anew."""
    for _ in range(MOST_TRIES):
        path = parent / f"{start}{secrets.token_hex(4)}"
        path.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            descriptor = _open(path)
            if _locked(descriptor) and path.is_dir():
                return path, descriptor
            os.close(descriptor)
    raise OSError(EAGAIN, os.strerror(EAGAIN), parent)


def _locked(descriptor: int) -> bool:
    """Whether nobody else holds it, as far as the file system tells."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
