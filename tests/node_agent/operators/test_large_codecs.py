"""Payloads that are not parsed: bytes, arrays, tables; and how large they may be."""

import io
import random
import struct
import sys

import numpy as np
import pyarrow as pa
import pytest

from node_agent.link.limits import MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES
from node_agent.operators.codecs import Codec, CodecError, Codecs, UnknownCodecError
from tests.seeds import seeds

MIB = 1 << 20


def codec(name: str, most: int = MAX_MESSAGE_BYTES) -> Codec:
    return Codecs(discover=lambda group: {}).get(name, most)


def table() -> pa.Table:
    return pa.table({"x": [1.0, 2.5], "name": ["a", "bö"], "ring": pa.array([3, None], pa.uint8())})


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=">f4").reshape(2, 3, 4),
        np.asfortranarray(np.arange(12).reshape(3, 4)),
        np.arange(20)[::3],
        np.array(7.5),
        np.zeros((0, 3), np.uint8),
        np.array([("p", 1.5)], dtype=[("name", "U4"), ("x", "<f8")]),
        np.array(["2026-01-01"], dtype="datetime64[ns]"),
    ],
)  # fmt: skip
def test_an_array_is_the_same_after_a_hop(array: np.ndarray) -> None:
    numpy = codec("numpy")
    data = numpy.encode(array)
    found = numpy.decode(data)
    assert found.dtype == array.dtype and found.shape == array.shape and (found == array).all()
    assert not found.flags.writeable and np.load(io.BytesIO(data)).tobytes() == array.tobytes()
    assert numpy.from_json(numpy.to_json(array)).tolist() == array.tolist()


def test_a_large_array_is_neither_copied_out_nor_in() -> None:
    numpy, array = codec("numpy"), np.zeros(MAX_MESSAGE_BYTES, np.uint8)
    assert numpy.parts is not None
    head, body = numpy.parts(array)
    assert isinstance(body, memoryview) and np.shares_memory(np.frombuffer(body, np.uint8), array)
    data = head + bytes(body)
    assert np.shares_memory(numpy.decode(data), np.frombuffer(data, np.uint8))


def test_an_array_that_was_given_is_frozen_with_its_owner() -> None:
    owner = np.arange(6)
    given = owner[2:]
    assert codec("numpy").fit(given) is given
    with pytest.raises(ValueError):
        owner[3] = 0


def test_a_table_and_a_record_batch_arrive_as_tables() -> None:
    arrow = codec("arrow")
    assert arrow.decode(arrow.encode(table())).equals(table())
    batch = table().to_batches()[0]
    assert arrow.fit(batch).equals(arrow.decode(arrow.encode(batch)))
    words = pa.table({"w": pa.array(["a", "b", "a"]).dictionary_encode()})
    assert arrow.decode(arrow.encode(words)).equals(words)


def test_bytes_are_what_they_are() -> None:
    data = b"\xff\xd8\x00"
    assert codec("bytes").encode(data) is data and codec("bytes").decode(data) is data
    assert codec("bytes").encode(bytearray(data)) == data
    assert codec("bytes").from_json(codec("bytes").to_json(data)) == data


@pytest.mark.parametrize(
    ("name", "value"),
    [("bytes", "text"), ("numpy", [1.0]), ("numpy", np.array([object()])), ("arrow", {"x": [1]})],
)
def test_what_is_of_another_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(CodecError):
        codec(name).fit(value)
    with pytest.raises(CodecError):
        codec(name).encode(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("bytes", bytes(1001)), ("numpy", np.zeros(1001, np.uint8)), ("arrow", table()), ("json", "x" * 999)],
)
def test_more_than_the_declared_size_is_refused(name: str, value: object) -> None:
    small, whole = codec(name, 300 if name == "arrow" else 1000), codec(name)
    for use in (small.encode, small.fit):
        with pytest.raises(CodecError) as refused:
            use(value)
        assert refused.value.code == "too_large"
    with pytest.raises(CodecError) as refused:
        small.decode(whole.encode(value))
    assert refused.value.code == "too_large"


@pytest.mark.parametrize("name", ["bytes", "numpy"])
def test_without_a_declaration_it_has_to_fit_a_frame(name: str) -> None:
    plain = codec(name, 0)
    assert plain.most_bytes + plain.head_bytes == MAX_PAYLOAD_BYTES
    with pytest.raises(CodecError) as refused:
        plain.encode(bytes(MIB) if name == "bytes" else np.zeros(MIB, np.uint8))
    assert refused.value.code == "too_large"


def test_nothing_beyond_the_largest_size_is_encoded_or_decoded() -> None:
    with pytest.raises(CodecError):
        codec("numpy").encode(np.zeros(MAX_MESSAGE_BYTES + 1, np.uint8))
    for name in ("bytes", "numpy", "arrow"):
        with pytest.raises(CodecError):
            codec(name).decode(bytes(MAX_MESSAGE_BYTES + 2000))


def npy(described: str, body: bytes) -> bytes:
    head = described.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + body


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY\x02\x00",
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", bytes(8)),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1 << 60,)}", bytes(8)),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", bytes(8)),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", bytes(8)),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", bytes(7)),
        npy("__import__('os').abort()", b""),
    ],
)  # fmt: skip
def test_what_is_no_array_is_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        codec("numpy").decode(data)


def test_a_compressed_table_is_refused_before_it_is_unpacked() -> None:
    for words in (pa.table({"x": [0] * MIB}), pa.table({"w": pa.array(["a"] * MIB).dictionary_encode()})):
        out = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(out, words.schema, options=options) as writer:
            writer.write_table(words)
        before = pa.total_allocated_bytes()
        with pytest.raises(CodecError):
            codec("arrow").decode(out.getvalue().to_pybytes())
        assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("seed", seeds(range(200)))
def test_a_damaged_payload_is_refused_or_read_whole(seed: int) -> None:
    draw = random.Random(seed)
    name, value = draw.choice([("numpy", np.arange(30).reshape(5, 6)), ("arrow", table())])
    data = bytearray(codec(name).encode(value))
    for _ in range(draw.randint(1, 4)):
        data[draw.randrange(min(len(data), 400))] = draw.randrange(256)
    try:
        found = codec(name).decode(bytes(data[: draw.choice([len(data), draw.randrange(len(data))])]))
    except CodecError:
        return
    assert repr(found) is not None  # it can be looked at


def test_a_node_that_lacks_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(UnknownCodecError) as refused:
        codec("numpy")
    assert "pip install numpy" in str(refused.value)
