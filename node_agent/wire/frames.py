"""Frames of the data wire (`protos/tuple.proto`): bytes <-> plain values, every field checked for range.

Tuples are encoded once, when they are offered to a link, and packed into batches as bytes: a resend costs no second
encoding. What comes with each tuple is written by hand (`wire/plain_frames.py`). Decoding is protobuf's, but for frames
as they are written there: `wire/plain_batch.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from google.protobuf.message import DecodeError

from node_agent.link.arrived import Arrived
from node_agent.link.clock_offset import FAR_NS
from node_agent.link.large_tuple import Assembly, LargeTuple
from node_agent.link.limits import CHUNK_BYTES, MAX_BATCH_TUPLES, MAX_FRAME_BYTES, LinkError
from node_agent.link.outcomes import Outcome
from node_agent.link.sender import Outgoing, OutgoingChunk
from node_agent.wire import plain_frames
from node_agent.wire.plain_batch import MOST_TUPLES, plain_ack, plain_batch
from node_agent.wire.plain_frames import AT, FIXED, HEAD, SMALL, encode_plain, varint, with_head
from node_agent.wire.tuple_count import WalkError, has_more
from protos import tuple_pb2 as pb

COMPILED = not __file__.endswith(".py")

VERSION = 2
MAX_HELLO_BYTES = 4096
MAX_WHY_CHARS, MAX_CODE_CHARS = 1000, 40
MOST_FIELDS = 16  # of a Batch or an Ack beside its tuples or answers
LENGTH = Struct(">I")  # of the frame
FILTERED, REMOVED, EXACT, QUIET = range(4)  # what an absent tuple tells; see the proto
_TLS_HELLO = 0x1603  # how TLS begins, read as half a length
_HEAD_BYTES = HEAD.size
_MERGED_BYTES = 1 << 16  # of a frame that is not whole: at most so many are copied once more as others come
_LINK_SEQ_LIMIT = 1 << 63  # a trace record holds it as a signed word

_MARK = Struct("<cBcQ")
_NO_LINEAGE = b"\x08\x00\x10\x00\x28\x00\x4a"  # source, epoch and stream 0, then the payload's tag

encode_batch, encode_ack = plain_frames.encode_batch, plain_frames.encode_ack


class FrameError(LinkError):
    """Bytes that are no frame of this wire: close the connection, count `counter`."""


class Hello(NamedTuple):
    """The identity of the sender; the proto has the meaning of each field in either direction."""

    peer: str
    clock: str
    boot: int
    plan: int = 0
    resume_after: int = 0
    drift_ppm: int = 0
    credit_bytes: int = 0
    codec: str = ""
    peer_boot: int = 0
    incarnation: int = 0
    suspensions: int = 0
    most_bytes: int = 0


class Batch:
    """Tuples with link_seq first, first + 1, ...: a whole batch of the wire, or a part of a long one."""

    __slots__ = ("first", "sent_ns", "tuples")

    def __init__(self, first: int, sent_ns: int, tuples: Sequence[Arrived]) -> None:
        self.first, self.sent_ns, self.tuples = first, sent_ns, tuples


class Answer(NamedTuple):
    """The lineage that a source's tuple was given."""

    link_seq: int
    epoch: int
    seq: int


class Ack(NamedTuple):
    """Everything up to `upto` has been taken over; `credit_bytes` may be unacknowledged."""

    upto: int
    credit_bytes: int
    admitted: Sequence[Answer] = ()


class Probe(NamedTuple):
    """A question (t1 and t2 are 0) or its answer."""

    id: int
    t0_ns: int
    t1_ns: int = 0
    t2_ns: int = 0


class Refused(NamedTuple):
    """Tuples from link_seq on, or with link_seq 0 the connection, were refused."""

    why: str
    link_seq: int = 0
    code: str = ""
    tuples: int = 1


Frame = Hello | Batch | Ack | Probe | Refused


def encode_tuple(
    lineage: tuple[int, int, int, int, int, int],
    stream: int,
    plan: int,
    payload: bytes,
    *,
    absent: bool = False,
    at_ns: int = 0,
    mark: int = FILTERED,
    first: int = 0,
) -> bytes:
    """One Tuple message. lineage: (source, epoch, seq, ordinal, origin_lo_ns, origin_hi_ns).

    mark: of what is absent, and the lowest number that it is about.
    """
    data = encode_plain(lineage, stream, plan, payload, 0 if absent else at_ns)
    if absent:
        data += b"\x50\x01"
        if at_ns:
            data += AT.pack(b"\x59", at_ns)
    if mark:
        data += _MARK.pack(b"\x60", mark, b"\x69", first)
    return data


def encode_large(
    lineage: tuple[int, int, int, int, int, int],
    stream: int,
    plan: int,
    parts: Sequence[bytes | memoryview],
    *,
    at_ns: int = 0,
) -> bytes | LargeTuple:
    """A tuple whose payload comes in parts: as `encode_tuple` gives it, or to be sent in chunks where it is large."""
    size = sum(map(len, parts))
    if size <= CHUNK_BYTES:
        return encode_tuple(lineage, stream, plan, b"".join(parts), at_ns=at_ns)
    return LargeTuple(encode_tuple(lineage, stream, plan, b"", at_ns=at_ns), b"\x4a" + varint(size), parts)


def encode_offered(payloads: Iterable[bytes], origins: Iterable[tuple[int, int]]) -> list[bytes | LargeTuple]:
    """Of each payload with its origin (lo_ns, hi_ns) what a source offers: `encode_large` without a lineage. What
    comes before the payload is encoded once for all of one origin."""
    found: list[bytes | LargeTuple] = []
    known, head = None, b""
    for payload, origin in zip(payloads, origins, strict=True):
        size = len(payload)
        if origin is not known:
            known, head = origin, FIXED.pack(0x19, 0, 0x21, 0, 0x39, origin[0], 0x41, origin[1]) + _NO_LINEAGE
        if size <= CHUNK_BYTES:
            found.append(head + (SMALL[size] if size < 4096 else varint(size)) + payload)
        else:
            found.append(encode_large((0, 0, 0, 0, *origin), 0, 0, (payload,)))
    return found


def encode_outgoing(out: Outgoing | OutgoingChunk, sent_ns: int | Callable[[], int]) -> bytes:
    """What a Sender gave, as a whole frame with its length. sent_ns: as of `encode_batch`."""
    if isinstance(out, OutgoingChunk):
        return encode_chunk(out.first, sent_ns, out.whole, out.offset)
    return encode_batch(out.first, sent_ns, out.tuples)


def encode_chunk(first: int, sent_ns: int | Callable[[], int], whole: LargeTuple, offset: int) -> bytes:
    """A whole Chunk frame with its length."""
    chunk = pb.Chunk(first=first, size=whole.size, offset=offset, data=whole.chunk(offset))
    if not offset:
        chunk.tuple.ParseFromString(whole.head)
    chunk.sent_ns = sent_ns if isinstance(sent_ns, int) else sent_ns()
    return _framed(pb.Frame(chunk=chunk))


def encode_hello(hello: Hello) -> bytes:
    """A whole Hello frame with its length."""
    return _framed(pb.Frame(hello=pb.Hello(version=VERSION, **hello._asdict())))


def encode_probe(probe: Probe) -> bytes:
    """A whole Probe frame with its length."""
    return _framed(pb.Frame(probe=pb.Probe(**probe._asdict())))


def encode_refused(why: str, link_seq: int = 0, code: str = "", count: int = 0) -> bytes:
    """A whole Refused frame with its length."""
    return _framed(pb.Frame(refused=pb.Refused(why=why[:MAX_WHY_CHARS], link_seq=link_seq, code=code, count=count)))


def encode_outcomes(outcomes: Sequence[Outcome], upto: int, credit_bytes: int) -> bytes:
    """What became of a source's tuples (`Answers.take`), and the Ack that covers them, which comes last."""
    refused = b"".join([encode_refused(why, link_seq) for link_seq, _, _, why in outcomes if why is not None])
    admitted = [outcome for outcome in outcomes if outcome[3] is None] if refused else outcomes
    return refused + encode_ack(upto, credit_bytes, admitted)


def _framed(frame: pb.Frame) -> bytes:
    return with_head(frame.SerializeToString())


class FrameReader:
    """Fed with what a socket yields; gives the frames of one connection, in order.

    The first frame must be a Hello (or Refused), and no later one may be. After a FrameError it gives nothing more.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._greeted = False
        self._broken = False
        self._next_first = 1
        self._upto = 0
        self.assembly: Assembly[Arrived] = Assembly()
        """Of large tuples: who takes any gives it a size."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete now. Raises FrameError after yielding those before the bad one.

        Exhaust the iterator before feeding more.
        """
        if not self._greeted or self._broken:
            return self._feed(data)
        buffer = self._buffer
        if buffer and len(buffer) <= _MERGED_BYTES:
            data = bytes(buffer) + data
            buffer.clear()
        if buffer:
            return self._feed(data)
        found, at = self._plain_frames(data)
        if at == len(data):
            return iter(found)
        return chain(found, self._feed(data[at:])) if found else self._feed(data)

    def _plain_frames(self, data: bytes) -> tuple[list[Frame], int]:
        """The frames that this begins with, and where the first one stands that is none of `plain_frames`, or not
        whole, or for a later time: no more tuples are read at a time than a reader takes in."""
        found: list[Frame] = []
        at, end, left = 0, len(data), MOST_TUPLES
        while end - at > _HEAD_BYTES and left > 0:
            if COMPILED:
                length, check = big32(data, at), big32(data, at + 4)  # type: ignore[name-defined]  # noqa: F821
            else:
                length, check = HEAD.unpack_from(data, at)
            begin = at + _HEAD_BYTES
            if length > end - begin or length > MAX_FRAME_BYTES:
                break
            body = data[begin : begin + length]
            before = self._next_first
            frame = self._plain(body) if crc32(body) == check else None
            if frame is None:
                break
            left -= max(1, self._next_first - before)
            found.append(frame)
            at = begin + length
        return found, at

    def _plain(self, data: bytes) -> Frame | None:
        """A frame as `plain_frames` writes it; None: it is read as any other."""
        plain = plain_batch(data, 0, self._next_first)
        if plain is not None:
            first, sent_ns, tuples = plain
            self._next_first = first + len(tuples)
            return Batch(first, sent_ns, tuples)
        ack = plain_ack(data)
        if ack is None or ack[0] < self._upto:
            return None
        self._upto = ack[0]
        return Ack(*ack, [])

    def _feed(self, data: bytes) -> Iterator[Frame]:
        if self._broken:
            raise FrameError("frame_after_error", "this connection has already sent what is no frame")
        buffer = self._buffer
        buffer += data
        at, end = 0, len(buffer)
        try:
            while end - at >= 4:
                (length,) = LENGTH.unpack_from(buffer, at)
                self._check_length(length)
                if end - at - HEAD.size < length:
                    break
                _, check = HEAD.unpack_from(buffer, at)
                at += HEAD.size + length
                yield from self._decode(_undamaged(bytes(buffer[at - length : at]), check))
        except FrameError:
            self._broken = True
            at = end
            raise
        finally:
            del buffer[:at]

    def _check_length(self, length: int) -> None:
        most = MAX_FRAME_BYTES if self._greeted else MAX_HELLO_BYTES
        if not self._greeted and length >> 16 == _TLS_HELLO:
            raise FrameError("frame_oversized", "the other end speaks TLS and this one does not: start it with --tls")
        if length > most:
            raise FrameError("frame_oversized", f"a frame of {length} bytes; at most {most} are allowed here")
        if length == 0:
            raise FrameError("frame_empty", "a frame of no bytes")

    def _decode(self, data: bytes) -> Iterator[Frame]:
        """One frame; of a long batch the parts, each when it is asked for."""
        plain = self._plain(data) if self._greeted else None
        if plain is not None:
            yield plain
            return
        try:
            if has_more(data, MAX_BATCH_TUPLES + MOST_FIELDS):
                raise FrameError("batch_size", f"a frame of more than {MAX_BATCH_TUPLES} tuples or answers")
            frame = pb.Frame.FromString(data)
        except (DecodeError, WalkError) as error:
            raise FrameError("frame_malformed", f"{len(data)} bytes that are no Frame: {error}") from None
        if frame.WhichOneof("is") == "batch" and self._greeted:
            yield from self._batch(frame.batch)
        elif frame.WhichOneof("is") == "chunk" and self._greeted:
            yield from self._chunk(frame.chunk)
        else:
            yield self._single(frame)

    def _single(self, frame: pb.Frame) -> Frame:
        kind = frame.WhichOneof("is")
        if not self._greeted and kind not in {"hello", "refused"}:
            raise FrameError("frame_order", f"the first frame of a connection is {kind}, not hello")
        if kind == "ack":
            return self._ack(frame.ack)
        if kind == "hello":
            return self._hello(frame.hello)
        if kind == "probe":
            return _probe(frame.probe)
        if kind == "refused":
            refused = frame.refused
            if refused.count > MAX_BATCH_TUPLES:
                raise FrameError("refused_size", f"{refused.count} tuples refused at once; at most {MAX_BATCH_TUPLES}")
            why, code = refused.why[:MAX_WHY_CHARS], refused.code[:MAX_CODE_CHARS]
            return Refused(why, refused.link_seq, code, refused.count or 1)
        raise FrameError("frame_malformed", "a frame of no known kind")

    def _batch(self, batch: pb.Batch) -> Iterator[Batch]:
        first, count = batch.first, len(batch.tuples)
        if not 0 < count <= MAX_BATCH_TUPLES:
            raise FrameError("batch_size", f"a batch of {count} tuples; allowed are 1 to {MAX_BATCH_TUPLES}")
        if not self._next_first <= first < _LINK_SEQ_LIMIT - count:
            raise FrameError(
                "batch_order", f"a batch that begins with number {first} after number {self._next_first - 1}"
            )
        if not -FAR_NS <= batch.sent_ns <= FAR_NS:
            raise FrameError("batch_fields", f"a batch that was sent at {batch.sent_ns}")
        self._next_first = first + count
        for at in range(0, count, MOST_TUPLES):
            tuples = [_arrived(item) for item in batch.tuples[at : at + MOST_TUPLES]]
            yield Batch(first + at, batch.sent_ns, tuples)

    def _chunk(self, chunk: pb.Chunk) -> Iterator[Batch]:
        """The tuple, with the last one."""
        first = chunk.first
        if first and not self._next_first <= first < _LINK_SEQ_LIMIT - 1:
            raise FrameError("batch_order", f"a tuple with number {first} after number {self._next_first - 1}")
        if not -FAR_NS <= chunk.sent_ns <= FAR_NS:
            raise FrameError("chunk_fields", f"a chunk that was sent at {chunk.sent_ns}")
        head = _arrived(chunk.tuple) if chunk.HasField("tuple") else None
        if head is not None and (head.absent or head.payload):
            raise FrameError("chunk_fields", "a tuple in chunks that has a payload already, or needs none")
        try:
            whole = self.assembly.add(chunk.offset, chunk.size, head, chunk.data, bool(first))
        except LinkError as error:
            raise FrameError(error.counter, str(error)) from None
        if whole is not None:
            self._next_first = first + 1
            arrived = whole.head
            arrived.payload, arrived.withheld = whole.payload, whole.withheld
            yield Batch(first, chunk.sent_ns, (arrived,))

    def _ack(self, ack: pb.Ack) -> Ack:
        if ack.upto < self._upto:
            raise FrameError("ack_order", f"tuples up to {ack.upto} are acknowledged after {self._upto}")
        if len(ack.admitted) > MAX_BATCH_TUPLES:
            raise FrameError("ack_size", f"an Ack with {len(ack.admitted)} answers; at most {MAX_BATCH_TUPLES}")
        self._upto = ack.upto
        return Ack(ack.upto, ack.credit_bytes, [Answer(each.link_seq, each.epoch, each.seq) for each in ack.admitted])

    def _hello(self, hello: pb.Hello) -> Hello:
        if self._greeted:
            raise FrameError("frame_order", "a second hello")
        if hello.version != VERSION:
            raise FrameError("hello_version", f"the peer speaks version {hello.version} of this wire, not {VERSION}")
        if not 0 < len(hello.peer) <= 256 or len(hello.clock) > 40 or not hello.boot or hello.drift_ppm > 100_000:
            raise FrameError("hello_fields", "a hello without name or incarnation, or with fields out of range")
        if hello.resume_after >= _LINK_SEQ_LIMIT:
            raise FrameError("hello_fields", f"a hello that resumes after {hello.resume_after}")
        self._greeted = True
        return Hello(
            hello.peer, hello.clock, hello.boot, hello.plan, hello.resume_after, hello.drift_ppm, hello.credit_bytes,
            hello.codec, hello.peer_boot, hello.incarnation, hello.suspensions, hello.most_bytes,
        )  # fmt: skip


def _undamaged(data: bytes, check: int) -> bytes:
    if crc32(data) != check:
        raise FrameError("frame_damaged", f"{len(data)} bytes that changed on their way, or another release's frame")
    return data


def _arrived(item: pb.Tuple) -> Arrived:
    source, epoch, stream = item.source, item.epoch, item.stream
    lo_ns, hi_ns = item.origin_lo_ns, item.origin_hi_ns
    absent, payload = item.absent, item.payload
    if (source | epoch | stream) > 0xFFFF or not -FAR_NS <= lo_ns <= hi_ns <= FAR_NS or (absent and payload):
        raise FrameError("tuple_fields", f"a tuple with fields out of range: source {source}, epoch {epoch}, {stream=}")
    lineage = (source, epoch, item.seq, item.ordinal, lo_ns, hi_ns)
    many = item.mark == QUIET or item.first != item.seq  # then it is not about one result
    if item.mark and (item.mark > QUIET or not absent or (item.ordinal and many) or item.first > item.seq):
        raise FrameError("tuple_fields", f"a mark {item.mark} of {stream=} with numbers {item.first} to {item.seq}")
    return Arrived(lineage, stream, item.plan, payload, absent, item.at_ns, item.mark, item.first)


def _probe(probe: pb.Probe) -> Probe:
    if not all(-FAR_NS <= instant <= FAR_NS for instant in (probe.t0_ns, probe.t1_ns, probe.t2_ns)):
        raise FrameError("probe_fields", "a probe with an instant out of range")
    return Probe(probe.id, probe.t0_ns, probe.t1_ns, probe.t2_ns)
