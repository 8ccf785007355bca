"""Judges a run of the sensors by what really happened. It shares no code with the agents' engine nor with the report.

What it holds the system to:
- a large payload is whole, and none but those that sources gave, also beside other tuples and behind a fusion;
- a tuple is in one set at most, and each set has one at least; a result of timers has ticks within the tolerance;
- each tuple that was admitted, of clients and of sources that agents run, ends: in a set, as a part of one, shed, lost,
  or in a result; or a dead incarnation says why not;
- once all has drained no node counts a large payload;
- after everything has healed each output has results.
"""

from collections import Counter, defaultdict

from node_agent.virtual.simulated.simulated_source import Fate
from protos import records as rec
from tests.simulation.agents.agent_checker import Verdicts
from tests.simulation.agents.agents_line import FED, MS, SECOND, plan
from tests.simulation.agents.sensors.sensors_line import SENSORS_PLANS, Sensed, SensorsLine
from tests.simulation.agents.stories import ENDED, Key, Library, read

WITHIN_NS = 40 * MS
EVERY_NS = {"left": (100 * MS, 0), "right": (150 * MS, 20 * MS)}  # with its offset, by timer
EXPECTED = {"near": "t", "far": "s"}  # by output: the client's source
AFTER_NS = {"fused": 3 * SECOND, "beats": SECOND, "near": SECOND, "far": SECOND}  # its first result after healing


class SensorsCheck:
    """One run. healed_ns: the true instant from which on everything has to work."""

    def __init__(self, line: SensorsLine, healed_ns: int) -> None:
        self.line, self.healed_ns = line, healed_ns
        self.found = Verdicts()
        self.library: Library = read(line.run, {name: plan(name) for name in SENSORS_PLANS})
        self.numbers = self._admitted()
        self.disturbed = any(each.lossy for each in self.library.stories)

    def run(self) -> Verdicts:
        """All checks."""
        self._counts()
        self._results()
        self._fused()
        self._beats()
        self._conservation()
        self._memory()
        self._healed()
        return self.found

    def _admitted(self) -> dict[Key, int]:
        """The number of each tuple that its client knows to be admitted."""
        numbers: dict[Key, int] = {}
        for name, source in self.line.sources.items():
            if not source.settled:
                self.found.say(f"the client of {name} has not heard of all its tuples")
            for fed in source.fed.values():
                if fed.fate is Fate.ADMITTED:
                    numbers[FED[name][0], fed.epoch, fed.seq] = fed.number
        return numbers

    def _counts(self) -> None:
        counts = self.found.counts
        for story in self.library.stories:
            for record in story.records:
                if isinstance(record, rec.Shed):
                    counts[f"shed {rec.SHED_POLICIES[record.policy]}"] += 1
                elif isinstance(record, rec.Refused):
                    counts[f"refused {rec.REASONS[record.reason]}"] += record.tuples
                elif isinstance(record, rec.Merged):
                    counts["merged"] += 1

    def _results(self) -> None:
        counts: Counter[tuple[str, Key]] = Counter()
        for given in self.line.given:
            key: Key = given.lineage[:3]
            counts[given.of, key] += 1
            if given.of in EXPECTED:
                number = self.numbers.get(key)
                if number is None and not self.disturbed:
                    self.found.say(f"{given.of}: a result of {key}, which no client knows to be admitted")
                elif number is not None and number != given.value["n"]:
                    self.found.say(
                        f"{given.of}: tuple {key} has the number {given.value['n']}, its client sent {number}"
                    )
            if given.of == "near":
                self._whole(given, "image")
                self.found.counts["results with an image"] += given.value["image"] >= 0
                self.found.counts["results without an image"] += given.value["image"] == -1
        for (of, key), count in counts.items():
            self.found.counts["results"] += count
            self.found.counts[f"results of {of}"] += count
            if count > 1:
                self.found.counts["duplicates"] += 1
                if not self.disturbed:
                    self.found.say(f"{of}: {count} results of {key}")

    def _whole(self, given: Sensed, what: str) -> None:
        number = given.value[what]
        if number == -2:
            self.found.say(f"{given.of}: the {what} of {given.lineage[:3]} is not what its source gave")
        elif number >= 0 and (number % 11 == 10 or number % 5 == 4):
            self.found.say(f"{given.of}: {given.lineage[:3]} has {what} {number}, of a call that gave none")

    def _fused(self) -> None:
        """Each tuple in one set at most."""
        used: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
        for given in self.line.given:
            if given.of != "fused":
                continue
            parts = [given.value[what] for what in ("image", "scan")]
            self.found.counts["fused in part"] += -1 in parts
            if parts == [-1, -1]:
                self.found.say(f"fused: {given.lineage[:3]} is of no tuple")
            for what, number in zip(("image", "scan"), parts, strict=True):
                self._whole(given, what)
                if number >= 0:
                    used[what][number, given.lineage[1] if len([p for p in parts if p >= 0]) == 1 else 0] += 1
        if not self.disturbed:
            for what, numbers in used.items():
                twice = Counter(number for number, _ in numbers)
                for number, count in twice.items():
                    if count > 1 or max(numbers[each] for each in numbers if each[0] == number) > 1:
                        self.found.say(f"fused: {what} {number} is in several sets")

    def _beats(self) -> None:
        """Ticks of the timers: each of its own clock, so only whether they are ticks is judged here."""
        for given in self.line.given:
            if given.of == "beats":
                ticks = given.value["planned_ns"]
                if ticks == [None, None]:
                    self.found.say(f"beats: {given.lineage[:3]} is of no tick")
                for planned_ns, (every_ns, offset_ns) in zip(ticks, EVERY_NS.values(), strict=True):
                    if planned_ns is not None and planned_ns % every_ns != offset_ns:
                        self.found.say(f"beats: {planned_ns} is no tick of every {every_ns} ns")

    def _conservation(self) -> None:
        came = {(given.of, given.lineage[:3]) for given in self.line.given}
        graph = plan(SENSORS_PLANS[0]).graph
        names = {source.id: name for name, source in graph.sources.items()}
        wanted = {"s": "far", "t": "near"}
        for story in self.library.stories:
            for record in story.records:
                if not isinstance(record, rec.Admitted):
                    continue
                key, name = (record.source, record.epoch, record.seq), names[record.ref]
                own = name not in wanted
                ended = self._in_a_set(key) if own else (wanted[name], key) in came
                if ended:
                    continue
                why = self._why_not(key)
                self.found.counts[f"no result: {why or 'unexplained'}"] += 1
                if not why:
                    self.found.say(f"tuple {key} of {name} was admitted on {story.node}, and nothing says how it ended")

    def _in_a_set(self, key: Key) -> bool:
        """Whether it ran as the oldest of a set, or is a part of one."""
        return any(
            record.kind in (rec.RAN, rec.MERGED) for each in self.library.stories for record in each.by_key.get(key, ())
        )

    def _why_not(self, key: Key) -> str:
        """Empty: nothing says."""
        for story in self.library.stories:
            for record in story.by_key.get(key, ()):
                if record.kind in ENDED:
                    return rec.KINDS[record.kind]
        return "a dead incarnation" if self.disturbed else ""

    def _memory(self) -> None:
        for node, left in self.line.left_bytes.items():
            self.found.counts["nodes whose memory was looked at"] += 1
            if left:
                self.found.say(f"{node}: all has drained, and {left} bytes of large payloads are counted")

    def _healed(self) -> None:
        last = max(instants[-1] for instants in self.line.planned.values())
        for of, soon_ns in AFTER_NS.items():
            since = [given for given in self.line.given if given.of == of and given.at_ns > self.healed_ns]
            if not since or since[0].at_ns > self.healed_ns + soon_ns:
                self.found.say(f"{of}: no result soon after everything had healed")
            elif of not in EXPECTED and since[-1].at_ns < last - SECOND:
                self.found.say(f"{of}: results end before the last tuple is sent")
        for of, name in EXPECTED.items():
            came = {given.value["n"] for given in self.line.given if given.of == of}
            late = [
                number for number, at_ns in enumerate(self.line.planned[name])
                if at_ns >= self.healed_ns and number not in came
            ]  # fmt: skip
            if late:
                self.found.say(f"{of}: {len(late)} tuples sent after everything had healed gave no result")


__all__ = ["SensorsCheck"]
