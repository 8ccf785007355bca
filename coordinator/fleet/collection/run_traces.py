"""The raw traces of a run directory while they are being collected: appended, synced, counted, resumed.

    <run>/trace/raw/<node>/<boot, 16 hex>/NNNN.trace      a segment of blocks (protos/segments.py)

A node here is a place: each core's runtime of an agent writes a trace of its own, under its place's name. Blocks are
kept as the agent made them. How many records are held follows from the files, so a collection that was killed goes on
where it was: a torn block at the end is cut off. `first`, the number of the first record that came, is 0 unless an
earlier collection into another directory had made the agent free what was before; run.json keeps it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from coordinator import durable_files
from coordinator.error_codes import Code
from coordinator.errors import CoordinatorError, Mistake
from coordinator.fleet.addresses import host_of
from protos import trace_pb2
from protos.records import (
    HEADER_BYTES,
    STATE_COMMITTED,
    STATE_CRASHED,
    STATE_DRAINED,
    STATE_DRAINING,
    STATE_ENDED,
    plans_in,
    stamp_of,
    unpack_header,
)
from protos.segments import MISSING, SEAL, Block, Flaw, Trail, records_in, scan

ADMITTED = (STATE_COMMITTED, STATE_DRAINING, STATE_DRAINED)  # states of plans that have admitted tuples
SEGMENT_BYTES = 64 << 20
FOLDERS_ABOVE = 5  # of an incarnation's, to the one that holds the run directory
SUFFIX = ".trace"


class TraceError(CoordinatorError):
    """What an agent sent, or what is in the run directory, does not fit together."""


class PlanState(NamedTuple):
    """A PLAN record: a state of protos/records.py, and the epoch of the deployment."""

    state: int
    epoch: int


@dataclass
class Incarnation:
    """One incarnation's records here. written: how many it had when it was last asked; None: not asked yet."""

    node: str
    boot: int
    directory: Path
    first: int = 0
    records: int = 0
    written: int | None = None
    ended: bool = False
    crashed: bool = False
    reachable: bool = True
    missing: int = 0  # records that are here as one GAP only, beyond that GAP
    name: int | None = None  # what the next block has to call the one before
    sealed: int = 0  # the PLAN state that closed it, once that is here
    unsynced: set[Path] = field(default_factory=set)
    named: bool = False  # the folders above it are on disk: they were not all there before

    @property
    def held(self) -> int:
        """Number of the next record that is wanted."""
        return self.first + self.records

    def add(self, chunk: trace_pb2.TraceChunk) -> int:
        """Append what is new in a chunk. Returns the records added. Raises TraceError where it leaves a hole."""
        if self.sealed:
            return 0
        if not self.records and self.written is None:
            self.first = chunk.first
        if chunk.first > self.held:
            raise self._error(
                "records_gone",
                f"records {self.held} to {chunk.first} of {self.boot:016x} are neither on the agent any more nor in"
                f" {self.directory}",
                "collect into a new directory",
            )
        if chunk.written < self.held:
            raise self._error(
                "records_lost",
                f"the agent has lost records of {self.boot:016x} that are in {self.directory}: it knows of"
                f" {chunk.written}, {self.held} were collected",
            )
        self.written, self.ended, self.crashed = chunk.written, chunk.ended, chunk.crashed
        new, before = [], self.records
        try:
            for _, block in scan(chunk.blocks, 0):
                if isinstance(block, Flaw) or block.boot != self.boot:
                    raise self._error("damaged", f"a chunk of {self.boot:016x} came damaged", "collect again")
                if block.end > self.held or block.flags & SEAL:
                    new.append(self._next(block))
        finally:
            if new:
                self._append(chunk.header, b"".join(block.packed() for block in new))
        return self.records - before

    def _next(self, block: Block) -> Block:
        """The block, as it continues what is here. Raises TraceError where it does not."""
        if block.flags & MISSING and block.first < self.held:  # some of it was here before it went missing there
            previous = self.name or block.previous
            block = replace(block, first=self.held, count=block.end - self.held, previous=previous)
        if block.first != self.held or self.sealed or self.name not in (None, block.previous):
            raise self._error(
                "records_do_not_continue",
                f"records {block.first} to {block.end} of {self.boot:016x} do not continue those in {self.directory}",
                "collect into a new directory",
            )
        self.records += block.count
        self.missing += block.count - 1 if block.flags & MISSING else 0
        self.name, self.sealed = block.name, block.state if block.flags & SEAL else 0
        return block

    def restore(self, first: int | None) -> None:
        """What an earlier collection left: a torn block at the end is cut off, other damage stays for the report.
        first: as run.json says; None: it was killed before it could say so, and the first block that came tells."""
        trail = Trail(self.boot, end=first)
        for path in self.segments():
            data = path.read_bytes()
            blocks = trail.follow(data)
            whole = HEADER_BYTES + sum(len(block.packed()) for block in blocks)
            if len(data) < HEADER_BYTES:
                os.truncate(path, 0)
            elif path == self.segments()[-1] and trail.flaws and trail.flaws[-1].at == whole:
                os.truncate(path, whole)
        self.first = trail.first if first is None else first
        self.records, self.missing = (trail.end or self.first) - self.first, trail.missing
        self.name, self.sealed = trail.name, trail.sealed
        if self.sealed:
            self.written, self.ended, self.crashed = self.held, True, self.sealed == STATE_CRASHED

    def sync(self) -> None:
        """What was added is on disk when this returns, under its name in the run directory."""
        if not self.unsynced:
            return
        for path in sorted(self.unsynced):
            durable_files.sync(path)
        folders = (self.directory, *self.directory.parents[:FOLDERS_ABOVE])
        for folder in folders[:1] if self.named else folders:
            durable_files.sync(folder)
        self.named = True
        self.unsynced.clear()

    def entry(self, *hashes: str) -> dict[str, Any]:
        """Of run.json's `traces`. ended: also where the run's plans have drained, so nothing of them is to come."""
        return {
            "node": self.node,
            "boot": f"{self.boot:016x}",
            "first": self.first,
            "records": None if self.written is None else max(self.written, self.held) - self.first - self.missing,
            "sealed": bool(self.sealed),
            "ended": self.ended or self._over(set(map(stamp_of, hashes))),
            "crashed": self.crashed,
            "reachable": self.reachable,
        }

    def segments(self) -> list[Path]:
        """Its files, in order."""
        return sorted(path for path in self.directory.glob(f"*{SUFFIX}") if path.stem.isdigit())

    def _error(self, code: Code, text: str, mend: str = "") -> TraceError:
        return _trace_error(self.node, code, text, mend)

    def _append(self, header: bytes, data: bytes) -> None:
        told = unpack_header(header)
        if told.boot != self.boot or told.node != self.node:
            raise self._error("other_trace", f"a chunk of {told.node}/{told.boot:016x} came as {self.boot:016x}")
        files = self.segments()
        path = files[-1] if files else self.directory / f"0000{SUFFIX}"
        if files and path.stat().st_size + len(data) > SEGMENT_BYTES:
            path = self.directory / f"{int(path.stem) + 1:04d}{SUFFIX}"
        self.directory.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            if not file.tell():
                file.write(header)
            file.write(data)
        self.unsynced.add(path)

    def _over(self, stamps: set[int]) -> bool:
        """Whether each of these plans that ran here has ended, and one has run at all."""
        states = self.states()
        found = [states[stamp] for stamp in stamps if stamp in states]
        return bool(found) and all(state in (STATE_DRAINED, STATE_ENDED) for state in found)

    def states(self) -> dict[int, int]:
        """The last state of every plan that was here, by the start of its hash."""
        return {stamp: told[-1].state for stamp, told in self.plans().items()}

    def plans(self) -> dict[int, list[PlanState]]:
        """What became of every plan that was here, by the start of its hash."""
        found: dict[int, list[PlanState]] = {}
        for path in self.segments():
            for record in plans_in(records_in(path.read_bytes())):
                found.setdefault(record.stamp, []).append(PlanState(record.state, record.plan_epoch))
        return found


class RunTraces:
    """All incarnations of a run directory. entries: run.json's `traces` of an earlier collection into it."""

    def __init__(self, root: Path, entries: list[dict[str, Any]]) -> None:
        self.root = root
        self.incarnations: dict[tuple[str, int], Incarnation] = {}
        firsts = {(entry["node"], int(entry["boot"], 16)): int(entry.get("first", 0)) for entry in entries}
        for directory in sorted(root.glob("*/*")):
            key = (directory.parent.name, int(directory.name, 16))
            self.incarnation(*key).restore(firsts.get(key))

    def incarnation(self, node: str, boot: int) -> Incarnation:
        """The incarnation, begun here if it is new."""
        key = (node, boot)
        if key not in self.incarnations:
            self.incarnations[key] = Incarnation(node, boot, self.root / node / f"{boot:016x}")
        return self.incarnations[key]

    def ran(self) -> dict[int, int]:
        """The plans that admitted tuples in any of them, by the start of their hash: the latest epoch of each."""
        found: dict[int, int] = {}
        for each in self.incarnations.values():
            for stamp, told in each.plans().items():
                epochs = [one.epoch for one in told if one.state in ADMITTED]
                if epochs:
                    found[stamp] = max(found.get(stamp, 0), *epochs)
        return found

    def of(self, node: str) -> list[Incarnation]:
        """Those of one node."""
        return [each for each in self.incarnations.values() if each.node == node]

    def held(self, node: str) -> dict[int, int]:
        """Per incarnation of the node, how many records are held."""
        return {each.boot: each.held for each in self.of(node) if each.records}

    def entries(self, *hashes: str) -> list[dict[str, Any]]:
        """run.json's `traces`; incarnations that were over before and have nothing for this run are left out."""
        return [
            each.entry(*hashes)
            for _, each in sorted(self.incarnations.items())
            if each.records or not (each.ended and each.written == each.first)
        ]


def place_of(chunk: trace_pb2.TraceChunk, node: str) -> str:
    """Which place of the agent of `node` a chunk is of. Raises TraceError where it is of another agent."""
    try:
        place = unpack_header(chunk.header).node
    except ValueError as error:
        raise _trace_error(node, "damaged", f"a chunk of {chunk.boot:016x} has no header ({error})") from None
    if host_of(place) != node:
        raise _trace_error(node, "other_trace", f"a chunk of {place}/{chunk.boot:016x} came", "correct the addresses")
    return place


def _trace_error(node: str, code: Code, text: str, mend: str = "") -> TraceError:
    return TraceError(Mistake(code, f"node {node}: {text}", mend, node))
