"""What the coordinator has collected of each incarnation of a runtime, in the order in which it was written."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from protos import records as rec
from protos import segments
from protos.plan_document import Plan

Key = tuple[int, int, int]  # source, epoch, seq
RAN = (rec.STATE_COMMITTED, rec.STATE_DRAINING, rec.STATE_DRAINED)  # else it was prepared only, and given up
ENDED = (rec.LOST, rec.SHED, rec.GAVE_UP)


@dataclass
class Story:
    """One incarnation. clock: its domain; boot: its number; holed: records that it wrote may be missing; crashed: it
    did not end in order, so that tuples are gone which it had taken over; last: no later one of its node is known;
    sealed: the state that closed it, 0 where it still ran or lost its memory; whole: so many records are all that it
    wrote until then, in their order; counted: the same, where records may be missing as many as a GAP says."""

    node: str
    starts: int
    clock: str
    boot: str
    holed: bool = False
    crashed: bool = False
    last: bool = False
    sealed: int = 0
    whole: int = 0
    counted: int = 0
    records: list[rec.Record] = field(default_factory=list)
    by_key: dict[Key, list[rec.Record]] = field(default_factory=lambda: defaultdict(list))

    @property
    def epoch(self) -> int:
        """Of the lineages that it gave."""
        return self.starts & 0xFFFF

    def lives(self) -> dict[int, int]:
        """Of each plan that was committed, by its epoch modulo 128: how many by then had begun without one that they
        follow: one that was stopped just before is none. What those of before had in windows and side values is gone
        with them."""
        found: dict[int, int] = {}
        committed, count = 0, 0
        before: rec.Record | None = None
        for record in self.records:
            if isinstance(record, rec.Plan):
                epoch = record.plan_epoch & rec.PLAN_EPOCH_MASK
                if record.state == rec.STATE_COMMITTED:
                    drains = isinstance(before, rec.Plan) and before.state == rec.STATE_DRAINING
                    follows = drains and before is not None and before.at_ns == record.at_ns
                    count += not (committed or follows)
                    found[epoch], committed = count, committed or epoch
                elif epoch == committed:
                    committed = 0
            before = record
        return found

    @property
    def lossy(self) -> bool:
        """Records or tuples may be missing."""
        return self.holed or self.crashed


@dataclass
class Library:
    """All stories. plans: by epoch, modulo 128, the name of the plan; epochs: the same to the whole number."""

    stories: list[Story]
    plans: dict[int, str] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)

    def of(self, node: str) -> list[Story]:
        """Of one node."""
        return [each for each in self.stories if each.node == node]

    def with_key(self, node: str, key: Key) -> Iterator[Story]:
        """Of one node, those that speak of a tuple."""
        return (each for each in self.stories if each.node == node and key in each.by_key)

    def plan_of(self, record: rec.Record) -> str:
        """Under which a record was written; empty: none, or nobody knows."""
        return self.plans.get(record.flags & rec.PLAN_EPOCH_MASK, "")


def read(run: Path, known: Mapping[str, Plan]) -> Library:
    """From the run directory. known: plans by name."""
    library = Library([_story(folder) for folder in sorted((run / "trace" / "raw").glob("*/*"))])
    stamps = {int(plan.hash[: rec.STAMP], 16): name for name, plan in known.items()}
    for node in {each.node for each in library.stories}:
        max(library.of(node), key=lambda each: each.starts).last = True
    traces = json.loads((run / "run.json").read_text())["traces"]
    lost = {each["node"] for each in traces if not each["reachable"]}  # nothing more could be collected of them
    for story in library.stories:
        story.crashed = story.sealed != rec.STATE_ENDED and not story.last  # the last one still ran
        story.holed = story.holed or not (story.sealed or story.last) or story.node in lost
        for record in story.records:
            if isinstance(record, rec.Plan):
                epoch = record.plan_epoch & rec.PLAN_EPOCH_MASK
                library.epochs[epoch] = record.plan_epoch
                if record.state in RAN:
                    library.plans[epoch] = stamps.get(record.stamp, "")
    return library


def _story(folder: Path) -> Story:
    files = [path.read_bytes() for path in sorted(folder.glob("*.trace"))]
    header = rec.unpack_header(files[0])
    story, ended, uncounted = Story(folder.parent.name, header.starts, header.clock, folder.name), 0, False
    for data in files:
        for _, block in segments.scan(data):
            if isinstance(block, segments.Block) and block.flags & segments.SEAL:
                ended = block.state
            elif not isinstance(block, segments.Block) or block.flags & segments.MISSING:
                story.holed = uncounted = True
        for record in rec.unpack_records(segments.records_in(data)):
            story.holed = story.holed or record.kind == rec.GAP
            uncounted = uncounted or (isinstance(record, rec.Gap) and (record.damaged or not record.dropped))
            story.records.append(record)
            story.by_key[record.source, record.epoch, record.seq].append(record)
            story.whole += not story.holed
            story.counted += not uncounted
    story.sealed = ended
    return story
