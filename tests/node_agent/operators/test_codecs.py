import json
import math

import pytest
from google.protobuf.any_pb2 import Any
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from node_agent.link.limits import MAX_PAYLOAD_BYTES
from node_agent.operators.codecs import JSON, MAX_DEPTH, CodecError, Codecs, protobuf
from protos import tuple_pb2 as pb
from tests.sentences import Wording, fault

SAID = Wording("operators", "codecs")

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
    ("bad", "code"),
    [
        (math.nan, "not_json"), (math.inf, "not_json"), ({"x": [-math.inf]}, "not_json"), ({1, 2}, "not_json"),
        (object(), "not_json"), (b"x", "not_json"), ("\ud800", "not_json"),
        ("x" * (MAX_PAYLOAD_BYTES + 1), "too_large json"), (nested(MAX_DEPTH + 1), "too_deep json"),
        (nested(100_000), "not_json"),
    ],
)  # fmt: skip
def test_what_is_no_json_is_not_encoded(bad: object, code: str) -> None:
    with pytest.raises(CodecError) as refused:
        JSON.encode(bad)
    assert fault(refused.value.problem) == code


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (b"", "not_json"), (b"{", "not_json"), (b"NaN", "not_json"), (b"[Infinity]", "not_json"),
        (b"1e999", "not_json"),
        (b'{"x": -1E+400}', "not_json"), (b"9" * 400 + b".0", "not_json"), (b"\xff", "not_json"), (b"1 2", "not_json"),
        (b"[" * 65 + b"]" * 65, "too_deep json"), (b"[" * 100_000, "not_json"),
        (b'"' + b"x" * MAX_PAYLOAD_BYTES + b'"', "too_large json"),
    ],
)  # fmt: skip
def test_what_is_no_json_is_not_decoded(bad: bytes, code: str) -> None:
    with pytest.raises(CodecError) as refused:
        JSON.decode(bad)
    assert fault(refused.value.problem) == code


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
        with SAID.refuses("other_type t.Probe"):
            codec.encode(wrong)
    with pytest.raises(CodecError) as refused:  # in words of the library, which differ from version to version
        codec.decode(b"\xff\xff")
    assert (refused.value.code, refused.value.mistake.subject) == ("not_decoded", "t.Probe")
    with SAID.refuses("too_large t.Probe"):
        codec.decode(bytes(MAX_PAYLOAD_BYTES + 1))
    with pytest.raises(CodecError) as refused:
        codec.from_json({"unknown": 1})
    assert (refused.value.code, refused.value.mistake.subject) == ("not_decoded", "t.Probe")
    with pytest.raises(TypeError):
        protobuf("t.Dict", dict)


def test_a_message_that_json_does_not_have_is_refused_alone() -> None:
    """As it may come from outside: an instant that is none, and a message of a type that nobody knows."""
    for value in (Timestamp(seconds=10**15), Timestamp(nanos=-5), Any(type_url="type.googleapis.com/no.Such")):
        with pytest.raises(CodecError) as refused:
            protobuf("t.Message", type(value)).to_json(value)
        assert refused.value.code == "not_encoded"


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
    with SAID.refuses("not_loaded t.Bad"):
        codecs.get("t.Bad")
    with SAID.refuses("unknown_codec t.None"):
        codecs.get("t.None")
    for name, code in (("json", "given_twice"), ("t.Ack", "given_twice"), ("any", "bad_name"), ("", "bad_name")):
        with SAID.refuses(f"{code} {name}".strip(), kind=ValueError):
            codecs.add(name, pb.Probe)
