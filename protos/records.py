"""Trace records: facts that a node writes down, 64 bytes each; the sole definition of their layout.

Standard library only. How records lie in files, in blocks behind a header of 128 bytes, is in segments.py. All instants
are nanoseconds of the node's CLOCK_MONOTONIC_RAW (virtual runs: of virtual time). A record is

    kind u8, flags u8, ref u16, source u16, epoch u16, seq u64, five words i64, one last word u64

flags: the low seven bits are the plan epoch modulo 128 (0: no plan), `FLAG` is the kind's own.
source, epoch, seq: the tuple's lineage. ref and the words, by kind:

kind      ref       w0        w1          w2         w3        w4           last
PLAN      state     at        plan_epoch  -          -         -            first 8 bytes of the plan's hash
ADMITTED  source    at        origin_lo   origin_hi  sent_ns   -            payload bytes
RAN       unit      release   start       end        deadline  decision_ns  ordinal << 32 | outputs per exit  (*)
SENT      peer      at        link_seq    stream     ordinal   -            -
RECEIVED  peer      at        link_seq    sent_ns    stream    ordinal      -
ACKED     peer      at        upto        -          -         -            -
GAVE_UP   peer      at        link_seq    stream     ordinal   -            -
OUTPUT    output    at        origin_lo   origin_hi  deadline  ordinal      -
SHED      unit      at        policy      ordinal    stream    operator     -
LOST      unit      at        cause       ordinal    stream    start        outputs per exit
MERGED    unit      at        p. source   p. epoch   ordinal   absent       parent's seq
ABSORBED  operator  at        stream      ordinal    -         -            -
WINDOW    operator  at        state       start      end       cause        tuples in it; skipped: the last number
DEGRADED  unit      at        operator    ordinal    -         -            -
RESET     operator  at        -           -          -         -            -
REFUSED   source    at        reason      count      age_lo    age_hi       instant of the first of them
CLOCK     peer      at        offset_lo   offset_hi  rtt       era          -
LOAD      -         at        queue_bytes ready      busy_ns   overhead_ns  records written before this one
GAP       -         at        dropped     -          -         -            -

RAN with FLAG: the instance was switched away from at an operator's boundary and goes on in a later record.
RAN's outputs: 8 bits per exit of the unit (at most 4), first exit in the lowest bits; all 0: filtered.
(*) RAN's decision_ns has the results that policing shed within the instance above its 48 low bits (`ran_surplus`).
SHED with ref NO_REF: an arrival on `stream`, shed as it was admitted; none of its consumers on this node got it.
SHED with policy selectivity, or with an operator: not the unit's tuple but a result of `operator` in it, whose ordinal
it is; with policy selectivity none of the unit's exits had it yet, else those of `operator` had.
SENT is written once per tuple, however often it is resent. GAVE_UP: the sender stopped trying; the peer may have it.
LOST with FLAG: ref is a peer, the tuple never left for it. LOST never stands for a tuple that the peer may have.
LOST with ref NO_REF: an arrival on `stream` that none of its consumers on this node got.
LOST of an instance that failed: start_ns in w4, in w3 the results that policing shed before, and in the last word the
outputs it had made, as in RAN.
WINDOW: source, epoch and seq are those that its result has or would have. Each window that closes, is abandoned or
skipped is also ADMITTED by its operator's own source, and where it gives no result SHED with policy window: so its ends
are in the books like a tuple's. Of more than MOST_SKIPPED windows that are skipped at once only WINDOW tells.
DEGRADED: the cheaper variant of the operator ran, because the tuple would have been late.
RESET: a runtime began with a plan that ran here before, and this operator of it without the state that it had.
REFUSED: `count` tuples that were offered to a source and not admitted, the last of them at `at`; their ages then lay
within age_lo to age_hi. seq: how many of that source were refused under that plan and epoch before, so that the records
of a source follow one another without a gap.
MERGED: a contributor of a join ended there; `absent` 1: its partner was filtered, shed or lost.
CLOCK with FLAG, ref NO_REF: the node's own clock stood still, as its machine was suspended, between w1 and at of it,
for w2 ns at least. What was under way took longer than the clock says.
LOAD with FLAG: seq is the sum, in its low 63 bits, of 2 * at - origin_lo - origin_hi of all OUTPUT records of the
incarnation before it, as the engine added them up; source and epoch are how many tuples were refused and admitted in it
before, modulo COUNTED.
ABSORBED with FLAG: the value could not be read and was not kept.
GAP with FLAG: the records were damaged on the disk, or lost with the memory as the node lost power; dropped 0: nobody
knows how many.
The deadline in RAN is the sub-deadline's instant (release + sub-deadline); in OUTPUT the end-to-end deadline in
nanoseconds, a duration.
"""

from collections.abc import Iterator
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple

VERSION = 2
RECORD = Struct("<BBHHHQqqqqqQ")
RECORD_BYTES = RECORD.size  # 64

FLAG = 0x80
SURPLUS_SHIFT = 48  # of RAN's word w4
SURPLUS_MOST = 0xFFFF  # results shed in one instance that it can count
PLAN_EPOCH_MASK = 0x7F
STAMP = 16  # hex digits of a plan's hash that records carry
SUM_MASK = (1 << 63) - 1  # of the sum of latencies in LOAD
COUNTED = 1 << 16  # LOAD's counts of tuples are modulo this
NO_REF = 0xFFFF

PLAN, ADMITTED, RAN, SENT, RECEIVED, ACKED, GAVE_UP, OUTPUT = range(1, 9)
SHED, LOST, MERGED, ABSORBED, WINDOW, CLOCK, LOAD, GAP = range(9, 17)
DEGRADED, REFUSED, RESET = 17, 18, 19
KINDS = (
    "-", "PLAN", "ADMITTED", "RAN", "SENT", "RECEIVED", "ACKED", "GAVE_UP", "OUTPUT",
    "SHED", "LOST", "MERGED", "ABSORBED", "WINDOW", "CLOCK", "LOAD", "GAP", "DEGRADED",
    "REFUSED", "RESET",
)  # fmt: skip

# PLAN states
STATE_PREPARED, STATE_COMMITTED, STATE_DRAINING, STATE_DRAINED, STATE_ENDED, STATE_CRASHED = range(1, 7)
STATES = ("-", "prepared", "committed", "draining", "drained", "ended", "crashed")

# LOST causes
(
    CAUSE_OPERATOR_ERROR, CAUSE_OPERATOR_HUNG, CAUSE_QUEUE_FULL, CAUSE_LINK_FULL, CAUSE_DECODE, CAUSE_JOIN_EXPIRED,
    CAUSE_ORDINALS, CAUSE_NO_ROUTE, CAUSE_ENCODE, CAUSE_STOPPED,
) = range(1, 11)  # fmt: skip
CAUSES = (
    "-", "operator_error", "operator_hung", "queue_full", "link_full", "decode", "join_expired",
    "ordinals", "no_route", "encode", "stopped",
)  # fmt: skip

# REFUSED reasons: the node's queues are full; older than the source's max_age; of an age nobody knows yet; older than
# heartbeats have promised to windows; an origin in the future; stamped with a plan that is not committed; of another
# codec than the source has now; not a value of its codec; the plan takes nothing more
(
    REASON_FULL, REASON_TOO_OLD, REASON_AGE_UNKNOWN, REASON_WINDOWS_TOLD, REASON_FUTURE, REASON_OTHER_PLAN,
    REASON_OTHER_CODEC, REASON_UNREADABLE, REASON_STOPPED,
) = range(1, 10)  # fmt: skip
REASONS = (
    "-", "full", "too_old", "age_unknown", "windows_told", "future", "other_plan", "other_codec", "unreadable",
    "stopped",
)  # fmt: skip

# SHED policies: too late for every output; above the source's limit; queues full; beyond declared arrivals; beyond
# declared results; a window without a result; of tuples that lead to windows, whoever chose them; and a result that its
# outputs can have too late only, as its operator ends
POLICY_LATE, POLICY_RATE, POLICY_MEMORY, POLICY_ARRIVALS, POLICY_SELECTIVITY = range(1, 6)
POLICY_WINDOW, POLICY_WINDOW_AWARE, POLICY_FRONT, POLICY_RANDOM, POLICY_DROP_TAIL, POLICY_OUTDATED = range(6, 12)
OWN_RESULT = (POLICY_SELECTIVITY, POLICY_OUTDATED)  # a result of the operator in w4 goes, not its way to the next one
SHED_POLICIES = (
    "-", "late", "rate", "memory", "arrivals", "selectivity", "window", "window-aware", "front", "random", "drop-tail",
    "outdated",
)  # fmt: skip

# WINDOW states and causes
WINDOW_OPENED, WINDOW_CLOSED, WINDOW_ABANDONED, WINDOW_SKIPPED = range(1, 5)
WINDOW_STATES = ("-", "opened", "closed", "abandoned", "skipped")
WINDOW_CAUSES = ("-", "removed", "deadline", "crowded", "value", "memory", "error", "stopped")
MOST_SKIPPED = 1024

HEADER = Struct("<8sHHHHQIIqq32s40s")
HEADER_BYTES = 128
HEADER_CHECK_AT = HEADER_BYTES - 8
MAGIC = b"SHIMETRC"
VIRTUAL = 1  # header flag: virtual time


class Header(NamedTuple):
    """Head of a segment: whose facts these are, and by which clock."""

    node: str
    node_index: int  # the node's number
    boot: int  # incarnation of the runtime
    clock: str  # clock domain
    drift_ppm: int
    started_ns: int  # on the node's clock
    wall_ns: int  # wall clock at started_ns, for people only; never enters a verdict
    flags: int = 0
    starts: int = 0  # runtime starts of the agent up to this one; modulo 65536 the lineage epoch


class Record(NamedTuple):
    """One fact; see the module's table for what ref and the words mean by kind."""

    kind: int
    flags: int
    ref: int
    source: int
    epoch: int
    seq: int
    w0: int
    w1: int
    w2: int
    w3: int
    w4: int
    last: int


def pack_header(header: Header) -> bytes:
    """The 128 bytes at the start of a segment."""
    node, clock = header.node.encode(), header.clock.encode()
    if len(node) > 32 or len(clock) > 40:
        raise ValueError(f"node name {header.node!r} or clock domain {header.clock!r} is too long (32 and 40 bytes)")
    packed = HEADER.pack(
        MAGIC, VERSION, HEADER_BYTES, header.node_index, header.flags, header.boot, header.drift_ppm, header.starts,
        header.started_ns, header.wall_ns, node, clock,
    )  # fmt: skip
    return packed + _check(packed)


def header_check(header: Header) -> int:
    """The checksum in its last 8 bytes."""
    return int.from_bytes(pack_header(header)[HEADER_CHECK_AT:], "little")


def _check(packed: bytes) -> bytes:
    return blake2b(packed, digest_size=8).digest()


def unpack_header(data: bytes) -> Header:
    """Read a segment's head. Raises ValueError where it is none, or of another version."""
    if len(data) < HEADER_BYTES:
        raise ValueError(f"a trace segment starts with {HEADER_BYTES} bytes of header, found {len(data)}")
    magic, version, size, index, flags, boot, drift, starts, started, wall, node, clock = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise ValueError("not a trace segment")
    if version != VERSION or size != HEADER_BYTES:
        raise ValueError(f"trace segment of version {version}, this reader knows {VERSION}")
    if bytes(data[HEADER_CHECK_AT:HEADER_BYTES]) != _check(bytes(data[:HEADER_CHECK_AT])):
        raise ValueError("the head of the trace segment is damaged")
    names = node.rstrip(b"\0").decode(), clock.rstrip(b"\0").decode()
    return Header(names[0], index, boot, names[1], drift, started, wall, flags, starts)


def unpack_records(data: bytes | memoryview) -> Iterator[Record]:
    """The records in `data` (no header). Raises ValueError unless it is a whole number of records."""
    if len(data) % RECORD_BYTES:
        raise ValueError(f"trace records are {RECORD_BYTES} bytes each, found {len(data)} bytes")
    return map(Record._make, RECORD.iter_unpack(data))


def plans_in(data: bytes) -> Iterator[Record]:
    """The PLAN records among those in `data`, without a look at the others."""
    kinds = data[::RECORD_BYTES]
    at = kinds.find(PLAN)
    while at >= 0:
        yield from unpack_records(data[at * RECORD_BYTES : (at + 1) * RECORD_BYTES])
        at = kinds.find(PLAN, at + 1)


def stamp_of(hash_: str) -> int:
    """The start of a plan's hash, as records carry it. Raises ValueError."""
    return int(hash_[:STAMP], 16)


def ran_outputs(last: int, exits: int) -> tuple[int, ...]:
    """Outputs per exit from RAN's last word."""
    return tuple((last >> (8 * exit_)) & 0xFF for exit_ in range(exits))


def ran_ordinal(last: int) -> int:
    """The ordinal of the input tuple from RAN's last word."""
    return last >> 32


def ran_surplus(w4: int) -> int:
    """How many results policing shed within the instance, from RAN's word w4."""
    return w4 >> SURPLUS_SHIFT & SURPLUS_MOST
