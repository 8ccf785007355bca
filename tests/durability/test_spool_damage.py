"""Damage in an agent's spool is found, the agent goes on, and what is gone is never taken for what never was.

A small spool with what there can be: an incarnation that has ended, of which the coordinator holds the beginning; one
that was killed and whose ring is still in memory; one that lost its ring with the power. Then one file is damaged, the
agent starts, and the coordinator collects: into the run directory that it has, and into a new one.
"""

import shutil
from pathlib import Path

import pytest

from coordinator.fleet.collection.run_traces import RunTraces, TraceError
from node_agent.control.spool import spool_protocol
from node_agent.control.spool.spool_files import SpoolFiles
from node_agent.host.files.state_dir import StateDir
from node_agent.host.trace_ring import STATE, Ring, RingFacts
from protos import trace_pb2
from protos.records import LOAD, NO_REF, STATE_CRASHED, STATE_ENDED, Gap, Header, Load, unpack_records
from protos.segments import Trail, bodies
from tests.durability.damages import Damage, apply, damages

ENDED, KILLED, CUT = 0xE1, 0xE2, 0xE3
WRITTEN = {ENDED: 70, KILLED: 45, CUT: 25}


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on the disk when the power goes is not looked at here, and a busy disk takes its time."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


class Node:
    """An agent without its processes: the state directory, the start counter, the spool, the rings."""

    def __init__(self, root: Path) -> None:
        self.state = StateDir(root / "state")
        self.state.lock()
        self.spool = SpoolFiles(self.state.spool, self.state.rings, headers=self.state.starts.headers)
        self.written = 0

    @property
    def problems(self) -> list[str]:
        return [*self.state.starts.problems, *self.spool.problems]

    def start(self, boot: int) -> Ring:
        header = Header("a", 0, boot, "clock", 50, 1, 2, 0, self.state.starts.count + 1)
        self.ring = Ring.create(self.state.rings.path_of(boot), header, 64)
        self.state.starts.add(header)
        self.facts, self.written = RingFacts(self.ring), 0
        return self.ring

    def write(self, count: int, drained: bool = True) -> None:
        for _ in range(count):
            self.facts.write(LOAD, 0, NO_REF, 0, 0, self.written)
            self.written += 1
        self.facts.publish()
        if drained:
            self.spool.drain()

    def end(self) -> None:
        self.state.rings.tidy()
        self.state.unlock()

    def collect(self, directory: Path) -> RunTraces:
        traces = RunTraces(directory, [])
        for _ in range(2):
            held = traces.held("a")
            self.spool.drain()
            self.spool.hold(held)
            for chunk in self.spool.chunks(held):
                traces.incarnation("a", chunk.boot).add(trace_pb2.TraceChunk(**chunk._asdict()))
        return traces


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory, and what of it was collected, as the power comes back."""
    root = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool_protocol, "SEGMENT_RECORDS", 20)
        node = Node(root)
        node.start(ENDED)
        for count in (9, 8, 15):
            node.write(count)
        node.collect(root / "run")
        for count in (10, 20, 8):
            node.write(count)
        node.ring.cells[STATE] = STATE_ENDED
        node.spool.drain()
        ring = node.start(CUT)
        for count in (12, 13):
            node.write(count)
        ring.path.unlink()
        node.start(KILLED)
        for count in (15, 15):
            node.write(count)
        node.write(15, drained=False)
        node.ring.cells[STATE] = STATE_CRASHED
        (root / "ring").write_bytes(node.ring.path.read_bytes())
        node.ring.path.unlink()
        node.end()
    return root


def again(small: Path, root: Path, file: Path, damage: Damage | None) -> Node:
    """The agent starts after the damage, with what is left in memory."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(small, root)
    if damage is not None:
        apply(root / file, damage)
    rings = StateDir(root / "state").rings
    rings.hold()
    (rings.path_of(KILLED)).write_bytes((root / "ring").read_bytes())
    rings.release()
    return Node(root)


def check(node: Node, directory: Path, what: str) -> None:
    """What was collected is what was written, or says what it lacks."""
    try:
        traces = node.collect(directory)
    except TraceError:
        return  # told: the node counts as one that could not be read
    assert {each.boot for each in traces.of("a")} == set(WRITTEN), what
    for each in traces.of("a"):
        trail, found = Trail(each.boot, end=each.first), list[tuple[int, bool, int]]()
        for path in each.segments():
            for record in unpack_records(bodies(trail.follow(path.read_bytes()))):
                if isinstance(record, Gap):
                    found.append((record.seq, True, record.dropped))
                elif isinstance(record, Load):
                    found.append((record.seq, False, 0))
            assert not trail.flaws, (what, trail.flaws)
        numbers = [seq for seq, gap, _ in found if not gap]
        assert numbers == sorted(set(numbers)) and set(numbers) <= set(range(WRITTEN[each.boot])), what
        gaps = [many for _, gap, many in found if gap]
        told = 0 in gaps or each.first + len(numbers) + sum(gaps) >= WRITTEN[each.boot]
        assert trail.sealed and told, (what, each.boot, numbers, gaps)
        if each.boot == CUT:
            assert 0 in gaps, what
        assert each.entry()["records"] == len(found), what


FILES = pytest.mark.parametrize("sample", [6, pytest.param(None, marks=pytest.mark.soak)])


@FILES
def test_one_damaged_file_is_found_and_the_rest_goes_on(small: Path, tmp_path: Path, sample: int | None) -> None:
    state = small / "state"
    empty = ("lock", "reserve")  # nothing reads what is in them
    files = [path.relative_to(small) for path in sorted(state.rglob("*")) if path.is_file() and path.name not in empty]
    assert len(files) == 2 + 4 + 3 + 3
    highest = 0
    for file in files:
        for number, damage in enumerate(damages(small / file, sample)):
            node = again(small, tmp_path / "again", file, damage)
            try:
                assert node.state.starts.count >= 3, damage.what
                check(node, tmp_path / "again" / ("run", "new")[number % 2], damage.what)
                found = [each for each in node.problems if f"{CUT:016x} has neither" not in each]
                assert found or file.parent.name == f"{CUT:016x}", damage.what
                node.start(0xE4)
                highest = max(highest, node.state.starts.count)
            finally:
                for path in node.state.rings.paths():
                    path.unlink()
                node.end()
    assert highest >= 4


def test_nothing_damaged_nothing_found(small: Path, tmp_path: Path) -> None:
    node = again(small, tmp_path / "again", Path(), None)
    assert len(node.problems) == 1 and f"{CUT:016x} has neither" in node.problems[0]
    check(node, tmp_path / "again/run", "sound")
    node.end()
