"""The trace ring: what is written is read once, in order; a full ring drops and says so; a file outlives its writer."""

import threading
from pathlib import Path

import pytest

from node_agent.host.files.state_dir import StateDir
from node_agent.host.trace_ring import (
    DROPPED,
    HANG,
    HANG_AT,
    MOST_ACKNOWLEDGED,
    MOST_INHERITED,
    MOST_TAKEN_OVER,
    STATE,
    TAKEN,
    WRITTEN,
    Ring,
    RingFacts,
    TakenOver,
    inherited,
)
from node_agent.supervisor.watchdog import hung, write_hung
from protos import records

HEADER = records.Header("a", 0, 7, "clock", 50, 1, 2)


def _ring(tmp_path: Path, capacity: int) -> Ring:
    return Ring.create(tmp_path / "r.ring", HEADER, capacity)


def _write(facts: RingFacts, *seqs: int) -> None:
    for seq in seqs:
        facts.write(records.ADMITTED, 0, 1, 1, 1, seq)


def _seqs(data: bytes) -> list[int]:
    return [record.seq for record in records.unpack_records(data) if isinstance(record, records.Admitted)]


def test_records_wrap_around_and_come_once(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 8)
    facts = RingFacts(ring)
    seen: list[int] = []
    for seq in range(100):
        _write(facts, seq)
        facts.publish()
        if seq % 5 == 0:
            seen += _seqs(ring.take())
    seen += _seqs(ring.take())
    assert seen == list(range(100)) and ring.take() == b"" and facts.written_records == 100


def test_what_is_not_published_is_not_seen(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 8)
    facts = RingFacts(ring)
    _write(facts, 1, 2)
    assert ring.pending_bytes == 0
    facts.publish()
    assert _seqs(ring.take()) == [1, 2]


def test_a_full_ring_drops_and_says_how_many(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 8)
    facts = RingFacts(ring)
    _write(facts, *range(11))
    facts.publish()
    assert ring.cells[DROPPED] == 3
    assert _seqs(ring.take()) == list(range(8))
    _write(facts, 50, 51)
    facts.publish()
    rest = list(records.unpack_records(ring.take()))
    assert [record.kind for record in rest] == [records.GAP, records.ADMITTED, records.ADMITTED]
    assert isinstance(rest[0], records.Gap) and rest[0].dropped == 3 and [record.seq for record in rest[1:]] == [50, 51]
    assert facts.written_records == 11  # 8, the GAP, and 2


def test_a_record_that_says_its_place_counts_the_gap_before_it(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 8)
    facts = RingFacts(ring)
    _write(facts, *range(11))
    facts.note_gap()
    assert facts.written_records == 8, "there is no room for it yet"
    facts.publish()
    ring.take()
    for _ in range(2):
        facts.note_gap()
        assert facts.written_records == 9
    _write(facts, 50)
    facts.publish()
    assert [record.kind for record in records.unpack_records(ring.take())] == [records.GAP, records.ADMITTED]


def test_a_reader_beside_the_writer_gets_every_record_that_was_not_dropped(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 64)
    reader = Ring.open(ring.path)
    got = bytearray()
    done = threading.Event()

    def read() -> None:
        while not done.is_set() or reader.pending_bytes:
            got.extend(reader.take(640))

    thread = threading.Thread(target=read)
    thread.start()
    facts = RingFacts(ring)
    for seq in range(20_000):
        _write(facts, seq)
        facts.publish()
    done.set()
    thread.join(30)
    seqs = _seqs(bytes(got))
    noted = sum(record.dropped for record in records.unpack_records(bytes(got)) if isinstance(record, records.Gap))
    assert seqs == sorted(set(seqs))
    assert len(seqs) + noted + facts.dropping == 20_000


def test_a_ring_outlives_its_writer(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 8)
    facts = RingFacts(ring)
    _write(facts, 1, 2, 3)
    facts.publish()
    ring.memory.flush()
    again = Ring.open(ring.path)
    assert again.header == HEADER and _seqs(again.take(128)) == [1, 2] and _seqs(again.take()) == [3]


def test_files_that_are_no_ring_are_refused(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"x")
    (tmp_path / "long").write_bytes(bytes(8192))
    for name in ("short", "long"):
        with pytest.raises(ValueError):
            Ring.open(tmp_path / name)
    with pytest.raises(FileExistsError):
        Ring.create(tmp_path / "short", HEADER)


def test_a_hung_instance_is_written_down_in_the_dead_runtimes_ring(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 8)
    facts = RingFacts(ring)
    _write(facts, 1)
    facts.publish()
    _write(facts, 2)  # of the instance that hangs: never published
    HANG.pack_into(ring.memory, HANG_AT, 1_000, 5_000_000, 4, 3, 2, 9, 77, 6)
    assert hung(ring, 5_000_000) is None
    running = hung(ring, 6_100_000)
    assert running is not None
    assert write_hung(ring, running, 6_100_000)
    admitted, lost = records.unpack_records(ring.take())
    assert admitted.seq == 1
    assert lost == records.Record(records.LOST, 3, 4, 2, 9, 77, 6_100_000, records.CAUSE_OPERATOR_HUNG, 6, 0, 1_000, 0)
    ring.cells[WRITTEN] = ring.cells[TAKEN] + ring.capacity
    assert not write_hung(ring, running, 6_100_000)


def test_a_full_ring_has_room_for_what_the_supervisor_says(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 8)
    facts = RingFacts(ring)
    _write(facts, *range(12))
    facts.publish()
    HANG.pack_into(ring.memory, HANG_AT, 1_000, 5_000_000, 4, 3, 2, 9, 77, 6)
    running = hung(ring, 6_100_000)
    assert running is not None
    ring.note_dropped()
    ring.note_dropped()  # once
    assert write_hung(ring, running, 6_100_000)
    found = list(records.unpack_records(ring.take()))
    assert [record.seq for record in found[:8]] == list(range(8))
    gap, lost = found[8:]
    assert isinstance(gap, records.Gap) and gap.dropped == 4
    assert isinstance(lost, records.Lost) and (lost.cause, lost.seq) == (records.CAUSE_OPERATOR_HUNG, 77)


@pytest.mark.parametrize("taken", range(8))
def test_an_instance_is_published_as_a_whole_where_the_ring_wraps(tmp_path: Path, taken: int) -> None:
    """Killed at any record, the reader has seen whole instances only, wherever in the ring they lie."""
    ring = _ring(tmp_path, 8)
    facts = RingFacts(ring)
    _write(facts, *range(taken))
    facts.publish()
    ring.take()
    for instance in range(6):
        first = 100 + 10 * instance
        for seq in range(first, first + 5):
            _write(facts, seq)
            assert ring.pending_bytes == 0
        assert facts.written_records == taken + 5 * (instance + 1)
        facts.publish()
        assert _seqs(ring.take()) == list(range(first, first + 5))


def test_what_was_written_before_the_ring_was_full_is_published(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 8)
    facts = RingFacts(ring)
    _write(facts, *range(6))
    facts.publish()
    _write(facts, *range(6, 10))  # one instance: two records fit, two do not
    assert ring.pending_bytes == 6 * records.RECORD_BYTES and facts.written_records == 8
    facts.publish()
    assert _seqs(ring.take()) == list(range(8)) and ring.cells[DROPPED] == 2


def test_what_was_taken_over_can_be_read_when_the_writer_is_dead(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 8)
    taken = [TakenOver(1 << 63, 7, seq, seq) for seq in range(MOST_TAKEN_OVER)]
    assert ring.promised() == []
    assert ring.promise_acknowledgements(taken) and ring.promised() == taken
    assert ring.promise_acknowledgements(taken[:2]) and ring.promised() == [*taken[2:], *taken[:2]]
    assert ring.promise_acknowledgements([]) and ring.promised() == [*taken[2:], *taken[:2]]
    assert not ring.promise_acknowledgements([*taken, taken[0]])


def test_what_is_promised_holds_as_soon_as_its_records_are_published(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 8)
    facts = RingFacts(ring)
    taken = [TakenOver(5, 7, seq, seq) for seq in range(MOST_TAKEN_OVER)]
    assert ring.promise_acknowledgements(taken)
    for number in range(3):
        _write(facts, number)
        more = TakenOver(5, 7, 1000 + number, 1000 + number)
        assert ring.promise_acknowledgements([more], facts.written_records * records.RECORD_BYTES)
        assert Ring.open(ring.path).promised() == taken
        facts.publish()
        taken = [*taken[1:], more]
        assert Ring.open(ring.path).promised() == taken


def test_what_was_acknowledged_can_be_read_when_the_writer_is_dead(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 8)
    ring.acknowledge(1 << 63, 7, 40)
    ring.acknowledge(5, 7, 1)
    ring.acknowledge(1 << 63, 7, 41)
    assert Ring.open(ring.path).promised() == [TakenOver(1 << 63, 7, 41, 0), TakenOver(5, 7, 1, 0)]
    for peer in range(10, 10 + MOST_ACKNOWLEDGED):
        ring.acknowledge(peer, 7, peer)
    assert sorted(each.peer for each in ring.promised()) == list(range(10, 10 + MOST_ACKNOWLEDGED))


def test_an_incarnation_inherits_from_all_before_it(tmp_path: Path) -> None:
    ring = _ring(tmp_path, 8)
    ring.promise_acknowledgements([TakenOver(1, 7, 40, 11)])
    first = inherited((), 3, ring)
    assert first == [(3, TakenOver(1, 7, 40, 11))]
    ring.acknowledge(2, 7, 5)
    assert inherited(first, 4, ring) == [(4, TakenOver(1, 7, 40, 11)), (4, TakenOver(2, 7, 5, 0))]
    many = [(1, TakenOver(9, 7, seq, seq)) for seq in range(1, 2 * MOST_INHERITED)]
    kept = inherited(many, 4, ring)
    assert len(kept) == MOST_INHERITED and kept[-1] == (4, TakenOver(2, 7, 5, 0))


def test_rings_of_a_killed_agent_are_marked_crashed(tmp_path: Path) -> None:
    state = StateDir(tmp_path / "s")
    live = Ring.create(state.rings.path_of(1), HEADER, 8)
    ended = Ring.create(state.rings.path_of(2), HEADER, 8)
    ended.cells[STATE] = records.STATE_ENDED
    state.rings.path_of(3).write_bytes(b"")
    facts = RingFacts(live)
    _write(facts, *range(10))
    facts.publish()
    assert live.cells[DROPPED] > 0
    assert state.rings.mark_abandoned() == 1
    *_, last = records.unpack_records(live.take())
    assert isinstance(last, records.Gap) and last.dropped == live.cells[DROPPED], "what it dropped is noted"
    assert live.cells[STATE] == records.STATE_CRASHED and ended.cells[STATE] == records.STATE_ENDED
    assert [path.name for path in state.rings.paths()] == [f"{1:016x}.ring", f"{2:016x}.ring"]
    for path in state.rings.paths():
        path.unlink()
    state.rings.tidy()
    assert state.rings.path is None
