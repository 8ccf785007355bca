"""Reads a run directory: plan.json, run.json and the raw trace segments, tolerant of damage.

A run during which plans changed has the last of them in plan.json and the others in earlier/; run.json's `earlier`
names them by hash, in the order in which they ran. They are judged together (`merged_plans.py`).

Nothing in a trace can make this fail: what cannot be used is left out and said (`Damage`), and whether the rest is
complete follows from the counts in run.json. Layouts come from protos/records.py alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator.error_codes import Code
from coordinator.errors import CoordinatorError, Mistake
from coordinator.report.facts.merged_plans import join
from coordinator.report.facts.plan_view import PlanUnreadableError, PlanView, read_plan
from coordinator.report.landing.record_array import SEQ_LIMIT
from coordinator.report.landing.segment_files import SUFFIX, SegmentSummary, Stored, follow, is_boot
from protos import plan_document
from protos.plan_document import Plan, PlanFileError
from protos.records import KINDS, RECORD_BYTES, Record, unpack_records
from protos.run_document import RunDocument, unpacked

if TYPE_CHECKING:
    from coordinator.report.landing.landed_run import Landed

MEND_DOCUMENT = "put a copy of it in its place"
MOST_READ = 32 << 20  # bytes of raw segments; larger ones are not read where a seal tells of them
MOST_HELD = 2_000_000  # records of an incarnation; more are read anew each time


class NoRunError(CoordinatorError):
    """The directory holds no run, or one of another plan; the subject is the directory."""

    exit_code = 2


def _no_run(path: Path, code: Code, sentence: str) -> NoRunError:
    return NoRunError(Mistake.of(code, f"{path}: {sentence}", str(path)))


@dataclass(frozen=True)
class Declared:
    """What run.json says of one incarnation.

    records: how many there should be here, None when nobody knows; first: the number of the first of them in the
    incarnation, above 0 where an earlier collection into another directory took what was before.
    """

    records: int | None = None
    first: int = 0
    ended: bool = False
    crashed: bool = False
    reachable: bool = True
    sealed: bool = False  # the seal came, so it has to be here
    collected: bool = True  # else the collection was interrupted, and may have brought more than run.json counts


@dataclass(frozen=True)
class Incarnation:
    """One runtime process's trace. chunks: whole records of its segments, in order, headers cut off; of large runs they
    are read anew each time."""

    number: int  # in the run, from 0, by node number and boot
    node: int
    boot: int
    declared: Declared
    chunks: tuple[bytes, ...] | Stored = ()
    clock: str = ""
    virtual: bool = False

    @property
    def boot_hex(self) -> str:
        """The boot number in 16 hexadecimal digits, as file names have it."""
        return f"{self.boot:016x}"

    @property
    def places(self) -> int:
        """How many records there are, usable or not."""
        if isinstance(self.chunks, Stored):
            return self.chunks.places
        return sum(map(len, self.chunks)) // RECORD_BYTES


@dataclass(frozen=True)
class Run:
    """A run directory, read. damage: one sentence per thing that could not be used."""

    path: Path
    name: str
    plan: PlanView
    virtual: bool  # a run in virtual time
    simulated_policy: str | None  # which a simulation put in the place of the plan's
    incarnations: tuple[Incarnation, ...]
    damage: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()  # hashes of the plans before, in order
    going_on: frozenset[int] = frozenset()  # starts of hashes of plans that ran on and are another run's
    firsts: Mapping[tuple[str, str], int] = field(default_factory=dict)  # as `first_records`
    simulated_batch: str | None = None  # which batches a simulation formed in place of the plan's


def usable(record: Record) -> bool:
    """False for 64 bytes that are no record: of an unknown kind, or with an impossible seq."""
    return 0 < record.kind < len(KINDS) and record.seq < SEQ_LIMIT


def records_of(incarnation: Incarnation) -> Iterator[tuple[int, Record]]:
    """(place in the trace, record) of every usable record."""
    place = 0
    for chunk in incarnation.chunks:
        for record in unpack_records(chunk):
            if usable(record):
                yield place, record
            place += 1


@dataclass
class _Found:
    """What lies in the folder of an incarnation."""

    summary: SegmentSummary = field(default_factory=SegmentSummary)
    chunks: tuple[bytes, ...] | Stored = ()


_Traces = dict[tuple[int, int], _Found]


def read_run(path: Path) -> Run:
    """The run in `path`. Raises NoRunError, with one sentence, where there is none."""
    found = _run_document(path)
    if not found.damage:
        return _read_run(path, found.values, [])
    damage = f"run.json is not as it was written: {found.damage}; {MEND_DOCUMENT}"
    try:
        return _read_run(path, found.values, [damage])
    except NoRunError as error:
        raise _no_run(path, "damaged", damage) from error


def _read_run(path: Path, document: dict[str, Any], damage: list[str]) -> Run:
    made, earlier = _plan(path, "plan.json"), _earlier(path, document)
    try:
        plan = join([read_plan(made), *map(read_plan, earlier)])
    except PlanUnreadableError as error:
        raise _no_run(path, "unreadable_plan", str(error)) from error
    plan_hash = document.get("plan_hash")
    if plan_hash is not None and plan_hash != plan.hash:
        text = f"run.json speaks of plan {str(plan_hash)[:8]}, plan.json is plan {plan.hash[:8]}"
        raise _no_run(path, "other_plan", text)
    damage.extend(
        f"plan {each.hash[:8]} was changed after it was made: its hash differs"
        for each in (made, *earlier)
        if not each.intact
    )
    declared = _declared(document, plan, damage)
    firsts = first_records(plan, declared)
    found = _traces(path, plan, declared, firsts, damage)
    incarnations = []
    for number, key in enumerate(sorted({*declared, *found})):
        trace = found.get(key, _Found())
        said = declared.get(key)
        if said is None:
            said = Declared(collected=not document.get("collecting", False))
            if said.collected:
                damage.append(f"{plan.nodes[key[0]]}/{key[1]:016x}: a trace that run.json does not name")
        if said.sealed and not trace.summary.sealed:
            damage.append(f"{plan.nodes[key[0]]}/{key[1]:016x}: its end is missing")
        incarnations.append(Incarnation(number, *key, said, trace.chunks, trace.summary.clock, trace.summary.virtual))
    name = str(document.get("run") or path.resolve().name)
    hashes = tuple(each.hash for each in earlier)
    going_on = _going_on(document)
    scenario = document.get("scenario")
    policy, batch = (scenario.get(word) if isinstance(scenario, dict) else None for word in ("policy", "batch"))
    return Run(
        path=path,
        name=name,
        plan=plan,
        virtual=bool(document.get("virtual", False)),
        simulated_policy=str(policy) if policy else None,
        incarnations=tuple(incarnations),
        damage=tuple(damage),
        earlier=hashes,
        going_on=going_on,
        firsts=firsts,
        simulated_batch=str(batch) if batch else None,
    )


def _going_on(document: Mapping[str, Any]) -> frozenset[int]:
    named = document.get("going_on") or []
    try:
        return frozenset(int(each, 16) for each in named)
    except (TypeError, ValueError):
        return frozenset()


def _earlier(path: Path, document: Mapping[str, Any]) -> list[Plan]:
    """The plans before the last one."""
    named = document.get("earlier") or []
    if not isinstance(named, list) or not all(isinstance(each, str) and each.isalnum() for each in named):
        raise _no_run(path, "bad_value", "run.json: earlier must be a list of the hashes of plans")
    found = [_plan(path, f"earlier/{each}.json") for each in named]
    for each, plan in zip(named, found, strict=True):
        if plan.hash != each:
            raise _no_run(path, "other_plan", f"earlier/{each}.json is another plan than its name says")
    return found


def _run_document(path: Path) -> RunDocument:
    try:
        return unpacked(_bytes(path, "run.json"))
    except ValueError as error:
        raise _no_run(path, "damaged", f"no run: run.json cannot be used ({error}); {MEND_DOCUMENT}") from error


def _bytes(path: Path, name: str) -> bytes:
    try:
        return (path / name).read_bytes()
    except OSError as error:
        runs = sorted(found.parent for found in path.glob("*/run.json"))
        last = runs[-1] if runs else ""
        mend = f"give a run in it, like {last}" if last else "give a directory that 'coordinator collect' has printed"
        text = f"no run: {name} cannot be read ({error.strerror or error}); {mend}"
        raise _no_run(path, "unreadable", text) from error


def _plan(path: Path, name: str) -> Plan:
    """One of its plans, of which the hash may be wrong."""
    try:
        return plan_document.shaped(json.loads(_bytes(path, name).decode()))
    except PlanFileError as error:
        raise _no_run(path, "not_a_plan", f"no run: {name} {error.text}") from error
    except (ValueError, RecursionError) as error:
        raise _no_run(path, "not_json", f"no run: {name} is not JSON ({error})") from error


def _declared(document: Mapping[str, Any], plan: PlanView, damage: list[str]) -> dict[tuple[int, int], Declared]:
    declared: dict[tuple[int, int], Declared] = {}
    for entry in document.get("traces") or ():
        try:
            key = plan.index[entry["node"]], int(entry["boot"], 16)
            records = entry.get("records")
            declared[key] = Declared(
                records=None if records is None else int(records),
                first=int(entry.get("first", 0)),
                ended=bool(entry["ended"]),
                crashed=bool(entry["crashed"]),
                reachable=bool(entry["reachable"]),
                sealed=bool(entry.get("sealed", False)),
                collected=not document.get("collecting", False),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            damage.append(f"run.json: traces holds an entry that cannot be read: {str(entry)[:120]}")
    return declared


def _traces(
    path: Path,
    plan: PlanView,
    declared: Mapping[tuple[int, int], Declared],
    firsts: Mapping[tuple[str, str], int],
    damage: list[str],
) -> _Traces:
    """From the raw segments, as far as they are read fast; else from what was landed of them."""
    raw = path / "trace" / "raw"
    if raw.is_dir() and sum(map(_size, raw.glob(f"*/*/*{SUFFIX}"))) < MOST_READ:
        return _segments(raw, plan, firsts, damage)
    from coordinator.report.landing import landed_run

    landed = landed_run.find(path, firsts)
    if landed is not None:
        return _sealed(path, landed, plan, damage)
    if not raw.is_dir() and any(each.records for each in declared.values()):
        sealed = landed_run.folders(path)[1]
        if sealed.is_dir():
            raise _no_run(
                sealed, "damaged", "is not as it was sealed, and the raw segments are gone; give a sound copy"
            )
        raise _no_run(raw, "no_trace", "is not there, so there is nothing to judge; give a copy of the run that has it")
    return _segments(raw, plan, firsts, damage)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # removed in between, or a link to nowhere: told where it is read
        return 0


def first_records(plan: PlanView, declared: Mapping[tuple[int, int], Declared]) -> dict[tuple[str, str], int]:
    """By the names of node and folder, the number of an incarnation's first record."""
    return {(plan.nodes[node], f"{boot:016x}"): each.first for (node, boot), each in declared.items()}


def _segments(root: Path, plan: PlanView, firsts: Mapping[tuple[str, str], int], damage: list[str]) -> _Traces:
    found: _Traces = {}
    for directory in sorted(root.glob("*/*")):
        key = _key(directory.parent.name, directory.name, plan, damage)
        if key is not None:
            first = firsts.get((directory.parent.name, directory.name))
            trace = found[key] = _Found()
            held: list[bytes] = []
            for body in follow(directory, first, trace.summary):
                if trace.summary.places <= MOST_HELD:
                    held.append(body)
                else:
                    held.clear()
            again = Stored(partial(follow, directory, first), trace.summary.places)
            trace.chunks = tuple(held) if trace.summary.places <= MOST_HELD else again
            damage.extend(trace.summary.damage)
    return found


def _sealed(path: Path, landed: Landed, plan: PlanView, damage: list[str]) -> _Traces:
    """What the seal says; records are read when they are asked for."""
    found: _Traces = {}
    traces = {(each.node, each.boot): each for each in landed.seal.traces}
    raw = path / "trace" / "raw"
    for node, boot in sorted({*traces, *landed.seal.left_out}):
        key = _key(node, boot, plan, damage)
        if key is not None:
            each = traces[node, boot]
            told = SegmentSummary(each.clock, each.virtual, each.sealed, each.places, list(each.damage))
            stored = Stored(partial(follow, raw / node / boot, each.first), each.places)
            found[key] = _Found(told, stored if raw.is_dir() else landed.stored(each))
            damage.extend(told.damage)
    return found


def _key(node: str, boot: str, plan: PlanView, damage: list[str]) -> tuple[int, int] | None:
    """Node's number and boot, of a folder that is of an incarnation of this plan's."""
    if node in plan.index and is_boot(boot):
        return plan.index[node], int(boot, 16)
    damage.append(f"{node}/{boot}: not a trace of a node of this plan; left out")
    return None
