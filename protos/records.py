"""Trace records: facts that a node writes down, 64 bytes each; the sole definition of their kinds and fields.

Standard library only. How records lie in files, in blocks behind a header of 128 bytes, is in segments.py; how the
bytes become fields, in record_layout.py. All instants are nanoseconds of the node's CLOCK_MONOTONIC_RAW (virtual runs:
of virtual time). A record is

    kind u8, flags u8, ref u16, source u16, epoch u16, seq u64, five words i64, one last word u64

flags: the low seven bits are the plan epoch modulo 128 (0: no plan), `FLAG` is the kind's own. source, epoch, seq: the
tuple's lineage. What ref, the words and FLAG are called stands below, a class per kind: readers, both ledgers, drawings
and docs/reference/trace_records.md are made from these. Who writes records in a hurry packs them by position
(node_agent/core/facts.py); a test holds that both ways give the same bytes.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from protos import record_layout as layout
from protos.digests import blake2b
from protos.latency import Latency, Verdict
from protos.record_layout import CLASSES, Flag, RecordError, head, last, part, word

RECORD, RECORD_BYTES = layout.RECORD, layout.RECORD_BYTES
FLAG, PLAN_EPOCH_MASK = layout.FLAG, layout.PLAN_EPOCH_MASK
Record = layout.Record
unpack_record, unpack_records = layout.unpack_record, layout.unpack_records

VERSION = 2
STAMP = 16  # hex digits of a plan's hash that records carry
SUM_MASK = (1 << 63) - 1  # of the sum of latencies in LOAD
COUNTED = 1 << 16  # LOAD's counts of tuples are modulo this
NO_REF = 0xFFFF

PLAN, ADMITTED, RAN, SENT, RECEIVED, ACKED, GAVE_UP, OUTPUT = range(1, 9)
SHED, LOST, MERGED, ABSORBED, WINDOW, CLOCK, LOAD, GAP = range(9, 17)
DEGRADED, REFUSED, RESET = 17, 18, 19

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
# codec than the source has now; not a value of its codec; the plan takes nothing more; of a source that its node makes
# itself: a tick that came when the call before had not ended, or when too many were due; a call that raised; and
# larger than declared, or than the node's memory
(
    REASON_FULL, REASON_TOO_OLD, REASON_AGE_UNKNOWN, REASON_WINDOWS_TOLD, REASON_FUTURE, REASON_OTHER_PLAN,
    REASON_OTHER_CODEC, REASON_UNREADABLE, REASON_STOPPED, REASON_MISSED, REASON_RAISED, REASON_TOO_LARGE,
) = range(1, 13)  # fmt: skip
REASONS = (
    "-", "full", "too_old", "age_unknown", "windows_told", "future", "other_plan", "other_codec", "unreadable",
    "stopped", "missed", "raised", "too_large",
)  # fmt: skip

# SHED policies: too late for every output, or expected to be; above the source's limit; queues full; beyond declared
# arrivals; beyond declared results; a window without a result; of tuples that lead to windows, by any policy; a result
# that its outputs can have too late only, as its operator ends; of a fusion's inputs, for a newer tuple; for want of
# others; of an operator that would have run without a side input, or with one that is too old; and what could have been
# in time, given up for others where not all that waits can be
POLICY_LATE, POLICY_RATE, POLICY_MEMORY, POLICY_ARRIVALS, POLICY_SELECTIVITY = range(1, 6)
POLICY_WINDOW, POLICY_WINDOW_AWARE, POLICY_FRONT, POLICY_RANDOM, POLICY_DROP_TAIL, POLICY_OUTDATED = range(6, 12)
POLICY_REPLACED, POLICY_UNMATCHED, POLICY_STALE, POLICY_EXCESS = range(12, 16)
UNFUSED = (POLICY_REPLACED, POLICY_UNMATCHED)  # as its query asks: no result is missing
OWN_RESULT = (POLICY_SELECTIVITY, POLICY_OUTDATED, POLICY_STALE)  # of that operator's result, not of its way on
SHED_POLICIES = (
    "-", "late", "rate", "memory", "arrivals", "selectivity", "window", "window-aware", "front", "random", "drop-tail",
    "outdated", "replaced", "unmatched", "stale", "excess",
)  # fmt: skip

# WINDOW states and causes
WINDOW_OPENED, WINDOW_CLOSED, WINDOW_ABANDONED, WINDOW_SKIPPED = range(1, 5)
WINDOW_STATES = ("-", "opened", "closed", "abandoned", "skipped")
WINDOW_CAUSES = ("-", "removed", "deadline", "crowded", "value", "memory", "error", "stopped")
MOST_SKIPPED = 1024


class Plan(Record, kind=PLAN):
    """What became of a plan on this node."""

    __slots__ = ()
    state = head("ref", "what it is now", STATES)
    plan_epoch = word(1, "the deployment's number")
    stamp = last("first 8 bytes of the plan's hash")


class Admitted(Record, kind=ADMITTED):
    """A tuple entered the system."""

    __slots__ = ()
    source_id = head("ref", "the source")
    origin_lo_ns = word(1, "its origin is not before")
    origin_hi_ns = word(2, "nor after")
    sent_ns = word(3, "its client's stamp, on the client's clock; 0: none")
    payload_bytes = last("size")


class Ran(Record, kind=RAN):
    """A task instance ran, or a stretch of one."""

    __slots__ = ()
    unit = head("ref", "the task unit")
    release_ns = word(0, "it was ready")
    start_ns = word(1, "it began")
    end_ns = word(2, "it ended, or was switched away from")
    due_ns = word(3, "its sub-deadline: release and the unit's sub-deadline")
    decision_ns = part(word(4), 0, 48, "how long the choice of it took, and what came before it")
    policed_results = part(word(4), 48, 16, "results that were shed within it")
    outputs = part(
        last(), 0, 32, "how many on each exit: 8 bits for each of at most 4, the first one lowest; 0: filtered"
    )
    ordinal = part(last(), 32, 32, "of its tuple")
    unfinished = Flag("it was switched away from at an operator's boundary and goes on in a later record")


class Sent(Record, kind=SENT):
    """A tuple left for a peer; written once, however often it is resent."""

    __slots__ = ()
    peer = head("ref", "the node's number")
    link_seq = word(1, "its number on the link")
    stream = word(2, "what it is of")
    ordinal = word(3, "of the tuple")


class Received(Record, kind=RECEIVED):
    """A tuple came from a peer."""

    __slots__ = ()
    peer = head("ref", "the node's number")
    link_seq = word(1, "its number on the link")
    sent_ns = word(2, "when it left, on the peer's clock")
    stream = word(3, "what it is of")
    ordinal = word(4, "of the tuple")


class Acked(Record, kind=ACKED):
    """A peer has said what it has."""

    __slots__ = ()
    peer = head("ref", "the node's number")
    acknowledged_through = word(1, "all numbers on the link up to this")


class GaveUp(Record, kind=GAVE_UP):
    """The sender stopped trying; the peer may have the tuple."""

    __slots__ = ()
    peer = head("ref", "the node's number")
    link_seq = word(1, "its number on the link")
    stream = word(2, "what it is of")
    ordinal = word(3, "of the tuple")


class Output(Record, kind=OUTPUT):
    """A result was delivered."""

    __slots__ = ()
    output = head("ref", "the output")
    origin_lo_ns = word(1, "its oldest tuple's origin is not before")
    origin_hi_ns = word(2, "nor after")
    deadline_ns = word(3, "the output's end-to-end deadline, a duration")
    ordinal = word(4, "of the result")

    @property
    def latency(self) -> Latency:
        """From its oldest tuple's origin to here."""
        return Latency.between(self.origin_lo_ns, self.origin_hi_ns, self.at_ns)

    @property
    def verdict(self) -> Verdict:
        """Against its deadline."""
        return self.latency.verdict(self.deadline_ns)


class Shed(Record, kind=SHED):
    """A tuple was given up on purpose.

    With ref NO_REF: an arrival on `stream`, shed as it was admitted; none of its consumers on this node got it. With
    policy selectivity, or with an operator: not the unit's tuple but a result of `operator` in it, whose ordinal it is;
    with policy selectivity none of the unit's exits had it yet, else those of `operator` had.
    """

    __slots__ = ()
    unit = head("ref", "the task unit")
    policy = word(1, "why", SHED_POLICIES)
    ordinal = word(2, "of the tuple")
    stream = word(3, "of an arrival")
    operator = word(4, "whose result it was; 0: it is the unit's tuple")

    @property
    def of_arrival(self) -> bool:
        """Whether none of the stream's consumers here got it."""
        return self.ref == NO_REF

    @property
    def of_result(self) -> bool:
        """Whether it is about a result of an operator in the unit, not about the unit's tuple."""
        return self.ref != NO_REF and (self.policy in OWN_RESULT or self.operator != 0)


class Lost(Record, kind=LOST):
    """A tuple was lost; never one that a peer may have.

    With FLAG, ref is a peer. With ref NO_REF: an arrival on `stream` that none of its consumers on this node got. Of an
    instance that failed, it has the start, what policing shed before, and the outputs made by then.
    """

    __slots__ = ()
    unit = head("ref", "the task unit")
    peer = head("ref", "the node that it never left for")
    cause = word(1, "why", CAUSES)
    ordinal = word(2, "of the tuple")
    stream = word(3, "of an arrival, or of what never left")
    policed_results = part(word(3), 0, 16, "in a unit: results that were shed before")
    start_ns = word(4, "the instance began; 0: it had not")
    outputs = part(last(), 0, 32, "as of RAN")
    never_left = Flag("the tuple never left for the peer")

    @property
    def of_arrival(self) -> bool:
        """Whether none of the stream's consumers here got it."""
        return self.ref == NO_REF and not self.never_left

    @property
    def in_unit(self) -> bool:
        """Whether it was lost at a task unit."""
        return self.ref != NO_REF and not self.never_left


class Merged(Record, kind=MERGED):
    """A contributor of a join, or of a set that was fused, ended there."""

    __slots__ = ()
    unit = head("ref", "the task unit")
    parent_source = word(1, "the joined tuple's lineage")
    parent_epoch = word(2, "the same")
    ordinal = word(3, "of the contributor")
    partner_absent = word(4, "1: its partner was filtered, shed or lost")
    parent_seq = last("the joined tuple's lineage")


class Absorbed(Record, kind=ABSORBED):
    """A tuple ended as a side input's value."""

    __slots__ = ()
    operator = head("ref", "whose side input it is")
    stream = word(1, "what it is of")
    ordinal = word(2, "of the tuple")
    unreadable = Flag("the value could not be read and was not kept")


class Window(Record, kind=WINDOW):
    """A window opened, or ended.

    source, epoch and seq are those that its result has or would have. Each window that closes, is abandoned or skipped
    is also ADMITTED by its operator's own source, and where it gives no result SHED with policy window: so its ends are
    in the books like a tuple's. Of more than MOST_SKIPPED windows that are skipped at once only WINDOW tells.
    """

    __slots__ = ()
    operator = head("ref", "whose window it is")
    state = word(1, "what happened", WINDOW_STATES)
    start = word(2, "where it begins: an origin; of windows by count, a number of its source")
    end = word(3, "where it ends")
    cause = word(4, "why it gave no result", WINDOW_CAUSES)
    tuples = last("how many are in it")
    last_number = last("of windows that are skipped: the last one's number", signed=True)


class Clock(Record, kind=CLOCK):
    """What is known of a peer's clock; or, with FLAG and ref NO_REF, that the node's own clock stood still.

    It stood between `since_ns` and `at_ns` of it, as its machine was suspended. What was under way took longer than the
    clock says.
    """

    __slots__ = ()
    peer = head("ref", "the node's number")
    offset_lo_ns = word(1, "this clock less the peer's is not less")
    offset_hi_ns = word(2, "nor more")
    rtt_ns = word(3, "round trip")
    era = word(4, "how often the clocks' relation was lost")
    since_ns = word(1, "of a suspension: it began after")
    slept_ns = word(2, "of a suspension: how long it was at least")
    suspended = Flag("the node's own clock stood still")


class Load(Record, kind=LOAD):
    """What a node has to do, once a second, and what its records add up to."""

    __slots__ = ()
    refused = head("source", "with FLAG: tuples that were refused before, modulo COUNTED")
    admitted = head("epoch", "with FLAG: tuples that were admitted before, modulo COUNTED")
    latencies_ns = head(
        "seq",
        "with FLAG: sum, in its low 63 bits, of 2 * at - origin_lo - origin_hi of all OUTPUT of the incarnation before",
    )
    queue_bytes = word(1, "what waits")
    ready = word(2, "instances that wait")
    busy_ns = word(3, "how long operators ran so far")
    overhead_ns = word(4, "how long all else took so far")
    records_before = last("records that were written before this one")
    has_sums = Flag("it has the sums")


class Gap(Record, kind=GAP):
    """Records are missing."""

    __slots__ = ()
    dropped = word(1, "how many; 0: nobody knows")
    damaged = Flag("they were damaged on the disk, or lost with the memory as the node lost power")


class Degraded(Record, kind=DEGRADED):
    """The cheaper variant of an operator ran, because the tuple would have been late."""

    __slots__ = ()
    unit = head("ref", "the task unit")
    operator = word(1, "whose variant ran")
    ordinal = word(2, "of the tuple")


class Refused(Record, kind=REFUSED):
    """Tuples were offered to a source and not admitted, the last of them at `at_ns`."""

    __slots__ = ()
    source_id = head("ref", "the source")
    refused_before = head(
        "seq", "how many of that source were refused under that plan and epoch before: no gap between"
    )
    reason = word(1, "why", REASONS)
    tuples = word(2, "how many")
    age_lo_ns = word(3, "their ages then were not less")
    age_hi_ns = word(4, "nor more")
    first_at_ns = last("when the first of them came", signed=True)


class Reset(Record, kind=RESET):
    """A runtime began with a plan that ran here before, and this operator of it without the state that it had."""

    __slots__ = ()
    operator = head("ref", "whose state is gone")


KINDS = tuple(kind.name for kind in CLASSES[: RESET + 1])
MOST_POLICED = Ran.policed_results.mask  # of one instance; more count as so many

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


def pack_header(header: Header) -> bytes:
    """The 128 bytes at the start of a segment."""
    node, clock = header.node.encode(), header.clock.encode()
    if len(node) > 32 or len(clock) > 40:
        raise RecordError(
            "name_too_long", f"node name {header.node!r} or clock domain {header.clock!r} is too long (32 and 40 bytes)"
        )
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
        raise RecordError("no_header", f"a trace segment starts with {HEADER_BYTES} bytes of header, found {len(data)}")
    magic, version, size, index, flags, boot, drift, starts, started, wall, node, clock = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise RecordError("not_a_segment", "not a trace segment")
    if version != VERSION or size != HEADER_BYTES:
        raise RecordError("other_version", f"trace segment of version {version}, this reader knows {VERSION}")
    if bytes(data[HEADER_CHECK_AT:HEADER_BYTES]) != _check(bytes(data[:HEADER_CHECK_AT])):
        raise RecordError("damaged", "the head of the trace segment is damaged")
    names = node.rstrip(b"\0").decode(), clock.rstrip(b"\0").decode()
    return Header(names[0], index, boot, names[1], drift, started, wall, flags, starts)


def plans_in(data: bytes) -> Iterator[Plan]:
    """The PLAN records among those in `data`, without a look at the others."""
    kinds = data[::RECORD_BYTES]
    at = kinds.find(PLAN)
    while at >= 0:
        record = unpack_record(data, at * RECORD_BYTES)
        assert isinstance(record, Plan)
        yield record
        at = kinds.find(PLAN, at + 1)


def stamp_of(hash_: str) -> int:
    """The start of a plan's hash, as records carry it. Raises ValueError."""
    return int(hash_[:STAMP], 16)


def beside_decision(policed_results: int) -> int:
    """What a RAN's word has beside the decision's time, for results that were shed: their highest bit is its sign."""
    field = Ran.policed_results
    sign = 1 << field.bits - 1
    return (policed_results ^ sign) - sign << field.shift


def per_exit(outputs: int, exits: int) -> tuple[int, ...]:
    """How many a RAN or LOST counts on each exit, the first one first."""
    return tuple((outputs >> (8 * exit_)) & 0xFF for exit_ in range(exits))
