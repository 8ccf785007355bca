"""Tuples in chunks over connections that break: each comes whole and once, and small ones overtake."""

import random
from typing import Any
from zlib import crc32

import pytest

from node_agent.link.arrived import Arrived, Withheld
from node_agent.link.large_tuple import STILL_NS, Assembly, LargeTuple
from node_agent.link.limits import CHUNK_BYTES, LEAST_CHUNK_BYTES, MAX_FRAME_BYTES, LinkError
from node_agent.link.receiver import Receiver
from node_agent.link.sender import OutgoingChunk, Sender
from node_agent.wire import frames
from protos import tuple_pb2 as pb
from tests.seeds import seeds

FOREVER = 1 << 60
HELLO = frames.encode_hello(frames.Hello("node:a", "c", 1))
MOST = 1 << 20


class Facts:
    def __init__(self) -> None:
        self.sents: list[tuple[int, Any]] = []
        self.gave_ups: list[tuple[int, Any]] = []

    def sent(self, at_ns: int, link_seq: int, tag: Any) -> None:
        self.sents.append((link_seq, tag))

    def acked(self, at_ns: int, upto: int) -> None:
        pass

    def gave_up(self, at_ns: int, link_seq: int, tag: Any) -> None:
        self.gave_ups.append((link_seq, tag))


def sender_of(facts: Facts, **settings: Any) -> Sender:
    return Sender(facts, flow_of=lambda tag: tag[0], **settings)


def encoded(stream: int, number: int, payload: bytes) -> bytes | LargeTuple:
    cut = len(payload) // 3
    return frames.encode_large((1, 1, number, 0, 5, 5), stream, 7, (payload[:cut], payload[cut:]))


def reader(most_bytes: int = MOST) -> frames.FrameReader:
    found = frames.FrameReader()
    list(found.feed(HELLO))
    found.assembly.most_bytes = most_bytes
    return found


class Link:
    """A sender, and a receiver that outlives connections. Bytes come in any pieces; cutting loses what is under way."""

    def __init__(self, draw: random.Random, takes_chunks: bool = True, credit: int = 4 << 20) -> None:
        self.draw, self.takes_chunks, self.credit = draw, takes_chunks, credit
        self.facts = Facts()
        self.sender = sender_of(self.facts)
        self.receiver = Receiver()
        self.got: list[Arrived] = []
        self.wire, self.reader = bytearray(), reader()
        self.now_ns = 0

    def connect(self) -> None:
        granted = self.receiver.on_hello(self.credit)
        self.wire, self.reader = bytearray(), reader()
        self.sender.on_connected(self.now_ns, 1, granted.upto, self.credit, takes_chunks=self.takes_chunks)

    def cut(self) -> None:
        self.sender.on_disconnected(self.now_ns)
        self.wire.clear()
        self.reader.assembly.drop()

    def send(self) -> bool:
        out = self.sender.poll(self.now_ns)
        if out is None:
            return False
        self.wire += frames.encode_outgoing(out, self.now_ns)
        return True

    def carry(self, most: int) -> None:
        size = self.draw.randint(0, most)
        data, self.wire = bytes(self.wire[:size]), self.wire[size:]
        for frame in self.reader.feed(data):
            assert isinstance(frame, frames.Batch)
            self.got += self.receiver.on_batch(frame.first, frame.tuples)

    def acknowledge(self) -> None:
        due = self.receiver.ack(self.credit, True)
        if due is not None and self.draw.random() < 0.8:  # or it is lost with its connection
            self.sender.on_ack(self.now_ns, due.upto, due.credit_bytes)

    def settle(self) -> None:
        self.connect()
        while len(self.sender):
            while self.send():
                pass
            self.carry_all()
            due = self.receiver.ack(self.credit, True)
            if due is not None:
                self.sender.on_ack(self.now_ns, due.upto, due.credit_bytes)

    def carry_all(self) -> None:
        while self.wire:
            self.carry(1 << 16)


@pytest.mark.parametrize("seed", seeds(range(60)))
def test_each_tuple_comes_whole_and_once_over_connections_that_break(seed: int) -> None:
    draw = random.Random(seed)
    link, offered = Link(draw, takes_chunks=seed % 4 != 0), dict[tuple[int, int], bytes]()
    link.connect()
    for number in range(40):
        stream = draw.randint(1, 3)
        size = draw.choice([0, 20, 3_000, CHUNK_BYTES, CHUNK_BYTES + 1, 70_000, 3 * CHUNK_BYTES, 200_000])
        payload = draw.randbytes(size)
        if link.sender.offer(link.now_ns, encoded(stream, number, payload), FOREVER, (stream, number)):
            offered[stream, number] = payload
        for _ in range(draw.randint(0, 6)):
            act = draw.randrange(10)
            if act < 4:
                link.send()
            elif act < 7:
                link.carry(60_000)
            elif act < 9:
                link.acknowledge()
            else:
                link.cut()
                link.connect()
    link.cut()
    link.settle()
    got = [((each.stream, each.lineage[2]), each.payload) for each in link.got]
    assert len(got) == len(offered) and dict(got) == offered  # whole, and none twice
    for stream in (1, 2, 3):  # within a stream in order
        numbers = [key[1] for key, _ in got if key[0] == stream]
        assert numbers == sorted(numbers)
    assert [seq for seq, _ in link.facts.sents] == list(range(1, len(offered) + 1))
    assert not (link.sender.held_bytes or link.facts.gave_ups)


def test_small_tuples_of_other_streams_go_between_two_chunks() -> None:
    link = Link(random.Random(0))
    link.connect()
    link.sender.offer(0, encoded(1, 0, bytes(10 * CHUNK_BYTES)), FOREVER, (1, 0))
    assert link.send()
    link.sender.offer(0, encoded(2, 1, b"small"), FOREVER, (2, 1))
    link.sender.offer(0, encoded(1, 2, b"of the same stream"), FOREVER, (1, 2))
    assert link.send()
    link.carry_all()
    assert [each.payload for each in link.got] == [b"small"] and link.facts.sents == [(1, (2, 1))]
    link.settle()
    assert [each.lineage[2] for each in link.got] == [1, 0, 2]


def test_a_large_tuple_has_its_number_with_its_last_chunk() -> None:
    link = Link(random.Random(0))
    link.connect()
    link.sender.offer(0, encoded(1, 0, bytes(2 * CHUNK_BYTES)), FOREVER, (1, 0))
    link.send()
    assert not link.facts.sents and link.sender.next_seq == 1
    link.cut()
    link.connect()  # from the beginning
    first, last = link.sender.poll(0), link.sender.poll(0)
    assert isinstance(first, OutgoingChunk) and isinstance(last, OutgoingChunk)
    assert (first.first, first.offset, last.first, last.offset) == (0, 0, 1, CHUNK_BYTES)
    assert link.facts.sents == [(1, (1, 0))] and link.sender.poll(0) is None


def test_a_peer_that_takes_no_chunks_gets_what_fits_a_frame_and_the_rest_is_given_up() -> None:
    link = Link(random.Random(0), takes_chunks=False)
    link.connect()
    link.sender.offer(0, encoded(1, 0, bytes(MAX_FRAME_BYTES)), FOREVER, (1, 0))
    link.sender.offer(0, encoded(1, 1, b"x" * 900_000), FOREVER, (1, 1))
    link.settle()
    assert [each.payload for each in link.got] == [b"x" * 900_000]
    assert link.facts.gave_ups == [(0, (1, 0))]


def test_what_is_larger_than_a_frame_waits_for_as_much_credit() -> None:
    link = Link(random.Random(0), credit=1 << 20)
    link.connect()
    link.sender.offer(0, encoded(1, 0, bytes(2 << 20)), 1000, (1, 0))
    assert not link.send()
    link.sender.offer(0, encoded(2, 1, b"small"), FOREVER, (2, 1))
    assert link.send() and not link.send()
    link.sender.on_ack(1, 0, 3 << 20)
    assert link.send() and link.sender.held_bytes > 2 << 20
    link.now_ns = 2000  # what has begun is sent to its end
    while link.send():
        pass
    assert not link.facts.gave_ups


def test_what_is_larger_than_all_that_the_peer_takes_waits_for_no_credit() -> None:
    """It is refused as it comes, and behind it all goes on."""
    for most_bytes, goes in ((1 << 20, True), (2 << 20, False), (0, False)):
        sender = sender_of(Facts())
        sender.on_connected(0, 1, 0, 1 << 16, takes_chunks=True, most_bytes=most_bytes)
        sender.offer(0, encoded(1, 0, bytes(2 << 20)), FOREVER, (1, 0))
        assert isinstance(sender.poll(0), OutgoingChunk) is goes
        sender = sender_of(Facts())
        sender.on_connected(0, 1, 0, 0, takes_chunks=True, most_bytes=most_bytes)
        sender.offer(0, encoded(1, 0, bytes(2 << 20)), FOREVER, (1, 0))
        assert sender.poll(0) is None, "without any credit nothing goes"


def test_what_waits_too_long_is_given_up_and_its_stream_goes_on() -> None:
    facts = Facts()
    sender = sender_of(facts)
    sender.offer(0, encoded(1, 0, bytes(2 << 20)), 1000, (1, 0))
    sender.offer(0, encoded(1, 1, b"next"), FOREVER, (1, 1))
    sender.on_connected(2000, 1, 0, 1 << 16, takes_chunks=True)
    out = sender.poll(2000)
    assert out is not None and not isinstance(out, OutgoingChunk) and len(out.tuples) == 1
    assert facts.gave_ups == [(0, (1, 0))]


def test_a_link_holds_so_many_large_bytes_and_small_ones_beside_them() -> None:
    sender = sender_of(Facts(), max_bytes=1000)
    for number in range(4):
        assert sender.offer(0, encoded(1, number, bytes(8_300_000)), FOREVER, (1, number)) is (number < 4)
    assert not sender.offer(0, encoded(1, 9, bytes(8_300_000)), FOREVER, (1, 9))
    assert sender.offer(0, encoded(2, 10, bytes(600)), FOREVER, (2, 10))
    assert not sender.offer(0, encoded(2, 11, bytes(600)), FOREVER, (2, 11))
    sender.give_up_all(1)
    assert sender.held_bytes == 0 and sender.offer(2, encoded(1, 0, bytes(8_300_000)), FOREVER, (1, 0))


def chunk(**fields: Any) -> bytes:
    values = {"size": 3 * CHUNK_BYTES, "data": bytes(CHUNK_BYTES), **fields}
    body = pb.Frame(chunk=pb.Chunk(**values)).SerializeToString()
    return frames.HEAD.pack(len(body), crc32(body)) + body


SMALL = frames.encode_tuple((0, 0, 0, 0, 0, 0), 0, 0, b"")
HEAD = pb.Tuple(source=1, stream=1)


@pytest.mark.parametrize(
    "hostile",
    [
        [chunk()],
        [chunk(tuple=HEAD, size=MOST + 1)],
        [chunk(tuple=HEAD, size=0)],
        [chunk(tuple=HEAD, size=(1 << 32) - 1)],
        [chunk(tuple=HEAD, data=bytes(LEAST_CHUNK_BYTES - 1))],
        [chunk(tuple=HEAD, data=bytes(CHUNK_BYTES + 1))],
        [chunk(tuple=HEAD, data=b"")],
        [chunk(tuple=HEAD, first=1)],
        [chunk(tuple=HEAD, sent_ns=-(1 << 63))],
        [chunk(tuple=pb.Tuple(source=1 << 20))],
        [chunk(tuple=pb.Tuple(source=1, absent=True))],
        [chunk(tuple=pb.Tuple(source=1, payload=b"x"))],
        [chunk(tuple=HEAD), chunk(offset=2 * CHUNK_BYTES)],
        [chunk(tuple=HEAD), chunk(offset=CHUNK_BYTES, size=4 * CHUNK_BYTES)],
        [chunk(tuple=HEAD), chunk(offset=CHUNK_BYTES, tuple=HEAD)],
        [chunk(tuple=HEAD, size=CHUNK_BYTES + 1), chunk(offset=CHUNK_BYTES, size=CHUNK_BYTES + 1)],
        [chunk(tuple=HEAD, size=CHUNK_BYTES)],
        [frames.encode_batch(9, 0, [SMALL]), chunk(tuple=HEAD, first=3, size=CHUNK_BYTES)],
    ],
)  # fmt: skip
def test_hostile_chunks_end_the_connection(hostile: list[bytes]) -> None:
    found = reader()
    for data in hostile[:-1]:
        list(found.feed(data))
    with pytest.raises(LinkError):
        list(found.feed(hostile[-1]))


def test_who_takes_no_large_tuples_refuses_chunks() -> None:
    with pytest.raises(LinkError):
        list(reader(0).feed(chunk(tuple=HEAD)))


def test_memory_is_held_from_the_first_chunk_until_the_tuple_is_whole_or_dropped() -> None:
    held: list[int] = []
    assembly: Assembly[str] = Assembly(MOST)
    assembly.hold = held.append
    assembly.add(0, 2 * CHUNK_BYTES, "one", bytes(CHUNK_BYTES), False)
    assembly.add(0, CHUNK_BYTES + 1, "two", bytes(CHUNK_BYTES), False)  # in the place of the first
    whole = assembly.add(CHUNK_BYTES, CHUNK_BYTES + 1, None, b"x", True)
    assert whole is not None and whole.head == "two" and whole.payload == bytes(CHUNK_BYTES) + b"x"
    assembly.add(0, 2 * CHUNK_BYTES, "three", bytes(CHUNK_BYTES), False)
    assembly.drop()
    assert sum(held) == 0 and max(held) == 2 * CHUNK_BYTES


def test_what_is_not_admitted_is_counted_off_and_not_held() -> None:
    held: list[int] = []
    assembly: Assembly[str] = Assembly(MOST)
    assembly.hold, assembly.admit = held.append, lambda head, size: Withheld("too_large", head)
    assembly.add(0, 2 * CHUNK_BYTES, "one", bytes(CHUNK_BYTES), False)
    whole = assembly.add(CHUNK_BYTES, 2 * CHUNK_BYTES, None, bytes(CHUNK_BYTES), True)
    assert whole is not None and whole.withheld == Withheld("too_large", "one") and not whole.payload
    assert not held


def test_a_tuple_that_stays_under_way_is_seen() -> None:
    assembly: Assembly[str] = Assembly(MOST)
    assembly.add(0, 3 * CHUNK_BYTES, "one", bytes(CHUNK_BYTES), False)
    assert not assembly.still(0)
    assembly.add(CHUNK_BYTES, 3 * CHUNK_BYTES, None, bytes(CHUNK_BYTES), False)
    assert not assembly.still(STILL_NS + 1) and not assembly.still(2 * STILL_NS + 1)
    assert assembly.still(2 * STILL_NS + 2)
    assembly.drop()
    assert not assembly.still(4 * STILL_NS)


def test_small_tuples_have_the_bytes_that_they_had() -> None:
    lineage = (3, 1, 9, 2, 5, 6)
    for size in (0, 3, CHUNK_BYTES):
        payload = bytes(size)
        parts = (payload[: size // 2], memoryview(payload)[size // 2 :])
        assert frames.encode_large(lineage, 4, 7, parts) == frames.encode_tuple(lineage, 4, 7, payload)
    whole = frames.encode_large(lineage, 4, 7, (b"x" * CHUNK_BYTES, b"y"), at_ns=8)
    assert isinstance(whole, LargeTuple)
    (batch,) = reader().feed(frames.encode_batch(1, 0, [whole.whole()]))
    assert isinstance(batch, frames.Batch)
    assert batch.tuples[0] == Arrived(lineage, 4, 7, b"x" * CHUNK_BYTES + b"y", False, 8)


@pytest.mark.parametrize("seed", seeds(range(40)))
def test_chunks_of_any_fields_are_refused_or_make_what_they_say_and_hold_no_more(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(20):
        held, got = [0], []
        found = reader()
        found.assembly.hold = lambda change, held=held: held.append(held[-1] + change)  # type: ignore[misc]
        offset, size = 0, draw.choice([CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 5_000, MOST])
        try:
            for _ in range(12):
                data = draw.randbytes(draw.choice([CHUNK_BYTES, CHUNK_BYTES, LEAST_CHUNK_BYTES, 1]))
                fields: dict[str, Any] = {"offset": offset, "size": size, "data": data[: max(0, size - offset)]}
                if not offset:
                    fields["tuple"] = HEAD
                if offset + len(fields["data"]) == size:
                    fields["first"] = 1 + len(got)
                if draw.random() < 0.1:
                    fields[draw.choice(["offset", "size", "first"])] = draw.choice([0, 1, MOST, 1 << 31])
                for frame in found.feed(chunk(**fields)):
                    assert isinstance(frame, frames.Batch)
                    got.append(len(frame.tuples[0].payload))
                offset = offset + len(fields["data"]) if "first" not in fields else 0
        except LinkError:
            pass
        found.assembly.drop()
        assert held[-1] == 0 and max(held) <= MOST and all(0 < each <= MOST for each in got)
