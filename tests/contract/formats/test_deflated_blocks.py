"""Blocks whose records are deflated: read as others are, passed on as they are, and refused where they hold anything
but the records that their head counts."""

import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from protos import block_compression
from protos.block_compression import ZLIB, Compression, cheapest, decompressed
from protos.records import HEADER_BYTES, RECORD_BYTES, Header, pack_header, unpack_header
from protos.segments import (
    HEAD,
    MAGIC,
    MISSING,
    MOST_NUMBER,
    MOST_RECORDS,
    ZSTD,
    Block,
    Chain,
    Flaw,
    Trail,
    records_in,
    scan,
)  # fmt: skip

HEADER = pack_header(Header("a", 0, 7, "clock", 50, 1, 2))
SAME = bytes(range(RECORD_BYTES))
MIB = zlib.compressobj(level=1)
BOMB = b"".join([*(MIB.compress(bytes(1 << 20)) for _ in range(256)), MIB.flush()])  # 256 MiB of nothing


def chain() -> Chain:
    return Chain.of(unpack_header(HEADER))


def blocks_of(data: bytes) -> list[Block]:
    found = Trail(7)
    blocks = found.follow(HEADER + data)
    assert not found.flaws
    return blocks


ZSTD_OF_THIS_MACHINE = cheapest()
WAYS = pytest.mark.parametrize("way", [ZLIB, ZSTD_OF_THIS_MACHINE], ids=["zlib", "zstd"])


@pytest.fixture
def without_zstandard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine where it is not installed."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    block_compression._zstandard.cache_clear()
    yield
    block_compression._zstandard.cache_clear()


@WAYS
@given(st.lists(st.binary(min_size=RECORD_BYTES, max_size=RECORD_BYTES), max_size=40), st.integers(1, 80))
def test_the_records_are_those_that_were_written(way: Compression, records: list[bytes], times: int) -> None:
    written = b"".join(records) * times
    found = blocks_of(chain().add(written, compression=way))
    assert b"".join(block.records for block in found) == written
    assert all(block.size <= len(block.records) + 64 for block in found), "never larger than as they are"


@WAYS
def test_a_block_that_is_passed_on_is_the_same_bytes(way: Compression) -> None:
    data = chain().add(SAME * 3000, compression=way)
    assert len(data) < 3000 * RECORD_BYTES // 20
    found = blocks_of(data)
    assert [block.count for block in found] == [MOST_RECORDS, MOST_RECORDS, 3000 - 2 * MOST_RECORDS]
    assert b"".join(block.packed() for block in found) == data


def test_records_that_do_not_deflate_stay_as_they_are() -> None:
    noise = b"".join(zlib.crc32(bytes([each])).to_bytes(4, "big") * 1 for each in range(16))
    (block,) = blocks_of(chain().add(noise, compression=ZLIB))
    assert not block.deflated and block.records == noise


@pytest.mark.parametrize(
    "body",
    [
        zlib.compress(SAME * 9),  # fewer than the head counts
        zlib.compress(SAME * 11),
        BOMB,
        zlib.compress(SAME * 10)[:-1],
        zlib.compress(SAME * 10) + b"more",
        b"no deflated bytes at all",
        bytes(10 * RECORD_BYTES + 1),  # more than the records themselves take
    ],
    ids=["fewer", "more", "bomb", "cut", "longer", "other", "large"],
)
def test_a_body_that_holds_something_else_is_damage(body: bytes) -> None:
    good = Block(7, 0, 10, 0, chain().name, SAME * 10)
    packed = replace(good, deflated=body).packed()  # with a check that is right
    ((at, found),) = scan(HEADER + packed)
    assert isinstance(found, Flaw) and at == HEADER_BYTES


FRAME = zstandard.ZstdCompressor().compress
UNSIZED = zstandard.ZstdCompressor(write_content_size=False).compress(SAME * 10)


@pytest.mark.parametrize(
    "body",
    [
        FRAME(SAME * 9),
        FRAME(SAME * 11),
        FRAME(bytes(256 << 20)),
        b"\x28\xb5\x2f\xfd\xe0" + (1 << 50).to_bytes(8, "little") + bytes(9),  # it says that it holds a petabyte
        UNSIZED,
        FRAME(SAME * 10)[:-1],
        FRAME(SAME * 10) + b"more",
        FRAME(SAME * 5) * 2,
        zlib.compress(SAME * 10),
        b"no frame at all",
    ],
    ids=["fewer", "more", "bomb", "petabyte", "unsized", "cut", "longer", "two", "zlib", "other"],
)
def test_a_frame_of_zstd_that_holds_something_else_is_damage(body: bytes) -> None:
    good = Block(7, 0, 10, 0, chain().name, SAME * 10, flags=ZSTD)
    assert blocks_of(replace(good, deflated=FRAME(SAME * 10)).packed())[0].body == SAME * 10
    ((at, found),) = scan(HEADER + replace(good, deflated=body).packed())
    assert isinstance(found, Flaw) and at == HEADER_BYTES


def test_blocks_of_both_ways_follow_one_another() -> None:
    made = chain()
    data = b"".join(made.add(SAME * count, compression=way) for count in (5, 50) for way in (ZLIB, cheapest(), None))
    assert [block.count for block in blocks_of(data)] == [5, 5, 5, 50, 50, 50]
    assert {block.flags for block in blocks_of(data)} == {0, ZSTD}
    assert records_in(HEADER + data) == SAME * 165


def test_without_zstandard_agents_deflate_by_zlib(without_zstandard: None) -> None:
    assert cheapest() is ZLIB


def test_without_zstandard_its_blocks_are_sound_and_their_records_are_asked_for_in_vain(
    without_zstandard: None,
) -> None:
    """So that a spool is not taken for damaged, and can be handed over, when the package is gone."""
    data = chain().add(SAME * 100, compression=ZSTD_OF_THIS_MACHINE)
    (block,) = blocks_of(data)
    assert block.count == 100 and block.flags == ZSTD and block.packed() == data
    with pytest.raises(ModuleNotFoundError) as missing:
        _ = block.body
    assert missing.value.name == "zstandard"
    with pytest.raises(ModuleNotFoundError):
        records_in(HEADER + data)


def test_a_way_is_asked_for_no_more_than_its_size() -> None:
    assert decompressed(zlib.compress(SAME), RECORD_BYTES, zstd=False) == SAME
    assert decompressed(FRAME(SAME), RECORD_BYTES, zstd=True) == SAME
    assert decompressed(FRAME(SAME), RECORD_BYTES - 1, zstd=True) is None


@pytest.mark.parametrize("byte", range(0, 64, 7))
def test_a_changed_bit_is_seen(byte: int) -> None:
    data = bytearray(chain().add(SAME * 100, compression=ZLIB))
    data[byte] ^= 4
    assert not any(isinstance(found, Block) for _, found in scan(bytes(data), 0))


@pytest.mark.parametrize("every", [16, 64])
def test_bytes_that_are_full_of_heads_do_not_keep_a_reader_busy(every: int) -> None:
    head = HEAD.pack(MAGIC, 0, 0, MOST_RECORDS, 0, 7, 0, 0, 0, 0, 0)
    hostile = head[:every] * ((1 << 20) // every)
    began = time.process_time()
    ((_, found),) = scan(hostile, 0)
    assert isinstance(found, Flaw)
    assert time.process_time() - began < 2


def test_blocks_behind_a_damaged_one_are_found() -> None:
    made = chain()
    first, then = made.add(SAME * 900), made.add(SAME * 800, compression=ZLIB)
    data = bytearray(first + then)
    data[200] ^= 1
    assert [block.count for _, block in scan(bytes(data), 0) if isinstance(block, Block)] == [800]


@pytest.mark.parametrize(
    "block",
    [
        Block(7, 0, 0, 0, chain().name, flags=MISSING),
        Block(7, MOST_NUMBER + 1, 1, 0, chain().name, SAME),
        Block(7, 0, 1, MOST_NUMBER + 1, chain().name, SAME),
    ],
    ids=["nothing is missing", "number", "position"],
)
def test_numbers_that_nobody_writes_are_damage(block: Block) -> None:
    ((_, found),) = scan(block.packed(), 0)
    assert isinstance(found, Flaw)


def test_more_may_be_missing_than_one_block_can_say() -> None:
    lost = 3 * (1 << 32)
    blocks = blocks_of(chain().missing(lost, lost))
    assert len(blocks) == 4 and blocks[-1].end == blocks[-1].position == lost
