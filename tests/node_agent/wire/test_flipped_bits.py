"""A bit that was flipped on its way, past the checksums of TCP and of the wire below: the frame's own finds it."""

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
    if not found:
        return "waits for the rest"
    return "taken"


def test_a_flipped_bit_closes_the_connection_or_waits_for_more() -> None:
    for tuples in (TUPLES, TUPLES[:1]):
        data = frames.encode_batch(5, 7_000_000, tuples)
        counts = Counter(_flipped(bit, data) for bit in range(8 * len(data)))
        assert counts.keys() == {"closed", "waits for the rest"}
        assert counts["waits for the rest"] <= 16  # the length has become a longer one: silence ends that connection


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
