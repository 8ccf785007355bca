"""The spool: what is collected is always what the ring had, in order, once, and gaps are counted."""

import errno
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.control.spool.spool_files import SpoolFiles
from node_agent.control.spool.spool_protocol import SEGMENT_RECORDS, Incarnation, Spool
from node_agent.host.trace_ring import DROPPED, STATE, TAKEN, Ring, RingFacts
from protos.block_compression import ZLIB, Compression, cheapest
from protos.records import (
    HEADER_BYTES,
    LOAD,
    NO_REF,
    RECORD_BYTES,
    STATE_CRASHED,
    STATE_ENDED,
    Gap,
    Header,
    unpack_records,
)
from protos.segments import HEAD_BYTES, MISSING, MOST_RECORDS, ZSTD, Block, Chain, Trail, bodies, scan
from tests.node_agent.folder_rings import FolderRings


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on the disk when the power goes is not looked at here, and a busy disk takes its time."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


class Node:
    """Rings and a spool below one directory."""

    def __init__(self, root: Path, capacity: int = 4096, limit: int = 1 << 30) -> None:
        self.root, self.capacity, self.limit = root, capacity, limit
        (root / "rings").mkdir()
        (root / "spool").mkdir()
        self.written: dict[int, int] = {}
        self.facts: RingFacts
        self.started = 0
        self.start_control()

    def rings(self) -> list[Path]:
        return sorted((self.root / "rings").glob("*.ring"))

    def start_control(self) -> None:
        self.files = SpoolFiles(self.root / "spool", FolderRings(self.root / "rings"), self.limit)

    def start_runtime(self, boot: int) -> Ring:
        self.started += 1
        header = Header("a", 0, boot, "clock", 50, boot, 0, 0, self.started)
        self.ring = Ring.create(self.root / "rings" / f"{boot:016x}.ring", header, self.capacity)
        self.facts = RingFacts(self.ring)
        self.boot = boot
        self.written[boot] = 0
        return self.ring

    def write(self, count: int) -> None:
        for _ in range(count):
            self.facts.write(LOAD, 0, NO_REF, 0, 0, self.written[self.boot])
            self.written[self.boot] += 1
        self.facts.publish()

    def end_runtime(self, state: int) -> None:
        self.ring.cells[STATE] = state


def on_disk(root: Path) -> int:
    """Bytes of the blocks in the segments' files."""
    return sum(path.stat().st_size - HEADER_BYTES for path in (root / "spool").glob("*/*.rec"))


class Collector:
    """What a coordinator holds: per incarnation the records, in order."""

    def __init__(self) -> None:
        self.records: dict[int, list[int]] = {}
        self.gaps: dict[int, int] = {}
        self.count: dict[int, int] = {}
        self.over: dict[int, bool] = {}
        self.crashed: dict[int, bool] = {}
        self.trails: dict[int, Trail] = {}
        self.lost: dict[int, list[tuple[int, int]]] = {}

    def pull(self, node: Node) -> None:
        node.files.seal(dict(self.count))
        node.files.hold(dict(self.count))
        for chunk in node.files.chunks(dict(self.count)):
            held = self.count.setdefault(chunk.boot, 0)
            assert chunk.first == held, "no hole and no double"
            assert len(chunk.blocks) <= 64 << 10
            trail = self.trails.setdefault(chunk.boot, Trail(chunk.boot))
            if trail.sealed:
                assert chunk.ended and len(chunk.blocks) == HEAD_BYTES, "asked again, the end is told again"
                continue
            blocks = trail.follow(chunk.header + chunk.blocks)
            assert not trail.flaws, "each chunk goes on where the one before ended"
            for record in unpack_records(bodies(blocks)):
                if isinstance(record, Gap) and record.damaged:
                    self.lost.setdefault(chunk.boot, []).append((held, record.dropped))
                elif isinstance(record, Gap):
                    self.gaps[chunk.boot] = self.gaps.get(chunk.boot, 0) + record.dropped
                else:
                    self.records.setdefault(chunk.boot, []).append(record.seq)
            self.count[chunk.boot] = trail.end or 0
            self.over[chunk.boot] = chunk.ended
            assert chunk.ended == bool(trail.sealed)
            self.crashed[chunk.boot] = chunk.crashed
            assert chunk.written >= self.count[chunk.boot]


@pytest.mark.parametrize("way", [ZLIB, cheapest()], ids=["zlib", "zstd"])
def test_whole_blocks_are_taken_and_the_rest_waits(tmp_path: Path, way: Compression) -> None:
    node, collector = Node(tmp_path), Collector()
    node.files = SpoolFiles(tmp_path / "spool", FolderRings(tmp_path / "rings"), compression=way)
    node.start_runtime(7)
    node.write(3000)
    assert node.files.drain(whole_blocks=True) == 0, "it looks for no rings"
    assert node.files.drain() == 3000
    taken = []
    for count in (1000, 22, 1, 2045, 2, 3500):
        node.write(count)
        taken.append(node.files.drain(whole_blocks=True))
    assert taken == [0, 0, MOST_RECORDS, MOST_RECORDS, MOST_RECORDS, 3 * MOST_RECORDS]
    node.write(5)
    node.end_runtime(STATE_ENDED)
    assert node.files.drain(whole_blocks=True) > 0, "a ring that is closed is emptied"
    assert node.rings() == []
    collector.pull(node)
    assert collector.over[7] and collector.records[7] == list(range(node.written[7]))
    flags = {block.flags & ZSTD for path in (tmp_path / "spool").glob("*/*.rec")
             for _, block in scan(path.read_bytes()) if isinstance(block, Block) and block.count}  # fmt: skip
    assert flags <= {ZSTD if way.zstd else 0}


def test_records_come_out_as_they_went_in(tmp_path: Path) -> None:
    node, collector = Node(tmp_path), Collector()
    node.start_runtime(7)
    for count in (1, 4095, 100, 0, 3000):
        node.write(count)
        node.files.drain()
    collector.pull(node)
    assert collector.records[7] == list(range(7196))
    assert not collector.over[7]
    node.end_runtime(STATE_ENDED)
    node.files.drain()
    assert node.rings() == []
    collector.pull(node)
    assert collector.over[7] and not collector.crashed[7] and collector.records[7] == list(range(7196))
    collector.pull(node)
    assert collector.over[7], "asked again, the end is told again"
    assert node.files.spool.bytes == 0


def test_what_the_coordinator_holds_is_freed_also_from_the_disk(tmp_path: Path) -> None:
    node, collector = Node(tmp_path, capacity=1 << 15), Collector()
    node.start_runtime(7)
    for _ in range(4):
        node.write(10_000)
        node.files.drain()
    assert node.files.spool.bytes == on_disk(tmp_path) < 40_000 * RECORD_BYTES // 10, "these differ in a number only"
    collector.pull(node)
    collector.pull(node)
    assert node.files.spool.bytes == 0
    assert [path.name for path in (tmp_path / "spool").glob("*/*")] == ["freed"]
    node.start_control()
    node.write(5)
    node.files.drain()
    collector.pull(node)
    assert collector.records[7] == list(range(40_005))


def test_what_one_collection_held_is_not_in_the_next(tmp_path: Path) -> None:
    node, first, second = Node(tmp_path), Collector(), Collector()
    node.start_runtime(7)
    for _ in range(3):  # while it runs, something comes between any two rounds
        node.write(10)
        node.files.drain()
        first.pull(node)
    (chunk,) = node.files.chunks({})
    assert chunk.first == 20, "what two rounds have brought is gone"
    node.files.hold(first.count)
    second.count = {7: 30}
    node.write(10)
    node.files.drain()
    second.pull(node)
    assert second.records[7] == list(range(30, 40))


def test_a_killed_agent_leaves_its_ring_and_the_next_one_drains_it(tmp_path: Path) -> None:
    node, collector = Node(tmp_path), Collector()
    node.start_runtime(1)
    node.write(50)
    node.files.drain()
    node.write(20)  # never drained by the one that was killed
    node.end_runtime(STATE_CRASHED)  # as the restarted supervisor marks it
    node.start_control()
    node.start_runtime(2)
    node.write(3)
    node.files.drain()
    collector.pull(node)
    assert collector.records == {1: list(range(70)), 2: [0, 1, 2]}
    assert collector.over == {1: True, 2: False} and collector.crashed[1]


def test_killed_between_the_file_and_the_ring(tmp_path: Path) -> None:
    node, collector = Node(tmp_path), Collector()
    ring = node.start_runtime(1)
    for count in (10, 40):
        node.write(count)
        node.files.drain()
    ring.cells[TAKEN] = 10 * RECORD_BYTES  # the append is there, the ring was not told
    path = next((tmp_path / "spool").rglob("*.rec"))
    path.write_bytes(path.read_bytes()[:-RECORD_BYTES] + b"half")  # and the last block is torn
    node.start_control()
    node.write(5)
    node.files.drain()
    collector.pull(node)
    assert collector.records[1] == list(range(55))


def test_a_machine_that_went_down_leaves_a_crashed_incarnation(tmp_path: Path) -> None:
    node, collector = Node(tmp_path), Collector()
    ring = node.start_runtime(1)
    node.write(50)
    node.files.drain()
    ring.path.unlink()
    node.start_control()
    node.files.drain()
    collector.pull(node)
    assert collector.over[1] and collector.crashed[1] and collector.records[1] == list(range(50))
    assert collector.lost[1] == [(0, 0)], "nobody knows what else was in the ring"


def test_a_full_spool_drops_and_says_how_many(tmp_path: Path) -> None:
    node, collector = Node(tmp_path, limit=60 * RECORD_BYTES + HEAD_BYTES), Collector()
    node.start_runtime(1)
    for count in (60, 60, 60):
        node.write(count)
        node.files.drain()
    assert 0 < node.files.spool.bytes == on_disk(tmp_path)
    collector.pull(node)
    collector.pull(node)
    node.write(10)
    node.files.drain()
    collector.pull(node)
    assert collector.records[1] == [*range(60), *range(180, 190)] and collector.gaps[1] == 120
    assert collector.count[1] == 71


def test_a_spool_that_is_gone_is_told_also_where_the_coordinator_holds_some_of_it(tmp_path: Path) -> None:
    node, collector = Node(tmp_path), Collector()
    node.start_runtime(7)
    node.write(50)
    node.files.drain()
    collector.pull(node)
    node.write(20)
    node.files.drain()
    shutil.rmtree(tmp_path / "spool" / f"{7:016x}")
    node.start_control()
    node.write(5)
    node.files.drain()
    node.files.hold(collector.count)
    blocks = [block for chunk in node.files.chunks(collector.count) for _, block in scan(chunk.blocks, 0)]
    found = [(block.first, block.end, block.flags) for block in blocks if isinstance(block, Block)]
    assert found == [(0, 70, MISSING), (70, 75, 0)], (
        "20 of them are nowhere, which a coordinator tells by what it holds"
    )
    assert node.files.problems == [f"70 records of {7:016x} were taken from its ring, and the spool has lost them"]


def test_drops_at_the_end_are_written_down(tmp_path: Path) -> None:
    node, collector = Node(tmp_path, limit=0), Collector()
    node.start_runtime(1)
    node.write(60)
    node.end_runtime(STATE_ENDED)
    node.files.drain()
    collector.pull(node)
    assert collector.gaps[1] == 60 and collector.over[1] and collector.count[1] == 1


def test_a_ring_that_ran_over_counts_its_own_drops(tmp_path: Path) -> None:
    node, collector = Node(tmp_path, capacity=64), Collector()
    ring = node.start_runtime(1)
    node.write(100)
    node.files.drain()
    node.write(10)
    node.files.drain()
    collector.pull(node)
    assert collector.gaps[1] == ring.cells[DROPPED] == 110 - len(collector.records[1])


def test_a_disk_that_fails_is_a_gap_and_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node, collector = Node(tmp_path), Collector()
    node.start_runtime(1)
    node.write(5)
    node.files.drain()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", full)
        node.write(7)
        node.files.drain()
        node.write(1)
        node.files.drain()
    assert any("No space left" in each for each in node.files.problems)
    assert capsys.readouterr().err.count("No space left") == 1
    node.write(2)
    node.files.drain()
    collector.pull(node)
    assert collector.records[1] == [0, 1, 2, 3, 4, 13, 14] and collector.gaps[1] == 8


def test_a_disk_that_fails_at_the_beginning_leaves_the_records_in_the_ring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, collector = Node(tmp_path), Collector()
    node.start_runtime(1)
    node.write(5)

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", full)
        assert node.files.drain() == 0 and node.files.drain() == 0
    assert len(node.files.problems) == 1
    assert node.files.drain() == 5
    collector.pull(node)
    assert collector.records[1] == [0, 1, 2, 3, 4]


def test_without_descriptors_rings_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers may have taken them; what is not read now is read later."""
    node = Node(tmp_path)
    node.start_runtime(1)
    node.write(5)

    def none(*_: object) -> Ring:
        raise OSError(errno.EMFILE, "Too many open files")

    for owner, name in ((node.files.rings, "paths"), (Ring, "open")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, none)
            assert node.files.drain() == 0
    assert len(node.files.problems) == 2 and all("Too many open files" in each for each in node.files.problems)
    assert node.files.drain() == 5


def test_strange_directories_are_named_and_left_alone(tmp_path: Path) -> None:
    node = Node(tmp_path)
    (tmp_path / "spool" / "stray").mkdir()
    (tmp_path / "spool" / "0000000000000001").mkdir()
    (tmp_path / "spool" / "0000000000000001" / "header").write_bytes(b"no header")
    node.start_control()
    assert len(node.files.problems) == 2 and node.files.spool.incarnations == {}


def test_segments_are_rolled() -> None:
    spool = Spool()
    spool.restore(Incarnation(Chain(1, 0)))
    for _ in range(5):
        append = spool.arrive(1, SEGMENT_RECORDS // 2)
        assert append is not None
        spool.incarnations[1].chain.end += append.count
        spool.wrote(1, append, 1)
    assert [each.end - each.first for each in spool.incarnations[1].segments] == [16384, 16384, 8192]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), limit=st.sampled_from([1 << 30, 200 * RECORD_BYTES]))
def test_any_order_of_writes_drains_kills_and_pulls(
    tmp_path_factory: pytest.TempPathFactory, seed: int, limit: int
) -> None:
    dice = random.Random(seed)
    node, collector = Node(tmp_path_factory.mktemp("node"), capacity=128, limit=limit), Collector()
    boot = 1
    ring = node.start_runtime(boot)
    dropped_by_ring: dict[int, int] = {}
    for _ in range(60):
        match dice.choice(["write", "write", "drain", "pull", "kill control", "end"]):
            case "write":
                node.write(dice.randrange(150))
            case "drain":
                node.files.drain()
            case "pull":
                collector.pull(node)
            case "kill control":
                taken = ring.cells[TAKEN]
                node.files.drain()
                if dice.random() < 0.5:
                    ring.cells[TAKEN] = taken  # appended, and killed before the ring was told
                node.start_control()
            case "end":
                node.write(1)
                dropped_by_ring[boot] = ring.cells[DROPPED]
                node.end_runtime(dice.choice([STATE_ENDED, STATE_CRASHED]))
                boot += 1
                ring = node.start_runtime(boot)
    node.end_runtime(STATE_ENDED)
    dropped_by_ring[boot] = ring.cells[DROPPED]
    for _ in range(3):
        node.files.drain()
        collector.pull(node)
    for each in range(1, boot + 1):
        seen = collector.records.get(each, [])
        assert collector.over[each] and seen == sorted(set(seen))
        missing = node.written[each] - len(seen)
        unpublished = dropped_by_ring[each]  # a ring that ended full may not have got its own gap record out
        assert missing - unpublished <= collector.gaps.get(each, 0) <= missing
