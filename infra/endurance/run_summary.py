"""Summary of a run, recomputed from the raw traces and from what was sent and received outside.

Nothing here asks the agents' own counters: windows are computed again from every tuple that was admitted.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.endurance.load import Feed
from protos import records as rec
from protos.latency import Verdict
from protos.plan_document import Plan
from protos.segments import records_in

SECOND = 1_000_000_000


@dataclass(frozen=True)
class Exactness:
    """Windows that came, those of them that differ from the exact ones, and how many there were in all."""

    given: int
    wrong: int
    all: int


@dataclass(frozen=True)
class Waiting:
    """Of the operator under `drop`, in ns: the longest from a tuple's origin to its start; the longest task unit on its
    node."""

    worst_ns: int
    unit_ns: int


def facts(run: Path, node: str) -> Iterator[rec.Record]:
    """All records of a node, in order."""
    for path in sorted((run / "trace" / "raw" / node).glob("*/*.trace")):
        yield from rec.unpack_records(records_in(path.read_bytes()))


def ids(plan: Plan) -> tuple[dict[str, int], dict[str, int]]:
    """Sources by name; operators by name to the unit that they are in."""
    sources = {name: source.id for name, source in plan.graph.sources.items()}
    names = {one.id: one.name for local in plan.nodes.values() for one in local.operators}
    units = [unit for local in plan.nodes.values() for unit in local.units]
    return sources, {names[each]: unit.id for unit in units for each in unit.operators}


def exact(run: Path, plan: Plan, feed: Feed, windows: Mapping[int, Any], spec: tuple[int, int]) -> Exactness:
    """Every window that came against the mean and count of all tuples that were admitted with an origin in it. spec:
    length and hop in ns."""
    length_ns, hop_ns = spec
    source = ids(plan)[0][feed.name]
    value_of = dict(zip(feed.seqs, feed.values, strict=True))
    found: dict[int, list[int]] = defaultdict(list)
    latest = 0
    for record in facts(run, "a"):
        if isinstance(record, rec.Admitted) and record.source_id == source:
            origin_ns = record.origin_lo_ns
            latest = max(latest, origin_ns)
            for window in range((origin_ns - length_ns) // hop_ns + 1, origin_ns // hop_ns + 1):
                found[window].append(value_of[record.seq])
    wrong = 0
    for number, result in windows.items():
        values = found.get(number, [])
        mean = sum(values) / len(values) if values else None
        wrong += result["n"] != len(values) or result["x"] != mean
    first = min(found, default=0)
    whole = [number for number in found if number > first and number * hop_ns + length_ns <= latest]
    return Exactness(sum(number in windows for number in whole), wrong, len(whole))


def waiting(run: Path, plan: Plan, source: str, operator: str, node: str) -> Waiting:
    """How long tuples of a source waited, at worst, until that operator started; and the longest unit there."""
    sources, units = ids(plan)
    origins: dict[tuple[int, int], int] = {}
    worst_ns = longest_ns = 0
    for record in facts(run, node):
        if isinstance(record, rec.Admitted) and record.source_id == sources[source]:
            # The upper bound: tuples are dropped on the lower one of age.
            origins[record.epoch, record.seq] = record.origin_hi_ns
        elif isinstance(record, rec.Ran):
            longest_ns = max(longest_ns, record.end_ns - record.start_ns)
            if record.unit == units[operator] and record.source == sources[source]:
                worst_ns = max(worst_ns, record.start_ns - origins[record.epoch, record.seq])
    return Waiting(worst_ns, longest_ns)


def recovered_s(run: Path, nodes: Iterable[str], ended_ns: int) -> float:
    """From the end of the overload to the last tuple that was shed or too late; windows apart."""
    last_ns = ended_ns
    for node in nodes:
        for record in facts(run, node):
            shed = isinstance(record, rec.Shed) and record.policy != rec.POLICY_WINDOW
            late = isinstance(record, rec.Output) and record.verdict is not Verdict.MET
            if shed or late:
                last_ns = max(last_ns, record.at_ns)
    return (last_ns - ended_ns) / SECOND
