"""Measures the disk below a state directory. The directory is not made: its nearest parent is tried."""

import contextlib
import fcntl
import os
import tempfile
import time
from pathlib import Path

from node_agent.tools.doctor.readers import text
from node_agent.tools.doctor.storage import Storage

WRITTEN_BYTES = 4 << 20
SYNCS = 5


def read(directory: Path, mounts: Path, written_bytes: int = WRITTEN_BYTES) -> Storage:
    """mounts: /proc/mounts. Writes and removes a file of `written_bytes` and some of 4 KiB."""
    root = directory.absolute()
    there = next(path for path in (root, *root.parents) if os.path.lexists(path))
    if not there.is_dir():
        return Storage(str(root), f"{there} is no directory")
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=there) as scratch:
            found = os.statvfs(scratch)
            free = found.f_bavail * found.f_frsize
            size = max(4096, min(written_bytes, free // 4))
            took = _write(Path(scratch) / "large", size)
            sync_ns = sorted(_write(Path(scratch) / f"small{index}", 4096) for index in range(SYNCS))[SYNCS // 2]
    except OSError as error:
        return Storage(str(root), f"cannot be written: {error.strerror}")
    spool_bytes, spool_age_s, spool_span_s = _spool(root / "spool")
    return Storage(
        str(root), "", exists=there == root, agent=_agent(root / "lock"), free=free,
        bytes_per_s=size * 1_000_000_000 // max(1, took), sync_ns=sync_ns, in_memory=_file_system(there, mounts) in
        {"tmpfs", "ramfs"}, spool_bytes=spool_bytes, spool_age_s=spool_age_s, spool_span_s=spool_span_s,
    )  # fmt: skip


def _write(path: Path, size: int) -> int:
    """Nanoseconds until that many bytes are on disk. Random, since some disks store zeros for nothing."""
    data = os.urandom(size)
    before = time.monotonic_ns()
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return time.monotonic_ns() - before


def _spool(folder: Path) -> tuple[int, int, int]:
    """Bytes of traces, seconds since the oldest file was written, and from then until the latest was. Files may go
    while they are looked at."""
    size, written = 0, []
    for path in folder.glob("*/*.rec"):
        with contextlib.suppress(OSError):
            found = path.stat()
            size += found.st_size
            written.append(found.st_mtime)
    if not written:
        return 0, 0, 0
    return size, max(0, int(time.time() - min(written))), int(max(written) - min(written))


def _agent(lock: Path) -> str:
    """The pid of the agent that holds this state directory; empty for none."""
    with contextlib.suppress(OSError):
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return text(lock) or "unknown"
        finally:
            os.close(descriptor)
    return ""


def _file_system(path: Path, mounts: Path) -> str:
    """The type of the mount that a path is below: the longest that fits, the last of equals."""
    best, kind, real = "", "", str(path.resolve())
    for row in (line.split() for line in text(mounts).splitlines()):
        if len(row) < 3:
            continue
        point = row[1].replace("\\040", " ")
        if (real + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
            best, kind = point, row[2]
    return kind
