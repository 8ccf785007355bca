"""The payloads of a burst: of values one by one, of the items of an array, of the rows of a table.

A row is encoded from its columns without a dictionary in between, to the same bytes that its dictionary gives.
"""

from collections.abc import Callable, Iterable
from json.encoder import encode_basestring
from typing import Any

from node_agent.client.columns import PLAIN, Column, Table, check_items, column, is_array, table
from node_agent.operators.codecs import Codec
from node_agent.problems import UnusableValueError

_TEXTS: dict[type, Callable[[Any], str]] = {  # as the standard library's encoder writes them
    bool: {False: "false", True: "true"}.__getitem__,
    float: float.__repr__,
    int: int.__repr__,
    str: encode_basestring,
}


def payloads(values: Any, codec: Codec) -> list[bytes]:
    """Of each tuple, in order. Raises CodecError, and UnusableValueError for columns that are no values of the type."""
    found = table(values)
    if found is not None:
        return _rows(found, codec)
    if is_array(values):
        return _items(values, codec)
    if not isinstance(values, Iterable) and not hasattr(values, "__getitem__"):
        text = f"a single {type(values).__name__} has no items"
        raise UnusableValueError("unsupported", text, "give an iterable with a value per tuple, or use send")
    return [codec.encode(value) for value in values]


def _rows(found: Table, codec: Codec) -> list[bytes]:
    """A tuple per row: an object of JSON, or a message with these fields."""
    if codec.fields is not None:
        return [codec.encode(codec.from_json(row)) for row in found.rows]
    if codec.name != "json":
        mend = "send it as one tuple: send(...)" if codec.name == "arrow" else "give one column"
        text = f"the rows of a table on a stream of {codec.name}"
        raise UnusableValueError("other_type", text, mend, subject=codec.name)
    texts = [_texts(each) for each in found.columns]
    if not texts or None in texts:
        return [codec.encode(row) for row in found.rows]
    keys = (encode_basestring(name).replace("%", "%%") for name in found.names)
    row = "{" + ",".join(f"{key}:%s" for key in keys) + "}"
    written = list(map(row.__mod__, zip(*[each for each in texts if each is not None], strict=True)))
    return _encoded(written, codec, lambda: found.rows)


def _items(values: Any, codec: Codec) -> list[bytes]:
    """A tuple per item of the first axis."""
    if codec.name == "numpy" and hasattr(values, "shape"):
        check_items(values)
        return [codec.encode(each) for each in values]
    if codec.name == "bytes" and len(getattr(values, "shape", ())) > 1:
        dtype = getattr(values, "dtype", None)
        if dtype is None or dtype.kind != "u" or dtype.itemsize != 1:
            text = f"an array of {dtype or type(values).__name__} on a stream of bytes"
            mend = "give one of NumPy, of uint8, a row per tuple"
            raise UnusableValueError("other_type", text, mend, subject=codec.name)
        check_items(values)
        return [codec.encode(each.tobytes()) for each in values]
    found = column(values)
    texts = _texts(found) if codec.name == "json" else None
    if texts is None:
        return [codec.encode(value) for value in found.values]
    return _encoded(texts, codec, lambda: found.values)


def _texts(found: Column) -> list[str] | None:
    """Of each value its JSON, where all are plain and of one class."""
    if len(found.kinds) != 1 or not found.kinds <= PLAIN:
        return [] if not found.values else None
    (kind,) = found.kinds
    if kind is float and not _finite(found):
        return None
    try:
        return list(map(_TEXTS[kind], found.values))
    except ValueError:  # an integer of more digits than Python writes
        return None


def _finite(found: Column) -> bool:
    """Whether JSON has these numbers; those of arrays have been looked at."""
    return all(value - value == 0 for value in found.values)


def _encoded(texts: list[str], codec: Codec, values: Callable[[], Iterable[Any]]) -> list[bytes]:
    """As bytes; where one cannot be, the codec says so of its value."""
    try:
        found = [text.encode() for text in texts]
    except UnicodeEncodeError:  # half a character
        return [codec.encode(value) for value in values()]
    if max(map(len, found), default=0) > codec.most_bytes:
        return [codec.encode(value) for value in values()]
    return found
