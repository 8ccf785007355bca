"""Between the bytes of a message and a value of the stream's type."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from node_agent.connectors.connector_ports import NotConnectableError
from node_agent.connectors.kinds import INSTALL
from node_agent.operators.codecs import JSON, Codec

_MODULES = {"cdr": "node_agent.connectors.ros.cdr"}  # each with a function `mapping(codec, schema)`, as below


class Mapping(NamedTuple):
    """decode: a message to a value of the stream's type; encode: the other way. read: the value, and the whole message
    where the value is a part of it. They raise CodecError."""

    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    read: Callable[[bytes], tuple[Any, Any]] | None = None

    def stamped(self, data: bytes) -> tuple[Any, Any]:
        """The value, and what the path of a stamp leads into."""
        if self.read is not None:
            return self.read(data)
        value = self.decode(data)
        return value, value


def mapping(codec: Codec, encoding: str, schema: str) -> Mapping:
    """encoding: "": as the stream's type has it, json: as that type is in JSON, or the name of a module's. schema: of
    the messages, for the module. Raises NotConnectableError where there is none, or it cannot be loaded."""
    if not encoding or encoding == codec.name:
        return Mapping(codec.decode, codec.encode)
    if encoding == "json":
        return _through_json(codec)
    if encoding not in _MODULES:
        known = ", ".join(["json", *_MODULES])
        text = f"there is no encoding {encoding!r} of messages"
        raise NotConnectableError(
            "unknown_encoding", text, f"there are {known}, and the stream's own type", subject=encoding
        )
    try:
        made: Mapping = import_module(_MODULES[encoding]).mapping(codec, schema)
    except ImportError as error:
        text = f"encoding {encoding} cannot be loaded here ({error})"
        raise NotConnectableError("not_loaded", text, f"run on this node: {INSTALL}", subject=encoding) from None
    return made


def _through_json(codec: Codec) -> Mapping:
    def decode(data: bytes) -> Any:
        return codec.from_json(JSON.decode(data))

    def encode(value: Any) -> bytes:
        return JSON.encode(codec.to_json(value))

    return Mapping(decode, encode)
