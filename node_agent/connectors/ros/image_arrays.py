"""The array of an image of ROS 2: height by width, by channels where there are several."""

import re
from importlib import import_module
from typing import Any

_NAMED = {
    "mono8": ("uint8", 1), "mono16": ("uint16", 1), "rgb8": ("uint8", 3), "bgr8": ("uint8", 3), "rgba8": ("uint8", 4),
    "bgra8": ("uint8", 4), "rgb16": ("uint16", 3), "bgr16": ("uint16", 3), "rgba16": ("uint16", 4),
    "bgra16": ("uint16", 4),
}  # fmt: skip
_OPEN_CV = re.compile(r"(8U|8S|16U|16S|32S|32F|64F)C([1-4])").fullmatch
_KINDS = {"U": "uint", "S": "int", "F": "float"}


def image(message: Any) -> Any:
    """Of a sensor_msgs/msg/Image; one whose encoding is not known as its rows of bytes. Raises ValueError where its
    sizes do not fit."""
    numpy = import_module("numpy")
    kind, channels = _encoding(message.encoding)
    dtype = numpy.dtype(kind).newbyteorder(">" if message.is_bigendian else "<")
    height, width, step = message.height, message.width, message.step
    row = width * channels * dtype.itemsize if channels else step
    if height * step != len(message.data) or row > step:
        raise ValueError(f"{len(message.data)} bytes are no image of {height} rows of {step}, with {width} pixels each")
    if not channels:
        return message.data.reshape(height, step)
    rows = message.data.reshape(height, step)[:, :row]
    pixels = numpy.ascontiguousarray(rows).view(dtype).astype(kind, copy=False)
    return pixels.reshape((height, width, channels) if channels > 1 else (height, width))


def _encoding(name: str) -> tuple[str, int]:
    """Type and number of channels; 0: not known."""
    if name in _NAMED:
        return _NAMED[name]
    found = _OPEN_CV(name)
    if found is None:
        return "uint8", 0
    return f"{_KINDS[found[1][-1]]}{found[1][:-1]}", int(found[2])


__all__ = ["image"]
