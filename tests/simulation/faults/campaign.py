"""One seed after the other: draw faults, run, heal, wait until nothing is left to do, check."""

import json
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, Protocol

from node_agent.core import plan as core
from protos.records import STATE_ENDED
from tests.simulation.faults import draws
from tests.simulation.faults.checker import check, unexplained
from tests.simulation.faults.cpu_limit import Endless, cpu_limit
from tests.simulation.faults.fault import Fault
from tests.simulation.faults.faults import END_NS, KINDS, ROOM, SHARES, fed
from tests.simulation.faults.faulty_line import FED, MS, SECOND, FaultyLine, Load

HEALED_S = 8  # after END_NS, by which everything has ended, everything has been mended
WORKED_OFF_S = 20  # besides, where a slow node and little memory before it let clients keep what they are not rid of
PROBES = 10  # tuples of each source after that
QUIET_S = 5
SMALL_RING, RING = 256, 4096  # records; the small one in one seed of three
SLOW_LAST = Load(last_work=8, memory_bytes=1 << 16)
LOADS = (Load(), Load(), Load(work=40), SLOW_LAST,
         Load(limit=core.Limit(12, SECOND // 2)))  # fmt: skip
LITTLE_MEMORY = 1 << 15
WATCH_NS = SECOND // 4
MOST_PAUSE_NS = SECOND + 10 * MS  # of a link, until it tries again


@dataclass
class Outcome:
    """What one seed gave. fired: faults that had something to do. digest: of all records, for repetitions."""

    seed: int
    kinds: Sequence[str]
    problems: Sequence[str] = ()
    fired: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    simulated_ns: int = 0
    digest: str = ""

    @property
    def command(self) -> str:
        """Repeats it."""
        only = f" --only {','.join(self.kinds)}" if self.kinds else " --only none"
        return f"python -m tests.simulation.faults {self.seed}{only}"

    @property
    def told(self) -> str:
        """For people."""
        return "\n".join([self.command, *(f"  {each}" for each in self.problems)])


class Drawn(NamedTuple):
    """What a seed is made of. fed: the true instants at which each source sends, the probes left aside."""

    load: Load
    ring_records: int
    faults: list[Fault]
    fed: dict[str, list[int]]

    @property
    def healed_ns(self) -> int:
        """From when on results come in time."""
        held_back = self.load.last_work > 1 and self.load.middle_memory_bytes > 0
        return END_NS + (HEALED_S + WORKED_OFF_S * held_back) * SECOND


def kinds_drawn(seed: int) -> set[str]:
    """The kinds of faults that a seed has: it is told without running it."""
    return set(draws.kinds_of(seed, KINDS, SHARES))


def draw(seed: int, kinds: Sequence[str]) -> Drawn:
    """With these kinds of faults, each as it is in that seed with all the others."""
    faults = draws.faults_of(seed, kinds, ROOM)
    load = SLOW_LAST if "crowded" in kinds else draws.stream(seed, "load").choice(LOADS)
    if "overfull" in kinds:
        load = load._replace(middle_memory_bytes=LITTLE_MEMORY)
    small = draws.stream(seed, "ring").randrange(3) == 0
    return Drawn(load, SMALL_RING if small else RING, faults, fed(seed, faults))


def run(seed: int, kinds: Sequence[str] | None = None) -> Outcome:
    """One seed, with its own kinds of faults or with these."""
    chosen = draws.kinds_of(seed, KINDS, SHARES) if kinds is None else list(kinds)
    return play(Outcome(seed, chosen), draw(seed, chosen))


def play(outcome: Outcome, drawn: Drawn) -> Outcome:
    """What was drawn happens."""
    line = FaultyLine(outcome.seed, drawn.ring_records, drawn.load)
    for name, instants in drawn.fed.items():
        probes = [drawn.healed_ns + number * 200 * MS for number in range(PROBES)]
        line.feed(name, instants + probes)
    for fault in drawn.faults:
        line.time.at(fault.at_ns, lambda fault=fault: KINDS[fault.kind](line, fault, outcome.fired))  # type: ignore[misc]
    pauses = _Pauses(line)
    try:
        with cpu_limit():
            line.time.run_until(drawn.healed_ns + QUIET_S * SECOND)
            _stop(line)
        verdicts = check(line, drawn.healed_ns)
        outcome.problems, outcome.counts = [*line.problems, *pauses.problems, *verdicts.problems], verdicts.counts
        unanswered = {FED[name][1]: source.unanswered for name, source in line.sources.items()}
        powerless = [name for name, node in line.nodes.items() if node.power_losses]
        outcome.problems += unexplained(unanswered, powerless, outcome.fired)
    except (Exception, Endless):
        outcome.problems = [traceback.format_exc()]
    outcome.simulated_ns = line.time.now_ns
    outcome.digest = _digest(line)
    return outcome


class _Pauses:
    """Looks now and then how long links wait until they try again."""

    def __init__(self, line: FaultyLine) -> None:
        self.line, self.problems = line, list[str]()
        line.time.at(WATCH_NS, self._look)

    def _look(self) -> None:
        for node in self.line.nodes.values():
            if node.running is None or node.asleep:
                continue
            for name, link in node.running.runtime.outbox.links.items():
                left_ns = (link.sender.connect_at_ns or 0) - node.clock.now_ns()
                if left_ns > MOST_PAUSE_NS and not self.problems:
                    self.problems.append(f"the link from {node.name} to {name} tries again in {left_ns} ns only")
        self.line.time.after(WATCH_NS, self._look)


def _stop(line: FaultyLine) -> None:
    """The runtimes end as they are asked to; what stood in a queue or a link then has its record."""
    for node in line.nodes.values():
        node.stop()
    line.time.run_until(line.time.now_ns + SECOND)
    for node in line.nodes.values():
        assert node.running is None, f"{node.name} does not end"
        assert node.incarnations[-1].state == STATE_ENDED


def _digest(line: FaultyLine) -> str:
    found = sha256()
    for node in line.nodes.values():
        for incarnation in node.trace():
            found.update(incarnation.records)
    return found.hexdigest()


def shrunk(outcome: Outcome) -> Outcome:
    """The fewest kinds of faults with which this seed still fails."""
    for count in range(min(3, len(outcome.kinds))):
        for kinds in combinations(outcome.kinds, count):
            less = run(outcome.seed, kinds)
            if less.problems:
                return less
    return outcome


class Journalled(Protocol):
    """What a campaign writes down of a seed."""

    seed: int
    problems: Sequence[str]
    fired: Counter[str]
    simulated_ns: int


@dataclass
class Journal:
    """What a campaign has done so far, a line for each seed; it goes on where it ended."""

    path: Path | None

    def done(self) -> Iterator[dict[str, object]]:
        """The seeds of before."""
        if self.path is not None and self.path.exists():
            for line in self.path.read_text().splitlines():
                try:
                    yield json.loads(line)
                except json.JSONDecodeError:
                    continue  # it was killed while it wrote

    def add(self, outcome: Journalled) -> None:
        """One more."""
        if self.path is not None:
            entry = {
                "seed": outcome.seed, "problems": list(outcome.problems), "fired": outcome.fired,
                "simulated_ns": outcome.simulated_ns,
            }  # fmt: skip
            with self.path.open("a") as file:
                file.write(json.dumps(entry) + "\n")
