"""Writes files so that a loss of power leaves the old content or the new one, and the new one after the return.

A content is on the disk before it gets its name, and the name is on the disk before the call returns.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

PARTIAL = ".partial"
MODE = 0o666  # less the umask


def replace(path: Path, data: bytes) -> None:
    """Give a file this content, through a file beside it. Raises OSError: the old content is there then,
    or the new one where the folder could not be synced."""
    partial = path.with_name(path.name + PARTIAL)
    try:
        with contextlib.suppress(FileNotFoundError):  # of a command that was killed
            partial.unlink()
        write_new(partial, data)
        rename(partial, path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def replace_together(contents: Mapping[Path, bytes]) -> None:
    """Give several files these contents, through files beside them, which are whole before the first takes its place.
    A file that is there keeps its mode, and a link leads to what it led to. Raises OSError: each file is then the old
    or the new one, all of them the old ones unless a name could not be changed."""
    partials: dict[Path, Path] = {}
    try:
        for name, data in contents.items():
            path = name.resolve()
            partial = path.with_name(path.name + PARTIAL)
            with contextlib.suppress(FileNotFoundError):  # of a command that was killed
                partial.unlink()
            partials[path] = partial
            write_new(partial, data)
            with contextlib.suppress(FileNotFoundError):  # a file that is new
                partial.chmod(stat.S_IMODE(path.stat().st_mode))
        for path, partial in partials.items():
            rename(partial, path)
    finally:
        for partial in partials.values():
            with contextlib.suppress(OSError):
                partial.unlink()


def write_new(path: Path, data: bytes, mode: int = MODE) -> None:
    """A file that is not there yet; no other mode is ever seen. Its name is not synced. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def rename(old: Path, new: Path) -> None:
    """Give a synced file another name in the same folder, in place of a file that has it. Raises OSError."""
    old.replace(new)
    sync(new.parent)


def sync(path: Path) -> None:
    """The content of a file, or the names in a folder, is on the disk on return. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
