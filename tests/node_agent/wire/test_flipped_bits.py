"""What a bit that was flipped on its way does to a connection without TLS, which has lengths and protobuf, no checksum.

TCP's own checksum and that of the wire below find nearly all of them before. What is left must end in a closed
connection or in tuples with one wrong field: never in another error, never in more tuples than were sent.
"""

from collections import Counter

from node_agent.link.limits import LinkError
from node_agent.wire import frames

TUPLES = [
    frames.encode_tuple((1, 3, seq, 0, 5_000_000 + seq, 6_000_000 + seq), 7, 0x1234, b'{"n": %d}' % seq)
    for seq in (40, 41)
]


def _flipped(bit: int, data: bytes) -> str:
    """What comes of it."""
    reader = frames.FrameReader()
    hello = frames.Hello("node:a", "c" * 32, 9, 0, 0, 50, 0, "")
    assert len(list(reader.feed(frames.encode_hello(hello)))) == 1
    wrong = bytearray(data)
    wrong[bit // 8] ^= 1 << bit % 8
    try:
        found = list(reader.feed(bytes(wrong) + frames.encode_batch(5 + len(TUPLES), 8_000_000, TUPLES)))
    except LinkError:
        return "closed"
    clean = frames.FrameReader()
    list(clean.feed(frames.encode_hello(hello)))
    (sent,) = clean.feed(data)
    assert isinstance(sent, frames.Batch)
    if not found:
        return "waits for the rest"
    came = found[0]
    if not isinstance(came, frames.Batch):
        return "another frame"
    assert len(came.tuples) <= len(sent.tuples)
    if len(came.tuples) < len(sent.tuples):
        return "a tuple less"
    different = [(a, b) for a, b in zip(came.tuples, sent.tuples, strict=True) if a != b]
    if not different:
        return "the batch's number" if came.first != sent.first else "no tuple differs"
    assert len(different) == 1
    ((a, b),) = different
    return "a wrong value" if a._replace(payload=b.payload) == b else "a wrong field"


def test_a_flipped_bit_closes_the_connection_or_changes_one_tuple() -> None:
    data = frames.encode_batch(5, 7_000_000, TUPLES)
    counts = Counter(_flipped(bit, data) for bit in range(8 * len(data)))
    assert counts["closed"] > 0
    assert counts["a wrong value"] > 0  # a checksum would be needed to find these: TLS has one
    assert sum(counts.values()) == 8 * len(data)


def test_missing_bytes_close_the_connection_or_make_no_tuple_more() -> None:
    data = frames.encode_batch(5, 7_000_000, TUPLES)
    for first in range(len(data)):
        for size in (1, 2, 7):
            reader = frames.FrameReader()
            list(reader.feed(frames.encode_hello(frames.Hello("node:a", "c" * 32, 9, 0, 0, 50, 0, ""))))
            try:
                found = list(
                    reader.feed(data[:first] + data[first + size :] + frames.encode_batch(7, 8_000_000, TUPLES))
                )
            except LinkError:
                continue
            came = [len(each.tuples) for each in found if isinstance(each, frames.Batch)]
            assert sum(came) <= 2 * len(TUPLES)
