from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.link.arrived import Arrived
from node_agent.link.clock_offset import FAR_NS
from node_agent.link.large_tuple import LargeTuple
from node_agent.link.limits import CHUNK_BYTES, MAX_BATCH_TUPLES, MAX_FRAME_BYTES, MAX_PAYLOAD_BYTES
from node_agent.wire import frames, plain_frames
from node_agent.wire.frames import FrameError, FrameReader, Hello
from node_agent.wire.plain_batch import MOST_TUPLES, plain_ack, plain_batch
from protos import tuple_pb2 as pb
from tests.sentences import Wording

SAID = Wording("engine", "frames")

HELLO = Hello("node:a", "0" * 32, 77, 5, 6, 100, 1 << 20, "json", 78, 70_000)
U16, U32, U64 = st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF), st.integers(0, (1 << 64) - 1)
INSTANT = st.integers(-FAR_NS, FAR_NS)
LINEAGE = st.builds(
    lambda source, epoch, seq, ordinal, one, other: (source, epoch, seq, ordinal, min(one, other), max(one, other)),
    U16, U16, U64, U32, INSTANT, INSTANT,
)  # fmt: skip


def reader() -> FrameReader:
    made = FrameReader()
    assert list(made.feed(frames.encode_hello(HELLO))) == [HELLO]
    return made


def framed(frame: pb.Frame) -> bytes:
    body = frame.SerializeToString()
    return frames.HEAD.pack(len(body), crc32(body)) + body


def batch(*tuples: pb.Tuple, first: int = 1, sent_ns: int = 0) -> bytes:
    return framed(pb.Frame(batch=pb.Batch(first=first, sent_ns=sent_ns, tuples=tuples)))


def counter_of(data: bytes, into: FrameReader | None = None) -> str:
    with pytest.raises(FrameError) as error:
        list((into or reader()).feed(data))
    assert str(error.value)
    return error.value.counter


@given(LINEAGE, U16, U64, st.binary(max_size=5000), INSTANT)
def test_a_tuple_is_encoded_as_protobuf_would(
    lineage: tuple[int, int, int, int, int, int], stream: int, plan: int, payload: bytes, at_ns: int
) -> None:
    source, epoch, seq, ordinal, lo_ns, hi_ns = lineage
    for absent in (False, True):
        data = frames.encode_tuple(lineage, stream, plan, payload, absent=absent, at_ns=at_ns)
        assert pb.Tuple.FromString(data) == pb.Tuple(
            source=source, epoch=epoch, seq=seq, plan=plan, stream=stream, ordinal=ordinal, origin_lo_ns=lo_ns,
            origin_hi_ns=hi_ns, payload=payload, absent=absent, at_ns=at_ns,
        )  # fmt: skip


@given(
    st.integers(1, 1 << 62),
    INSTANT,
    st.lists(st.tuples(LINEAGE, U16, U64, st.binary(max_size=200)), min_size=1, max_size=20),
)
def test_a_batch_comes_back_as_it_was(
    first: int, sent_ns: int, tuples: list[tuple[tuple[int, int, int, int, int, int], int, int, bytes]]
) -> None:
    data = frames.encode_batch(first, sent_ns, [frames.encode_tuple(*each) for each in tuples])
    (got,) = reader().feed(data)
    assert isinstance(got, frames.Batch)
    assert (got.first, got.sent_ns) == (first, sent_ns)
    assert got.tuples == [Arrived(*each) for each in tuples]


@given(LINEAGE, U16, U64, st.integers(0, 3), st.data())
def test_a_mark_comes_back_as_it_was(
    lineage: tuple[int, int, int, int, int, int], stream: int, plan: int, mark: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, lineage[2])) if mark else 0
    lineage = (*lineage[:3], 0, *lineage[4:])
    encoded = frames.encode_tuple(lineage, stream, plan, b"", absent=True, mark=mark, first=first)
    (got,) = reader().feed(frames.encode_batch(1, 0, [encoded]))
    assert isinstance(got, frames.Batch)
    assert got.tuples[0] == Arrived(lineage, stream, plan, b"", True, 0, mark, first)


@pytest.mark.parametrize("wrong", [{"absent": False}, {"mark": 4}, {"ordinal": 1}, {"first": 4}], ids=str)
def test_a_mark_that_means_nothing_is_refused(wrong: dict[str, int]) -> None:
    fields = {"source": 1, "seq": 3, "stream": 1, "absent": True, "mark": 1, "first": 2, **wrong}
    assert counter_of(batch(pb.Tuple(**fields))) == "tuple_fields"


ALL = [
    frames.encode_ack(3, 500, [frames.Answer(2, 1, 9), frames.Answer(3, 1, 10)]),
    frames.encode_probe(frames.Probe(1, 2, 3, 4)),
    frames.encode_batch(1, 5, [frames.encode_tuple((1, 2, 3, 4, 5, 6), 7, 8, b"x")]),
    frames.encode_refused("too old", 4),
]


@given(
    st.integers(1, 1 << 63), st.integers(-(1 << 63), (1 << 63) - 1), st.integers(1, 3), LINEAGE, U16, U64,
    st.binary(max_size=20_000), st.booleans(), st.sampled_from((0, 0, 7, -1)),
    st.lists(st.tuples(st.integers(0, 120), st.integers(0, 255)), max_size=2), st.integers(1, 300),
)  # fmt: skip
def test_what_is_read_by_hand_reads_the_same_by_protobuf(
    first: int, sent_ns: int, count: int, lineage: tuple[int, int, int, int, int, int], stream: int, plan: int,
    payload: bytes, client: bool, at_ns: int, damage: list[tuple[int, int]], next_first: int,
) -> None:  # fmt: skip
    if client:
        lineage, stream = (0, 0, 0, 0, *lineage[4:]), 0
    encoded = frames.encode_tuple(lineage, stream, plan, payload, at_ns=at_ns)
    data = bytearray(frames.encode_batch(first, sent_ns, [encoded] * count)[frames.HEAD.size :])
    for at, byte in damage:
        data[at % len(data)] = byte
    plain = plain_batch(bytes(data), 0, next_first)
    in_range = -FAR_NS <= sent_ns <= FAR_NS and next_first <= first < 1 << 62
    assert plain is not None or damage or not in_range, "what this program writes itself is read by hand"
    if plain is not None:
        found = pb.Frame.FromString(bytes(data))
        assert found.WhichOneof("is") == "batch" and plain[0] >= next_first
        (read,) = reader()._batch(found.batch)
        assert (read.first, read.sent_ns, read.tuples) == plain


PLAIN_TUPLES = st.lists(st.tuples(LINEAGE, U16, U64, st.binary(max_size=300), INSTANT), min_size=1, max_size=20)


@given(st.integers(0, (1 << 64) - 1), INSTANT, PLAIN_TUPLES)
def test_what_is_written_by_hand_are_the_bytes_of_protobuf(
    first: int, sent_ns: int, tuples: list[tuple[tuple[int, int, int, int, int, int], int, int, bytes, int]]
) -> None:
    """A field that protobuf leaves out at 0, and the order of a tuple's fields, do not count: the batch around them
    does, byte for byte."""
    encoded = [plain_frames.encode_plain(*each) for each in tuples]
    data = plain_frames.encode_batch(first, sent_ns, encoded)
    rest = b"".join(b"\x1a" + plain_frames.varint(len(each)) + each for each in encoded)
    rest = b"\x08" + plain_frames.varint(first) + rest
    inside = b"\x11" + sent_ns.to_bytes(8, "little", signed=True) + rest
    assert data == plain_frames.with_head(b"\x12" + plain_frames.varint(len(inside)) + inside)
    found = pb.Frame.FromString(data[frames.HEAD.size :]).batch
    assert (found.first, found.sent_ns, len(found.tuples)) == (first, sent_ns, len(tuples))
    for read, (lineage, stream, plan, payload, at_ns) in zip(found.tuples, tuples, strict=True):
        source, epoch, seq, ordinal, lo_ns, hi_ns = lineage
        assert read == pb.Tuple(
            source=source, epoch=epoch, seq=seq, plan=plan, stream=stream, ordinal=ordinal, origin_lo_ns=lo_ns,
            origin_hi_ns=hi_ns, payload=payload, at_ns=at_ns,
        )  # fmt: skip


@given(U64, U32, st.lists(st.tuples(U64, U16, U64), max_size=300))
def test_an_acknowledgement_is_written_as_protobuf_would(
    upto: int, credit_bytes: int, answers: list[tuple[int, int, int]]
) -> None:
    data = plain_frames.encode_ack(upto, credit_bytes, answers)
    admitted = [pb.Admitted(link_seq=link_seq, epoch=epoch, seq=seq) for link_seq, epoch, seq in answers]
    body = data[frames.HEAD.size :]
    assert plain_frames.with_head(body) == data
    assert pb.Frame.FromString(body) == pb.Frame(ack=pb.Ack(upto=upto, credit_bytes=credit_bytes, admitted=admitted))


@given(U64, U32, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255)), max_size=2), st.booleans())
def test_an_acknowledgement_that_is_read_by_hand_reads_the_same_by_protobuf(
    upto: int, credit_bytes: int, damage: list[tuple[int, int]], answered: bool
) -> None:
    admitted = [frames.Answer(1, 2, 3)] * answered
    data = bytearray(plain_frames.encode_ack(upto, credit_bytes, admitted)[frames.HEAD.size :])
    for at, byte in damage:
        data[at % len(data)] = byte
    plain = plain_ack(bytes(data))
    assert plain is not None or damage or answered or upto >= 1 << 63
    if plain is not None:
        found = pb.Frame.FromString(bytes(data))
        assert found == pb.Frame(ack=pb.Ack(upto=plain[0], credit_bytes=plain[1]))


@given(st.lists(st.sampled_from(range(5)), min_size=1, max_size=12), st.integers(1, 400))
def test_many_frames_at_once_come_in_their_order(kinds: list[int], size: int) -> None:
    encoded = frames.encode_tuple((0, 0, 0, 0, 5, 6), 0, 0, b"x")
    into, data, expected = reader(), b"", []
    for number, kind in enumerate(kinds, 1):
        if kind < 3:
            data += frames.encode_batch(1000 * number, 1, [encoded] * (1, 2, MOST_TUPLES)[kind])
            expected.append(1000 * number)
        elif kind == 3:
            data += frames.encode_ack(number, 7)
            expected.append(number)
        else:
            data += frames.encode_probe(frames.Probe(number, 2))
            expected.append(number)
    got = list(into.feed(data[:size])) + list(into.feed(data[size:]))
    assert [each.first if isinstance(each, frames.Batch) else each[0] for each in got] == expected


def test_more_than_a_part_is_not_read_by_hand() -> None:
    encoded = frames.encode_tuple((0, 0, 0, 0, 5, 6), 0, 0, b"x")
    for count, parts in ((MOST_TUPLES, 1), (MOST_TUPLES + 1, 2)):
        data = frames.encode_batch(1, 1, [encoded] * count)
        assert (plain_batch(data, frames.HEAD.size, 1) is None) == (parts > 1)
        assert [len(each.tuples) for each in reader().feed(data)] == [MOST_TUPLES, 1][:parts]


@pytest.mark.parametrize("count", [1, 2])
def test_after_a_plain_batch_its_numbers_do_not_come_again(count: int) -> None:
    data = frames.encode_batch(5, 1, [frames.encode_tuple((0, 0, 0, 0, 5, 6), 0, 0, b"x")] * count)
    into = reader()
    assert len(list(into.feed(data))) == 1
    assert counter_of(data, into) == "batch_order"


@given(st.lists(st.tuples(st.binary(max_size=200), st.integers(0, 3))))
def test_what_a_source_offers_is_encoded_alike(rows: list[tuple[bytes, int]]) -> None:
    intervals = [(0, 0), (-5, 7), (1 << 61, 1 << 61), (-(1 << 61), 0)]
    offered = [(payload, intervals[which]) for payload, which in rows]
    offered += [(bytes(5000), (1, 2)), (bytes(CHUNK_BYTES + 1), (1, 2)), (b"", (1, 2))]
    found = frames.encode_offered([payload for payload, _ in offered], [origin for _, origin in offered])
    for data, (payload, origin) in zip(found, offered, strict=True):
        expected = frames.encode_large((0, 0, 0, 0, *origin), 0, 0, (payload,))
        assert whole(data) == whole(expected)


def whole(data: bytes | LargeTuple) -> bytes:
    return data if isinstance(data, bytes) else data.whole()


def test_a_batch_is_stamped_when_all_else_is_encoded() -> None:
    (got,) = reader().feed(frames.encode_batch(1, lambda: 77, [frames.encode_tuple((0, 0, 0, 0, 5, 6), 0, 0, b"x")]))
    assert isinstance(got, frames.Batch) and got.sent_ns == 77


@given(st.integers(1, 50))
def test_frames_come_out_whole_however_the_bytes_are_cut(size: int) -> None:
    data = frames.encode_hello(HELLO) + b"".join(ALL)
    into = FrameReader()
    got = [frame for at in range(0, len(data), size) for frame in into.feed(data[at : at + size])]
    assert [type(frame).__name__ for frame in got] == ["Hello", "Ack", "Probe", "Batch", "Refused"]
    assert got[1] == (3, 500, [(2, 1, 9), (3, 1, 10)]) and got[2] == (1, 2, 3, 4) and got[4] == ("too old", 4, "", 1)


def test_outcomes_come_before_the_acknowledgement_that_covers_them() -> None:
    got = list(reader().feed(frames.encode_outcomes([(1, 5, 9, None), (2, 0, 0, "too old")], 2, 100)))
    assert got == [frames.Refused("too old", 2), frames.Ack(2, 100, [frames.Answer(1, 5, 9)])]


def test_a_frame_beyond_the_limit_is_refused_before_it_is_read() -> None:
    assert counter_of((MAX_FRAME_BYTES + 1).to_bytes(4, "big")) == "frame_oversized"
    assert counter_of((5000).to_bytes(4, "big"), FrameReader()) == "frame_oversized", "a stranger gets less"
    assert counter_of(bytes(4)) == "frame_empty"
    with SAID.refuses("too_large", kind=ValueError):
        frames.encode_batch(1, 0, [bytes(MAX_FRAME_BYTES)])


def test_the_largest_payload_fits() -> None:
    lineage = (0xFFFF, 0xFFFF, (1 << 64) - 1, 0xFFFFFFFF, -FAR_NS, FAR_NS)
    data = frames.encode_tuple(lineage, 0xFFFF, (1 << 64) - 1, bytes(MAX_PAYLOAD_BYTES), at_ns=FAR_NS)
    assert len(list(reader().feed(frames.encode_batch(1 << 62, FAR_NS, [data])))) == 1


@given(st.binary(min_size=1, max_size=200))
def test_no_bytes_at_all_break_the_reader(body: bytes) -> None:
    into = reader()
    try:
        list(into.feed(frames.HEAD.pack(len(body), crc32(body)) + body))
    except FrameError as error:
        assert error.counter
        assert counter_of(ALL[1], into) == "frame_after_error"


def test_what_came_before_a_bad_frame_is_still_given() -> None:
    into, got = reader(), []
    with pytest.raises(FrameError):
        for frame in into.feed(ALL[0] + bytes(4) + ALL[1]):
            got.append(frame)
    assert len(got) == 1


def test_batches_are_bounded_in_order_and_in_range() -> None:
    one = pb.Tuple(source=1)
    assert counter_of(batch()) == "batch_size"
    assert counter_of(batch(*[one] * (MAX_BATCH_TUPLES + 1))) == "batch_size"
    assert counter_of(batch(one, first=0)) == "batch_order"
    assert counter_of(batch(one, first=(1 << 63) - 1)) == "batch_order"
    assert counter_of(batch(one, one, first=5) + batch(one, first=6)) == "batch_order"
    assert len(list(reader().feed(batch(one, first=5) + batch(one, first=9)))) == 2
    assert counter_of(batch(one, sent_ns=FAR_NS + 1)) == "batch_fields"


@pytest.mark.parametrize(
    "wrong",
    [
        pb.Tuple(source=1 << 16),
        pb.Tuple(epoch=1 << 16),
        pb.Tuple(stream=1 << 16),
        pb.Tuple(origin_lo_ns=2, origin_hi_ns=1),
        pb.Tuple(origin_hi_ns=FAR_NS + 1),
        pb.Tuple(origin_lo_ns=-FAR_NS - 1),
        pb.Tuple(absent=True, payload=b"x"),
    ],
)
def test_a_tuple_with_wrong_fields_is_refused(wrong: pb.Tuple) -> None:
    assert counter_of(batch(wrong)) == "tuple_fields"


def test_a_connection_begins_with_one_hello() -> None:
    assert counter_of(ALL[0], FrameReader()) == "frame_order"
    assert counter_of(frames.encode_hello(HELLO)) == "frame_order"
    assert list(FrameReader().feed(frames.encode_refused("no"))) == [frames.Refused("no", 0)]


@pytest.mark.parametrize(
    ("fields", "counter"),
    [
        ({"version": frames.VERSION + 1, "peer": "a", "boot": 1}, "hello_version"),
        ({"version": frames.VERSION, "boot": 1}, "hello_fields"),
        ({"version": frames.VERSION, "peer": "a"}, "hello_fields"),
        ({"version": frames.VERSION, "peer": "a" * 300, "boot": 1}, "hello_fields"),
        ({"version": frames.VERSION, "peer": "a", "boot": 1, "clock": "c" * 41}, "hello_fields"),
        ({"version": frames.VERSION, "peer": "a", "boot": 1, "drift_ppm": 1 << 20}, "hello_fields"),
        ({"version": frames.VERSION, "peer": "a", "boot": 1, "resume_after": 1 << 63}, "hello_fields"),
    ],
)
def test_a_hello_says_who_speaks_and_in_which_version(fields: dict[str, object], counter: str) -> None:
    assert counter_of(framed(pb.Frame(hello=pb.Hello(**fields))), FrameReader()) == counter  # type: ignore[arg-type]


def test_acknowledgements_do_not_go_back() -> None:
    assert counter_of(frames.encode_ack(5, 0) + frames.encode_ack(4, 0)) == "ack_order"
    assert len(list(reader().feed(frames.encode_ack(5, 0) + frames.encode_ack(5, 9)))) == 2
    answers = [frames.Answer(1, 1, 1)] * (MAX_BATCH_TUPLES + 1)
    assert counter_of(frames.encode_ack(5, 0, answers)) == "ack_size"
    assert counter_of(framed(pb.Frame(probe=pb.Probe(id=1, t0_ns=FAR_NS + 1)))) == "probe_fields"
