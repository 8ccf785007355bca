"""How much a frame holds is known before protobuf makes objects of it."""

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.link.limits import MAX_BATCH_TUPLES, MAX_FRAME_BYTES
from node_agent.wire import frames, tuple_count
from node_agent.wire.plain_frames import varint
from node_agent.wire.tuple_count import WalkError, has_more
from protos import tuple_pb2 as pb

GREETING = frames.encode_hello(frames.Hello("node:b", "elsewhere", 9))


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(0, 1 << 62))
def test_it_counts_as_protobuf_does(payloads: list[bytes], first: int) -> None:
    batch = pb.Frame(batch=pb.Batch(first=first, sent_ns=1, tuples=[pb.Tuple(payload=each) for each in payloads]))
    ack = pb.Frame(ack=pb.Ack(upto=first, admitted=[pb.Admitted(link_seq=len(each)) for each in payloads]))
    for frame, others in ((batch, bool(first) + 1), (ack, bool(first))):
        data = frame.SerializeToString()
        assert not has_more(data, len(payloads) + others)
        if payloads:
            assert has_more(data, len(payloads) - 1)


def test_a_payload_that_looks_like_many_tuples_is_one() -> None:
    payload = b"\x1a\x00" * 100
    assert not has_more(pb.Frame(batch=pb.Batch(first=1, tuples=[pb.Tuple(payload=payload)])).SerializeToString(), 3)


def test_batches_that_protobuf_would_merge_are_counted_together() -> None:
    one = pb.Frame(batch=pb.Batch(tuples=[pb.Tuple()] * 5)).SerializeToString()
    assert has_more(one * 3, 14) and len(pb.Frame.FromString(one * 3).batch.tuples) == 15


@given(st.binary(max_size=60))
def test_any_bytes_are_counted_or_refused(data: bytes) -> None:
    try:
        has_more(data + b"\x1a", 0)
    except WalkError:
        return


@pytest.mark.parametrize("tag", [b"\x12", b"\x1a"], ids=["batch", "ack"])
def test_a_frame_of_half_a_million_empty_ones_becomes_no_objects(tag: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = b"\x1a\x00" * ((MAX_FRAME_BYTES - 8) // 2)
    body = tag + varint(len(inner)) + inner
    reader, walked = frames.FrameReader(), list[int]()
    list(reader.feed(GREETING))
    walk = tuple_count._walk
    monkeypatch.setattr(tuple_count, "_walk", lambda data, most: walked.append(walk(data, most)) or walked[-1])
    monkeypatch.setattr(frames.pb.Frame, "FromString", None)
    with pytest.raises(frames.FrameError) as error:
        list(reader.feed(frames.HEAD.pack(len(body), crc32(body)) + body))
    assert error.value.counter == "batch_size" and walked[0] <= MAX_BATCH_TUPLES + 2 * frames.MOST_FIELDS


def test_a_long_batch_comes_in_parts_that_are_decoded_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    count, decoded = 2 * frames.MOST_TUPLES + 5, list[int]()
    tuples = [frames.encode_tuple((1, 1, number, 0, 0, 0), 1, 1, b"x") for number in range(count)]
    reader, arrived = frames.FrameReader(), frames._arrived
    list(reader.feed(GREETING))
    monkeypatch.setattr(frames, "_arrived", lambda item: decoded.append(1) or arrived(item))
    seen = list[tuple[int, int]]()
    for part in reader.feed(frames.encode_batch(7, 5, tuples)):
        assert isinstance(part, frames.Batch) and part.sent_ns == 5
        assert [each.lineage[2] for each in part.tuples] == list(
            range(part.first - 7, part.first - 7 + len(part.tuples))
        )
        seen.append((part.first, len(decoded)))
    assert seen == [(7, 256), (263, 512), (519, 517)]
