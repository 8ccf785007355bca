"""The stream type `numpy`: an array, as a .npy file (version 1.0 of the format) without pickled objects.

What is large is not copied: an array goes out of its own memory, and what has arrived is read where it lies. So an
array that an operator gives is frozen, and its owner with it: it is on its way as long as a link may send it. NumPy is
no dependency of the agent, and is imported when a stream of this type is first met.
"""

from ast import literal_eval
from importlib import import_module
from io import BytesIO
from math import prod
from struct import Struct
from typing import Any

from node_agent.link.limits import MAX_MESSAGE_BYTES, MESSAGE_HEAD_BYTES
from node_agent.operators.payloads.bytes_codec import as_text, from_text
from node_agent.operators.payloads.stream_type import Codec, CodecError, Parts, too_large

NAME = "numpy"
MAGIC = b"\x93NUMPY\x01\x00"
_LENGTH = Struct("<H")


def codec() -> Codec:
    """The codec. Raises ImportError where NumPy is not installed."""
    numpy = import_module("numpy")
    npy = import_module("numpy.lib.format")

    def checked(value: Any) -> Any:
        if not isinstance(value, numpy.ndarray):
            raise CodecError("other_type", f"a {type(value).__name__} on a stream of numpy", subject=NAME)
        if value.dtype.hasobject:
            raise CodecError("not_encoded", f"an array of Python objects ({value.dtype})", subject=NAME)
        if value.__class__ is not numpy.ndarray and _hides(numpy, value):
            raise CodecError("not_encoded", "an array with masked values", "fill them in", subject=NAME)
        if value.nbytes > MAX_MESSAGE_BYTES:
            raise too_large(NAME, value.nbytes, MAX_MESSAGE_BYTES)
        return value

    def parts(value: Any) -> Parts:
        array = checked(value)
        columns = array.flags.f_contiguous and not array.flags.c_contiguous
        flat = array.T if columns else numpy.ascontiguousarray(array)
        head = BytesIO()
        described = {"descr": npy.dtype_to_descr(array.dtype), "fortran_order": columns, "shape": array.shape}
        try:
            npy.write_array_header_1_0(head, described)
        except ValueError as error:
            raise CodecError("not_encoded", f"cannot encode an array: {error}", subject=NAME) from None
        if head.tell() > MESSAGE_HEAD_BYTES:
            text = f"an array whose type and shape take {head.tell()} bytes"
            raise CodecError("too_large", text, f"at most {MESSAGE_HEAD_BYTES}", subject=NAME)
        return head.getvalue(), memoryview(flat.reshape(-1).view(numpy.uint8)).toreadonly()

    def encode(value: Any) -> bytes:
        return b"".join(parts(value))

    def decode(data: bytes) -> Any:
        if len(data) > MAX_MESSAGE_BYTES + MESSAGE_HEAD_BYTES:
            raise too_large(NAME, len(data), MAX_MESSAGE_BYTES)
        try:
            shape, columns, described, at = _head(data)
            dtype = npy.descr_to_dtype(described)
            if dtype.hasobject or prod(shape) * dtype.itemsize != len(data) - at:
                raise ValueError("its type and shape do not say how long it is")
            flat = numpy.frombuffer(data, dtype, offset=at) if at < len(data) else numpy.empty(0, dtype)
            array = flat.reshape(shape[::-1]).T if columns else flat.reshape(shape)
        except Exception as error:  # NumPy may raise anything about a type that is none
            raise CodecError("not_decoded", f"not an array: {error}", subject=NAME) from None
        array.setflags(write=False)
        return array

    def fit(value: Any) -> Any:
        owner = checked(value)
        while isinstance(owner, numpy.ndarray):
            owner.setflags(write=False)
            owner = owner.base
        return value

    def within(value: Any, most: int) -> bool:
        return bool(checked(value).nbytes <= most)

    return Codec(
        NAME, encode, decode, from_text(decode, NAME), as_text(encode), None, fit, within,
        parts, MESSAGE_HEAD_BYTES, MAX_MESSAGE_BYTES,
    )  # fmt: skip


def _hides(numpy: Any, value: Any) -> bool:
    """Whether it is a masked array some of whose values are masked; the format has no masks."""
    return isinstance(value, numpy.ma.MaskedArray) and bool(numpy.ma.flatten_mask(numpy.ma.getmask(value)).any())


def _head(data: bytes) -> tuple[tuple[int, ...], bool, Any, int]:
    """Shape, whether columns come first, the type as the format says it, and where the numbers begin. Raises
    ValueError, TypeError, SyntaxError, struct.error."""
    if data[:8] != MAGIC:
        raise ValueError("no .npy file of version 1.0")
    (length,) = _LENGTH.unpack_from(data, 8)
    if length > MESSAGE_HEAD_BYTES:
        raise ValueError(f"its head has {length} bytes, at most {MESSAGE_HEAD_BYTES}")
    said = literal_eval(data[10 : 10 + length].decode("latin1").strip())
    shape, columns = said["shape"], said["fortran_order"]
    if shape.__class__ is not tuple or any(each.__class__ is not int or each < 0 for each in shape):
        raise ValueError(f"its shape is {shape!r}")
    return shape, columns is True, said["descr"], 10 + length
