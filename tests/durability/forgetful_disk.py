"""A disk that forgets what was not synced, as one is found after a loss of power."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

Names = dict[str, int]  # of a folder, with their inodes


@dataclass
class Disk:
    """What fsync has brought to the disk below `root`, by inode. What is there when a Disk begins is on it already.

    Without fsync anything may happen to a name: a file system may write it at any time, so both are tried, that none of
    the new names is there and that all are. Content that was not synced never is: a file that has none is empty.
    """

    root: Path
    contents: dict[int, bytes] = field(default_factory=dict)
    folders: dict[int, Names] = field(default_factory=dict)
    left: list[Path] = field(default_factory=list)  # of every loss of power that was tried, in order
    held: list[int] = field(default_factory=list)  # so that no inode is given out again
    places: Iterator[int] = field(default_factory=count)

    def begin(self) -> None:
        """All that there is."""
        for folder, _, files in os.walk(self.root):
            for path in (Path(folder), *(Path(folder, name) for name in files)):
                self._keep(path)

    def fsync(self, descriptor: int) -> None:
        """In place of the kernel's; just before it the power may go, and just after it."""
        self.lose_power()
        self.keep(descriptor)
        self.lose_power()

    def keep(self, descriptor: int) -> None:
        """As `fsync`, where the power stays."""
        self._keep(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    def _keep(self, path: Path) -> None:
        inode = self._inode(path)
        if path.is_dir():
            self.folders[inode] = {each.name: self._inode(each) for each in path.iterdir()}
        else:
            self.contents[inode] = path.read_bytes()

    def _inode(self, path: Path) -> int:
        self.held.append(os.open(path, os.O_RDONLY))
        return os.fstat(self.held[-1]).st_ino

    def lose_power(self) -> None:
        """Two copies of the tree, as they may be found afterwards."""
        for all_names in (False, True):
            copy = self.root.with_name(f"{self.root.name}.{next(self.places)}")
            copy.mkdir()
            self._restore(self._inode(self.root), self.root, copy, all_names)
            self.left.append(copy)

    def _restore(self, inode: int, now: Path | None, copy: Path, all_names: bool) -> None:
        names = self.folders.get(inode, {})
        if all_names and now is not None:
            names = {each.name: self._inode(each) for each in now.iterdir()}
        for name, child in names.items():
            path = None if now is None else now / name
            same = path if path is not None and path.exists() and self._inode(path) == child else None
            if child in self.folders or (same is not None and same.is_dir()):
                (copy / name).mkdir()
                self._restore(child, same, copy / name, all_names)
            else:
                (copy / name).write_bytes(self.contents.get(child, b""))

    def close(self) -> None:
        """Forget the inodes."""
        for descriptor in self.held:
            os.close(descriptor)
