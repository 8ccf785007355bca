"""Segments of an incarnation, followed in order: their records, and what is said beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from protos.records import RECORD_BYTES, VIRTUAL
from protos.segments import Block, Trail, bodies

SUFFIX = ".trace"
PIECE_BYTES = 8 << 20


@dataclass
class SegmentSummary:
    """What an incarnation's segments say beside its records. places: how many records there are, usable or not; sealed:
    the PLAN state that closed it; damage: one sentence per thing that could not be used."""

    clock: str = ""
    virtual: bool = False
    sealed: int = 0
    places: int = 0
    damage: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Stored:
    """Records that are not held: read anew each time that they are asked for."""

    again: Callable[[], Iterator[bytes]]
    places: int

    def __iter__(self) -> Iterator[bytes]:
        return self.again()

    def __bool__(self) -> bool:
        return self.places > 0


def is_boot(name: str) -> bool:
    """Whether a folder may be an incarnation's."""
    return len(name) == 16 and all(letter in "0123456789abcdef" for letter in name)


def segments(directory: Path) -> list[Path]:
    """The files of an incarnation, in order."""
    return sorted(directory.glob(f"*{SUFFIX}"))


def follow(directory: Path, first: int | None, told: SegmentSummary | None = None) -> Iterator[bytes]:
    """Whole records, some MiB at a time; what cannot be used is left out. first: number of the first one, where it is
    known; told: filled on the way."""
    told = SegmentSummary() if told is None else told
    node, boot = directory.parent.name, directory.name
    trail = Trail(int(boot, 16), end=first)
    before: int | None = None
    for path in segments(directory):
        if path.stem.isdigit():
            if before is not None and int(path.stem) != before + 1:
                told.damage.append(f"{node}/{boot}: segments between {before:04d} and {path.stem} are missing")
            before = int(path.stem)
        for body in _followed(path, node, trail, told):
            told.places += len(body) // RECORD_BYTES
            yield body
    told.sealed = trail.sealed


def _followed(path: Path, node: str, trail: Trail, told: SegmentSummary) -> Iterator[bytes]:
    place = f"{node}/{trail.boot:016x}/{path.name}"
    try:
        data = path.read_bytes()
    except OSError as error:
        told.damage.append(f"{place}: left out: {error}")
        return
    trail.begin(data)
    header = trail.header
    foreign = header is not None and header.node != node
    if header is not None and not foreign:
        told.clock, told.virtual = header.clock, told.virtual or bool(header.flags & VIRTUAL)
    for body in _joined(trail.blocks(data)):
        if not foreign:
            yield body
    told.damage.extend(f"{place}: {flaw.text}" for flaw in trail.flaws)
    if header is not None and foreign:
        told.damage.append(f"{place}: left out: it belongs to {header.node}/{header.boot:016x}")


def _joined(blocks: Iterable[Block]) -> Iterator[bytes]:
    """Their records, as many blocks at a time as make a piece: a segment is much larger in memory than on the disk."""
    some: list[Block] = []
    for block in blocks:
        some.append(block)
        if sum(len(each.body) for each in some) >= PIECE_BYTES:
            yield bodies(some)
            some = []
    if body := bodies(some):
        yield body
