"""A run of any length from a short one: the template again and again in time, its numbers and instants moved on.

What the template accounts for is accounted for in each repetition, so the whole is balanced. Origins of tuples are
moved by some microseconds that depend on the tuple, so that latencies are as different as they are in a real run. All
is written as it is made: what is in memory is the template and one batch of its repetitions.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from coordinator.report.facts.raw import raw_pieces
from coordinator.report.facts.reader import Incarnation, Run, read_run
from coordinator.report.landing.record_array import Raw
from protos import records as rec
from protos import run_document
from protos.block_compression import ZLIB
from protos.record_layout import Field
from protos.segments import Chain

Longs = npt.NDArray[np.int64]
BATCH = 60_000  # records that are made at once, about
SEGMENT_BYTES = 64 << 20
SPREAD_NS = 5_000_000  # origins are moved by less than that
MIXED = 2_654_435_761
WITH_LINEAGE = (
    rec.ADMITTED, rec.RAN, rec.SENT, rec.RECEIVED, rec.GAVE_UP, rec.OUTPUT, rec.SHED, rec.LOST, rec.MERGED,
    rec.ABSORBED, rec.WINDOW, rec.DEGRADED,
)  # fmt: skip
INSTANTS: Mapping[int, tuple[Field, ...]] = {
    rec.ADMITTED: (rec.Admitted.origin_lo_ns, rec.Admitted.origin_hi_ns),
    rec.RAN: (rec.Ran.start_ns, rec.Ran.end_ns, rec.Ran.due_ns),
    rec.RECEIVED: (rec.Received.sent_ns,),
    rec.OUTPUT: (rec.Output.origin_lo_ns, rec.Output.origin_hi_ns),
    rec.WINDOW: (rec.Window.start, rec.Window.end),
}
NUMBERED = {  # numbers of a link
    rec.SENT: rec.Sent.link_seq.column, rec.RECEIVED: rec.Received.link_seq.column,
    rec.GAVE_UP: rec.GaveUp.link_seq.column, rec.ACKED: rec.Acked.acknowledged_through.column,
}  # fmt: skip
ORIGINS = (rec.Output.origin_lo_ns.column, rec.Output.origin_hi_ns.column)  # and of ADMITTED
AT = rec.Record.at_ns.column
FAILED = rec.Lost.start_ns.column
PARENT = rec.Merged.parent_source.column
STATE = rec.Window.state.column


def tiled(template: Path, folder: Path, records: int) -> int:
    """Write a run of so many records, or a few more, into a folder; how many there are."""
    run = read_run(template)
    nodes = [_Node(run, incarnation) for incarnation in run.incarnations]
    steps = _Steps.of(run, nodes)
    times = max(1, -(-records // sum(len(node.body) for node in nodes)))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copyfile(template / "plan.json", folder / "plan.json")
    document = json.loads((template / "run.json").read_text(encoding="utf-8"))
    written = {(node.name, node.incarnation.boot_hex): node.write(folder, times, steps) for node in nodes}
    for entry in document["traces"]:
        entry["records"] = written[entry["node"], entry["boot"]]
    values = {key: value for key, value in document.items() if key != "check"} | {"run": folder.name}
    (folder / "run.json").write_bytes(run_document.packed(values))
    return sum(written.values())


@dataclass(frozen=True)
class _Steps:
    """What a repetition adds: ns, numbers of tuples by source, numbers of links by sender and receiver."""

    ns: int
    tuples: Longs  # by source
    links: Mapping[tuple[int, int], int]
    windows: frozenset[int]  # sources of windows

    @classmethod
    def of(cls, run: Run, nodes: list[_Node]) -> _Steps:
        hop_ns = max((view.hop_ns for view in run.plan.windows.values()), default=1)
        span_ns = max(int(node.body[AT].max()) for node in nodes) - min(int(node.body[AT].min()) for node in nodes)
        ns = (span_ns // hop_ns + 2) * hop_ns
        tuples = np.zeros(max(run.plan.sources) + 1, np.int64)
        links: dict[tuple[int, int], int] = {}
        for node in nodes:
            body, here = node.body, node.incarnation.node
            admitted = body[body["kind"] == rec.ADMITTED]
            for source in run.plan.sources:
                tuples[source] += int((admitted["source"] == source).sum())
            numbered = body[np.isin(body["kind"], (rec.SENT, rec.ACKED))]
            for peer in np.unique(numbered["ref"]).tolist():
                links[here, peer] = int(numbered[NUMBERED[rec.SENT]][numbered["ref"] == peer].max())
        for source, view in run.plan.windows.items():
            tuples[source] = ns // view.hop_ns
        return cls(ns, tuples, links, frozenset(run.plan.windows))


class _Node:
    """One trace of the template: what stands before its first tuple, what is repeated, and what ends it."""

    def __init__(self, run: Run, incarnation: Incarnation) -> None:
        raw = np.concatenate([records for _, records in raw_pieces(incarnation)])
        plans = np.flatnonzero(raw["kind"] == rec.PLAN)
        begun = next(at for at in plans.tolist() if raw["ref"][at] == rec.STATE_COMMITTED)
        over = next(at for at in plans.tolist() if at > begun)
        self.incarnation, self.name = incarnation, run.plan.nodes[incarnation.node]
        self.head, self.body, self.tail = raw[: begun + 1], raw[begun + 1 : over], raw[over:]
        self._path = run.path / "trace" / "raw" / self.name / incarnation.boot_hex
        self._admitted = self._latencies = self._written = 0

    def write(self, folder: Path, times: int, steps: _Steps) -> int:
        """The trace, repeated so often; how many records it has."""
        header = next(iter(sorted(self._path.glob("*.trace")))).read_bytes()[: rec.HEADER_BYTES]
        directory = folder / "trace" / "raw" / self.name / self.incarnation.boot_hex
        directory.mkdir(parents=True)
        chain, number = Chain.of(rec.unpack_header(header)), 0
        out = (directory / "0000.trace").open("wb")
        try:
            out.write(header)
            for batch in self._batches(times, steps):
                if out.tell() > SEGMENT_BYTES:
                    out.close()
                    number += 1
                    out = (directory / f"{number:04d}.trace").open("wb")
                    out.write(header)
                out.write(chain.add(batch.tobytes(), compression=ZLIB))
            out.write(chain.seal(rec.STATE_ENDED))
        finally:
            out.close()
        return self._written

    def _batches(self, times: int, steps: _Steps) -> Iterator[Raw]:
        together = max(1, BATCH // max(1, len(self.body)))
        yield self._counted(self.head.copy())
        for first in range(0, times, together):
            turn = np.arange(first, min(times, first + together), dtype=np.int64)
            yield self._counted(self._moved(np.tile(self.body, len(turn)), np.repeat(turn, len(self.body)), steps))
        tail = self.tail.copy()
        tail[AT] += (times - 1) * steps.ns
        yield self._counted(tail)

    def _moved(self, raw: Raw, turn: Longs, steps: _Steps) -> Raw:
        kind = raw["kind"]
        raw[AT] += turn * steps.ns
        for number, fields in INSTANTS.items():
            mine = kind == number
            for each in fields:
                raw[each.column][mine] += turn[mine] * steps.ns
        failed = (kind == rec.LOST) & (raw["flags"] < rec.FLAG) & (raw["ref"] != rec.NO_REF) & (raw[FAILED] != 0)
        raw[FAILED][failed] += turn[failed] * steps.ns
        later = turn * steps.tuples[np.minimum(raw["source"], len(steps.tuples) - 1)]
        traced = np.isin(kind, WITH_LINEAGE)
        raw["seq"][traced] += later[traced].astype(np.uint64)
        merged = kind == rec.MERGED
        parents = steps.tuples[np.minimum(raw[PARENT], len(steps.tuples) - 1)]
        raw["last"][merged] += (turn * parents)[merged].astype(np.uint64)
        skipped = (kind == rec.WINDOW) & (raw[STATE] == rec.WINDOW_SKIPPED)
        raw["last"][skipped] += later[skipped].astype(np.uint64)
        here = self.incarnation.node
        for number, column in NUMBERED.items():
            for (sender, receiver), step in steps.links.items():
                end, peer = (receiver, sender) if number == rec.RECEIVED else (sender, receiver)
                if end == here:
                    mine = (kind == number) & (raw["ref"] == peer)
                    raw[column][mine] += turn[mine] * step
        return self._blurred(raw, steps)

    def _blurred(self, raw: Raw, steps: _Steps) -> Raw:
        mine = np.isin(raw["kind"], (rec.ADMITTED, rec.OUTPUT)) & ~np.isin(raw["source"], sorted(steps.windows))
        mixed = (raw["seq"] * np.uint64(31) + raw["source"]) * np.uint64(MIXED) >> np.uint64(7)
        for column in ORIGINS:
            raw[column][mine] -= (mixed % np.uint64(SPREAD_NS)).astype(np.int64)[mine]
        return raw

    def _counted(self, raw: Raw) -> Raw:
        """With LOAD records that say what was before them."""
        load, output = raw["kind"] == rec.LOAD, raw["kind"] == rec.OUTPUT
        places = self._written + np.arange(len(raw), dtype=np.int64)
        spent = np.where(output, 2 * raw[AT] - raw[ORIGINS[0]] - raw[ORIGINS[1]], 0)
        latencies = self._latencies + np.cumsum(spent)
        admitted = self._admitted + np.cumsum(raw["kind"] == rec.ADMITTED)
        raw["last"][load] = places[load].astype(np.uint64)
        raw["seq"][load] = (latencies[load] & rec.SUM_MASK).astype(np.uint64)
        raw["epoch"][load] = (admitted[load] % rec.COUNTED).astype(np.uint16)
        self._written += len(raw)
        if len(raw):
            self._latencies, self._admitted = int(latencies[-1]), int(admitted[-1])
        return raw


__all__ = ["tiled"]
