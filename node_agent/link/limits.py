"""Limits of the data wire, shared by both ends. No imports."""

MAX_FRAME_BYTES = 1 << 20  # a Frame without its length
MAX_BATCH_TUPLES = 4096
BATCH_OVERHEAD_BYTES = 64  # of a Batch beside its tuples, with its Frame: at most this
TUPLE_OVERHEAD_BYTES = 5  # tag and length of one tuple in a Batch
TUPLE_FIELDS_BYTES = 128  # of a Tuple beside its payload: at most this
MAX_PAYLOAD_BYTES = MAX_FRAME_BYTES - BATCH_OVERHEAD_BYTES - TUPLE_OVERHEAD_BYTES - TUPLE_FIELDS_BYTES

MAX_MESSAGE_BYTES = 8 << 20  # the most that a query may declare for the payloads of a stream
CHUNK_BYTES = 32 << 10  # of the payload of a larger tuple, in one frame
LEAST_CHUNK_BYTES = 4 << 10  # but for the last one
MESSAGE_HEAD_BYTES = 1024  # of a payload's encoding that `max_size` does not count: at most this

MOST_PAYLOAD_BYTES = MAX_MESSAGE_BYTES + MESSAGE_HEAD_BYTES  # of a tuple that comes in chunks


class LinkError(Exception):
    """The peer broke the link's rules: close this connection, count `counter`, go on with all else."""

    def __init__(self, counter: str, why: str) -> None:
        super().__init__(why)
        self.counter = counter
