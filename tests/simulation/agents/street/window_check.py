"""Whether windows hold exactly what they should: no hole, nothing twice, each window ended once."""

from collections import Counter, defaultdict

from protos import records as rec
from tests.simulation.agents.agent_checker import Verdicts
from tests.simulation.agents.stories import ENDED, Key, Library, Story
from tests.simulation.agents.street.street_line import Given, StreetLine

SOURCE, NODE, WINDOWS = 1, "c", 3  # what is counted, where, and as what source windows are admitted
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
        for story in self.library.of(NODE):
            self._ends(story)

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
        """Each window between the first and the last that ended has ended once."""
        ends: Counter[int] = Counter()
        for record in story.records:
            if isinstance(record, rec.Window) and record.state != rec.WINDOW_OPENED:
                last = record.last_number if record.state == rec.WINDOW_SKIPPED else record.seq
                ends.update(range(record.seq, last + 1))
                self.found.counts[f"windows {rec.WINDOW_STATES[record.state]}"] += last + 1 - record.seq
                if record.state == rec.WINDOW_CLOSED and not story.lossy:
                    self._given(story, (record.source, record.epoch, record.seq))
        twice = sorted(number for number, count in ends.items() if count > 1)
        if twice:
            self.found.say(f"windows {twice[:5]} of {story.epoch} ended twice")
        if ends and not story.holed:
            left = sorted(set(range(min(ends), max(ends))) - set(ends))
            if left:
                self.found.say(f"windows {left[:5]} of {story.epoch} did not end, later ones did")

    def _given(self, story: Story, key: Key) -> None:
        if any(given.of == "counted" and given.lineage[:3] == key for given in self.line.given):
            return
        if not any(record.kind in ENDED for record in story.by_key[key]):
            self.found.say(f"window {key} has closed, gave no result, and nothing says why")
