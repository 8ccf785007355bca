"""The seal of a landed run: what was landed, from what, and what came of it. It is written last.

It holds per incarnation the raw segments and the Parquet files, with sizes and checksums, and all that segments say
beside their records: so a reader needs neither to open nor to have them. A checksum of its own shows that it was not
changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from coordinator import durable_files
from coordinator.report.landing.segment_files import is_boot, segments

NAME = "seal.json"
SCHEMA_VERSION = 1  # of the columns
CHUNK_BYTES = 1 << 22

Firsts = Mapping[tuple[str, str], int]  # (node, boot) -> number of the first record, where run.json tells


@dataclass(frozen=True, slots=True)
class SealedFile:
    """A file as it was: its name, size and BLAKE2b; records: of a Parquet file."""

    name: str
    size: int
    digest: str
    records: int = 0


@dataclass(frozen=True, slots=True)
class SealedTrace:
    """One incarnation. first: as `follow` was told; places: all records that were there; the others:
    `SegmentSummary`."""

    node: str
    boot: str
    first: int | None
    clock: str
    virtual: bool
    sealed: int
    places: int
    damage: tuple[str, ...]
    segments: tuple[SealedFile, ...]
    files: tuple[SealedFile, ...]

    @property
    def folder(self) -> str:
        """Where its Parquet files are, below the landed folder."""
        return f"node={self.node}/boot={self.boot}"


@dataclass(frozen=True, slots=True)
class Seal:
    """Of a run: its incarnations, whose numbers in the column `trace` are their places here. left_out: folders beside
    them that are none."""

    traces: tuple[SealedTrace, ...]
    left_out: tuple[tuple[str, str], ...] = ()

    def write(self, folder: Path) -> None:
        """Raises OSError."""
        document: dict[str, Any] = {"schema": SCHEMA_VERSION, "left_out": self.left_out}
        document["traces"] = [asdict(each) for each in self.traces]
        document["check"] = _check(document)
        durable_files.replace(folder / NAME, (json.dumps(document, indent=1) + "\n").encode())

    def is_of(self, raw: Path, firsts: Firsts) -> bool:
        """Whether it is of these raw segments, bit for bit."""
        there = {(path.parent.name, path.name): path for path in trace_folders(raw)}
        if there.keys() != {(each.node, each.boot) for each in self.traces} or self.left_out != left_out(raw):
            return False
        return all(
            each.first == firsts.get((each.node, each.boot))
            and _same(there[each.node, each.boot], each.segments, (path.name for path in segments(folder)))
            for each in self.traces
            for folder in [there[each.node, each.boot]]
        )

    def fits(self, folder: Path) -> bool:
        """Whether the Parquet files are there, as far as their sizes tell."""
        try:
            return all(
                (folder / each.folder / file.name).stat().st_size == file.size
                for each in self.traces
                for file in each.files
            )
        except OSError:
            return False

    def holds(self, folder: Path) -> bool:
        """Whether the Parquet files are as they were sealed."""
        return all(_same(folder / each.folder, each.files, (file.name for file in each.files)) for each in self.traces)


def read(folder: Path) -> Seal | None:
    """The seal in a landed folder; None where there is none that this version can use, or it was changed."""
    try:
        document = json.loads((folder / NAME).read_bytes())
        if document.pop("check") != _check(document) or document["schema"] != SCHEMA_VERSION:
            return None
        others = tuple((str(node), str(name)) for node, name in document["left_out"])
        return Seal(tuple(_trace(each) for each in document["traces"]), others)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def trace_folders(raw: Path) -> Iterator[Path]:
    """Those of incarnations, in order."""
    return (path for path in sorted(raw.glob("*/*")) if is_boot(path.name))


def left_out(raw: Path) -> tuple[tuple[str, str], ...]:
    """Folders beside those of incarnations."""
    return tuple((path.parent.name, path.name) for path in sorted(raw.glob("*/*")) if not is_boot(path.name))


def file_of(path: Path, records: int = 0) -> SealedFile:
    """As it is now. Raises OSError."""
    digest, size = hashlib.blake2b(digest_size=16), 0
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            digest.update(data)
            size += len(data)
    return SealedFile(path.name, size, digest.hexdigest(), records)


def _same(folder: Path, sealed: tuple[SealedFile, ...], names: Iterable[str]) -> bool:
    if [each.name for each in sealed] != list(names):
        return False
    try:
        if any((folder / each.name).stat().st_size != each.size for each in sealed):
            return False
        return all(file_of(folder / each.name, each.records) == each for each in sealed)
    except OSError:
        return False


def _check(document: Mapping[str, Any]) -> str:
    """Of all else that the seal says."""
    return hashlib.blake2b(json.dumps(document, sort_keys=True).encode(), digest_size=16).hexdigest()


def _trace(told: Mapping[str, Any]) -> SealedTrace:
    files = {key: tuple(SealedFile(**each) for each in told[key]) for key in ("segments", "files")}
    return SealedTrace(**{**told, **files, "damage": tuple(told["damage"])})
