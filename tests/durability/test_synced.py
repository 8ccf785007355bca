"""What was said to be durable is there after a loss of power: on a disk that forgets what was not synced."""

import errno
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from node_agent.control.deployment import Deployment, Durable, State
from node_agent.control.plan_store import PlanStore
from node_agent.control.spool.spool_files import SpoolFiles
from node_agent.control.spool.spool_protocol import SEGMENT_RECORDS
from node_agent.host.files.reserve import Reserve
from node_agent.host.files.starts import Starts
from node_agent.host.system_disk import SYSTEM_DISK
from node_agent.host.trace_ring import STATE, Ring, RingFacts
from protos import trace_pb2
from protos.records import LOAD, NO_REF, STATE_CRASHED, STATE_ENDED, Header, unpack_records
from protos.segments import Block, records_in, scan
from tests.durability.forgetful_disk import Disk
from tests.node_agent.control.test_control_service import Node
from tests.node_agent.folder_rings import NO_RINGS, FolderRings

MANY = SEGMENT_RECORDS + 100


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_file_is_the_old_or_the_new_at_every_instant_and_the_new_on_return(
    powered: Callable[[], Disk], old: bytes | None
) -> None:
    disk = powered()
    if old is not None:
        (disk.root / "file").write_bytes(old)
        disk = powered()
    SYSTEM_DISK.replace(disk.root / "file", b"new")
    disk.lose_power()
    found = [path.read_bytes() if (path := each / "file").exists() else None for each in disk.left]
    assert set(found) == {old, b"new"} and found[-2:] == [b"new"] * 2


def _header(start: int) -> Header:
    return Header("a", 0, 100 + start, "clock", 50, start, 2, 0, start)


def test_a_start_that_was_counted_is_never_counted_again(powered: Callable[[], Disk]) -> None:
    disk = powered()
    starts = Starts(disk.root, Reserve(disk.root))
    starts.load(0, new=True)
    for start in (1, 2):
        tried = len(disk.left)
        starts.add(_header(start))
        disk.lose_power()
        for number, left in enumerate(disk.left[tried:], tried + 1):
            found = Starts(left, Reserve(left))
            found.load(0, new=start == 1)
            least = start if number > len(disk.left) - 2 else start - 1
            assert least <= found.count <= start, number
            assert set(found.headers) == {100 + each for each in range(1, found.count + 1)}


def test_a_plan_is_committed_as_a_whole_or_not_at_all(powered: Callable[[], Disk]) -> None:
    disk = powered()
    store, before, whole = PlanStore(disk.root), Durable(), b'{"plan":1}'
    hash_ = hashlib.sha256(whole).hexdigest()
    store.put_plan(hash_, whole, {0: b"local", 1: b"local of core 1"})
    for state in (State.PREPARED, State.COMMITTED):
        tried = len(disk.left)
        after = Durable(5, 3, (Deployment(hash_, 4, state, "q", (), (0, 1)),))
        store.write(after)
        disk.lose_power()
        for number, left in enumerate(disk.left[tried:], tried + 1):
            found = PlanStore(left, cores=2)
            assert found.load() in ((after,) if number > len(disk.left) - 2 else (before, after)), number
            assert found.problems == []
        before = after


def _numbers(folder: Path) -> list[int]:
    """Of the records in a spool's folder."""
    found = b"".join(records_in(path.read_bytes()) for path in sorted(folder.glob("*.rec")))
    return [each.seq for each in unpack_records(found) if each.kind == LOAD]


def test_records_that_were_synced_are_in_the_spool_and_a_new_incarnation_is_known(
    powered: Callable[[], Disk], tmp_path: Path
) -> None:
    rings = tmp_path / "rings"
    rings.mkdir()
    disk = powered()
    spool = SpoolFiles(disk.root, FolderRings(rings))
    for start in (1, 2):
        ring = Ring.create(rings / f"{100 + start:016x}.ring", _header(start), 4096)
        facts = RingFacts(ring)
        for upto in (0, 3, MANY):  # begun, within a segment, and into the next one
            while facts.written_records < upto:
                facts.write(LOAD, 0, NO_REF, 0, 0, facts.written_records)
                if not facts.written_records % 1000:
                    facts.publish()
                    spool.drain()
            facts.publish()
            if upto == MANY:
                ring.cells[STATE] = STATE_ENDED
            spool.drain()
            SYSTEM_DISK.sync(spool.unsynced())
            disk.lose_power()
            for left in disk.left[-2:]:
                assert _numbers(left / f"{100 + start:016x}") == list(range(upto))
                found = SpoolFiles(left, NO_RINGS)
                ended = found.spool.incarnations[100 + start].ended
                assert (ended, len(found.problems)) == ((STATE_ENDED, 0) if upto == MANY else (STATE_CRASHED, 1))


def test_what_the_coordinator_was_sent_is_on_the_disk(
    powered: Callable[[], Disk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few times over, since control also syncs once a second."""
    node = Node(tmp_path / "agent")
    disk = powered()
    monkeypatch.setattr("os.fsync", disk.keep)
    ring = Ring.create(node.state.rings.path_of(101), _header(1))
    facts = RingFacts(ring)
    for upto in range(1, 6):
        facts.write(LOAD, 0, NO_REF, 0, 0, upto - 1)
        facts.publish()
        (sent,) = node.stub.Trace(trace_pb2.TraceRequest(held=[trace_pb2.Position(boot=101, records=upto - 1)]))
        assert sent.written == upto
        disk.lose_power()
        for left in disk.left[-2:]:
            assert upto - 1 in _numbers(left / "spool" / f"{101:016x}"), upto
    node.stop()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """Its control process, and no runtime's records yet."""
    (tmp_path / "agent").mkdir()
    node = Node(tmp_path / "agent")
    yield node
    node.stop()


def write_three(node: Node) -> None:
    facts = RingFacts(Ring.create(node.state.rings.path_of(101), _header(1)))
    for number in range(3):
        facts.write(LOAD, 0, NO_REF, 0, 0, number)
    facts.publish()


def collected(node: Node) -> tuple[int, int]:
    """How many records come, and how many the node says that it has written."""
    chunks = list(node.stub.Trace(trace_pb2.TraceRequest()))
    found = b"".join(block.records for each in chunks for _, block in scan(each.blocks, 0) if isinstance(block, Block))
    return len(list(unpack_records(found))), max((each.written for each in chunks), default=0)


def test_what_the_disk_does_not_sync_is_sent_once_it_does(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", refused)
        write_three(node)
        assert collected(node) == (0, 0)
    assert collected(node) == (3, 3)


def test_what_another_call_syncs_is_sent_when_that_has_ended(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one fails, so the second one has to do it itself."""
    begun, go_on, sync = threading.Event(), threading.Event(), os.fsync

    def held_up(descriptor: int) -> None:
        if begun.is_set():
            sync(descriptor)
            return
        begun.set()
        go_on.wait(30)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr("os.fsync", held_up)
        write_three(node)
        first = pool.submit(collected, node)
        assert begun.wait(30)
        second = pool.submit(collected, node)
        early, _ = wait([second], timeout=0.5)
        go_on.set()
        assert not early and second.result(30) == (3, 3)
        first.result(30)
