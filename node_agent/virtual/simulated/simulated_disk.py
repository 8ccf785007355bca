"""A disk that loses what was not synced when the power goes, and has the other faults that disks have."""

import errno
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from node_agent.host import replacing
from node_agent.virtual.random_draws import Draws
from node_agent.virtual.simulated.unsynced import Fate, File, Folder, Node

BLOCK_BYTES = 4096  # room is given in these
WRITES = frozenset({"write_new", "write", "truncate", "allocate", "rename", "remove", "make_folder", "sync"})
TEXTS = {
    errno.ENOENT: "No such file or directory", errno.EIO: "Input/output error", errno.EEXIST: "File exists",
    errno.ENOTDIR: "Not a directory", errno.EISDIR: "Is a directory", errno.ENOSPC: "No space left on device",
    errno.EROFS: "Read-only file system", errno.ENOTEMPTY: "Directory not empty",
    errno.EXDEV: "Invalid cross-device link",
}  # fmt: skip


class Speed(NamedTuple):
    """How long a call takes: each of them, a sync besides, and per MiB that it moves [ns]."""

    call_ns: int = 0
    sync_ns: int = 0
    mebibyte_ns: int = 0


@dataclass(slots=True)
class Faults:
    """Those that are on. error_share: of the calls that end with EIO; room_bytes: that are left, None: enough."""

    read_only: bool = False
    error_share: float = 0.0
    room_bytes: int | None = None


class SimulatedDisk:
    """`ports.Disk` of one simulated machine. The same calls and the same draws leave the same bytes.

    faults: to be switched on and off. speed: of each call. fired: how often each fault came up.
    before_step: called before anything is changed, with the step's name and its path; a process that is dead, or a
    machine without power, is stopped by what it raises. after_write: the same, when a write has been done and before
    its call returns. spend: called with the time that a call takes [ns].
    """

    def __init__(self, draws: Draws) -> None:
        """An empty one."""
        self.faults, self.speed, self.fired = Faults(), Speed(), Counter[str]()
        self.before_step: Callable[[str, Path], None] = _nothing
        self.after_write: Callable[[Path], None] = _nowhere
        self.spend: Callable[[int], None] = _no_time
        self._draws, self._root, self._calls = draws, Folder(), 0

    # -- faults

    def lose_power(self, content: Fate | None = None, entries: Fate | None = None) -> None:
        """What was not synced has one fate or another; content, entries: of all files, of all folders; by default the
        draws say so for each. What is left is on the disk."""
        self.fired["power_cut"] += 1
        used = self._used()
        self._settle(self._root, content, entries)
        if self.faults.room_bytes is not None:
            self.faults.room_bytes = max(0, self.faults.room_bytes + used - self._used())

    def rot(self, path: Path | None = None) -> Path | None:
        """Flip a bit of a file, or of any of them. Returns which; None: there is no byte."""
        paths = [each for each, node in self._files(Path("/"), self._root) if node.content and path in (None, each)]
        if not paths:
            return None
        found = paths[self._draws.below(len(paths))]
        node = self._file(found)
        node.rot(self._draws.below(8 * len(node.content)))
        self.fired["bit_rot"] += 1
        return found

    def copy(self, draws: Draws) -> "SimulatedDisk":
        """As it is now, without hooks and faults: to see what a loss of power would leave."""
        other = SimulatedDisk(draws)
        other._root, other._calls = deepcopy(self._root), self._calls
        return other

    def restore(self, copy: "SimulatedDisk") -> None:
        """What it had when that copy was made: somebody has put it back."""
        self._root = deepcopy(copy._root)
        self.fired["restored"] += 1

    # -- reading

    def read(self, path: Path, most: int | None = None) -> bytes:
        """As processes see it."""
        node = self._file(path)
        data = bytes(node.content if most is None else node.content[:most])
        self._begin("read", path, len(data))
        return data

    def entries(self, folder: Path) -> list[Path]:
        """Sorted."""
        self._begin("entries", folder)
        return [folder / name for name in sorted(self._folder(folder).entries)]

    def exists(self, path: Path) -> bool:
        """File or folder."""
        return self._find(path) is not None

    def size(self, path: Path) -> int:
        """In bytes."""
        return len(self._file(path).content)

    def modified_ns(self, path: Path) -> int:
        """The number of the call that wrote it last."""
        return self._file(path).written

    def age_ns(self, path: Path) -> int:
        """It has no clock."""
        self._file(path)
        return 0

    def free_bytes(self, folder: Path) -> int:
        """Much, where there is no limit."""
        self._folder(folder)
        return 1 << 40 if self.faults.room_bytes is None else self.faults.room_bytes

    # -- writing

    def replace(self, path: Path, data: bytes) -> None:
        """In the steps of the real one."""
        replacing.replace(self, path, data)

    def write_new(self, path: Path, data: bytes) -> None:
        """For `replace`."""
        self._begin("write_new", path, len(data))
        node = self._open(path)
        self._resize(node, 0)
        self._write(node, path, data, 0)

    def write(self, path: Path, data: bytes, at: int) -> None:
        """Cut back where there is no room for all of it."""
        self._begin("write", path, len(data))
        node = self._open(path)
        try:
            self._write(node, path, data, at)
        except OSError:
            self._resize(node, at)
            raise
        self.after_write(path)

    def truncate(self, path: Path, size: int) -> None:
        """Keep the first bytes."""
        self._begin("truncate", path)
        self._resize(self._file(path), size)

    def allocate(self, path: Path, size: int) -> None:
        """All of it or nothing."""
        self._begin("allocate", path)
        node = self._open(path)
        self._take_room(path, _blocks(size) - _room_of(node))
        node.allocated = max(node.allocated, _blocks(size))
        if len(node.content) < size:
            node.resize(size)

    def rename(self, old: Path, new: Path) -> None:
        """At one instant."""
        self._begin("rename", old)
        if old.parent != new.parent:
            raise _error(errno.EXDEV, old)
        folder, node = self._folder(old.parent), self._node(old)
        there = folder.entries.get(new.name)
        if isinstance(there, Folder) and there.entries:
            raise _error(errno.ENOTEMPTY, new)
        if there is not None and isinstance(there, Folder) != isinstance(node, Folder):
            raise _error(errno.EISDIR if isinstance(there, Folder) else errno.ENOTDIR, new)
        self._give_back(there)
        folder.put(new.name, node, old.name)

    def remove(self, path: Path) -> None:
        """A file."""
        self._begin("remove", path)
        self._give_back(self._file(path))
        self._folder(path.parent).remove(path.name)

    def remove_folder(self, path: Path) -> None:
        """A step for each name in it."""
        try:
            for each in self.entries(path):
                if isinstance(self._find(each), Folder):
                    self.remove_folder(each)
                else:
                    self.remove(each)
            self._begin("remove", path)
            self._folder(path.parent).remove(path.name)
        except OSError:
            return

    def make_folder(self, path: Path) -> bool:
        """And those above it."""
        found = self._find(path)
        if found is not None:
            if isinstance(found, File):
                raise _error(errno.EEXIST, path)
            return False
        self.make_folder(path.parent)
        self._begin("make_folder", path)
        self._folder(path.parent).put(path.name, Folder())
        return True

    def sync(self, paths: Iterable[Path]) -> None:
        """A step for each."""
        for path in paths:
            node = self._find(path)
            if node is not None:
                self._begin("sync", path)
                node.sync()

    # -- what they share

    def _begin(self, step: str, path: Path, moved: int = 0) -> None:
        """A call begins; what happens to it happens here. Raises OSError."""
        changes = step in WRITES
        if changes:
            self.before_step(step, path)
        self._calls += 1
        call_ns, sync_ns, mebibyte_ns = self.speed
        if ns := call_ns + (sync_ns if step == "sync" else 0) + (moved * mebibyte_ns >> 20):
            self.fired["slow"] += 1
            self.spend(ns)
        if changes and self.faults.read_only and step != "sync":
            self.fired["read_only"] += 1
            raise _error(errno.EROFS, path)
        if self.faults.error_share and self._draws.share() < self.faults.error_share:
            self.fired["io_error"] += 1
            raise _error(errno.EIO, path)

    def _write(self, node: File, path: Path, data: bytes, at: int) -> None:
        """As much as there is room for. Raises OSError where that is not all."""
        room, node.written = self.faults.room_bytes, self._calls
        if room is not None:
            fits = max(0, _room_of(node) + room - at)
            if fits < len(data):
                self.fired["full"] += 1
                self._grow(node, at + fits)
                node.write(at, data[:fits])
                raise _error(errno.ENOSPC, path)
            self._grow(node, at + len(data))
        node.write(at, data)

    def _grow(self, node: File, size: int) -> None:
        """It has room for so many bytes from now on."""
        if self.faults.room_bytes is not None:
            self.faults.room_bytes -= max(0, _blocks(size) - _room_of(node))
        node.allocated = max(node.allocated, _blocks(size))

    def _take_room(self, path: Path, size: int) -> None:
        room = self.faults.room_bytes
        if room is None or size <= 0:
            return
        if size > room:
            self.fired["full"] += 1
            raise _error(errno.ENOSPC, path)
        self.faults.room_bytes = room - size

    def _give_back(self, node: Node | None) -> None:
        if isinstance(node, File):
            self._resize(node, None)

    def _resize(self, node: File, size: int | None) -> None:
        """size: None: its name goes, and with it the room that it had."""
        if self.faults.room_bytes is not None:
            self.faults.room_bytes += max(0, _room_of(node) - _blocks(size or 0))
        node.allocated = min(node.allocated, _blocks(size or 0))
        if size is not None and size != len(node.content):
            node.resize(size)

    def _used(self) -> int:
        return sum(_room_of(node) for _, node in self._files(Path("/"), self._root))

    def _settle(self, node: Node, content: Fate | None, entries: Fate | None) -> None:
        if node.changes:
            given = content if isinstance(node, File) else entries
            fate = Fate(self._draws.below(len(Fate))) if given is None else given
            self.fired[f"{'content' if isinstance(node, File) else 'entries'}_{fate.name.lower()}"] += 1
            node.settle(fate, self._draws)
        if isinstance(node, Folder):
            for name in sorted(node.entries):
                self._settle(node.entries[name], content, entries)

    # -- paths

    def _find(self, path: Path) -> Node | None:
        node: Node | None = self._root
        for name in path.parts[1:]:
            node = node.entries.get(name) if isinstance(node, Folder) else None
        return node

    def _node(self, path: Path) -> Node:
        node = self._find(path)
        if node is None:
            above = self._find(path.parent)
            raise _error(errno.ENOTDIR if isinstance(above, File) else errno.ENOENT, path)
        return node

    def _file(self, path: Path) -> File:
        node = self._node(path)
        if isinstance(node, Folder):
            raise _error(errno.EISDIR, path)
        return node

    def _folder(self, path: Path) -> Folder:
        node = self._node(path)
        if isinstance(node, File):
            raise _error(errno.ENOTDIR, path)
        return node

    def _open(self, path: Path) -> File:
        """To write: made where it is not there."""
        if self._find(path) is None:
            self._folder(path.parent).put(path.name, File())
        return self._file(path)

    def _files(self, path: Path, folder: Folder) -> Iterator[tuple[Path, File]]:
        for name in sorted(folder.entries):
            node = folder.entries[name]
            if isinstance(node, Folder):
                yield from self._files(path / name, node)
            else:
                yield path / name, node


def _room_of(node: File) -> int:
    return max(node.allocated, _blocks(len(node.content)))


def _blocks(size: int) -> int:
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES


def _error(code: int, path: Path) -> OSError:
    return OSError(code, TEXTS[code], str(path))


def _nothing(step: str, path: Path) -> None:
    """No hook."""


def _nowhere(path: Path) -> None:
    """No hook."""


def _no_time(ns: int) -> None:
    """No clock."""
