"""Reads an incarnation's files at the start and mends what is damaged, so that all that follows meets sound blocks.

Of a file with a flaw a copy is kept as *.damaged, and it is replaced by its sound blocks: a crash meanwhile loses none.
Where records are missing between sound ones, a MISSING block says how many. What is missing at the end cannot be
counted here.
"""

import contextlib
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

from node_agent.control.spool.spool_protocol import Segment
from node_agent.host.files.durable_files import keep_copy
from node_agent.ports import Disk
from protos.records import pack_header, unpack_header
from protos.segments import MISSING, SEAL, Block, Chain, Trail

SUFFIX, FREED_FILE = ".rec", "freed"


@dataclass(slots=True)
class Restored:
    """One incarnation as its files have it now. position: of the ring; sealed: the PLAN state in its seal, or 0."""

    header: bytes
    chain: Chain
    segments: list[Segment]
    position: int
    sealed: int
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _File:
    path: Path
    blocks: list[Block]
    flaws: list[str]
    data: bytes = b""  # as it was found, where it has flaws


def restore(disk: Disk, directory: Path, boot: int, spare: bytes | None, until: Chain | None = None) -> Restored:
    """What is there, mended. spare: a copy of the header; until: where its blocks had come to, where that is known.

    Raises ValueError where nobody knows whose records these are, OSError where they cannot be read or mended.
    """
    trail = Trail(boot, end=0)
    freed = _read(disk, directory / FREED_FILE, trail)
    first = trail.end or 0
    paths = [path for path in disk.entries(directory) if path.suffix == SUFFIX]
    files = [_read(disk, path, trail) for path in paths if not _is_freed(disk, path, first)]
    header = pack_header(trail.header) if trail.header is not None else spare
    if header is None:
        raise ValueError(next((flaw for each in files for flaw in each.flaws), "it has no header"))
    chain = Chain.of(unpack_header(header))
    for block in freed.blocks:
        chain.end, chain.name = block.first, block.previous
    start = Chain(boot, chain.name, chain.end)
    segments: list[Segment] = []
    for each in files:
        segments += _repair(
            disk, each, header, chain, {directory / segment_name(segment.first) for segment in segments}
        )
    if until is not None and chain.end < until.end:
        segments.append(_fill_end(disk, directory, header, chain, until))
    problems = [f"{each.path} was damaged: {'; '.join(each.flaws[:3])}" for each in (freed, *files) if each.flaws]
    if freed.flaws:
        if freed.data:
            keep_copy(freed.path, freed.data, disk)
        disk.replace(freed.path, freed_file(header, start, 0, 0))
    return Restored(header, chain, segments, trail.position, trail.sealed, problems)


def freed_file(header: bytes, chain: Chain, position: int, sealed: int) -> bytes:
    """The file that says up to where records were freed; with the seal where no segment is left to have it."""
    seal = Chain(chain.boot, chain.name, chain.end).seal(sealed, position) if sealed else b""
    return header + chain.freed(position) + seal


def _is_freed(disk: Disk, path: Path, first: int) -> bool:
    """Whether all that is in there had been freed when the file was about to be removed, which is done now."""
    freed = path.stem.isdigit() and int(path.stem) < first
    if freed:
        disk.remove(path)
    return freed


def _read(disk: Disk, path: Path, trail: Trail) -> _File:
    try:
        data = disk.read(path)
    except FileNotFoundError:
        return _File(path, [], ["it is missing"])
    blocks = trail.follow(data)
    return _File(path, blocks, [flaw.text for flaw in trail.flaws], data if trail.flaws else b"")


def _repair(disk: Disk, file: _File, header: bytes, chain: Chain, mended: Set[Path]) -> list[Segment]:
    """Its segment, whole; nothing where nothing of it is left. chain: moved on to its end; mended: files of segments
    before it, one of which may have taken its name."""
    start, name = chain.end, chain.name
    blocks = list(_without_holes(file.blocks, chain))
    packed = b"".join(block.packed() for block in blocks)
    path = file.path.with_name(segment_name(start))
    if file.flaws or path != file.path:
        if file.data:
            keep_copy(file.path, file.data, disk)
        if blocks:
            disk.replace(path, header + packed)
        if not (blocks and path == file.path) and file.path not in mended:
            with contextlib.suppress(FileNotFoundError):
                disk.remove(file.path)
    return [Segment(start, chain.end, len(packed), name)] if blocks else []


def _without_holes(blocks: list[Block], chain: Chain) -> Iterator[Block]:
    for block in blocks:
        if block.first > chain.end:
            missing = block.first - chain.end
            yield Block(chain.boot, chain.end, missing, 0, chain.name, b"", MISSING, link=block.previous)
            chain.end, chain.name = block.first, block.previous
        yield block
        if not block.flags & SEAL:  # it can be made again from what was before it
            chain.end, chain.name = block.end, block.name


def _fill_end(disk: Disk, directory: Path, header: bytes, chain: Chain, until: Chain) -> Segment:
    hole = Block(chain.boot, chain.end, until.end - chain.end, 0, chain.name, b"", MISSING, link=until.name).packed()
    disk.replace(directory / segment_name(chain.end), header + hole)
    segment = Segment(chain.end, until.end, len(hole), chain.name)
    chain.end, chain.name = until.end, until.name
    return segment


def segment_name(first: int) -> str:
    """Of the file whose first record has this number."""
    return f"{first:012d}{SUFFIX}"
