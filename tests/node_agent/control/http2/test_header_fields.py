"""HPACK: the examples that RFC 7541 prints, what any encoder may write, and bytes that none writes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.control.http2 import huffman
from node_agent.control.http2.header_fields import (
    STATIC,
    TABLE_BYTES,
    Field,
    FieldDecoder,
    encoded,
)
from node_agent.control.http2.http2_frames import Http2Error, Reset
from tests.sampling import examples

MOST = 16 << 10
REQUESTS = (  # appendix C.3 plain, C.4 with the Huffman code: three requests on one connection
    (
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
    ),
    (
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ),
)
TO_256 = "3fe101"  # the table is made as small as appendix C.5 and C.6 have it, so that fields go
ANSWERS = (
    (
        "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f"
        "7777772e6578616d706c652e636f6d",
        "4803333037c1c0bf",
    ),
    (
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        "4883640effc1c0bf",
    ),
)


@pytest.mark.parametrize("blocks", REQUESTS)
def test_the_requests_that_are_printed(blocks: tuple[str, ...]) -> None:
    decoder = FieldDecoder(MOST)
    first, second, third = (decoder.fields(bytes.fromhex(each)) for each in blocks)
    start = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"www.example.com")]
    assert first == start and second == [*start, (b"cache-control", b"no-cache")]
    assert third[1:3] == [(b":scheme", b"https"), (b":path", b"/index.html")]
    assert third[-1] == (b"custom-key", b"custom-value")


@pytest.mark.parametrize("blocks", ANSWERS)
def test_the_answers_that_are_printed_through_a_small_table(blocks: tuple[str, ...]) -> None:
    decoder = FieldDecoder(MOST)
    first = decoder.fields(bytes.fromhex(TO_256 + blocks[0]))
    rest = [
        (b"cache-control", b"private"), (b"date", b"Mon, 21 Oct 2013 20:13:21 GMT"),
        (b"location", b"https://www.example.com"),
    ]  # fmt: skip
    assert first == [(b":status", b"302"), *rest]
    assert decoder.fields(bytes.fromhex(blocks[1])) == [(b":status", b"307"), *rest]


def test_the_static_table_and_the_code_are_whole() -> None:
    assert len(STATIC) == 61 and STATIC[1] == (b":method", b"GET") and STATIC[60] == (b"www-authenticate", b"")
    assert sum(2.0**-length for length in huffman.LENGTHS) == 1.0, "a prefix code that leaves nothing out"


def compressed(text: bytes) -> bytes:
    """By a table of all codes, as RFC 7541 gives it: the oracle of the decoder, which has none."""
    codes, code, before = {}, 0, 0
    for symbol in huffman.SYMBOLS:
        code <<= huffman.LENGTHS[symbol] - before
        before = huffman.LENGTHS[symbol]
        codes[symbol] = f"{code:0{before}b}"
        code += 1
    bits = "".join(codes[byte] for byte in text)
    bits += "1" * (-len(bits) % 8)
    return int(bits or "0", 2).to_bytes(len(bits) // 8)


@settings(max_examples=examples(2000, 20))
@given(st.binary(max_size=60))
def test_every_text_can_be_compressed(text: bytes) -> None:
    assert huffman.decoded(compressed(text)) == text


def test_texts_that_are_none_of_the_code() -> None:
    for data in (b"\xff" * 4, b"\x00", compressed(b"a") + b"\xff", b"\xfe"):
        with pytest.raises(ValueError):
            huffman.decoded(data)


fields = st.lists(st.tuples(st.binary(min_size=1, max_size=12), st.binary(max_size=300)), max_size=8)


@settings(max_examples=examples(1000, 20))
@given(fields)
def test_what_is_written_is_read(found: list[Field]) -> None:
    assert FieldDecoder(1 << 20).fields(encoded(found)) == found
    assert FieldDecoder(1 << 20).fields(encoded([(b":status", b"200")])) == [(b":status", b"200")]


@settings(max_examples=examples(5000, 20))
@given(st.lists(st.binary(max_size=60), max_size=6))
def test_bytes_of_anybody_are_fields_or_an_error(blocks: list[bytes]) -> None:
    decoder = FieldDecoder(MOST)
    for block in blocks:
        try:
            found = decoder.fields(block)
        except Http2Error:
            return
        assert sum(len(name) + len(value) + 32 for name, value in found) <= MOST


@pytest.mark.parametrize(
    "block",
    [
        "80", "be", "bf", "ff" * 12, "7f80808080808080", "40", "4003", "40036162", "0001", "3fe21f", "8220",
        "4082ffff0161",
    ],
)  # fmt: skip
def test_blocks_that_break_a_rule(block: str) -> None:
    with pytest.raises(Http2Error):
        FieldDecoder(MOST).fields(bytes.fromhex(block))


def test_a_small_block_does_not_become_large_fields() -> None:
    """One entry of the table, named again and again."""
    large = encoded([(b"a", b"x" * (TABLE_BYTES - 100))])
    decoder = FieldDecoder(MOST)
    decoder.fields(b"\x40" + large[1:])
    assert len(decoder.fields(b"\xbe" * 4)) == 4
    with pytest.raises(Http2Error) as raised:
        decoder.fields(b"\xbe" * 5)
    assert raised.value.code is Reset.ENHANCE_YOUR_CALM
