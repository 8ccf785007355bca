"""CPU time and bytes per record of each level that packs the records of a real run, by zlib and by Zstandard.

    .venv/bin/python -m infra.bench.agent.record_packing

The records are those of `tuple_cost`, three of a tuple, in whole blocks and in blocks of a hundred, as control takes
them at full load and at a thousand tuples a second when it looks every 30 ms.
"""

import sys
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from time import process_time_ns
from typing import NamedTuple

import zstandard

from infra.bench.agent.process import agent, collected, deploy
from infra.bench.agent.tuple_cost import QUERY, send_round
from protos.block_compression import ZLIB_LEVEL, ZSTD_LEVEL
from protos.records import RECORD_BYTES
from protos.segments import MOST_RECORDS, records_in

TIMES, FEW = 3, 100
ZLIB_LEVELS, ZSTD_LEVELS = range(1, 7), (-5, -1, 1, 2, 3)
Pack = Callable[[bytes], bytes]


class Level(NamedTuple):
    """A level of one of the two. chosen: by `protos.block_compression`."""

    name: str
    pack: Pack
    unpack: Pack
    chosen: bool


class Packed(NamedTuple):
    """us of CPU time to pack and to unpack a record, and its bytes."""

    pack_us: float
    unpack_us: float
    size: float


def levels() -> list[Level]:
    """All levels that are compared."""
    unpack = zstandard.ZstdDecompressor().decompress
    return [
        *(Level(f"zlib {n}", partial(zlib.compress, level=n), zlib.decompress, n == ZLIB_LEVEL) for n in ZLIB_LEVELS),
        *(Level(f"zstd {n}", zstandard.ZstdCompressor(level=n).compress, unpack, n == ZSTD_LEVEL) for n in ZSTD_LEVELS),
    ]


def packed(records: bytes, in_block: int, level: Level) -> Packed:
    """Of these records in blocks of so many; the least of three times."""
    size, count = in_block * RECORD_BYTES, len(records) // RECORD_BYTES
    blocks = [records[at : at + size] for at in range(0, len(records), size)]
    made = [level.pack(block) for block in blocks]
    pack_us = min(_us(level.pack, blocks) for _ in range(TIMES)) / count
    unpack_us = min(_us(level.unpack, made) for _ in range(TIMES)) / count
    return Packed(pack_us, unpack_us, sum(map(len, made)) / count)


def _us(what: Pack, blocks: Sequence[bytes]) -> float:
    began_ns = process_time_ns()
    for block in blocks:
        what(block)
    return (process_time_ns() - began_ns) / 1000


def main() -> int:
    """Prints a table."""
    with agent() as running:
        deploy(running, QUERY.replace("LAST", "a"))
        send_round(running)
        records = b"".join(records_in(path.read_bytes()) for path in collected(running))
    for in_block in (MOST_RECORDS, FEW):
        print(f"blocks of {in_block}: us to pack a record, us to unpack it, bytes")
        for level in levels():
            found = packed(records, in_block, level)
            chosen = "  *" if level.chosen else ""
            print(f"  {level.name:8} {found.pack_us:6.3f} {found.unpack_us:6.3f} {found.size:6.2f}{chosen}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
