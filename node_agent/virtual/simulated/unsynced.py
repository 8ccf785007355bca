"""What a disk has of files and folders between a change and its sync, and what a loss of power makes of it.

A file has content, a folder has entries. Each is there twice: as processes see it, and as it is on the disk; between
the two is a list of changes. Nothing but a sync orders changes: not those of a file and of the folder that it is in,
not those of two files. A sync of a file says nothing of its name, and one of a folder nothing of the folder above it.
Real file systems promise more, each something else (Pillai and others: All file systems are not created equal, OSDI
2014); what holds here holds on all of them. A rename is in the folder at one instant or not at all.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from node_agent.virtual.random_draws import Draws

SECTOR_BYTES = 512  # is on the disk as a whole or not at all


class Fate(IntEnum):
    """What becomes of the changes of one file or folder that were not synced."""

    LOST = 0
    KEPT = 1
    TORN = 2  # up to some point
    REORDERED = 3  # of each of them, sector by sector, the chance says whether it is there


class Write(NamedTuple):
    """Bytes from a place on."""

    at: int
    data: bytes


class Resize(NamedTuple):
    """Another length, with zeros behind the old one."""

    size: int


class Entry(NamedTuple):
    """A name gets this node; `before`, where it is not empty, is the name that it had."""

    name: str
    node: "Node"
    before: str = ""


class Removal(NamedTuple):
    """A name is gone."""

    name: str


@dataclass(slots=True, eq=False)
class File:
    """content: as processes see it; on_disk: as it is after a loss of power, without the changes.

    allocated: bytes that are its own; written: the number of the call that wrote it last.
    """

    content: bytearray = field(default_factory=bytearray)
    on_disk: bytearray = field(default_factory=bytearray)
    changes: list[Write | Resize] = field(default_factory=list)
    allocated: int = 0
    written: int = 0

    def write(self, at: int, data: bytes) -> None:
        """Processes see it; the disk may have it."""
        self._change(Write(at, bytes(data)))

    def resize(self, size: int) -> None:
        """As `write`."""
        self._change(Resize(size))

    def sync(self) -> None:
        """The disk has all changes."""
        for change in self.changes:
            _apply(self.on_disk, change)
        self.changes.clear()

    def settle(self, fate: Fate, draws: Draws) -> None:
        """The power goes; what is on the disk then is all that there is."""
        if fate is Fate.KEPT:
            self.sync()
        elif fate is Fate.TORN:
            self._tear(draws)
        elif fate is Fate.REORDERED:
            self._reorder(draws)
        self.changes.clear()
        self.content = bytearray(self.on_disk)

    def rot(self, bit: int) -> None:
        """One bit of it changes by itself."""
        at, mask = bit // 8, 1 << bit % 8
        for each in (self.content, self.on_disk):
            if at < len(each):
                each[at] ^= mask

    def _change(self, change: Write | Resize) -> None:
        _apply(self.content, change)
        self.changes.append(change)

    def _tear(self, draws: Draws) -> None:
        """Some bytes of all that was written, in order."""
        left = draws.below(1 + sum(len(each.data) if isinstance(each, Write) else 1 for each in self.changes))
        for change in self.changes:
            if isinstance(change, Write):
                _apply(self.on_disk, Write(change.at, change.data[:left]))
                left -= len(change.data)
            else:
                _apply(self.on_disk, change)
                left -= 1
            if left <= 0:
                return

    def _reorder(self, draws: Draws) -> None:
        """Some sectors of it; where a later one is there and an earlier one is not, there are zeros or what was there.
        The length may be ahead of the content."""
        for change in self.changes:
            for piece in _sectors(change):
                if draws.below(2):
                    _apply(self.on_disk, piece)
        if draws.below(2) and len(self.content) > len(self.on_disk):
            _apply(self.on_disk, Resize(len(self.content)))


@dataclass(slots=True, eq=False)
class Folder:
    """As `File`, of names."""

    entries: dict[str, "Node"] = field(default_factory=dict)
    on_disk: dict[str, "Node"] = field(default_factory=dict)
    changes: list[Entry | Removal] = field(default_factory=list)

    def put(self, name: str, node: "Node", before: str = "") -> None:
        """A new entry, or another name for one."""
        self._change(Entry(name, node, before))

    def remove(self, name: str) -> None:
        """An entry goes."""
        self._change(Removal(name))

    def sync(self) -> None:
        """The disk has all entries."""
        self.on_disk = dict(self.entries)
        self.changes.clear()

    def settle(self, fate: Fate, draws: Draws) -> None:
        """The power goes."""
        upto = draws.below(len(self.changes) + 1) if fate is Fate.TORN else len(self.changes)
        for change in self.changes[:upto]:
            if fate is not Fate.LOST and (fate is not Fate.REORDERED or draws.below(2)):
                _enter(self.on_disk, change)
        self.changes.clear()
        self.entries = dict(self.on_disk)

    def _change(self, change: Entry | Removal) -> None:
        _enter(self.entries, change)
        self.changes.append(change)


Node: TypeAlias = File | Folder


def _apply(content: bytearray, change: Write | Resize) -> None:
    if isinstance(change, Resize):
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
    elif change.data:
        content.extend(bytes(max(0, change.at - len(content))))
        content[change.at : change.at + len(change.data)] = change.data


def _sectors(change: Write | Resize) -> list[Write | Resize]:
    if isinstance(change, Resize):
        return [change]
    pieces: list[Write | Resize] = []
    at, end = change.at, change.at + len(change.data)
    while at < end:
        upto = min(end, (at // SECTOR_BYTES + 1) * SECTOR_BYTES)
        pieces.append(Write(at, change.data[at - change.at : upto - change.at]))
        at = upto
    return pieces


def _enter(entries: dict[str, Node], change: Entry | Removal) -> None:
    if isinstance(change, Removal):
        entries.pop(change.name, None)
        return
    if change.before:  # also where an earlier change of its name was lost: a file has one name
        for name in [name for name, node in entries.items() if node is change.node]:
            del entries[name]
    entries[change.name] = change.node
