"""`coordinator report RUN --perfetto FILE`: the trace of a run as a file for ui.perfetto.dev, written as it is read."""

import gzip
import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO

from coordinator.errors import CoordinatorError, Mistake
from coordinator.report.facts.one_clock import OneClock
from coordinator.report.facts.reader import Incarnation, Run, usable
from coordinator.report.perfetto.chrome_trace import Events
from coordinator.report.verdict import scan_trace
from protos import records as rec
from protos.records import Record, unpack_records

MOST_RECORDS = 2_000_000  # in one file: more than viewers open at ease
TOLD_EVERY = 200_000  # records, for progress

WORDS = {
    "ran": "task instances", "flow": "tuples with arrows", "result": "results", "deadline": "deadlines",
    "shed": "sheds", "lost": "losses", "gave_up": "tuples given up on links", "link": "tuples on links",
    "counter": "counter values", "window": "windows without a result",
}  # fmt: skip

Progress = Callable[[str], None]
Found = tuple[int, int, int, Incarnation, Record]  # instant on the one clock; incarnation, place in it; the record


class ChromeTraceError(CoordinatorError):
    """The file cannot be written, or nothing or too much was asked for. The text is the whole message."""

    exit_code = 2


@dataclass(frozen=True)
class Part:
    """Which part of a run: instants from its first one on, in ns; first: so many records at most, 0: all there are."""

    from_ns: int = 0
    to_ns: int | None = None
    first: int = 0

    def holds(self, at_ns: int) -> bool:
        """Whether an instant lies in it."""
        return at_ns >= self.from_ns and (self.to_ns is None or at_ns <= self.to_ns)


def write(run: Run, path: Path, part: Part, progress: Progress) -> dict[str, int]:
    """Write the file, whole or not at all; gzip where its name ends in .gz. Returns how many events of each kind.

    Raises ChromeTraceError.
    """
    trace = _Trace(run, part)
    total = trace.total()
    if not total:
        raise ChromeTraceError(
            Mistake(
                "no_records",
                f"{run.path}: no trace records in that part of the run",
                "leave out --from and --to",
                str(run.path),
            )
        )
    if total > MOST_RECORDS and not part.first:
        raise ChromeTraceError(
            Mistake(
                "too_many_records",
                f"{run.path}: {total} records, and viewers open about {MOST_RECORDS}",
                f"choose a part with --from and --to, or --first {MOST_RECORDS}",
                str(run.path),
            )
        )
    if trace.clock.alone:
        progress(f"{len(trace.clock.alone)} clocks are related to no other: drawn from their own beginning")
    scratch = path.with_name(path.name + ".part")
    try:
        with _opened(scratch, path.suffix == ".gz") as file:
            counts = _events(file, trace, progress)
        scratch.replace(path)
    except OSError as error:
        text = f"{path}: cannot be written: {error.strerror or error}"
        raise ChromeTraceError(Mistake("unwritable", text, "give another file", str(path))) from error
    finally:
        with suppress(OSError):
            scratch.unlink()
    return counts


class _Trace:
    """The records of a part of a run, in the order of the one clock, read anew each time."""

    def __init__(self, run: Run, part: Part) -> None:
        self.run, self.part = run, part
        begins: dict[str, int] = {}
        clocks: list[tuple[Incarnation, rec.Clock]] = []
        self.epochs: dict[int, dict[int, int]] = {}
        for one in run.incarnations:
            plans = []
            for place, record in _records(one):
                at_ns = _at(record)
                begins[one.clock] = min(begins.get(one.clock, at_ns), at_ns)
                if isinstance(record, rec.Clock):
                    clocks.append((one, record))
                elif isinstance(record, rec.Plan):
                    plans.append((place, record))
            self.epochs[one.number] = dict(scan_trace(one, plans, run.plan).epochs)
        self.clock = OneClock(run, clocks, begins)
        self.zero_ns = min((self.clock.at(clock, at_ns) for clock, at_ns in begins.items()), default=0)

    def total(self) -> int:
        """How many there are."""
        return sum(1 for _ in self.any_order())

    def records(self) -> Iterator[Found]:
        """All of them."""
        merged = heapq.merge(*(self._of(one) for one in self.run.incarnations))
        return islice(merged, self.part.first or None)

    def any_order(self) -> Iterator[Found]:
        """The same ones; quicker where all of an incarnation are wanted."""
        return self.records() if self.part.first else chain.from_iterable(map(self._of, self.run.incarnations))

    def _of(self, one: Incarnation) -> Iterator[Found]:
        for place, record in _records(one):
            at_ns = self.clock.at(one.clock, _at(record))
            if self.part.holds(at_ns - self.zero_ns):
                yield at_ns, one.number, place, one, record


def _records(one: Incarnation) -> Iterator[tuple[int, Record]]:
    """GAP has no instant, and says nothing that could be drawn."""
    place = 0
    for chunk in one.chunks:
        for record in unpack_records(chunk):
            if usable(record) and not isinstance(record, rec.Gap):
                yield place, record
            place += 1


def _at(record: Record) -> int:
    """When a record was written, about: instances at their end."""
    return record.end_ns if isinstance(record, rec.Ran) else record.at_ns


def _events(file: IO[str], trace: _Trace, progress: Progress) -> dict[str, int]:
    """Two passes: an arrow has to say at its beginning that it goes on."""
    events = Events(trace.run, trace.epochs, trace.clock, trace.zero_ns)
    progress("looking where tuples went")
    for _, _, place, one, record in trace.any_order():
        events.step(one, place, record)
    file.write('{"displayTimeUnit":"ms","otherData":')
    json.dump(_metadata(trace), file)
    file.write(',"traceEvents":[\n')
    file.write(",\n".join(map(_line, events.names())))
    for done, (_, _, place, one, record) in enumerate(trace.records(), 1):
        file.writelines(f",\n{_line(event)}" for event in events.of(one, place, record))
        if not done % TOLD_EVERY:
            progress(f"{done} records written")
    file.write("\n]}\n")
    return events.counts


def _line(event: object) -> str:
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _metadata(trace: _Trace) -> dict[str, object]:
    run, part = trace.run, trace.part
    alone: Iterable[str] = (f"{run.plan.nodes[one.node]}/{one.boot_hex}" for one in run.incarnations)
    clocks = (one.clock in trace.clock.alone for one in run.incarnations)
    return {
        "run": run.name,
        "plan": run.plan.hash,
        "query": run.plan.query,
        "virtual": run.virtual,
        "clock": "instants of other clocks are moved by the middle of the interval that holds the offset, interpolated"
        " between probes: to look at, verdicts are drawn from the whole interval",
        "zero_ns": trace.zero_ns,
        "reference": trace.clock.reference,
        "not_related": [name for name, is_alone in zip(alone, clocks, strict=True) if is_alone],
        "part": {"from_ns": part.from_ns, "to_ns": part.to_ns, "first": part.first},
    }


def _opened(path: Path, packed: bool) -> IO[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    if packed:
        return gzip.open(path, "wt", compresslevel=5, encoding="utf-8")
    return path.open("w", encoding="utf-8")
