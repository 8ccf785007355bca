"""A file's bytes: unpacked where they are gzip, in a stream, never more than a stated number of them."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from sim_vehicles.errors import bad_input

MAX_BYTES = 512_000_000  # unpacked; some nine million records of ours, which take some 2 GB to read
CHUNK = 65_536


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader[_Bounded]]:
    """The bytes of path. Its first bytes tell gzip, not its name.

    BadInputError where the file is not there, cannot be read, or holds more than `MAX_BYTES` once unpacked (a few kB of
    gzip can hold gigabytes).
    """
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            plain = gzip.GzipFile(fileobj=raw) if packed else raw
            with io.BufferedReader(_Bounded(path, plain), CHUNK) as stream:
                yield stream
    except FileNotFoundError:
        raise bad_input("no_file", "there is no such file", file=path) from None
    except (OSError, EOFError, zlib.error) as broken:
        raise bad_input("unreadable", f"cannot be read: {broken}", file=path) from None


class _Bounded(io.RawIOBase):
    """Reads on until the bound is passed."""

    def __init__(self, path: Path, plain: gzip.GzipFile | BinaryIO) -> None:
        self._path = path
        self._plain = plain
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int:
        data = self._plain.read(len(target))
        self._read += len(data)
        if self._read > MAX_BYTES:
            raise bad_input(
                "too_large",
                f"holds more than {MAX_BYTES // 1_000_000} MB",
                "record fewer seconds or fewer vehicles",
                file=self._path,
            )
        target[: len(data)] = data
        return len(data)
