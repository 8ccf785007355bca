"""What a chunk of a large payload keeps the scheduling thread for: to be written, and to be read and put in its place.

An array of 8 MiB goes through the link's own sender, frames and reader over a pair of sockets. Beside it a frame of
1 MB, in which such a payload went before. Run it: python -m infra.bench.agent.chunk_cost
"""

import socket
from collections.abc import Iterator
from statistics import median
from time import thread_time_ns

from node_agent.host.clock import now_ns
from node_agent.link.limits import MAX_MESSAGE_BYTES, MOST_PAYLOAD_BYTES
from node_agent.link.sender import Sender
from node_agent.operators.codecs import Codecs
from node_agent.runtime.links.socket_connection import READ_BYTES
from node_agent.wire import frames

ROUNDS = 5
LINEAGE = (1, 1, 1, 0, 0, 0)
FOREVER = 1 << 60


class _NoFacts:
    def sent(self, at_ns: int, link_seq: int, tag: None) -> None:
        pass

    def acked(self, at_ns: int, upto: int) -> None:
        pass

    def gave_up(self, at_ns: int, link_seq: int, tag: None) -> None:
        pass


def _reader() -> frames.FrameReader:
    found = frames.FrameReader()
    list(found.feed(frames.encode_hello(frames.Hello("node:a", "clock", 1))))
    found.assembly.most_bytes = MOST_PAYLOAD_BYTES
    return found


def _offered() -> Sender:
    """A sender with one array of 8 MiB."""
    import numpy

    codec = Codecs().get("numpy", MAX_MESSAGE_BYTES)
    assert codec.parts is not None
    sender: Sender = Sender(_NoFacts())
    sender.on_connected(0, 1, 0, 2 * MAX_MESSAGE_BYTES, takes_chunks=True)
    array = numpy.random.default_rng(1).integers(0, 255, MAX_MESSAGE_BYTES, numpy.uint8)
    sender.offer(0, frames.encode_large(LINEAGE, 1, 1, codec.parts(array)), FOREVER, None)
    return sender


def chunks_ns() -> Iterator[tuple[int, list[int]]]:
    """Of each chunk: CPU time to encode and send it; and of each look at the socket that reads it."""
    sender, reader = _offered(), _reader()
    one, other = socket.socketpair()
    with one, other:
        while True:
            began_ns = thread_time_ns()
            out = sender.poll(0)
            if out is None:
                return
            data = frames.encode_outgoing(out, now_ns)
            one.sendall(data)
            written_ns, reads, left = thread_time_ns() - began_ns, list[int](), len(data)
            while left:
                began_ns = thread_time_ns()
                part = other.recv(READ_BYTES)
                left -= len(part)
                list(reader.feed(part))
                reads.append(thread_time_ns() - began_ns)
            yield written_ns, reads


def frame_ns() -> tuple[int, int]:
    """CPU time of a frame of 1 MB: to encode it; to read it, in all."""
    data, reader = frames.encode_tuple(LINEAGE, 1, 1, bytes(10**6)), _reader()
    began_ns = thread_time_ns()
    frame = frames.encode_batch(1, now_ns, [data])
    encoded_ns, began_ns = thread_time_ns() - began_ns, thread_time_ns()
    for at in range(0, len(frame), READ_BYTES):
        list(reader.feed(frame[at : at + READ_BYTES]))
    return encoded_ns, thread_time_ns() - began_ns


def main() -> None:
    """Print medians and worst cases, in microseconds."""
    for _ in range(ROUNDS):
        writes, looks = zip(*chunks_ns(), strict=True)
        reads = [each for several in looks for each in several]
        parts = [f"{len(writes)} chunks"]
        for what, times in (("written", writes), ("read", reads)):
            parts.append(f"{what} {median(times) / 1e3:.0f} us, worst {max(times) / 1e3:.0f} us")
        encoded_ns, read_ns = frame_ns()
        parts.append(f"a frame of 1 MB: encoded {encoded_ns / 1e3:.0f} us, read {read_ns / 1e3:.0f} us")
        print("; ".join(parts))


if __name__ == "__main__":
    main()
