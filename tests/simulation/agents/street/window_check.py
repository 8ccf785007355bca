"""Whether windows hold exactly what they should: no hole, nothing twice, each window ended once."""

from collections import Counter, defaultdict
from itertools import pairwise

from protos import records as rec
from tests.simulation.agents.agent_checker import Verdicts
from tests.simulation.agents.stories import ENDED, Key, Library, Story
from tests.simulation.agents.street.street_line import Given, StreetLine

SOURCE, NODE, WINDOWS = 1, "c", 3  # what is counted, where, and as what source windows are admitted
STREAM, PEER = 3, 2  # of what is counted: its stream to the node, and the node's number, under both plans
WAIT_NS = 500_000_000  # how long a number may be missing, of which nothing is heard
TOLD_NS, OFTEN_NS, SLEPT_NS = 450_000_000, 250_000_000, 3_000_000_000
TOGETHER_NS = 1_000_000  # tuples so near to each other may change places: their origins are known as intervals


class WindowCheck:
    """numbers: of the tuples that their client knows to be admitted."""

    def __init__(self, line: StreetLine, library: Library, numbers: dict[Key, int], found: Verdicts) -> None:
        self.line, self.library, self.found = line, library, found
        self.number_of = {key[1:]: number for key, number in numbers.items() if key[0] == SOURCE}
        self.key_of = {number: key for key, number in self.number_of.items()}

    def run(self) -> None:
        """All windows of all incarnations."""
        by_epoch: dict[int, dict[int, Given]] = defaultdict(dict)
        for given in self.line.given:
            if given.of == "counted":
                self._alone(given)
                by_epoch[given.lineage[1]][given.value["window"]] = given
        for windows in by_epoch.values():
            for number, given in windows.items():
                after = windows.get(number + 1)
                if after is not None:
                    self._no_hole([*given.value["result"], *after.value["result"]], f"windows {number} and the next")
            self._shared(windows)
        lost = self._lost()
        for story in self.library.of(NODE):
            self._ends(story)
            self._told(story, lost)

    def _shared(self, windows: dict[int, Given]) -> None:
        """A window is two hops long: each of its tuples is in the one before it or in the one after it, not in both."""
        for number, given in windows.items():
            if number - 1 in windows and number + 1 in windows:
                before, after = (set(windows[number + by].value["result"]) for by in (-1, 1))
                here = set(given.value["result"])
                if here - before - after:
                    self.found.say(f"window {number} has {here - before - after}, and no window beside it")
                if before & after:
                    self.found.say(f"windows {number - 1} and {number + 1} both have {before & after}")

    def _alone(self, given: Given) -> None:
        numbers, name = given.value["result"], f"window {given.value['window']} of {given.lineage[1]}"
        self.found.counts["windows with tuples"] += bool(numbers)
        if len(numbers) != given.value["count"] or len(set(numbers)) != len(numbers):
            self.found.say(f"{name} counts {given.value['count']} and holds {numbers}")
        for number in numbers:
            if not number % 3:
                self.found.say(f"{name} holds number {number}, which is filtered")
            if number not in self.key_of and not self._died(SOURCE):
                self.found.say(f"{name} holds number {number}, which no client knows to be admitted")
        self._no_hole(numbers, name)

    def _died(self, source: int) -> bool:
        return any(each.lossy for each in self.library.stories)

    def _no_hole(self, numbers: list[int], name: str) -> None:
        """Between the first and the last of one incarnation of the source's node."""
        here = {self.key_of[number] for number in numbers if number in self.key_of}
        planned = self.line.planned["s"]
        for epoch in {key[0] for key in here}:
            seqs = [seq for at, seq in here if at == epoch]
            for seq in range(min(seqs), max(seqs)):
                number = self.number_of.get((epoch, seq))
                if number is None or not number % 3 or (epoch, seq) in here:
                    continue
                if all(abs(planned[number] - planned[each]) > TOGETHER_NS for each in numbers):
                    self.found.say(f"{name} has no number {number}, and holds {sorted(numbers)}")

    def _ends(self, story: Story) -> None:
        """Each window between the first and the last that ended has ended once, under plans that follow each other."""
        lives, ends_of = story.lives(), defaultdict[int, Counter[int]](Counter)
        for record in story.records:
            if isinstance(record, rec.Window) and record.state != rec.WINDOW_OPENED:
                last = record.last_number if record.state == rec.WINDOW_SKIPPED else record.seq
                ends_of[lives.get(record.flags & rec.PLAN_EPOCH_MASK, 0)].update(range(record.seq, last + 1))
                self.found.counts[f"windows {rec.WINDOW_STATES[record.state]}"] += last + 1 - record.seq
                if record.state == rec.WINDOW_CLOSED and not story.lossy:
                    self._given(story, (record.source, record.epoch, record.seq))
        for ends in ends_of.values():
            self._once(story, ends)

    def _once(self, story: Story, ends: Counter[int]) -> None:
        twice = sorted(number for number, count in ends.items() if count > 1)
        if twice:
            self.found.say(f"windows {twice[:5]} of {story.epoch} ended twice")
        if ends and not story.holed:
            left = sorted(set(range(min(ends), max(ends))) - set(ends))
            if left:
                self.found.say(f"windows {left[:5]} of {story.epoch} did not end, later ones did")

    def _lost(self) -> set[tuple[int, int]]:
        """Epoch and seq of what the link to the node has lost."""
        return {
            (record.epoch, record.seq)
            for story in self.library.of("a")
            for record in story.records
            if isinstance(record, rec.Lost | rec.GaveUp)
            and (record.source, record.stream, record.ref) == (SOURCE, STREAM, PEER)
        }

    def _told(self, story: Story, lost: set[tuple[int, int]]) -> None:
        """Of a number that a link has lost windows hear as soon as it is up again: they go on before they would give
        up waiting for it."""
        came: list[rec.Received] = []
        ended = list[int]()
        slept = list[int]()
        for record in story.records:
            if isinstance(record, rec.Received) and (record.source, record.stream) == (SOURCE, STREAM):
                came.append(record)
            elif isinstance(record, rec.Clock) and record.suspended:
                slept.append(record.at_ns)
            elif isinstance(record, rec.Window) and (
                record.state == rec.WINDOW_CLOSED
                or (record.state == rec.WINDOW_ABANDONED and rec.WINDOW_CAUSES[record.cause] == "removed")
            ):
                ended.append(record.at_ns)
        for at, (before, after) in enumerate(pairwise(came)):
            since_ns = after.at_ns
            if (
                before.epoch != after.epoch
                or (before.flags ^ after.flags) & rec.PLAN_EPOCH_MASK  # what a plan owes ends with it
                or not any((after.epoch, seq) in lost for seq in range(before.seq + 1, after.seq))
                or not any(each < since_ns for each in ended)
                or any(abs(each - since_ns) < SLEPT_NS for each in slept)
                or not _steady([each.at_ns for each in came[at + 1 :]], since_ns + WAIT_NS)
            ):
                continue
            self.found.counts["windows told of a loss"] += 1
            if not any(since_ns <= each <= since_ns + TOLD_NS for each in ended):
                text = f"numbers {before.seq + 1} to {after.seq - 1} of {after.epoch}, of which the link has lost some"
                self.found.say(f"no window has ended for {TOLD_NS} ns after {since_ns}: they wait for {text}")

    def _given(self, story: Story, key: Key) -> None:
        if any(given.of == "counted" and given.lineage[:3] == key for given in self.line.given):
            return
        if not any(record.kind in ENDED for record in story.by_key[key]):
            self.found.say(f"window {key} has closed, gave no result, and nothing says why")


def _steady(instants: list[int], until_ns: int) -> bool:
    """Whether something comes often, until then at least."""
    for before, after in pairwise(instants):
        if before > until_ns:
            return True
        if after - before > OFTEN_NS:
            return False
    return False
