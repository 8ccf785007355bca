"""Many tuples offered at once are what the same tuples offered one by one are."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from node_agent.link.large_tuple import LargeTuple
from node_agent.link.limits import CHUNK_BYTES
from node_agent.link.sender import Encoded, Sender
from node_agent.wire import frames

MOST_BYTES, MOST_TUPLES = 400, 12
LARGE = frames.encode_large((1, 1, 1, 0, 0, 0), 1, 1, (bytes(CHUNK_BYTES + 1),))


class Told:
    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []

    def sent(self, at_ns: int, link_seq: int, tag: int) -> None:
        self.lines.append(("sent", at_ns, link_seq, tag))

    def acked(self, at_ns: int, upto: int) -> None:
        self.lines.append(("acked", at_ns, upto))

    def gave_up(self, at_ns: int, link_seq: int, tag: int) -> None:
        self.lines.append(("gave_up", at_ns, link_seq, tag))


class Link:
    """A Sender that is connected from the start, and all that it has said."""

    def __init__(self) -> None:
        self.told = Told()
        self.sender: Sender = Sender(self.told, max_bytes=MOST_BYTES, max_tuples=MOST_TUPLES)
        self.sender.on_connected(0, 1, 0, 150, takes_chunks=True, most_bytes=1 << 20)

    def step(self, at_ns: int, acked: int) -> None:
        while (out := self.sender.poll(at_ns)) is not None:
            self.told.lines.append(tuple(out))
        self.sender.on_ack(at_ns, min(acked, self.sender.next_seq - 1), 150)

    def state(self) -> tuple[Any, ...]:
        sender = self.sender
        return len(sender), sender.held_bytes, sender.large_bytes, sender.due_ns(), self.told.lines


def size_of(size: int) -> Encoded:
    return LARGE if size == 99 else bytes(size)


@given(st.lists(st.tuples(
    st.lists(st.one_of(st.integers(1, 60), st.integers(97, 99)), max_size=16), st.integers(0, 30), st.integers(1, 8),
), max_size=8))  # fmt: skip
def test_they_are_queued_alike(steps: list[tuple[list[int], int, int]]) -> None:
    one, many = Link(), Link()
    tag, at_ns, acked = 0, 0, 0
    assert isinstance(LARGE, LargeTuple)
    for sizes, wait_ns, answered in steps:
        at_ns, acked = at_ns + wait_ns, acked + answered
        offered = [(size_of(size), tag + i) for i, size in enumerate(sizes)]
        tag += len(offered)
        taken = next(
            (i for i, (data, t) in enumerate(offered) if not one.sender.offer(at_ns, data, at_ns + 20, t)), len(offered)
        )
        assert many.sender.offer_many(at_ns, offered, at_ns + 20) == taken
        assert many.state() == one.state()
        for link in (one, many):
            link.step(at_ns, acked)
        assert many.state() == one.state()
