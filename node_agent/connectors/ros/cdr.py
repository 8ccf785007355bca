"""Messages of ROS 2 in CDR, by rosbags: as values of JSON, as messages of protobuf whose fields are called alike, and
their `data` as bytes or as an array. Any bytes are a message of the type or refused."""

from typing import Any

from node_agent.connectors.connector_ports import NotConnectableError
from node_agent.connectors.mapping import Mapping
from node_agent.connectors.ros.image_arrays import image
from node_agent.connectors.ros.plain_values import message, plain
from node_agent.connectors.ros.typestore import known, typestore
from node_agent.link.limits import MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES
from node_agent.operators.codecs import Codec, CodecError

_HEAD_BYTES = 64 << 10  # of a message beside its data
_WITH_DATA = {"bytes": MAX_MESSAGE_BYTES + _HEAD_BYTES, "numpy": MAX_MESSAGE_BYTES + _HEAD_BYTES}
_IMAGE = "sensor_msgs/msg/Image"


def mapping(codec: Codec, schema: str) -> Mapping:
    """Between messages of that type and values of the codec. Raises NotConnectableError."""
    type_ = known(schema)
    if codec.name == "arrow":
        text, mend = "no table is made of messages in CDR", "declare the stream as json, bytes or numpy"
        raise NotConnectableError("other_type", text, mend, subject="arrow")
    if codec.name in _WITH_DATA and "data" not in dict(typestore().get_msgdef(type_).fields):
        text, mend = f"{type_} has no field 'data', which a stream of {codec.name} would carry", "declare it as json"
        raise NotConnectableError("other_type", text, mend, subject=codec.name)
    return _Cdr(codec, type_).mapping()


class _Cdr:
    """Of one type of messages and one of values."""

    def __init__(self, codec: Codec, type_: str) -> None:
        self._codec, self._type, self._store = codec, type_, typestore()
        self._most_bytes = _WITH_DATA.get(codec.name, MAX_PAYLOAD_BYTES)

    def mapping(self) -> Mapping:
        """Both ways."""
        return Mapping(self._decode, self._encode, self._stamped)

    def _decode(self, data: bytes) -> Any:
        return self._value(self._read(data))

    def _stamped(self, data: bytes) -> tuple[Any, Any]:
        read = self._read(data)
        return self._value(read), read

    def _read(self, data: bytes) -> Any:
        if len(data) > self._most_bytes:
            text, mend = f"{len(data)} bytes of {self._type}", f"at most {self._most_bytes}"
            if self._codec.name not in _WITH_DATA:
                mend += "; what is larger is declared as bytes or numpy"
            raise CodecError("too_large", text, mend, subject=self._type)
        try:
            return self._store.deserialize_cdr(data, self._type)
        except Exception as error:  # code that rosbags has made of the type, over bytes that may be anything
            raise self._not_decoded(str(error)) from None

    def _value(self, read: Any) -> Any:
        name = self._codec.name
        try:
            if name == "numpy":
                return image(read) if self._type == _IMAGE else read.data
            if name == "bytes":
                return read.data.tobytes()
            return self._codec.from_json(plain(self._store, self._type, read))
        except (AttributeError, ValueError) as error:
            raise self._not_decoded(str(error)) from None

    def _encode(self, value: Any) -> bytes:
        if self._codec.name in _WITH_DATA:
            text, mend = f"no {self._type} is made of {self._codec.name}", "declare the output's stream as json"
            raise CodecError("not_encoded", text, mend, subject=self._type)
        try:
            made = message(self._store, self._type, self._codec.to_json(value))
            return bytes(self._store.serialize_cdr(made, self._type, little_endian=True))
        except Exception as error:  # as above, over values of an operator
            raise CodecError("not_encoded", f"cannot encode {self._type}: {error}", subject=self._type) from None

    def _not_decoded(self, why: str) -> CodecError:
        return CodecError("not_decoded", f"no {self._type} in CDR: {why:.200}", subject=self._type)
