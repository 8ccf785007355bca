"""The count of starts: after any damage to its files it never comes back to a number that was given out."""

import errno
import os
from pathlib import Path

import pytest

from node_agent.host.files import reserve as reserve_file
from node_agent.host.files.starts import FILES, FRESH, MARGIN
from node_agent.host.files.state_dir import StateDir
from node_agent.host.system_disk import SystemDisk
from node_agent.host.trace_ring import Ring
from protos.records import Header, pack_header


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on the disk when the power goes is not looked at here, and a busy disk takes its time."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def start(root: Path) -> tuple[int, StateDir]:
    """An agent that starts a runtime, which leaves what it would, and ends. The count."""
    state = StateDir(root)
    state.lock()
    count = state.starts.count + 1
    header = Header("a", 0, count, "clock", 50, 1, 2, 0, count)
    state.starts.add(header)
    directory = state.spool / f"{count:016x}"
    directory.mkdir()
    (directory / "freed").write_bytes(pack_header(header))
    state.rings.tidy()
    state.unlock()
    return count, state


def test_it_counts_from_one(tmp_path: Path) -> None:
    assert [start(tmp_path)[0] for _ in range(4)] == [1, 2, 3, 4]
    assert list(start(tmp_path)[1].starts.headers) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("which", FILES)
def test_any_change_of_a_file_is_seen_and_the_count_goes_on(tmp_path: Path, which: str) -> None:
    given = [start(tmp_path)[0] for _ in range(2)]
    path = tmp_path / which
    sound = path.read_bytes()
    changes = [sound[:at] for at in range(0, len(sound), 97)]
    changes += [sound[:at] + bytes([sound[at] ^ 1 << at % 8]) + sound[at + 1 :] for at in range(0, len(sound), 41)]
    for changed in (*changes, b"0\n", b"7", b'{"starts": 0}', None):
        if changed is None:
            path.unlink()
        else:
            path.write_bytes(changed)
        count, state = start(tmp_path)
        given.append(count)
        assert len(state.starts.problems) == 1 and str(path) in state.starts.problems[0], changed
        assert path.read_bytes() == (tmp_path / FILES[0]).read_bytes(), "mended"
        assert (tmp_path / f"{which}.damaged").exists() is (changed is not None or len(given) > 3)
    assert given == list(range(1, len(given) + 1))
    assert start(tmp_path)[1].starts.problems == []


def test_on_a_full_disk_the_reserve_has_room_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, reserve = [start(tmp_path)[0]], tmp_path / "plans" / reserve_file.FILE
    assert reserve.stat().st_size == reserve_file.BYTES, "before any plan is there"

    replace = SystemDisk.replace

    def full(disk: SystemDisk, path: Path, data: bytes) -> None:
        if reserve.exists() or nowhere:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(disk, path, data)

    nowhere = False
    monkeypatch.setattr(SystemDisk, "replace", full)
    for _ in range(3):
        count, state = start(tmp_path)
        given.append(count)
        assert state.reserve.taken and reserve.stat().st_size == reserve_file.BYTES, "it is there for the next time"
    nowhere, state = True, StateDir(tmp_path)
    state.lock()
    with pytest.raises(OSError, match="No space left"):
        state.starts.add(Header("a", 0, 5, "clock", 50, 1, 2, 0, 5))
    state.rings.tidy()
    state.unlock()
    nowhere = False
    assert given == [1, 2, 3, 4] and start(tmp_path)[0] == 5


def test_set_back_it_goes_on_behind_what_the_traces_tell(tmp_path: Path) -> None:
    start(tmp_path)
    old = (tmp_path / FILES[0]).read_bytes()
    for _ in range(3):
        start(tmp_path)
    for name in FILES:
        (tmp_path / name).write_bytes(old)
    count, state = start(tmp_path)
    assert count == 5 and "the spool start 4" in state.starts.problems[0]


@pytest.mark.parametrize("content", [b"0\n", None])
def test_without_both_files_it_goes_on_behind_the_traces_in_the_spool_and_in_memory(
    tmp_path: Path, content: bytes | None
) -> None:
    for _ in range(3):
        count, state = start(tmp_path)
    state.rings.hold()
    Ring.create(state.rings.path_of(9), Header("a", 0, 9, "clock", 50, 1, 2, 0, 7), 8).close()
    for name in FILES:
        (tmp_path / name).unlink()
        if content is not None:
            (tmp_path / name).write_bytes(content)
    state.rings.release()
    count, state = start(tmp_path)
    assert count == 7 + MARGIN + 1 and "on from" in state.starts.problems[-1]
    for path in state.rings.paths():
        path.unlink()
    state.rings.tidy()


def test_where_nothing_is_left_it_goes_on_far_from_where_it_began(tmp_path: Path) -> None:
    counts = set()
    for _ in range(3):
        for _ in range(2):
            count, state = start(tmp_path)
            counts.add(count & 0xFFFF)
        for name in FILES:
            (tmp_path / name).unlink()
        for path in state.spool.glob("*/*"):
            path.unlink()
    assert len(counts) == 6 and sorted(counts)[:2] == [1, 2] and sorted(counts)[2] >= FRESH
