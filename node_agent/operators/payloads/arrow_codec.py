"""The stream type `arrow`: a table, as an IPC stream of Apache Arrow. A record batch arrives as a table of one batch.

What arrives is checked in full before an operator gets it, since offsets that point outside would let it read foreign
memory. It is read where it lies, without a copy. Compressed streams are refused: their size in memory is not theirs.
PyArrow is no dependency of the agent, and is imported when a stream of this type is first met.
"""

from importlib import import_module
from struct import Struct, error
from typing import Any

from node_agent.link.limits import MAX_MESSAGE_BYTES
from node_agent.operators.payloads.bytes_codec import as_text, from_text
from node_agent.operators.payloads.stream_type import Codec, CodecError, too_large

NAME = "arrow"
MOST_MESSAGES = 4096  # of one stream: its schema, dictionaries and batches
_PREFIX = Struct("<II")  # continuation, length of the metadata
_U32, _I32, _U16, _I64 = Struct("<I"), Struct("<i"), Struct("<H"), Struct("<q")
_CONTINUED = 0xFFFFFFFF
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3


def codec() -> Codec:
    """The codec. Raises ImportError where PyArrow is not installed."""
    arrow = import_module("pyarrow")
    ipc = import_module("pyarrow.ipc")

    def fit(value: Any) -> Any:
        if isinstance(value, arrow.RecordBatch):
            value = arrow.Table.from_batches([value])
        if not isinstance(value, arrow.Table):
            raise CodecError("other_type", f"a {type(value).__name__} on a stream of arrow", subject=NAME)
        return value

    def encode(value: Any) -> bytes:
        table = fit(value)
        out = arrow.BufferOutputStream()
        try:
            with ipc.new_stream(out, table.schema) as writer:
                writer.write_table(table)
        except arrow.ArrowException as why:
            raise CodecError("not_encoded", f"cannot encode a table: {why}", subject=NAME) from None
        data: bytes = out.getvalue().to_pybytes()
        if len(data) > MAX_MESSAGE_BYTES:
            raise too_large(NAME, len(data), MAX_MESSAGE_BYTES)
        return data

    def decode(data: bytes) -> Any:
        if len(data) > MAX_MESSAGE_BYTES:
            raise too_large(NAME, len(data), MAX_MESSAGE_BYTES)
        try:
            _check_messages(data)
            with ipc.open_stream(arrow.py_buffer(data)) as reader:
                table = reader.read_all()
            table.validate(full=True)
        except (arrow.ArrowException, error, OSError, ValueError, IndexError, KeyError) as why:
            raise CodecError("not_decoded", f"not a table: {why}", subject=NAME) from None
        return table

    return Codec(
        NAME, encode, decode, from_text(decode, NAME), as_text(encode), None, fit, most_bytes=MAX_MESSAGE_BYTES
    )  # fmt: skip


def _check_messages(data: bytes) -> None:
    """Of each message of a stream only what tells its kind and whether its buffers are compressed. Raises ValueError,
    struct.error."""
    at = 0
    for _ in range(MOST_MESSAGES):
        if at + _PREFIX.size > len(data):
            return  # a stream may end without a mark
        mark, length = _PREFIX.unpack_from(data, at)
        if mark != _CONTINUED:
            raise ValueError("no IPC stream of Arrow")
        if not length:
            return
        at += _PREFIX.size
        if at + length > len(data):
            raise ValueError("its metadata end early")
        body = _body_bytes(memoryview(data)[at : at + length])
        at += length + body
    raise ValueError(f"more than {MOST_MESSAGES} messages")


def _body_bytes(metadata: memoryview) -> int:
    """How long the body of a message is. Raises ValueError where it is compressed."""
    root = _at(_U32, metadata, 0)
    kind, header = _field(metadata, root, 1), _field(metadata, root, 2)
    body = _field(metadata, root, 3)
    size = _at(_I64, metadata, body) if body else 0
    if size < 0 or not kind or not header:
        raise ValueError("a message that is none")
    table = header + _at(_U32, metadata, header)
    what = metadata[kind]
    if what == _DICTIONARY:
        inner = _field(metadata, table, 1)
        if not inner:
            raise ValueError("a dictionary without values")
        table = inner + _at(_U32, metadata, inner)
    elif what not in (_SCHEMA, _BATCH):
        raise ValueError("a message that is neither schema nor dictionary nor batch")
    if what != _SCHEMA and _field(metadata, table, 3):
        raise ValueError("it is compressed: write it without compression")
    return size


def _field(data: memoryview, table: int, number: int) -> int:
    """Where a field of a flatbuffers table lies; 0: it has none."""
    fields = table - _at(_I32, data, table)
    place = 4 + 2 * number
    if fields < 0 or place >= _at(_U16, data, fields):
        return 0
    offset: int = _at(_U16, data, fields + place)
    return table + offset if offset else 0


def _at(of: Struct, data: memoryview, at: int) -> int:
    if at < 0:
        raise ValueError("it points outside of itself")
    found: int = of.unpack_from(data, at)[0]
    return found
