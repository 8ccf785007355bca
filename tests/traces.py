"""The raw trace of one incarnation in a run directory: read, changed, and written again with sound checksums."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from protos import records as rec
from protos.segments import Chain, Trail, records_in

Kind = TypeVar("Kind", bound=rec.Record)


def of(kind: type[Kind], records: Iterable[rec.Record]) -> list[Kind]:
    """Those of one kind."""
    return [each for each in records if isinstance(each, kind)]


def read(directory: Path) -> tuple[rec.Header, list[bytes]]:
    """Header and records, of all its segments."""
    segments = [path.read_bytes() for path in sorted(directory.glob("*.trace"))]
    data = b"".join(map(records_in, segments))
    found = [data[at : at + rec.RECORD_BYTES] for at in range(0, len(data), rec.RECORD_BYTES)]
    return rec.unpack_header(segments[0]), found


def write(
    directory: Path, header: rec.Header, records: Sequence[bytes], sealed: int | None = None, per_segment: int = 0
) -> None:
    """In place of what is there. sealed: the PLAN state that closes it, None: as it was; per_segment: 0: all in one."""
    directory.mkdir(parents=True, exist_ok=True)
    sealed = _sealed(directory, header.boot) if sealed is None else sealed
    for old in directory.glob("*.trace"):
        old.unlink()
    head, chain, many = rec.pack_header(header), Chain.of(header), per_segment or max(1, len(records))
    for number, at in enumerate(range(0, max(1, len(records)), many)):
        part = chain.add(b"".join(records[at : at + many]))
        seal = chain.seal(sealed) if sealed and at + many >= len(records) else b""
        (directory / f"{number:04d}.trace").write_bytes(head + part + seal)


def change(directory: Path, how: Callable[[list[bytes]], Sequence[bytes]]) -> None:
    """Its records changed."""
    header, records = read(directory)
    write(directory, header, how(records))


def _sealed(directory: Path, boot: int) -> int:
    trail = Trail(boot)
    for path in sorted(directory.glob("*.trace")):
        trail.follow(path.read_bytes())
    return trail.sealed
