"""Whether the bounds that are recorded hold what is true: of a tuple's origin, and of how long a result took."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from protos import records as rec
from tests.simulation.agents.agent_checker import Verdicts
from tests.simulation.agents.agents_line import FED
from tests.simulation.agents.stories import Key, Library, Story
from tests.simulation.agents.street.street_line import Given, StreetLine

OUTPUTS = {2: "fast", 3: "pair", 4: "near"}
SOURCES = {stream: name for name, (stream, _) in FED.items()}
DRIFT_PPM, MILLION = 110, 1_000_000  # of two clocks against each other
ROUNDED_NS = 1000
Span = tuple[int, int]
SAME_NS = 1000  # an instant that is so near to a waking may be of before the sleep


class BoundsCheck:
    """numbers: of the tuples that their client knows to be admitted."""

    def __init__(self, line: StreetLine, library: Library, numbers: dict[Key, int], found: Verdicts) -> None:
        self.line, self.library, self.numbers, self.found = line, library, numbers, found

    def run(self) -> None:
        """All origins, and all results that came once."""
        for name, (stream, node) in FED.items():
            for story in self.library.of(node):
                self._origins(name, stream, story)
        given: dict[tuple[str, Key], list[Given]] = defaultdict(list)
        for each in self.line.given:
            given[each.of, each.lineage[:3]].append(each)
        recorded = set[tuple[str, Key]]()
        for record, key, node in self._outputs():
            recorded.add((OUTPUTS.get(record.ref, ""), key))
            of = OUTPUTS.get(record.ref, "")
            if key in self.numbers and len(given[of, key]) == 1:
                self._latency(record, key, node, given[of, key][0])

        for of, key in given.keys() - recorded:
            node = given[of, key][0].node if given[of, key] else ""
            if of != "counted" and node and not any(story.holed for story in self.library.of(node)):
                self.found.say(f"{of}: a result of {key} was given, and no record says so")

    def _outputs(self) -> Iterator[tuple[rec.Output, Key, str]]:
        for story in self.library.stories:
            for record in story.records:
                if isinstance(record, rec.Output):
                    yield record, (record.source, record.epoch, record.seq), story.node

    def _true(self, key: Key) -> tuple[int, int]:
        """The origin, and how far it may be off: an age is counted on the client's clock."""
        name, number = SOURCES[key[0]], self.numbers[key]
        age_ns = self.line.ages[name].get(number, 0)
        return self.line.sources[name].offered_ns[number] - age_ns, ROUNDED_NS + age_ns * DRIFT_PPM // MILLION

    def _origins(self, name: str, stream: int, story: Story) -> None:
        """By the node's own clock, which stood still while its machine slept. What began then may be told as the
        instant at which it stopped, or, once it goes on, by how long ago it was."""
        clock = self.line.clocks.get(story.clock)
        if clock is None:
            return
        slept = self._slept(story)
        for record in story.records:
            key = (record.source, record.epoch, record.seq)
            if isinstance(record, rec.Admitted) and key in self.numbers and record.source == stream:
                true_ns, margin_ns = self._true(key)
                late_ns = self._when(slept, clock.true_ns(record.origin_hi_ns), late=True)
                early_ns = self._when(slept, clock.true_ns(record.origin_lo_ns)) if record.origin_lo_ns > 0 else 0
                if early_ns - margin_ns <= true_ns <= late_ns + margin_ns:
                    continue
                ago = clock.true_ns(record.origin_lo_ns) - margin_ns, clock.true_ns(record.origin_hi_ns) + margin_ns
                if not (self._awake_since(slept, true_ns, clock.true_ns(record.at_ns)) and ago[0] <= true_ns <= ago[1]):
                    self.found.say(f"{name}: {key} is of {true_ns}, and recorded as of {early_ns} to {late_ns}")

    def _slept(self, story: Story) -> list[Span]:
        """Of its machine, while it had that clock."""
        begun_ns = self.line.begun_ns[story.clock]
        end_ns = min((at_ns for at_ns in self.line.machines[story.node].boots if at_ns > begun_ns), default=1 << 62)
        return [span for span in self.line.slept[story.node] if begun_ns <= span[0] < end_ns]

    @staticmethod
    def _awake_since(slept: Sequence[Span], began_ns: int, admitted_ns: int) -> bool:
        """Whether a tuple that began while the machine slept was admitted after that, and after all other sleep."""
        during = any(since_ns - SAME_NS <= began_ns <= until_ns for since_ns, until_ns in slept)
        return during and admitted_ns >= max(until_ns for _, until_ns in slept)

    @staticmethod
    def _when(slept: Sequence[Span], true_ns: int, late: bool = False) -> int:
        """When a clock has shown something, of which it would be that true instant had it never slept since.
        late: the last instant, where it showed it all the while it slept."""
        for since_ns, until_ns in reversed(slept):
            if true_ns < until_ns - SAME_NS:
                true_ns -= until_ns - since_ns
            elif late or true_ns > until_ns + SAME_NS:
                return true_ns
            else:
                return since_ns
        return true_ns

    def _latency(self, record: rec.Output, key: Key, node: str, given: Given) -> None:
        """Also where others were suspended; if the output's own node was, its clock says less than it took."""
        origin_ns, margin_ns = self._true(key)
        if any(since < given.at_ns and until > origin_ns for since, until in self.line.slept[node]):
            self.found.counts["verdicts across a suspension"] += 1
            return
        took_ns = given.at_ns - origin_ns
        margin_ns += max(0, took_ns) * DRIFT_PPM // MILLION
        least_ns, most_ns = record.at_ns - record.origin_hi_ns, record.at_ns - record.origin_lo_ns
        verdict = "met" if most_ns <= record.deadline_ns else "late" if least_ns > record.deadline_ns else "undecidable"
        self.found.counts[verdict] += 1
        if not least_ns - margin_ns <= took_ns <= most_ns + margin_ns:
            self.found.say(f"{given.of}: {key} took {took_ns} ns, and is recorded as {least_ns} to {most_ns} ns")
