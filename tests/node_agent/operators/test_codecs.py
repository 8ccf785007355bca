import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.link.limits import MAX_PAYLOAD_BYTES
from node_agent.operators.codecs import JSON, MAX_DEPTH, CodecError, Codecs, UnknownCodecError, protobuf
from protos import tuple_pb2 as pb

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc{[", max_size=3), inner, max_size=4),
    max_leaves=30,
)  # fmt: skip


@given(VALUES)
def test_json_values_come_back(value: object) -> None:
    assert JSON.decode(JSON.encode(value)) == value


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "bad",
    [math.nan, math.inf, {"x": [-math.inf]}, {1, 2}, object(), b"x", "\ud800", "x" * (MAX_PAYLOAD_BYTES + 1),
     nested(MAX_DEPTH + 1), nested(100_000)],
)  # fmt: skip
def test_what_is_no_json_is_not_encoded(bad: object) -> None:
    with pytest.raises(CodecError):
        JSON.encode(bad)


@pytest.mark.parametrize(
    "bad",
    [b"", b"{", b"NaN", b"[Infinity]", b"1e999", b'{"x": -1E+400}', b"9" * 400 + b".0", b"\xff", b"1 2",
     b"[" * 65 + b"]" * 65, b"[" * 100_000, b'"' + b"x" * MAX_PAYLOAD_BYTES + b'"'],
)  # fmt: skip
def test_what_is_no_json_is_not_decoded(bad: bytes) -> None:
    with pytest.raises(CodecError):
        JSON.decode(bad)


def test_the_deepest_and_the_widest_that_is_allowed_passes() -> None:
    assert JSON.decode(JSON.encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    wide: list[object] = [[] for _ in range(500)]
    assert JSON.decode(JSON.encode(wide)) == wide
    assert JSON.decode(b'{"e": "e1000", "x": 1e3}') == {"e": "e1000", "x": 1000.0}


def test_a_protobuf_message_is_a_codec() -> None:
    codec = protobuf("t.Probe", pb.Probe)
    value = pb.Probe(id=4, t0_ns=-5)
    assert codec.decode(codec.encode(value)) == value
    assert codec.from_json(json.loads(json.dumps(codec.to_json(value)))) == value
    for wrong in (pb.Ack(), {"id": 4}, None):
        with pytest.raises(CodecError, match=r"t\.Probe"):
            codec.encode(wrong)
    with pytest.raises(CodecError):
        codec.decode(b"\xff\xff")
    with pytest.raises(CodecError):
        codec.decode(bytes(MAX_PAYLOAD_BYTES + 1))
    with pytest.raises(CodecError):
        codec.from_json({"unknown": 1})
    with pytest.raises(TypeError):
        protobuf("t.Dict", dict)


def test_codecs_are_loaded_when_first_named() -> None:
    loads = []

    def load() -> type[pb.Probe]:
        loads.append(1)
        return pb.Probe

    def broken() -> None:
        raise ImportError("no such thing")

    codecs = Codecs(
        {"t.Ack": pb.Ack}, discover=lambda group: {"t.Probe": ("m:Probe", load), "t.Bad": ("m:Bad", broken)}
    )
    assert codecs.names() == ["json", "t.Ack", "t.Bad", "t.Probe"] and not loads
    assert codecs.get("t.Probe") is codecs.get("t.Probe") and loads == [1]
    assert codecs.get("json") is JSON
    with pytest.raises(UnknownCodecError, match=r"t\.Bad.*m:Bad.*no such thing"):
        codecs.get("t.Bad")
    with pytest.raises(UnknownCodecError, match="there are: json"):
        codecs.get("t.None")
    for name in ("json", "t.Ack", "any", ""):
        with pytest.raises(ValueError, match="codec"):
            codecs.add(name, pb.Probe)
