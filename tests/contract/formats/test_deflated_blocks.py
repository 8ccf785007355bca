"""Blocks whose records are deflated: read as others are, passed on as they are, and refused where they hold anything
but the records that their head counts."""

import time
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.records import HEADER_BYTES, RECORD_BYTES, Header, pack_header, unpack_header
from protos.segments import HEAD, MAGIC, MISSING, MOST_NUMBER, MOST_RECORDS, Block, Chain, Flaw, Trail, scan

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


@given(st.lists(st.binary(min_size=RECORD_BYTES, max_size=RECORD_BYTES), max_size=40), st.integers(1, 80))
def test_the_records_are_those_that_were_written(records: list[bytes], times: int) -> None:
    written = b"".join(records) * times
    found = blocks_of(chain().add(written, deflate=True))
    assert b"".join(block.records for block in found) == written
    assert all(block.size <= len(block.records) + 64 for block in found), "never larger than as they are"


def test_a_block_that_is_passed_on_is_the_same_bytes() -> None:
    data = chain().add(SAME * 3000, deflate=True)
    assert len(data) < 3000 * RECORD_BYTES // 20
    found = blocks_of(data)
    assert [block.count for block in found] == [MOST_RECORDS, MOST_RECORDS, 3000 - 2 * MOST_RECORDS]
    assert b"".join(block.packed() for block in found) == data


def test_records_that_do_not_deflate_stay_as_they_are() -> None:
    noise = b"".join(zlib.crc32(bytes([each])).to_bytes(4, "big") * 1 for each in range(16))
    (block,) = blocks_of(chain().add(noise, deflate=True))
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


@pytest.mark.parametrize("byte", range(0, 64, 7))
def test_a_changed_bit_is_seen(byte: int) -> None:
    data = bytearray(chain().add(SAME * 100, deflate=True))
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
    first, then = made.add(SAME * 900), made.add(SAME * 800, deflate=True)
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
