"""Recounts every tuple from the collected trace and from what the client saw. It shares no code with the report.

Each tuple that was admitted has one outcome: delivered, shed, lost, given up on a link, or *unknown* where an
incarnation on its way ended without a word. Anything else is a problem:

- a tuple without an outcome whose way was whole, or with several results that no dead incarnation explains;
- a tuple that its client knows to be admitted and that no record admits, with nothing missing at the first host;
- more lineages than the client's tuples can have: one was admitted again;
- a result whose number is not the one that was sent under its lineage;
- a result recorded as met that came too late by the client's own clock, which is that of all hosts here.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from protos import records as rec
from protos import segments

Key = tuple[int, int, int]  # source, epoch, seq: a lineage
HOSTS = ("a", "b", "c")  # the way of every tuple
STARTED = (rec.ADMITTED, rec.RECEIVED, rec.RECEIVED)  # how it comes to each of them
ENDED = {rec.SHED: "shed", rec.LOST: "lost", rec.GAVE_UP: "given up"}
UNKNOWN, DELIVERED = "unknown", "delivered"
TOLD = 20  # problems
TOLERANCE_NS = 1_000_000


class Fed(NamedTuple):
    """A tuple as its client knows it, sent between two instants. answer: its lineage's epoch and seq, why it was
    refused, or None: not known."""

    number: int
    at_ns: int
    end_ns: int
    answer: tuple[int, int] | str | None


class Got(NamedTuple):
    """A result as the client got it."""

    number: int
    key: Key
    got_ns: int


@dataclass
class Incarnation:
    """What one runtime wrote. lossy: records may be missing, or tuples that it had taken over."""

    host: str
    starts: int
    lossy: bool = False
    by_key: dict[Key, list[rec.Record]] = field(default_factory=lambda: defaultdict(list))

    def has(self, key: Key, kind: int) -> bool:
        """Whether it wrote such a record of that tuple."""
        return any(record.kind == kind for record in self.by_key.get(key, ()))


@dataclass
class Recount:
    """What came of the tuples: their outcomes, what the client was told, and what cannot be."""

    outcomes: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    met: int = 0
    late: int = 0
    repeated: int = 0
    again: int = 0
    problems: list[str] = field(default_factory=list)

    def wrong(self, text: str) -> None:
        """One problem."""
        if len(self.problems) < TOLD:
            self.problems.append(text)


def fed(path: Path) -> list[Fed]:
    """What the source wrote down."""
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [Fed(line["n"], line["at"], line["end"], _answer(line["answer"])) for line in lines if "n" in line]


def got(path: Path) -> list[Got]:
    """What the sink wrote down."""
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [Got(line["n"], (line["lineage"][0], line["lineage"][1], line["lineage"][2]), line["got"]) for line in lines]


def _answer(found: Any) -> tuple[int, int] | str | None:
    return (found[0], found[1]) if isinstance(found, list) else found


def incarnations(run: Path) -> list[Incarnation]:
    """All that the run directory has."""
    found = list(_read(run))
    for each in found:
        latest = max(other.starts for other in found if other.host == each.host)
        each.lossy = each.lossy or each.starts < latest
    return found


def _read(run: Path) -> Iterator[Incarnation]:
    """A trace without a sound end is lossy, but for the one that still runs: see `incarnations`."""
    for folder in sorted((run / "trace" / "raw").glob("*/*")):
        files = [path.read_bytes() for path in sorted(folder.glob("*.trace"))]
        one, sealed = Incarnation(folder.parent.name, rec.unpack_header(files[0]).starts), 0
        for data in files:
            for _, block in segments.scan(data):
                if not isinstance(block, segments.Block) or block.flags & segments.MISSING:
                    one.lossy = True
                elif block.flags & segments.SEAL:
                    sealed = block.state
            for record in rec.unpack_records(segments.records_in(data)):
                if record.kind == rec.GAP:
                    one.lossy = True
                elif record.source:
                    one.by_key[record.source, record.epoch, record.seq].append(record)
        one.lossy = one.lossy or sealed == rec.STATE_CRASHED
        yield one


def recount(written: Sequence[Incarnation], tuples: Sequence[Fed], results: Sequence[Got]) -> Recount:
    """All tuples of a client against all traces."""
    found = Recount()
    by_host = {host: [each for each in written if each.host == host] for host in HOSTS}
    admitted = {key for each in by_host["a"] for key in each.by_key if each.has(key, rec.ADMITTED)}
    source = next(iter({key[0] for key in admitted}), 1)
    known = _known(found, tuples, source)
    _compare_admissions(found, by_host["a"], admitted, known)
    for key in sorted(admitted | known.keys()):
        outcome = _outcome(found, key, by_host)
        found.outcomes[outcome] += 1
    _compare_results(found, known, results)
    _verdicts(found, by_host["c"], known)
    return found


def _known(found: Recount, tuples: Iterable[Fed], source: int) -> dict[Key, Fed]:
    """Those that the client knows to be admitted."""
    known: dict[Key, Fed] = {}
    for each in tuples:
        if isinstance(each.answer, tuple):
            key = (source, *each.answer)
            if key in known:
                found.wrong(f"tuples {known[key].number} and {each.number} were given the lineage {key}")
            known[key] = each
            found.answers["admitted"] += 1
        else:
            found.answers["refused" if isinstance(each.answer, str) else UNKNOWN] += 1
    return known


def _compare_admissions(
    found: Recount, first: Sequence[Incarnation], admitted: set[Key], known: Mapping[Key, Fed]
) -> None:
    if not any(each.lossy for each in first):
        for key in known.keys() - admitted:
            found.wrong(f"tuple {known[key].number} was admitted as {key}, and no record says so")
    found.again = max(0, len(admitted - known.keys()) - found.answers[UNKNOWN])
    if found.again:
        found.wrong(f"{found.again} tuples have a second lineage: they were admitted again")


def _outcome(found: Recount, key: Key, by_host: Mapping[str, Sequence[Incarnation]]) -> str:
    """Of one tuple."""
    count = sum(record.kind == rec.OUTPUT for each in by_host["c"] for record in each.by_key.get(key, ()))
    if count > 1:
        found.repeated += 1
        if not any(each.lossy for host in HOSTS for each in by_host[host]):
            found.wrong(f"{key} has {count} results, and no runtime died")
    if count:
        return DELIVERED
    for host in HOSTS:
        for each in by_host[host]:
            for record in each.by_key.get(key, ()):
                if record.kind in ENDED:
                    return ENDED[record.kind]
    why = _whole(key, by_host)
    if why:
        found.wrong(f"{key} has no outcome: {why}")
        return "without an outcome"
    return UNKNOWN


def _whole(key: Key, by_host: Mapping[str, Sequence[Incarnation]]) -> str:
    """Where a tuple disappeared although nothing is missing there; empty: an incarnation that died explains it."""
    before: Sequence[Incarnation] = ()
    for host, start in zip(HOSTS, STARTED, strict=True):
        came = [each for each in by_host[host] if each.has(key, start)]
        if not came:
            explained = any(each.lossy for each in (*by_host[host], *before))
            return "" if explained else f"host {host} never had it"
        last = host == HOSTS[-1]
        done = [each for each in came if each.has(key, rec.RAN) and (last or each.has(key, rec.SENT))]
        if not done:
            return "" if any(each.lossy for each in came) else f"it stays at host {host}"
        before = done
    return "" if any(each.lossy for each in before) else "it ran at the last host and was not delivered"


def _compare_results(found: Recount, known: Mapping[Key, Fed], results: Iterable[Got]) -> None:
    lineages: dict[int, set[Key]] = defaultdict(set)
    for each in results:
        lineages[each.number].add(each.key)
        if each.key in known and known[each.key].number != each.number:
            found.wrong(
                f"a result of {each.key} has the number {each.number}, its client sent {known[each.key].number}"
            )
    for number, keys in lineages.items():
        if len(keys) > 1:
            found.wrong(f"tuple {number} gave results under {len(keys)} lineages: {sorted(keys)}")


def _verdicts(found: Recount, last: Iterable[Incarnation], known: Mapping[Key, Fed]) -> None:
    for each in last:
        for key, records in each.by_key.items():
            for record in records:
                if isinstance(record, rec.Output):
                    _verdict(found, record, known.get(key))


def _verdict(found: Recount, record: rec.Output, tuple_: Fed | None) -> None:
    if record.at_ns - record.origin_lo_ns > record.deadline_ns:
        found.late += 1
        return
    found.met += 1
    if tuple_ is not None and record.at_ns - tuple_.at_ns > record.deadline_ns + TOLERANCE_NS:
        taken_ms = (record.at_ns - tuple_.at_ns) / 1e6
        found.wrong(f"the result of tuple {tuple_.number} is recorded as met and took {taken_ms:.1f} ms")
