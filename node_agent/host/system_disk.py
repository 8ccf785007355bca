"""The files of this computer."""

import contextlib
import errno
import os
import time
from collections.abc import Iterable
from pathlib import Path

from node_agent.host import replacing

NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
KEPT = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class SystemDisk:
    """`ports.Disk` of this computer."""

    def read(self, path: Path, most: int | None = None) -> bytes:
        """Its content, or the first bytes of it."""
        with path.open("rb") as file:
            return file.read(-1 if most is None else most)

    def replace(self, path: Path, data: bytes) -> None:
        """In steps; see `replacing`."""
        replacing.replace(self, path, data)

    def write_new(self, path: Path, data: bytes) -> None:
        """For `replace`."""
        with os.fdopen(os.open(path, NEW, 0o600), "wb") as file:
            file.write(data)

    def write(self, path: Path, data: bytes, at: int) -> None:
        """A single write, so that nothing is there twice, cut back where it was not whole."""
        descriptor = os.open(path, KEPT, 0o600)
        try:
            written = -1
            with contextlib.suppress(BlockingIOError):
                written = os.pwrite(descriptor, data, at)
            if written != len(data):
                os.ftruncate(descriptor, at)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        finally:
            os.close(descriptor)

    def truncate(self, path: Path, size: int) -> None:
        """Keep the first bytes."""
        os.truncate(path, size)

    def allocate(self, path: Path, size: int) -> None:
        """Blocks that are the file's own."""
        descriptor = os.open(path, KEPT, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)
        finally:
            os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        """At one instant."""
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        """A file."""
        os.unlink(path)

    def remove_folder(self, path: Path) -> None:
        """With all that is in it."""
        import shutil  # rare, and it loads five compression libraries

        shutil.rmtree(path, ignore_errors=True)

    def make_folder(self, path: Path) -> bool:
        """And those above it."""
        there = path.is_dir()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return not there

    def entries(self, folder: Path) -> list[Path]:
        """Sorted."""
        return sorted(folder.iterdir())

    def exists(self, path: Path) -> bool:
        """File or folder."""
        return path.exists()

    def size(self, path: Path) -> int:
        """In bytes."""
        return path.stat().st_size

    def modified_ns(self, path: Path) -> int:
        """On the wall clock."""
        return path.stat().st_mtime_ns

    def age_ns(self, path: Path) -> int:
        """By the wall clock."""
        return max(0, time.time_ns() - path.stat().st_mtime_ns)

    def sync(self, paths: Iterable[Path]) -> None:
        """One after the other."""
        for path in paths:
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:  # removed meanwhile
                continue
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def free_bytes(self, folder: Path) -> int:
        """For ordinary users."""
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize


SYSTEM_DISK = SystemDisk()
"""It has no state, so one does for all."""
