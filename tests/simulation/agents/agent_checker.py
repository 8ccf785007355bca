"""Judges a run of whole agents by what really happened, from the traces that the coordinator has collected.

It shares no code with the report. What it holds the system to:
- each result is of a tuple that was admitted, has its number, and came once, unless a crash or a power cut explains it;
- each tuple that its client knows to be admitted gave each result, or a record or a dead incarnation on its way says
  why not;
- all records of a tuple are of one plan: a deployment is atomic for every tuple;
- a result that is recorded as met was in time by true time, one recorded as late was late;
- after everything has healed, new tuples give their results in time.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from node_agent.virtual.simulated.simulated_source import Fate
from protos import records as rec
from protos import segments
from tests.simulation.agents.agents_line import (
    DELIVERED,
    FED,
    NODES,
    AgentsLine,
    Seen,
)  # fmt: skip

Key = tuple[int, int, int]  # source, epoch, seq
Path = tuple[tuple[str, int], ...]

NUMBERS = {name: number for number, name in enumerate(NODES)}  # as plans have them
TOLERANCE_PPM = 110  # two drifts
RAN = (rec.STATE_COMMITTED, rec.STATE_DRAINING, rec.STATE_DRAINED)  # else it was prepared only, and given up
ENDED = (rec.LOST, rec.SHED, rec.GAVE_UP)
ABOUT_TUPLES = {
    rec.ADMITTED, rec.RAN, rec.SENT, rec.RECEIVED, rec.OUTPUT, rec.SHED, rec.LOST, rec.GAVE_UP, rec.MERGED,
}  # fmt: skip


@dataclass
class Written:
    """The records of one incarnation, by tuple. lossy: records may be missing that it wrote, or tuples it took over."""

    node: str
    starts: int
    lossy: bool = False
    by_key: dict[Key, list[rec.Record]] = field(default_factory=lambda: defaultdict(list))


@dataclass
class Verdicts:
    """What was found."""

    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def say(self, text: str) -> None:
        """One problem."""
        if len(self.problems) < 20:
            self.problems.append(text)


class Check:
    """One run. healed_ns: the true instant from which on everything has to work."""

    def __init__(self, line: AgentsLine, healed_ns: int) -> None:
        self.line, self.healed_ns = line, healed_ns
        self.found = Verdicts()
        self.plan_of: dict[int, str] = {}  # by epoch, modulo 128
        self.stamps = {int(line.shape.plan(each).hash[: rec.STAMP], 16): each for each in line.shape.plans}
        self.written = list(self._read())
        self.numbers = self._admitted()
        self.disturbed = any(each.lossy for each in self.written)

    def run(self) -> Verdicts:
        """All checks."""
        self._results()
        self._one_plan()
        self._conservation()
        self._verdicts()
        self._healed()
        return self.found

    def _read(self) -> Iterator[Written]:
        """From the run directory."""
        found: list[Written] = []
        for folder in sorted((self.line.run / "trace" / "raw").glob("*/*")):
            files = [path.read_bytes() for path in sorted(folder.glob("*.trace"))]
            header = rec.unpack_header(files[0])
            one, ended = Written(folder.parent.name, header.starts), 0
            for data in files:
                for _, block in segments.scan(data):
                    if isinstance(block, segments.Block) and block.flags & segments.SEAL:
                        ended = block.state
                    elif not isinstance(block, segments.Block) or block.flags & segments.MISSING:
                        one.lossy = True
                for record in rec.unpack_records(segments.records_in(data)):
                    self._take(one, record)
            one.lossy = one.lossy or ended == rec.STATE_CRASHED
            found.append(one)
        for trace in json.loads((self.line.run / "run.json").read_text())["traces"]:
            for each in found:  # of what was collected the agent knows nothing any more: its disk was put back
                each.lossy = each.lossy or (each.node == trace["node"] and not trace["reachable"])
        for node in NODES:
            latest = max((each.starts for each in found if each.node == node), default=0)
            for each in found:
                each.lossy = each.lossy or (each.node == node and each.starts < latest)
        yield from found

    def _take(self, one: Written, record: rec.Record) -> None:
        if record.kind == rec.GAP:
            one.lossy = True
        elif isinstance(record, rec.Plan):
            name = self.stamps.get(record.stamp, "")
            epoch = record.plan_epoch & rec.PLAN_EPOCH_MASK
            if record.state in RAN and self.plan_of.setdefault(epoch, name) != name:
                self.found.say(f"two plans ran under epoch {record.plan_epoch}: {name} and {self.plan_of[epoch]}")
        elif record.kind in ABOUT_TUPLES:
            one.by_key[record.source, record.epoch, record.seq].append(record)

    def _admitted(self) -> dict[Key, int]:
        """The number of each tuple that its client knows to be admitted."""
        numbers: dict[Key, int] = {}
        for name, source in self.line.sources.items():
            if not source.settled:
                fates = Counter(each.fate.value for each in source.fed.values())
                self.found.say(f"the client of {name} has not heard of all its tuples: {dict(fates)}")
            for fed in source.fed.values():
                self.found.counts[f"tuples {fed.fate.value}"] += 1
                if fed.fate is Fate.ADMITTED:
                    key = (FED[name][0], fed.epoch, fed.seq)
                    if key in numbers:
                        self.found.say(f"two tuples of {name} have the lineage {key}: {numbers[key]} and {fed.number}")
                    numbers[key] = fed.number
        return numbers

    def _results(self) -> None:
        counts: Counter[tuple[str, Key]] = Counter()
        for seen in self.line.seen:
            key: Key = seen.lineage[:3]
            output = self.line.output_of(seen)
            counts[output, key] += 1
            if key in self.numbers and self.numbers[key] != seen.number:
                sent = self.numbers[key]
                self.found.say(f"{output}: tuple {key} has the number {seen.number}, its client sent {sent}")
            if key not in self.numbers and not self.disturbed:
                self.found.say(f"{output}: a result of {key}, which no client knows to be admitted")
        for (output, key), count in counts.items():
            self.found.counts["results"] += count
            if count > 1:
                self.found.counts["duplicates"] += 1
                if not self.disturbed:
                    self.found.say(f"{output}: {count} results of {key}")

    def _plan_epochs(self, key: Key) -> set[int]:
        records = (record for each in self.written for record in each.by_key.get(key, ()))
        return {record.flags & rec.PLAN_EPOCH_MASK for record in records} - {0}

    def _one_plan(self) -> None:
        for key in {key for each in self.written for key in each.by_key}:
            epochs = self._plan_epochs(key)
            plans = {self.plan_of.get(epoch, "") for epoch in epochs} - {""}
            if len(plans) > 1:
                self.found.say(f"tuple {key} ran under the plans {sorted(plans)}, of the epochs {sorted(epochs)}")

    def _conservation(self) -> None:
        came = {(self.line.output_of(seen), seen.lineage[:3]) for seen in self.line.seen}
        for key, number in self.numbers.items():
            epochs = self._plan_epochs(key)
            ran = self.plan_of.get(min(epochs), "") if epochs else ""
            if not ran:
                if not self.disturbed:
                    self.found.say(f"tuple {key}, number {number}, was admitted, and no record says under which plan")
                self.found.counts["admitted without records"] += 1
                continue
            for output, (source, path) in self.line.shape.paths[ran].items():
                if source != key[0] or (output, key) in came:
                    continue
                why = self._why_not(key, path)
                self.found.counts[f"no result: {why or 'unexplained'}"] += 1
                if not why:
                    text = f"{output}: tuple {key}, number {number}, was admitted under {ran}, has no result, and"
                    self.found.say(f"{text} nothing says why")

    def _why_not(self, key: Key, path: Path) -> str:
        """Where a tuple ended that gave no result; empty: nowhere."""
        for at, (node, unit) in enumerate(path):
            there = [each for each in self.written if each.node == node]
            having = [each for each in there if key in each.by_key]
            arrived = having
            if not at or path[at - 1][0] != node:
                arrived = [each for each in having if _came(each, key, path[at - 1][0] if at else "")]
            if not arrived:
                return "its records went with a dead incarnation" if any(each.lossy for each in there) else ""
            for each in having:
                for record in each.by_key[key]:
                    if record.kind in ENDED:
                        return rec.KINDS[record.kind]
            ran = [each for each in arrived if unit == DELIVERED or _ran(each, key, unit)]
            if not ran:
                return "taken over by a dead incarnation" if any(each.lossy for each in arrived) else ""
            if at + 1 < len(path) and path[at + 1][0] != node:
                if not any(_sent(each, key, path[at + 1][0]) for each in ran):
                    return "waited in the link of a dead incarnation" if any(each.lossy for each in ran) else ""
                following = [each for each in self.written if each.node == path[at + 1][0]]
                if not any(_came(each, key, node) for each in following) and any(each.lossy for each in ran):
                    return "under way when its sender died"
        return "its result went with a dead incarnation" if self.disturbed else ""

    def _verdicts(self) -> None:
        first: dict[tuple[str, Key], Seen] = {}
        twice: set[tuple[str, Key]] = set()
        for seen in self.line.seen:
            name = self.line.output_of(seen), seen.lineage[:3]
            if name in first:
                twice.add(name)
            first[name] = seen
        for one in self.written:
            for key, records in one.by_key.items():
                for record in records:
                    if isinstance(record, rec.Output) and key in self.numbers:
                        name = self._output(record), key
                        if name in first and name not in twice:
                            self._verdict(record, first[name])

    def _output(self, record: rec.Output) -> str:
        outputs = self.line.shape.plan(self.plan_of[record.flags & rec.PLAN_EPOCH_MASK]).graph.outputs
        return next(name for name, output in outputs.items() if output.id == record.ref)

    def _verdict(self, record: rec.Output, seen: Seen) -> None:
        output = self.line.output_of(seen)
        deadline_ns = self.line.shape.deadlines_ns[output]
        origin_ns = self.line.planned[_source(seen)][seen.number]
        taken_ns = seen.at_ns - origin_ns
        slept = (span for spans in self.line.slept.values() for span in spans)
        if any(since < seen.at_ns and until > origin_ns for since, until in slept):
            self.found.counts["verdicts across a suspension"] += 1
            return
        margin_ns = taken_ns * TOLERANCE_PPM // 1_000_000 + 1000
        most_ns, least_ns = record.at_ns - record.origin_lo_ns, record.at_ns - record.origin_hi_ns
        if most_ns <= deadline_ns:
            self.found.counts["met"] += 1
            if taken_ns > deadline_ns + margin_ns:
                self.found.say(f"{output}: {record[3:6]} is recorded as met, {most_ns} ns, and took {taken_ns} ns")
        elif least_ns > deadline_ns:
            self.found.counts["late"] += 1
            if taken_ns < deadline_ns - margin_ns:
                self.found.say(f"{output}: {record[3:6]} is recorded as late, {least_ns} ns, and took {taken_ns} ns")
        else:
            self.found.counts["undecidable"] += 1

    def _healed(self) -> None:
        by_number = {(key[0], number): key for key, number in self.numbers.items()}
        in_time: set[tuple[str, Key]] = set()
        for seen in self.line.seen:
            output = self.line.output_of(seen)
            taken_ns = seen.at_ns - self.line.planned[_source(seen)][seen.number]
            if taken_ns <= self.line.shape.deadlines_ns[output]:
                in_time.add((output, seen.lineage[:3]))
        for output, (source, _) in self.line.shape.paths[self.line.deployments[-1].plan].items():
            name = next(each for each, (stream, _) in FED.items() if stream == source)
            late = [
                number for number, at_ns in enumerate(self.line.planned[name])
                if at_ns >= self.healed_ns and (output, by_number.get((source, number), (0, 0, 0))) not in in_time
            ]  # fmt: skip
            if late:
                self.found.say(f"{output}: {len(late)} tuples sent after everything had healed gave no result in time")


def _source(seen: Seen) -> str:
    return "s" if seen.lineage[0] == FED["s"][0] else "t"


def _came(one: Written, key: Key, peer: str) -> bool:
    """From that node, or from a client where there is none: a tuple may come from several nodes, on several paths."""
    return any(
        record.peer == NUMBERS[peer] if peer and isinstance(record, rec.Received)
        else not peer and record.kind == rec.ADMITTED
        for record in one.by_key.get(key, ())
    )  # fmt: skip


def _sent(one: Written, key: Key, peer: str) -> bool:
    return any(isinstance(record, rec.Sent) and record.peer == NUMBERS[peer] for record in one.by_key.get(key, ()))


def _ran(one: Written, key: Key, unit: int) -> bool:
    return any(record.kind == rec.RAN and record.ref == unit for record in one.by_key.get(key, ()))
