"""Judges a run by what really happened. It shares no code with the report: it follows each tuple through the records.

What it holds the system to:
- each result is of a tuple that was admitted, has its number, and came once, unless a crash or a power cut explains it;
- each tuple that its client knows to be admitted gave each result, or a record or a dead incarnation on its way says
  why not;
- records that are missing are told where they are missing;
- a result that is recorded as met was in time by true time, one recorded as late was late;
- after everything has healed, new tuples give their results in time, and that is recorded.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from node_agent.virtual.simulated.simulated_runtime import Incarnation
from node_agent.virtual.simulated.simulated_source import Fate
from protos import records as rec
from tests.simulation.faults.faulty_line import DEADLINES, FED, PATHS, FaultyLine, Seen

Key = tuple[int, int, int]  # source, epoch, seq

OUTPUT_IDS = {1: "out", 2: "mid", 3: "side"}
TOLERANCE_PPM = 110  # two drifts
LEARNS_NS = 1_000_000_000  # before its first tuple a runtime does not know what one takes, and grants credit already
ENDED = (rec.LOST, rec.SHED, rec.GAVE_UP)


@dataclass
class Written:
    """The records of one incarnation, by tuple."""

    node: str
    incarnation: Incarnation
    by_key: dict[Key, list[rec.Record]] = field(default_factory=lambda: defaultdict(list))
    dropped: bool = False

    @property
    def lossy(self) -> bool:
        """Whether records may be missing that it wrote, or tuples it had taken over."""
        return self.dropped or self.incarnation.state != rec.STATE_ENDED


@dataclass
class Verdicts:
    """What was found."""

    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def say(self, text: str) -> None:
        """One problem."""
        if len(self.problems) < 20:
            self.problems.append(text)


def check(line: FaultyLine, healed_ns: int) -> Verdicts:
    """healed_ns: the true instant from which on everything has to work."""
    found = Verdicts()
    written = list(_written(line))
    numbers = _admitted(line, found)
    _check_results(line, numbers, written, found)
    _check_conservation(line, numbers, written, found)
    _check_written(line, numbers, written, found)
    _check_taken_over(line, written, found)
    _check_queues(line, written, found)
    _check_sums(written, found)
    _check_verdicts(line, numbers, written, found)
    _check_healed(line, numbers, healed_ns, found)
    return found


def _written(line: FaultyLine) -> Iterator[Written]:
    for node in line.nodes.values():
        for incarnation in node.trace():
            one = Written(node.name, incarnation)
            for record in rec.unpack_records(incarnation.records):
                one.dropped = one.dropped or record.kind == rec.GAP
                if record.kind != rec.LOAD:
                    one.by_key[record.source, record.epoch, record.seq].append(record)
            yield one


def _check_written(line: FaultyLine, numbers: dict[Key, int], written: list[Written], found: Verdicts) -> None:
    """What a client knows to be admitted has a record of it, where that incarnation's records are all here."""
    for key in numbers:
        node = next(node for stream, node in FED.values() if stream == key[0])
        there = [each for each in written if each.node == node and each.incarnation.header.starts & 0xFFFF == key[1]]
        whole = there and not any(each.dropped or not each.incarnation.state for each in there)
        if whole and not any(_has(each, key, rec.ADMITTED) for each in there):
            found.say(f"{key} was admitted at {node}, as its client knows, and no record says so")


def _check_taken_over(line: FaultyLine, written: list[Written], found: Verdicts) -> None:
    """What a runtime has taken over is not taken again by the next one, as long as the machine has power: nothing
    comes twice from one incarnation of a peer, and no more is admitted than was offered. One runtime never takes a
    tuple twice, from any sender."""
    for name, (stream, node) in FED.items():
        there = [each for each in written if each.node == node]
        if all(each.incarnation.state for each in there) and not line.nodes[node].power_losses:
            admitted = sum(
                sum(record.kind == rec.ADMITTED for record in records)
                for each in there for key, records in each.by_key.items() if key[0] == stream
            )  # fmt: skip
            if admitted > len(line.sources[name].fed):
                found.say(f"{name}: {admitted} tuples were admitted, and {len(line.sources[name].fed)} were offered")
    for each in written:
        counts = Counter(
            (key, record.stream) for key, records in each.by_key.items()
            for record in records if isinstance(record, rec.Received)
        )  # fmt: skip
        twice = [name for name, count in counts.items() if count > 1]
        if twice:
            found.say(f"{each.node}: one incarnation has taken over {len(twice)} tuples twice, {twice[0]} among them")
    for node in line.nodes:
        there = [each for each in written if each.node == node]
        powered = not line.nodes[node].power_losses  # else proofs may be gone of what a runtime that crashed had taken
        if powered and all(each.incarnation.state for each in there) and len(_starts(line, node)) == 1:
            counts = Counter(
                (key, record.stream, record.link_seq)
                for each in there for key, records in each.by_key.items()
                for record in records if isinstance(record, rec.Received)
            )  # fmt: skip
            twice = [each for each, count in counts.items() if count > 1]
            if twice:
                found.say(f"{node}: {len(twice)} tuples were taken over twice, {twice[0]} among them")


def _starts(line: FaultyLine, node: str) -> set[int]:
    """Of the runtime that sends to that node: its incarnations."""
    before = {"b": "a", "c": "b"}.get(node)
    return {each.header.starts for each in line.nodes[before].trace()} if before is not None else {1}


def _check_queues(line: FaultyLine, written: list[Written], found: Verdicts) -> None:
    """A node that gets tuples from peers only never has more than its memory, since they have no credit for more."""
    most = line.load.memory_bytes
    for each in written if most else ():
        if each.node == "c":
            first_ns = 0  # when the first tuple came
            for record in rec.unpack_records(each.incarnation.records):
                if isinstance(record, rec.Load):
                    found.counts["queues at their limit"] += record.queue_bytes > most * 3 // 4
                    if record.queue_bytes > most + most // 8:
                        found.say(f"c: {record.queue_bytes} bytes wait, and {most} may")
                elif isinstance(record, rec.Received):
                    first_ns = first_ns or record.at_ns
                elif isinstance(record, rec.Shed) and record.policy == rec.POLICY_MEMORY:
                    if record.at_ns - first_ns < LEARNS_NS:
                        continue
                    found.say(f"c: {record[3:6]} was shed for want of memory, and came from a peer")


def _check_sums(written: list[Written], found: Verdicts) -> None:
    """What LOAD adds up is what the records before it say, up to the first one that says that some are missing."""
    for each in written:
        admitted = 0
        for index, record in enumerate(rec.unpack_records(each.incarnation.records)):
            if record.kind == rec.GAP:
                break
            admitted += record.kind == rec.ADMITTED
            if not isinstance(record, rec.Load) or not record.flags & rec.FLAG:
                continue
            if (record.records_before, record.admitted) != (index, admitted % rec.COUNTED):
                sums = f"{record.records_before} records and {record.admitted} tuples"
                found.say(f"{each.node}: LOAD says {sums} before it, and {index} and {admitted} are there")
                break


def _admitted(line: FaultyLine, found: Verdicts) -> dict[Key, int]:
    """The number of each tuple that its client knows to be admitted."""
    numbers: dict[Key, int] = {}
    for name, source in line.sources.items():
        if not source.settled:
            fates = Counter(each.fate.value for each in source.fed.values())
            found.say(f"the client of {name} has not heard of all its tuples: {dict(fates)}")
        for fed in source.fed.values():
            found.counts[f"tuples {fed.fate.value}"] += 1
            if fed.fate is Fate.ADMITTED:
                key = (FED[name][0], fed.epoch, fed.seq)
                if key in numbers:
                    found.say(f"two tuples of {name} were given the lineage {key}: {numbers[key]} and {fed.number}")
                numbers[key] = fed.number
    return numbers


def unexplained(unanswered: Mapping[str, int], powerless: Collection[str], fired: Counter[str]) -> list[str]:
    """A node loses what it said it had only with its own power, or where a burst was more than it remembers of what
    nobody had heard of. unanswered: tuples that went to each node; powerless: those that have lost their power."""
    if fired["burst"] and fired["crash_unheard"]:
        return []
    return [
        f"{count} tuples were taken over by {node}, and never answered, without a power cut there"
        for node, count in unanswered.items() if count and node not in powerless
    ]  # fmt: skip


def _output(seen: Seen) -> str:
    if seen.output_node == "b":
        return "mid"
    return "out" if seen.lineage[0] == FED["s"][0] else "side"


def _check_results(line: FaultyLine, numbers: dict[Key, int], written: list[Written], found: Verdicts) -> None:
    disturbed = any(each.incarnation.state != rec.STATE_ENDED for each in written)
    counts: Counter[tuple[str, Key]] = Counter()
    for seen in line.seen:
        key: Key = seen.lineage[:3]
        counts[_output(seen), key] += 1
        if key in numbers and numbers[key] != seen.number:
            found.say(f"{_output(seen)}: tuple {key} has the number {seen.number}, its client sent {numbers[key]}")
        if key not in numbers and not disturbed:
            found.say(f"{_output(seen)}: a result of {key}, which no client knows to be admitted")
    for (output, key), count in counts.items():
        found.counts["results"] += count
        if count > 1:
            found.counts["duplicates"] += 1
            if not disturbed:
                found.say(f"{output}: {count} results of {key}")


def _check_conservation(line: FaultyLine, numbers: dict[Key, int], written: list[Written], found: Verdicts) -> None:
    came = {(_output(seen), seen.lineage[:3]) for seen in line.seen}
    for key, number in numbers.items():
        for output, (source, path) in PATHS.items():
            if source != key[0] or (output, key) in came:
                continue
            why = _why_not(key, path, written)
            found.counts[f"no result: {why or 'unexplained'}"] += 1
            if not why:
                found.say(f"{output}: tuple {key}, number {number}, was admitted, has no result, and nothing says why")


def _why_not(key: Key, path: tuple[tuple[str, int], ...], written: list[Written]) -> str:
    """Where a tuple ended that gave no result; empty: nowhere."""
    for at, (node, unit) in enumerate(path):
        there = [each for each in written if each.node == node]
        having = [each for each in there if key in each.by_key]
        arrived = [each for each in having if _has(each, key, rec.ADMITTED if not at else rec.RECEIVED)]
        if not arrived:
            return "its records went with a dead incarnation" if any(each.lossy for each in there) else ""
        for each in having:
            for record in each.by_key[key]:
                if record.kind in ENDED:
                    return rec.KINDS[record.kind]
        ran = [each for each in arrived if any(r.kind == rec.RAN and r.ref == unit for r in each.by_key[key])]
        if not ran:
            return "taken over by a dead incarnation" if all(each.lossy for each in arrived) else ""
        if at + 1 < len(path) and path[at + 1][0] != node and not any(_has(each, key, rec.SENT) for each in ran):
            return "waited in the link of a dead incarnation" if all(each.lossy for each in ran) else ""
        if at + 1 < len(path):
            following = [each for each in written if each.node == path[at + 1][0]]
            if not any(_has(each, key, rec.RECEIVED) for each in following) and all(each.lossy for each in ran):
                return "under way when its sender died"
    return "its result went with a dead incarnation" if any(each.lossy for each in written) else ""


def _has(one: Written, key: Key, kind: int) -> bool:
    return any(record.kind == kind for record in one.by_key.get(key, ()))


def _check_verdicts(line: FaultyLine, numbers: dict[Key, int], written: list[Written], found: Verdicts) -> None:
    first: dict[tuple[str, Key], Seen] = {}
    twice: set[tuple[str, Key]] = set()
    for seen in line.seen:
        name = _output(seen), seen.lineage[:3]
        if name in first:
            twice.add(name)
        first[name] = seen
    for one in written:
        for key, records in one.by_key.items():
            for record in records:
                if isinstance(record, rec.Output) and key in numbers:
                    name = OUTPUT_IDS[record.ref], key
                    if name in first and name not in twice:
                        _check_verdict(line, record, first[name], found)


def _check_verdict(line: FaultyLine, record: rec.Output, seen: Seen, found: Verdicts) -> None:
    output = _output(seen)
    source = next(name for name, (stream, _) in FED.items() if stream == record.source)
    origin_ns = line.planned[source][seen.number]
    taken_ns = seen.at_ns - origin_ns
    if any(since < seen.at_ns and until > origin_ns for spans in line.slept.values() for since, until in spans):
        found.counts["verdicts across a suspension"] += 1
        return
    margin_ns = taken_ns * TOLERANCE_PPM // 1_000_000 + 1000
    most_ns, least_ns = record.at_ns - record.origin_lo_ns, record.at_ns - record.origin_hi_ns
    if most_ns <= DEADLINES[output]:
        found.counts["met"] += 1
        if taken_ns > DEADLINES[output] + margin_ns:
            found.say(f"{output}: {record[3:6]} is recorded as met, {most_ns} ns, and took {taken_ns} ns")
    elif least_ns > DEADLINES[output]:
        found.counts["late"] += 1
        if taken_ns < DEADLINES[output] - margin_ns:
            found.say(f"{output}: {record[3:6]} is recorded as late, {least_ns} ns, and took {taken_ns} ns")
    else:
        found.counts["undecidable"] += 1


def _check_healed(line: FaultyLine, numbers: dict[Key, int], healed_ns: int, found: Verdicts) -> None:
    by_number = {(key[0], number): key for key, number in numbers.items()}
    in_time: set[tuple[str, Key]] = {
        (_output(seen), seen.lineage[:3])
        for seen in line.seen
        if seen.at_ns - line.planned["s" if seen.lineage[0] == FED["s"][0] else "t"][seen.number]
        <= DEADLINES[_output(seen)]
    }
    for output, (source, _) in PATHS.items():
        name = next(each for each, (stream, _) in FED.items() if stream == source)
        late = [
            number for number, at_ns in enumerate(line.planned[name])
            if at_ns >= healed_ns and (output, by_number.get((source, number), (0, 0, 0))) not in in_time
        ]  # fmt: skip
        if late:
            found.say(f"{output}: {len(late)} tuples that were sent after everything had healed gave no result in time")
