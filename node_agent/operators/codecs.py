"""Codecs: how a stream's values become bytes. `json`, `bytes`, `numpy`, `arrow`, and protobuf messages by name.

A protobuf codec is an entry point of group `shimekiri.codecs` (name = "module:MessageClass"), loaded when a plan or a
client first names it, or a message class registered with `sdk.codec` in a file that the machine's owner gives.
`numpy` and `arrow` (numpy_codec.py, arrow_codec.py) are loaded when they are first named: an agent needs neither.
"""

import json
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from json.scanner import make_scanner
from typing import Any

from node_agent.link.limits import MAX_PAYLOAD_BYTES
from node_agent.operators.entry_points import Discover, Offers, installed
from node_agent.operators.payloads.bytes_codec import BYTES
from node_agent.operators.payloads.stream_type import Codec, CodecError, UnknownCodecError, sized
from node_agent.operators.plain_json import check_keys, foreign, left
from node_agent.problems import UnusableValueError

GROUP = "shimekiri.codecs"
LARGE = {"arrow": "pyarrow", "bytes": "", "numpy": "numpy"}  # types without a parse, and the package that each needs
MAX_DEPTH = 64
DESCRIBED = 4  # levels of messages within messages that a description goes into
_SHORT = 300  # no number of fewer characters overflows without an exponent


def _not_a_number(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise ValueError(f"{text} is too large for a number")
    return value


def _foreign(value: Any) -> Any:
    return foreign(value, MAX_PAYLOAD_BYTES)


_encode_json = json.JSONEncoder(allow_nan=False, separators=(",", ":"), ensure_ascii=False, default=_foreign).encode


_chunks = None
if c_make_encoder is not None:
    _chunks = c_make_encoder(None, _foreign, encode_basestring, None, ":", ",", False, False, False)


def _encode_plain(value: Any) -> str:
    """`_encode_json` of what is plain, which is not circular. An encoder of the standard library makes its C encoder
    anew for each value, which takes longer than a short one."""
    return _encode_json(value) if _chunks is None else "".join(_chunks(value, 0))


_plain = json.JSONDecoder(parse_constant=_not_a_number)
_decode_plain = _plain.decode
_scan_plain = make_scanner(_plain)  # type: ignore[arg-type]  # the stub asks for a scanner, the function for a decoder
_decode_strict = json.JSONDecoder(parse_constant=_not_a_number, parse_float=_finite).decode
_large_exponent = re.compile(rb"[eE]\+?\d{3}").search


def encode_json(value: Any) -> bytes:
    """UTF-8 JSON without blanks. Raises CodecError for NaN, infinity, keys that are no text, foreign types but NumPy's
    numbers and arrays, and what is too large or deep."""
    if left(value, MAX_PAYLOAD_BYTES, MAX_DEPTH) >= 0:
        return _encode_plain(value).encode()
    try:
        check_keys(value, MAX_DEPTH)
        data = _encode_json(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CodecError("not_json", f"not a JSON value: {error}") from None
    if len(data) > MAX_PAYLOAD_BYTES:
        raise CodecError("too_large", f"{len(data)} bytes of JSON", f"at most {MAX_PAYLOAD_BYTES}", subject="json")
    _check_depth(data, value)
    return data


def fit_json(value: Any) -> Any:
    """What the value is after a hop. Raises CodecError, as `encode_json`."""
    return value if left(value, MAX_PAYLOAD_BYTES, MAX_DEPTH) >= 0 else decode_json(encode_json(value))


def decode_json(data: bytes) -> Any:
    """The Python value. Raises CodecError for anything but JSON with finite numbers, at most 64 levels deep."""
    if len(data) > MAX_PAYLOAD_BYTES:
        raise CodecError("too_large", f"{len(data)} bytes of JSON", f"at most {MAX_PAYLOAD_BYTES}", subject="json")
    try:
        text, size = data.decode(), len(data)
        if size < _SHORT and ((data.find(b"e") < 0 and data.find(b"E") < 0) or not _large_exponent(data)):
            value = _scan(text)
        else:
            value = _decode_strict(text)
    except (ValueError, RecursionError) as error:
        raise CodecError("not_json", f"not JSON: {error}") from None
    if len(data) > MAX_DEPTH:
        _check_depth(data, value)
    return value


def _scan(text: str) -> Any:
    """JSON without blanks around it: by the C scanner alone, since the decoder's own calls cost more than a number."""
    try:
        value, end = _scan_plain(text, 0)
    except StopIteration:
        end = -1
    return value if end == len(text) else _decode_plain(text)


def _check_depth(data: bytes, value: Any) -> None:
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    level = _containers([value])
    for _ in range(MAX_DEPTH):
        level = [
            inner for outer in level for inner in _containers(outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise CodecError("too_deep", f"JSON of more than {MAX_DEPTH} levels", subject="json")


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list | tuple)]


def _same(value: Any) -> Any:
    return value


def _json_within(value: Any, most: int) -> bool:
    return left(value, most, MAX_DEPTH) >= 0


JSON = Codec("json", encode_json, decode_json, _same, _same, None, fit_json, _json_within)


def protobuf(name: str, message: type[Any]) -> Codec:
    """The codec of a generated message class. Raises TypeError where it is none."""
    from google.protobuf import json_format
    from google.protobuf.message import DecodeError, EncodeError, Message

    if not (isinstance(message, type) and issubclass(message, Message)):
        raise TypeError(f"codec {name!r} needs a protobuf message class, not {message!r}")
    parse = message.FromString

    def encode(value: Any) -> bytes:
        if value.__class__ is not message:
            raise CodecError("other_type", f"a {type(value).__name__} on a stream of {name}", subject=name)
        try:
            data: bytes = value.SerializeToString()
        except (EncodeError, ValueError) as error:
            raise CodecError("not_encoded", f"cannot encode {name}: {error}", subject=name) from None
        if len(data) > MAX_PAYLOAD_BYTES:
            raise CodecError("too_large", f"{len(data)} bytes of {name}", f"at most {MAX_PAYLOAD_BYTES}", subject=name)
        return data

    def decode(data: bytes) -> Any:
        if len(data) > MAX_PAYLOAD_BYTES:
            raise CodecError("too_large", f"{len(data)} bytes of {name}", f"at most {MAX_PAYLOAD_BYTES}", subject=name)
        try:
            return parse(data)
        except (DecodeError, ValueError) as error:
            raise CodecError("not_decoded", f"not a {name}: {error}", subject=name) from None

    def from_json(value: Any) -> Any:
        try:
            return json_format.ParseDict(value, message())
        except (json_format.ParseError, TypeError, ValueError, AttributeError) as error:
            raise CodecError("not_decoded", f"not a {name} in JSON: {error}", subject=name) from None

    def to_json(value: Any) -> Any:
        try:
            return json_format.MessageToDict(value, preserving_proto_field_name=True)
        except (json_format.Error, DecodeError, TypeError, ValueError) as error:  # an instant or an Any that is none
            raise CodecError("not_encoded", f"cannot write {name} as JSON: {error}", subject=name) from None

    def fit(value: Any) -> Any:
        if value.__class__ is not message or value.ByteSize() > MAX_PAYLOAD_BYTES:
            encode(value)
        return value

    def within(value: Any, most: int) -> bool:
        return int(value.ByteSize()) <= most

    return Codec(name, encode, decode, from_json, to_json, described(message.DESCRIPTOR), fit, within)


def described(message: Any, depth: int = DESCRIBED) -> dict[str, Any] | None:
    """The fields of a protobuf descriptor: {name: number, condition, text, list, bytes, or the fields of a message}.
    None: deeper than `depth`, since messages may contain themselves."""
    return {field.name: _kind(field, depth) for field in message.fields} if depth else None


def _kind(field: Any, depth: int) -> Any:
    if field.is_repeated:
        return "list"
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        return described(field.message_type, depth - 1)
    if field.type == field.TYPE_BYTES:
        return "bytes"
    return {field.CPPTYPE_STRING: "text", field.CPPTYPE_BOOL: "condition"}.get(field.cpp_type, "number")


class Codecs:
    """The codecs of this machine, by name."""

    def __init__(self, added: Mapping[str, type[Any]] | None = None, discover: Discover = installed) -> None:
        self._loaded: dict[str, Codec] = {"json": JSON}
        self._discover = discover
        self._offers: Offers | None = None
        for name, message in (added or {}).items():
            self.add(name, message)

    def add(self, name: str, message: type[Any]) -> None:
        """Register a message class. Raises ValueError where the name is taken, TypeError where it is no message."""
        if name in self._loaded or name in LARGE:
            raise UnusableValueError("given_twice", f"two codecs are called {name!r}", subject=name)
        if not name or name in {"any", "same"}:
            raise UnusableValueError("bad_name", f"{name!r} cannot be the name of a codec", subject=name)
        self._loaded[name] = protobuf(name, message)

    def get(self, name: str, most_bytes: int = 0) -> Codec:
        """The codec, for values of at most so many bytes; 0: as many as fit a frame. Raises UnknownCodecError."""
        codec = self._loaded.get(name)
        if codec is None:
            codec = self._loaded[name] = self._load(name)
        if most_bytes or codec.most_bytes > MAX_PAYLOAD_BYTES:
            return sized(codec, min(most_bytes or MAX_PAYLOAD_BYTES - codec.head_bytes, codec.most_bytes))
        return codec

    def names(self) -> list[str]:
        """All names of messages and `json`, sorted, whether or not they have been loaded."""
        return sorted({*self._loaded, *self._offered()} - LARGE.keys())

    def fields(self) -> dict[str, Any]:
        """Of every codec whose values have known fields, by name. Loads them all; one that cannot be has none."""
        found: dict[str, Any] = {}
        for name in self.names():
            try:
                fields = self.get(name).fields
            except UnknownCodecError:
                continue
            if fields is not None:
                found[name] = fields
        return found

    def _offered(self) -> Offers:
        if self._offers is None:
            self._offers = self._discover(GROUP)
        return self._offers

    def _load(self, name: str) -> Codec:
        if name in LARGE:
            return _large(name)
        offer = self._offered().get(name)
        if offer is None:
            known = ", ".join([*self.names(), *LARGE])
            raise UnknownCodecError(
                "unknown_codec",
                f"no codec {name!r} is installed here",
                f"there are: {known}. Start the agent with --operators FILE.py, or import the file that has "
                f"codec({name!r}, ...) into this program",
                subject=name,
            )
        try:
            return protobuf(name, offer[1]())
        except Exception as error:  # a foreign module may raise anything while it is imported
            raise UnknownCodecError(
                "not_loaded", f"codec {name!r} ({offer[0]}) cannot be loaded: {error}", subject=name
            ) from error


def _large(name: str) -> Codec:
    """A codec whose package is no dependency of the agent. Raises UnknownCodecError."""
    if not LARGE[name]:
        return BYTES
    try:
        found: Codec = import_module(f"node_agent.operators.payloads.{name}_codec").codec()
    except ImportError as error:
        raise UnknownCodecError(
            "unknown_codec",
            f"codec {name!r} needs {LARGE[name]}, which cannot be loaded here ({error})",
            f"run on this node: python -m pip install {LARGE[name]}",
            subject=name,
        ) from None
    return found


__all__ = ["JSON", "Codec", "CodecError", "Codecs", "UnknownCodecError", "described", "protobuf"]
