"""Judges a run of the street by what really happened. It shares no code with the agents' engine nor with the report.

What it holds the system to, besides that results are of tuples that were admitted, and once where nothing crashed:
- each tuple that its client knows to be admitted gave what it has to, or a record or a dead incarnation says why not;
- a window that gave a result holds every tuple between its first and its last one, none twice, and so do two windows
  in a row; each window ends once;
- a result of the join is of both branches;
- a side input's value is the latest that had come to the node when the instance began;
- what is admitted under a policed source conforms to its curve, and what was shed would not have;
- none is admitted that is older than its source allows, none refused for that which is not;
- a join gives up nothing whose partner may still be of use;
- bounds of an origin and of how long a result took hold the true ones;
- no more tuples are admitted than were offered.
"""

from collections import Counter, defaultdict

from node_agent.virtual.simulated.simulated_source import Fate
from protos import records as rec
from tests.simulation.agents.agent_checker import Verdicts
from tests.simulation.agents.agents_line import FED, MS, plan
from tests.simulation.agents.stories import ENDED, Key, Library, read
from tests.simulation.agents.street.bounds_check import BoundsCheck
from tests.simulation.agents.street.police_check import Curve, check_police
from tests.simulation.agents.street.side_check import SideCheck
from tests.simulation.agents.street.street_line import MOST_AGE_NS, STREET_PLANS, Given, StreetLine
from tests.simulation.agents.street.window_check import WindowCheck

EXPECTED = {"fast": ("s", "b"), "pair": ("t", ""), "near": ("t", "b")}  # by output: source, and where it is given
CURVE = Curve(8, 500 * MS, {"street_first": 54_120_000, "street_second": 54_280_000})
JOIN_NS = 600 * MS  # the longest deadline of what is joined: a join waits longer
SOURCES = {stream: name for name, (stream, _) in FED.items()}


class StreetCheck:
    """One run. healed_ns: the true instant from which on everything has to work."""

    def __init__(self, line: StreetLine, healed_ns: int) -> None:
        self.line, self.healed_ns = line, healed_ns
        self.found = Verdicts()
        self.library: Library = read(line.run, {name: plan(name) for name in STREET_PLANS})
        self.numbers = self._admitted()
        self.disturbed = any(each.lossy for each in self.library.stories)

    def run(self) -> Verdicts:
        """All checks."""
        found, library = self.found, self.library
        self._results()
        self._conservation()
        self._ages()
        self._patience()
        self._offered()
        BoundsCheck(self.line, library, self.numbers, found).run()
        self._healed()
        WindowCheck(self.line, library, self.numbers, found).run()
        SideCheck(self.line, library, self.numbers, found).run()
        for story in library.of("b"):
            check_police(story, library, FED["t"][0], CURVE, found)
        for story in library.stories:
            found.counts["eras"] += sum(isinstance(each, rec.Clock) and each.suspended for each in story.records)
        return found

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
        for given in self.line.given:
            key: Key = given.lineage[:3]
            counts[given.of, key] += 1
            if given.of != "counted":
                self._result(given, key)
        for (of, key), count in counts.items():
            self.found.counts["results"] += count
            self.found.counts[f"results of {of}"] += count
            if count > 1:
                self.found.counts["duplicates"] += 1
                if not self.disturbed:
                    self.found.say(f"{of}: {count} results of {key}")

    def _result(self, given: Given, key: Key) -> None:
        number = self.numbers.get(key)
        if number is None:
            if not self.disturbed:
                self.found.say(f"{given.of}: a result of {key}, which no client knows to be admitted")
            return
        value = given.value
        if value["n"] != number:
            self.found.say(f"{given.of}: tuple {key} has the number {value['n']}, its client sent {number}")
        if given.of == "fast" and not number % 3:
            self.found.say(f"fast: a result of number {number}, which is filtered")
        if given.of == "pair" and (value["left"], value["right"]) != (["left", number], ["right", number]):
            self.found.say(f"pair: {key}, number {number}, has {value}")

    def _conservation(self) -> None:
        came = {(given.of, given.lineage[:3]) for given in self.line.given}
        for key, number in self.numbers.items():
            for of, (source, _) in EXPECTED.items():
                if SOURCES[key[0]] != source or (of, key) in came or (of == "fast" and not number % 3):
                    continue
                why = self._why_not(key)
                self.found.counts[f"no result: {why or 'unexplained'}"] += 1
                if not why:
                    self.found.say(f"{of}: tuple {key}, number {number}, was admitted, has no result, nothing says why")

    def _why_not(self, key: Key) -> str:
        """Empty: nothing says."""
        for story in self.library.stories:
            for record in story.by_key.get(key, ()):
                if record.kind in ENDED:
                    return rec.KINDS[record.kind]
        return "a dead incarnation" if self.disturbed else ""

    def _ages(self) -> None:
        """Of t, for which a tuple that may be young enough is admitted."""
        stream, node = FED["t"]
        for story in self.library.of(node):
            for record in story.records:
                if isinstance(record, rec.Admitted) and record.source == stream:
                    least_ns = record.at_ns - record.origin_hi_ns
                    if least_ns > MOST_AGE_NS:
                        self.found.say(f"t: {record[3:6]} was admitted, and is {least_ns} ns old at least")
                elif isinstance(record, rec.Refused) and record.reason == rec.REASON_TOO_OLD and record.ref == stream:
                    self.found.counts["refused as too old"] += record.tuples
                    if record.age_lo_ns <= MOST_AGE_NS:
                        self.found.say(f"t: a tuple that may be {record.age_lo_ns} ns old was refused as too old")

    def _patience(self) -> None:
        """A join gives up what waits when its partner has not come for as long as it may still be of use. When it came
        is not known where all that is told of it before is missing, as records before that are."""
        for story in self.library.stories:
            for index, record in enumerate(story.records):
                if isinstance(record, rec.Lost) and record.cause == rec.CAUSE_JOIN_EXPIRED:
                    self.found.counts["joins expired"] += 1
                    of_it = story.by_key[record.source, record.epoch, record.seq]
                    if index >= story.whole and all(each.kind == rec.LOST for each in of_it):
                        continue
                    first = min(each.at_ns for each in of_it)
                    if record.at_ns - first < JOIN_NS:
                        self.found.say(
                            f"{story.node}: {record[3:6]} was given up by a join {record.at_ns - first} ns on"
                        )

    def _offered(self) -> None:
        """How many were admitted more often than once: only a loss of power explains it."""
        for name, (stream, node) in FED.items():
            stories = self.library.of(node)
            admitted = sum(
                isinstance(each, rec.Admitted) and each.source == stream for story in stories for each in story.records
            )
            refused = sum(each.fate is Fate.REFUSED for each in self.line.sources[name].fed.values())
            most = len(self.line.sources[name].fed) - refused
            again = admitted - most
            if again > 0:
                self.found.counts["admitted again"] += again

    def _healed(self) -> None:
        came: dict[str, set[int]] = defaultdict(set)
        for given in self.line.given:
            if given.of != "counted":
                came[given.of].add(given.value["n"])
        for of, (name, _) in EXPECTED.items():
            late = [
                number for number, at_ns in enumerate(self.line.planned[name])
                if at_ns >= self.healed_ns and number not in came[of] and (of != "fast" or number % 3)
            ]  # fmt: skip
            if late:
                self.found.say(f"{of}: {len(late)} tuples sent after everything had healed gave no result")
        since = [given for given in self.line.given if given.of == "counted" and given.at_ns > self.healed_ns]
        if not since:
            self.found.say("counted: no window that closed after everything had healed gave a result")
