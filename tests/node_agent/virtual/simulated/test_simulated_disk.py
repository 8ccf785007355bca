"""The simulated disk against a small model of what must be there after a loss of power and of what may be."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.simulated_disk import BLOCK_BYTES, SimulatedDisk, Speed
from node_agent.virtual.simulated.unsynced import SECTOR_BYTES, Fate
from tests.sampling import examples

FOLDER = Path("/d")
A, B, C = (FOLDER / name for name in "abc")
FATES = [(content, entries) for content in (*Fate, None) for entries in (*Fate, None)]


class Model:
    """Of a folder of files: by file the contents that it had since its last sync, the first one being what is on the
    disk; by name the files that it was the name of since the folder's last sync (None: of none)."""

    def __init__(self) -> None:
        self.contents: list[list[bytes]] = []
        self.names: dict[Path, list[int | None]] = {path: [None] for path in (A, B, C)}

    def file(self, path: Path) -> int:
        """Made where it is not there."""
        if self.names[path][-1] is None:
            self.contents.append([b""])
            self.names[path].append(len(self.contents) - 1)
        found = self.names[path][-1]
        assert found is not None
        return found

    def write(self, path: Path, at: int, data: bytes) -> None:
        versions = self.contents[self.file(path)]
        before = versions[-1].ljust(at, b"\0")
        versions.append(before[:at] + data + before[at + len(data) :])

    def truncate(self, path: Path, size: int) -> None:
        versions = self.contents[self.file(path)]
        versions.append(versions[-1][:size].ljust(size, b"\0"))

    def rename(self, old: Path, new: Path) -> None:
        found = self.names[old][-1]
        self.names[old].append(None)
        self.names[new].append(found)

    def sync(self, path: Path) -> None:
        if path == FOLDER:
            for each in self.names.values():
                del each[:-1]
        elif (found := self.names[path][-1]) is not None:
            del self.contents[found][:-1]

    def seen(self, path: Path) -> bytes | None:
        found = self.names[path][-1]
        return None if found is None else self.contents[found][-1]

    def may_be(self, path: Path, content: bytes | None) -> bool:
        """After a loss of power."""
        files = self.names[path]
        return any(
            content is None if file is None else content is not None and _may_be(self.contents[file], content)
            for file in files
        )

    def lost_power(self, found: dict[Path, bytes | None]) -> None:
        """What is there is on the disk."""
        self.contents = [[each] for each in found.values() if each is not None]
        numbers = iter(range(len(self.contents)))
        self.names = {path: [None if each is None else next(numbers)] for path, each in found.items()}


def _may_be(versions: list[bytes], content: bytes) -> bool:
    """Each byte is one that was there, or a zero where there was none; without changes nothing is different."""
    if len(versions) == 1:
        return content == versions[0]
    shortest = min(map(len, versions))
    return len(content) <= max(map(len, versions)) and all(
        byte in {each[at] for each in versions if at < len(each)} or (byte == 0 and at >= shortest)
        for at, byte in enumerate(content)
    )


paths = st.sampled_from([A, B, C])
sizes = st.integers(0, 1400)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), paths, sizes, st.integers(0, 900), st.integers(1, 255)),
        st.tuples(st.just("replace"), paths, sizes, st.integers(1, 255)),
        st.tuples(st.just("truncate"), paths, sizes),
        st.tuples(st.just("rename"), paths, paths),
        st.tuples(st.just("remove"), paths),
        st.tuples(st.just("sync"), st.sampled_from([A, B, C, FOLDER, FOLDER])),
        st.tuples(st.just("cut"), st.sampled_from(FATES)),
    ),
    max_size=30,
)


def run(seed: int, given_steps: list[tuple]) -> tuple[SimulatedDisk, Model]:  # type: ignore[type-arg]
    disk, model = SimulatedDisk(Draws(seed)), Model()
    disk.make_folder(FOLDER)
    disk.sync((Path("/"),))
    for name, *arguments in given_steps:
        match name, *arguments:
            case "write", path, at, size, byte:
                disk.write(path, bytes([byte]) * size, at)
                model.write(path, at, bytes([byte]) * size) if size else model.file(path)
            case "replace", path, size, byte:
                disk.replace(path, bytes([byte]) * size)
                model.contents.append([bytes([byte]) * size])
                model.names[path].append(len(model.contents) - 1)
                model.sync(FOLDER)
            case "truncate", path, size if model.seen(path) is not None:
                disk.truncate(path, size)
                model.truncate(path, size)
            case "rename", old, new if old != new and model.seen(old) is not None:
                disk.rename(old, new)
                model.rename(old, new)
            case "remove", path if model.seen(path) is not None:
                disk.remove(path)
                model.names[path].append(None)
            case "sync", path:
                disk.sync((path,))
                model.sync(path)
            case "cut", (content, entries):
                disk.lose_power(content, entries)
                found = {path: disk.read(path) if disk.exists(path) else None for path in (A, B, C)}
                assert all(model.may_be(path, each) for path, each in found.items())
                model.lost_power(found)
        seen = {path: disk.read(path) if disk.exists(path) else None for path in (A, B, C)}
        assert seen == {path: model.seen(path) for path in (A, B, C)}, "without a loss of power all is there"
    return disk, model


@settings(max_examples=examples(300, 4), deadline=None)
@given(seed=st.integers(0, 2**32), given_steps=steps)
def test_what_was_synced_stays_and_nothing_is_there_that_never_was(seed: int, given_steps: list) -> None:  # type: ignore[type-arg]
    run(seed, given_steps)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), given_steps=steps)
def test_the_same_seed_leaves_the_same_bytes(seed: int, given_steps: list) -> None:  # type: ignore[type-arg]
    one, other = (run(seed, given_steps)[0] for _ in range(2))
    assert [(path, one.read(path)) for path in one.entries(FOLDER)] == [
        (path, other.read(path)) for path in other.entries(FOLDER)
    ]
    assert one.fired == other.fired


def left(change: Callable[[SimulatedDisk], None], seeds: int = 200) -> set[tuple[bytes | None, ...]]:
    """Of A and B, after `change` on a disk that has 1 KiB of x in A, and a loss of power."""
    found = set()
    for seed in range(seeds):
        disk = SimulatedDisk(Draws(seed))
        disk.make_folder(FOLDER)
        disk.write(A, b"x" * 1024, 0)
        disk.sync((A, FOLDER, Path("/")))
        change(disk)
        disk.lose_power()
        found.add(tuple(disk.read(path) if disk.exists(path) else None for path in (A, B)))
    return found


def test_a_rename_is_there_or_not_and_loses_no_file() -> None:
    assert left(lambda disk: disk.rename(A, B)) == {(b"x" * 1024, None), (None, b"x" * 1024)}


def test_what_was_written_over_may_be_old_and_new_sector_by_sector() -> None:
    found = {content for content, _ in left(lambda disk: disk.write(A, b"y" * 1024, 0)) if content is not None}
    old, new = b"x" * SECTOR_BYTES, b"y" * SECTOR_BYTES
    assert {old + old, old + new, new + old, new + new} < found, "and torn within one"
    assert all(set(each) <= set(b"xy") and len(each) == 1024 for each in found)


def test_a_new_file_may_be_missing_empty_short_or_full_of_zeros() -> None:
    found = {content for _, content in left(lambda disk: disk.write(B, b"y" * 1024, 0))}
    assert {None, b"", bytes(1024), b"y" * 1024, bytes(SECTOR_BYTES) + b"y" * SECTOR_BYTES} <= found


def test_a_synced_file_without_a_synced_name_may_be_missing() -> None:
    def change(disk: SimulatedDisk) -> None:
        disk.write(B, b"y", 0)
        disk.sync((B,))

    assert left(change) == {(b"x" * 1024, None), (b"x" * 1024, b"y")}


def test_on_a_full_disk_a_write_is_cut_back_and_what_goes_makes_room() -> None:
    disk = SimulatedDisk(Draws(1))
    disk.make_folder(FOLDER)
    disk.write(A, b"a" * BLOCK_BYTES, 0)
    disk.faults.room_bytes = BLOCK_BYTES
    with pytest.raises(OSError) as full:
        disk.write(A, b"b" * (BLOCK_BYTES + 1), BLOCK_BYTES)
    assert full.value.errno == errno.ENOSPC and disk.read(A) == b"a" * BLOCK_BYTES
    with pytest.raises(OSError):
        disk.replace(A, b"c" * (BLOCK_BYTES + 1))
    assert disk.read(A) == b"a" * BLOCK_BYTES and disk.entries(FOLDER) == [A], "no temporary file is left"
    disk.allocate(B, BLOCK_BYTES)
    assert disk.free_bytes(FOLDER) == 0
    with pytest.raises(OSError):
        disk.allocate(C, 1)
    disk.remove(B)
    disk.replace(A, b"c" * BLOCK_BYTES)
    assert disk.read(A) == b"c" * BLOCK_BYTES and disk.free_bytes(FOLDER) == BLOCK_BYTES
    assert disk.fired["full"] == 3


def test_a_disk_that_is_read_only_can_be_read() -> None:
    disk = SimulatedDisk(Draws(1))
    disk.make_folder(FOLDER)
    disk.replace(A, b"a")
    disk.faults.read_only = True
    changes: tuple[Callable[[], object], ...] = (
        lambda: disk.write(A, b"b", 0), lambda: disk.replace(A, b"b"), lambda: disk.remove(A),
        lambda: disk.rename(A, B), lambda: disk.truncate(A, 0), lambda: disk.allocate(A, 9),
        lambda: disk.make_folder(FOLDER / "e"),
    )  # fmt: skip
    for change in changes:
        with pytest.raises(OSError) as refused:
            change()
        assert refused.value.errno == errno.EROFS
    assert disk.read(A) == b"a" and disk.fired["read_only"] == len(changes) + 1, "to take the temporary file away"


def test_errors_come_as_often_as_they_were_asked_for_and_change_nothing() -> None:
    disk, failed = SimulatedDisk(Draws(3)), 0
    disk.make_folder(FOLDER)
    disk.write(A, b"", 0)
    disk.faults.error_share, good = 0.3, b""
    for _ in range(1000):
        try:
            disk.write(A, b"x", len(good))
            good += b"x"
        except OSError as error:
            assert error.errno == errno.EIO
            failed += 1
    disk.faults.error_share = 0.0
    assert disk.read(A) == good and 250 < failed < 350 and disk.fired["io_error"] == failed


def test_a_bit_rots_and_stays_rotten() -> None:
    disk = SimulatedDisk(Draws(1))
    disk.make_folder(FOLDER)
    assert disk.rot() is None
    disk.replace(A, bytes(100))
    disk.sync((Path("/"),))
    assert disk.rot() == A and disk.rot(B) is None
    rotten = disk.read(A)
    disk.lose_power(Fate.LOST, Fate.LOST)
    assert disk.read(A) == rotten and sum(each.bit_count() for each in rotten) == 1


def test_each_call_takes_its_time_and_is_told_before_it_changes_anything() -> None:
    disk, spent, told = SimulatedDisk(Draws(1)), list[int](), list[str]()
    disk.make_folder(FOLDER)
    disk.speed, disk.spend = Speed(call_ns=1, sync_ns=100, mebibyte_ns=1 << 20), spent.append
    disk.before_step = lambda step, path: told.append(step)
    disk.replace(A, b"x" * 5)
    assert told == ["write_new", "sync", "rename", "sync"] and spent == [6, 101, 1, 101]

    class Dead(BaseException):
        pass

    def dead(step: str, path: Path) -> None:
        raise Dead

    disk.before_step = dead
    with pytest.raises(Dead):
        disk.write(A, b"y", 0)
    assert disk.read(A) == b"x" * 5
