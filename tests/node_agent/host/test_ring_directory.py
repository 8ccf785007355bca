"""Rings in memory: what agents leave there is removed, by them or by the next one, and nobody else's."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from node_agent.host import ring_directory
from node_agent.host.files.state_dir import StateDir
from node_agent.host.ring_directory import MOST_RINGS
from node_agent.host.trace_ring import Ring
from protos import records
from tests.node_agent.live import Agent

HEADER = records.Header("a", 0, 7, "clock", 50, 1, 2)


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in place of /dev/shm."""
    monkeypatch.setattr(ring_directory, "MEMORY", tmp_path / "memory")
    (tmp_path / "memory").mkdir()
    return tmp_path / "memory"


def _killed(root: Path, rings: int) -> StateDir:
    """The state of an agent that was killed with that many rings."""
    state = StateDir(root)
    state.lock()
    for boot in range(1, rings + 1):
        Ring.create(state.rings.path_of(boot), HEADER, 8).close()
    state.unlock()
    return state


def test_an_agent_that_ends_leaves_nothing(memory: Path, tmp_path: Path) -> None:
    state = StateDir(tmp_path / "s")
    state.lock()
    assert state.rings.path in memory.iterdir()
    state.rings.tidy()
    assert list(memory.iterdir()) == []


def test_rings_that_were_not_drained_stay_at_the_end(memory: Path, tmp_path: Path) -> None:
    state = _killed(tmp_path / "s", 1)
    state.rings.tidy()
    assert len(state.rings.paths()) == 1 and _of(state).exists()


def test_what_the_dead_left_is_removed_unless_their_agent_may_come_again(memory: Path, tmp_path: Path) -> None:
    gone, empty, waiting, alive = (
        _killed(tmp_path / name, rings) for name, rings in zip("gewa", (2, 0, 1, 2), strict=True)
    )
    shutil.rmtree(gone.root)
    alive.lock()
    shutil.rmtree(alive.root)  # it runs all the same
    (memory / "shimekiri-foreign").mkdir()
    (memory / "shimekiri-foreign" / "x.ring").write_bytes(b"")  # nobody knows whose
    (memory / "other").mkdir()
    state = StateDir(tmp_path / "s")
    state.lock()
    assert state.rings.sweep() == 2
    assert gone.rings.path is None and empty.rings.path is None
    assert len(waiting.rings.paths()) == 1 and len(alive.rings.paths()) == 2 and state.rings.path is not None
    assert (memory / "shimekiri-foreign/x.ring").exists() and (memory / "other").exists()


def test_a_directory_that_is_removed_while_an_agent_takes_it_is_made_again(
    memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, real, times = StateDir(tmp_path / "s"), os.open, [2]

    def beaten(path: object, *arguments: int, **more: int) -> int:
        descriptor = real(path, *arguments, **more)  # type: ignore[arg-type]
        if isinstance(path, Path) and path.parent == memory and times[0]:
            times[0] -= 1
            path.rmdir()
        return descriptor

    monkeypatch.setattr(ring_directory.os, "open", beaten)
    state.lock()
    assert times == [0] and _of(state).exists()
    other = StateDir(tmp_path / "t")
    assert other.rings.sweep() == 0


def test_rings_that_nobody_drains_do_not_pile_up(memory: Path, tmp_path: Path) -> None:
    state = StateDir(tmp_path / "s")
    state.lock()
    for boot in range(1, 3 * MOST_RINGS):
        state.rings.make_room()
        Ring.create(state.rings.path_of(boot), HEADER, 8).close()
        os.utime(state.rings.path_of(boot), ns=(boot, boot))
    assert [int(path.stem, 16) for path in state.rings.paths()] == list(range(2 * MOST_RINGS, 3 * MOST_RINGS))


def test_a_ring_that_memory_has_no_room_for_is_an_error_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        Ring.create(tmp_path / "r.ring", HEADER)
    assert list(tmp_path.iterdir()) == []


def test_a_ring_is_not_seen_before_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control looks at any moment, and what it cannot read it gives up for good."""
    seen: list[str] = []
    fill = os.posix_fallocate

    def looked_at(*arguments: int) -> None:
        seen.extend(path.name for path in tmp_path.glob("*.ring"))
        fill(*arguments)

    monkeypatch.setattr("os.posix_fallocate", looked_at)
    ring = Ring.create(tmp_path / "r.ring", HEADER, 8)
    assert seen == [] and [path.name for path in tmp_path.iterdir()] == ["r.ring"]
    assert Ring.open(ring.path).header == HEADER


def test_a_real_agent_leaves_no_ring_directory(tmp_path: Path) -> None:
    with Agent(tmp_path / "s") as agent:
        rings = StateDir(tmp_path / "s").rings
        assert len(rings.paths()) == 1
        assert agent.stop() == 0
    assert rings.path is None


def _of(state: StateDir) -> Path:
    assert state.rings.path is not None
    return state.rings.path / "of"


def test_a_name_that_was_seen_once_is_not_used_again(memory: Path, tmp_path: Path) -> None:
    names = set()
    for _ in range(3):
        state = StateDir(tmp_path / "s")
        state.lock()
        names.add(state.rings.path)
        state.rings.tidy()
        state.unlock()
    assert len(names) == 3


@pytest.mark.parametrize("others", ["link", "open to all", "of another user"])
def test_what_another_user_puts_there_is_neither_used_nor_written_to(
    memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: str
) -> None:
    root, victim = (tmp_path / "s").resolve(), tmp_path / "victim"
    victim.mkdir(mode=0o700)
    precious = {"of": os.fsencode(root), f"{7:016x}.ring": b"precious"}
    for name, content in precious.items():
        (victim / name).write_bytes(content)
    for name in (f"shimekiri-{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}", "shimekiri-0"):
        if others == "link":
            (memory / name).symlink_to(victim)
        else:
            shutil.copytree(victim, memory / name)
            (memory / name).chmod(0o777 if others == "open to all" else 0o700)
    owner = os.geteuid()
    if others == "of another user":
        monkeypatch.setattr(ring_directory.os, "geteuid", lambda: owner + 1)
        assert ring_directory.RingDirectory(root).paths() == []
        assert ring_directory.RingDirectory(tmp_path / "other").sweep() == 0
    else:
        state = StateDir(root)
        state.lock()
        assert state.rings.paths() == [] and state.rings.sweep() == 0
        ring = Ring.create(state.rings.path_of(7), HEADER, 8)
        assert ring.path.parent.stat().st_mode & 0o777 == 0o700 and ring.path.stat().st_mode & 0o777 == 0o600
    for directory in (victim, *memory.glob("shimekiri-0")):
        assert {path.name: path.read_bytes() for path in directory.iterdir()} == precious


def test_links_in_place_of_rings_and_of_their_parts_are_not_followed(memory: Path, tmp_path: Path) -> None:
    state, victim = StateDir(tmp_path / "s"), tmp_path / "victim"
    state.lock()
    Ring.create(victim, HEADER, 8).close()
    before, path = victim.read_bytes(), state.rings.path_of(1)
    for link in (path, path.with_suffix(".partial")):
        link.symlink_to(victim)
        with pytest.raises(OSError):
            Ring.open(path)
        with pytest.raises(FileExistsError):
            Ring.create(path, HEADER, 8)
        assert state.rings.mark_abandoned() == 0
    assert victim.read_bytes() == before


def test_where_others_may_rename_it_memory_is_not_used(memory: Path, tmp_path: Path) -> None:
    memory.chmod(0o777)
    state = StateDir(tmp_path / "s")
    state.lock()
    assert state.rings.path == tmp_path / "s/rings" and list(memory.iterdir()) == []
