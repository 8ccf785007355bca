"""One seed after the other, of whole agents: deploy, draw faults, run, heal, stop, collect, check."""

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import NamedTuple, Protocol

from protos import segments
from tests.simulation.agents.agent_checker import Check, Key, Verdicts
from tests.simulation.agents.agent_faults import DISK, END_NS, ROOM, SHARES, Begin, load
from tests.simulation.agents.agents_line import FED, MS, SECOND, AgentsLine
from tests.simulation.agents.more_faults import ALL, begin
from tests.simulation.agents.sometimes import RECOVERIES, missing, seen
from tests.simulation.agents.stories import read
from tests.simulation.agents.trace_rules import check_admitted, check_rules
from tests.simulation.faults import draws
from tests.simulation.faults.checker import unexplained
from tests.simulation.faults.cpu_limit import Endless, cpu_limit
from tests.simulation.faults.fault import Fault

DEPLOY_NS = SECOND
MENDED_NS = END_NS + 3 * SECOND  # where a deployment was left half done, its user does it again
HEALED_NS = END_NS + 13 * SECOND  # everything has been mended by then
PROBES = 10  # tuples of each source after that
QUIET_NS = HEALED_NS + 5 * SECOND
OVER_NS = QUIET_NS + 60 * SECOND
SMALL_RING, RING = 256, 4096  # records; the small one in one seed of eight
DEPLOYED = {
    "redeploy",
    "redeploy_slowly",
    "two_coordinators",
    "collect",
    "burst",
}  # faults that take nothing from a tuple
LOSING = ("bit_rot", "moved", "old_state")  # what is committed may be gone with them
MEMORY = Path("/dev/shm")


class Judge(Protocol):
    """Judges one run. numbers: of the tuples that their client knows to be admitted, by lineage."""

    numbers: dict[Key, int]

    def run(self) -> Verdicts:
        """All checks."""


@dataclass
class Outcome:
    """What one seed gave. fired: faults that had something to do. digest: of all records, for repetitions."""

    seed: int
    kinds: Sequence[str]
    problems: Sequence[str] = ()
    world: "World | None" = None
    fired: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    simulated_ns: int = 0
    digest: str = ""
    lines: Sequence[str] = ()

    @property
    def command(self) -> str:
        """Repeats it."""
        only = f" --only {','.join(self.kinds)}" if self.kinds else " --only none"
        return f"python -m {(self.world or LINE).module} {self.seed}{only}"

    @property
    def told(self) -> str:
        """For people."""
        return "\n".join([self.command, *(f"  {each}" for each in self.problems)])


class World(NamedTuple):
    """What a campaign is about: a line of machines, what judges its runs, and how a failing seed is repeated."""

    line: type[AgentsLine] = AgentsLine
    check: Callable[[AgentsLine, int], Judge] = Check
    module: str = "tests.simulation.agents"
    kinds: Sequence[str] = tuple(ALL)
    recoveries: Mapping[str, str] = RECOVERIES  # that have to happen in some seed
    shares: Sequence[float] = SHARES  # of these, a seed takes one: how probable each kind is
    more: Mapping[str, Begin] = MappingProxyType({})  # kinds of faults that only this line has, and which it is about
    more_shares: Sequence[float] = SHARES

    def kinds_of(self, seed: int) -> list[str]:
        """That a seed has."""
        often = draws.kinds_of(seed, self.more, self.more_shares)
        return [*often, *draws.kinds_of(seed, self.kinds, self.shares)]

    def missing(self, counts: Counter[str]) -> list[str]:
        """What has never happened in a campaign. Where the line has kinds of its own, they are what it is for."""
        return missing(counts, self.more or self.kinds, self.recoveries)


LINE = World()


class Drawn(NamedTuple):
    """What a seed is made of. fed: the true instants at which each source sends, the probes left aside."""

    ring_records: int
    faults: list[Fault]
    fed: dict[str, list[int]]


def kinds_drawn(seed: int, world: World = LINE) -> set[str]:
    """The kinds of faults that a seed has: it is told without running it."""
    return set(world.kinds_of(seed))


def draw(seed: int, kinds: Sequence[str], once: bool = False) -> Drawn:
    """With these kinds of faults, each as it is in that seed with all the others. once: one fault of each."""
    faults = draws.faults_of(seed, kinds, ROOM, once)
    small = draws.stream(seed, "ring").randrange(8) == 0
    return Drawn(SMALL_RING if small else RING, faults, load(seed, faults))


def run(seed: int, kinds: Sequence[str] | None = None, once: bool = False, world: World = LINE) -> Outcome:
    """One seed, with its own kinds of faults or with these. once: each kind once."""
    chosen = world.kinds_of(seed) if kinds is None else list(kinds)
    return play(Outcome(seed, chosen, world=world), draw(seed, chosen, once))


def play(outcome: Outcome, drawn: Drawn) -> Outcome:
    """What was drawn happens."""
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        _run(outcome, drawn, Path(folder))
    return outcome


def _run(outcome: Outcome, drawn: Drawn, folder: Path) -> None:
    world = outcome.world or LINE
    line = world.line(outcome.seed, folder, drawn.ring_records)
    line.kinds = frozenset(fault.kind for fault in drawn.faults)
    for name, instants in drawn.fed.items():
        probes = [HEALED_NS + number * 200 * MS for number in range(PROBES)]
        line.feed(name, instants + probes)
    line.time.at(DEPLOY_NS, lambda: line.deploy("first", tries=3))
    for fault in drawn.faults:
        line.time.at(fault.at_ns, lambda fault=fault: begin(line, fault, outcome.fired, world.more))  # type: ignore[misc]
    line.time.at(MENDED_NS, lambda: line.mend(any(outcome.fired[kind] for kind in LOSING)))
    try:
        with cpu_limit():
            line.time.run_until(QUIET_NS)
            outcome.fired.update(seen(line))
            if not any(outcome.fired[kind] for kind in DISK):
                line.expect_fences()
            _finish(line)
        judge = world.check(line, HEALED_NS)
        verdicts = judge.run()
        library = read(line.run, {name: line.shape.plan(name) for name in {each.plan for each in line.deployments}})
        check_rules(library, line.hung, verdicts)
        check_admitted(library, judge.numbers, verdicts)
        outcome.counts = verdicts.counts
        outcome.problems = [*line.problems, *_failures(line), *_damage(line, outcome.fired), *verdicts.problems]
        outcome.problems += _refused(line, drawn.faults)
    except (Exception, Endless):
        outcome.problems = [*_failures(line), traceback.format_exc()]
    outcome.simulated_ns = line.time.now_ns
    for machine in line.machines.values():
        outcome.counts.update({f"log {event}": count for event, count in machine.counts.items()})
        outcome.fired.update({f"disk_{name}": count for name, count in machine.disk.fired.items()})
    unanswered = {FED[name][1]: source.unanswered for name, source in line.sources.items()}
    powerless = [name for name, machine in line.machines.items() if machine.disk.fired["power_cut"]]
    outcome.problems = [*outcome.problems, *unexplained(unanswered, powerless, outcome.fired)]
    outcome.lines = [each for machine in line.machines.values() for each in machine.lines]
    outcome.digest = _digest(folder)


def _finish(line: AgentsLine) -> None:
    """A coordinator stops and collects, then the agents end as they are asked to."""
    if line.deployments[-1].result != "committed":
        line.problems.append(f"the last deployment has not ended: {line.deployments[-1]}")
    last = line.finish()
    while last.process.alive and line.time.now_ns < OVER_NS:
        line.time.run_until(line.time.now_ns + SECOND // 10)
    if line.collected is None:
        line.problems.append("what ran could not be collected")
    for machine in line.machines.values():
        machine.stop()
    line.time.run_until(line.time.now_ns + 10 * SECOND)
    line.problems += [f"agent {name} does not end" for name, each in line.machines.items() if each.agent is not None]


def _failures(line: AgentsLine) -> list[str]:
    return [failure for machine in line.machines.values() for failure in machine.failures]


def _damage(line: AgentsLine, fired: Counter[str]) -> list[str]:
    """What the collection could not have: only a disk that failed explains that."""
    if line.collected is None or any(fired[kind] for kind in DISK):
        return []
    return [f"collection: {each}" for each in line.collected.problems]


def _refused(line: AgentsLine, faults: Iterable[Fault]) -> list[str]:
    """A plan is here as long as a peer may send under it, where nothing but deployments happens."""
    if any(fault.kind not in DEPLOYED for fault in faults):
        return []
    refused = {name: machine.counts["tuples_refused_by_peer"] for name, machine in line.machines.items()}
    return [f"tuples of {name} were refused by a peer" for name, count in refused.items() if count]


def _digest(folder: Path) -> str:
    found = sha256()
    for path in sorted(folder.rglob("*.trace")):
        found.update(path.name.encode() + segments.records_in(path.read_bytes()))
    return found.hexdigest()


def shrunk(outcome: Outcome) -> Outcome:
    """The fewest kinds of faults with which this seed still fails."""
    for count in range(min(3, len(outcome.kinds))):
        for kinds in combinations(outcome.kinds, count):
            less = run(outcome.seed, kinds, world=outcome.world or LINE)
            if less.problems:
                return less
    return outcome
