"""Rings in memory: what agents leave there is removed, by them or by the next one, and nobody else's."""

import os
import shutil
from pathlib import Path

import pytest

from node_agent import state_dir
from node_agent.ring import Ring
from node_agent.state_dir import MOST_RINGS, StateDir
from protos import records
from tests.node_agent.live import Agent

HEADER = records.Header("a", 0, 7, "clock", 50, 1, 2)


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in place of /dev/shm."""
    monkeypatch.setattr(state_dir, "MEMORY", tmp_path / "memory")
    (tmp_path / "memory").mkdir()
    return tmp_path / "memory"


def _killed(root: Path, rings: int) -> StateDir:
    """The state of an agent that was killed with that many rings."""
    state = StateDir(root)
    state.lock()
    for boot in range(1, rings + 1):
        Ring.create(state.ring_path(boot), HEADER, 8).close()
    state.unlock()
    return state


def test_an_agent_that_ends_leaves_nothing(memory: Path, tmp_path: Path) -> None:
    state = StateDir(tmp_path / "s")
    state.lock()
    assert state.rings.exists()
    state.tidy()
    assert list(memory.iterdir()) == []


def test_rings_that_were_not_drained_stay_at_the_end(memory: Path, tmp_path: Path) -> None:
    state = _killed(tmp_path / "s", 1)
    state.tidy()
    assert len(state.ring_paths()) == 1 and (state.rings / "of").exists()


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
    assert state.sweep() == 2
    assert not gone.rings.exists() and not empty.rings.exists()
    assert len(waiting.ring_paths()) == 1 and len(alive.ring_paths()) == 2 and state.rings.exists()
    assert (memory / "shimekiri-foreign/x.ring").exists() and (memory / "other").exists()


def test_a_directory_that_is_removed_while_an_agent_takes_it_is_made_again(
    memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, real, times = StateDir(tmp_path / "s"), os.open, [2]

    def beaten(path: object, *arguments: int, **more: int) -> int:
        descriptor = real(path, *arguments, **more)  # type: ignore[arg-type]
        if path == state.rings and times[0]:
            times[0] -= 1
            state.rings.rmdir()
        return descriptor

    monkeypatch.setattr(state_dir.os, "open", beaten)
    state.lock()
    assert times == [0] and (state.rings / "of").exists()
    other = StateDir(tmp_path / "t")
    assert other.sweep() == 0


def test_rings_that_nobody_drains_do_not_pile_up(memory: Path, tmp_path: Path) -> None:
    state = StateDir(tmp_path / "s")
    state.lock()
    for boot in range(1, 3 * MOST_RINGS):
        state.make_room()
        Ring.create(state.ring_path(boot), HEADER, 8).close()
        os.utime(state.ring_path(boot), ns=(boot, boot))
    assert [int(path.stem, 16) for path in state.ring_paths()] == list(range(2 * MOST_RINGS, 3 * MOST_RINGS))


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
        assert len(list(rings.glob("*.ring"))) == 1
        assert agent.stop() == 0
    assert not rings.exists()
