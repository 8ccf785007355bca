"""How the records of a block are compressed: by zlib, which every Python has, or by zstd where `zstandard` is there.

Zstandard at level -1 takes a quarter of the CPU time of zlib at level 1 and makes three quarters of its bytes. Higher
levels of both take longer and save nothing that counts (`infra.bench.agent.record_packing`).
"""

import zlib
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple

PACKAGE = "zstandard"
ZLIB_LEVEL, ZSTD_LEVEL = 1, -1


class Compression(NamedTuple):
    """One way. zstd: which of the two, as a block's head says it. compress: not to be shared by threads."""

    zstd: bool
    compress: Callable[[bytes], bytes]


ZLIB = Compression(False, partial(zlib.compress, level=ZLIB_LEVEL))


def cheapest() -> Compression:
    """Zstandard where it is installed here."""
    try:
        zstandard = _zstandard()
    except ImportError:
        return ZLIB
    return Compression(True, zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress)


def decompressed(body: bytes, size: int, zstd: bool) -> bytes | None:
    """`size` bytes; None where the body holds anything else. It never makes more than one byte beyond them. Raises
    ModuleNotFoundError for zstd where the package is missing."""
    return _by_zstd(body, size) if zstd else _by_zlib(body, size)


def _by_zlib(body: bytes, size: int) -> bytes | None:
    inflater = zlib.decompressobj()
    try:
        records = inflater.decompress(body, size + 1)
    except zlib.error:
        return None
    return records if len(records) == size and inflater.eof and not inflater.unused_data else None


def _by_zstd(body: bytes, size: int) -> bytes | None:
    """One frame, whose head says how much it holds: that is looked at before any memory is given to it."""
    zstandard = _zstandard()
    try:
        if zstandard.frame_content_size(body) != size:
            return None
        records: bytes = zstandard.ZstdDecompressor().decompress(body, allow_extra_data=False)
    except zstandard.ZstdError:
        return None
    return records if len(records) == size else None


@lru_cache(maxsize=1)
def _zstandard() -> Any:
    """Loaded when a block first needs it."""
    return import_module(PACKAGE)
